"""Search of the complete lattice for the best node, or the node that job or earlier release give.

The levels of an earlier release must mean the same in both jobs and satisfy the requirements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.certificate import Examination
from core.lattice.lattice import BYTES_PER_CELL, BYTES_PER_CODE, LARGEST, Lattice
from core.lattice.objectives import LevelPrices, prices_of
from core.lattice.search import Search, SearchResult
from core.local_suppression.local_transformation import LIMIT
from core.local_suppression.residual import Residual
from core.privacy.promise import Promise
from core.units.class_table import SelectedPersons, table_at
from core.units.losses import loss_of
from core.units.persons import CellPersons
from schemas.errors.base import PrivacyError, StorageError
from schemas.errors.methods import LevelsError, ReplayError
from schemas.job.job import Job
from schemas.release.evidence import MANIFEST
from schemas.release.manifest import Manifest
from tasks.counting.coding import Coding
from tasks.counting.histograms import ChunkSums, load_histogram
from tasks.counting.person_cells import PersonsOfSource, persons_of
from tasks.engine.calls import raise_if_withdrawn
from tasks.engine.progress import release_memory
from tasks.lattice.promises import most_suppressed, searched_axes
from tasks.release.manifest import MOST_BYTES, hierarchies_as_in, is_of_job, manifest_of
from tasks.store.keys import read_secrets
from tasks.store.place import FolderPlace, Place, target_of

MOST_QIDS = 32
"""Quasi-identifiers beyond which a node costs more than ``method.effort`` allows for: hundreds of them would take hours for as many."""
FEW_QIDS, FEW_CELLS = 16, 1 << 19
"""Quasi-identifiers and cells of a root up to which a node costs no more than half of what ``method.effort`` allows for."""
BRANCHED = 1 << 15
"""Nodes beyond which a lattice above the finest root is not tagged as a whole, which takes longer than branch and bound."""
CACHED_WITH_PERSONS = 2
"""Cells that may be kept where persons count, for each cell that a root may have: to make one anew all visits to the root are read."""


class SearchRequirements(NamedTuple):
    """What a search must keep: the privacy promise, and the persons of the records.

    Attributes:
        people: The persons; None where the job has no person column.
    """

    promise: Promise
    people: PersonsOfSource | None = None

    def persons_of_cells(self, root: Histogram) -> CellPersons | None:
        """Return the persons of the cells of a root; None where the job has no person column."""
        return persons_of(self.people, root).of_cells if self.people else None

    def selected_persons(self, root: Histogram, sensitive: Sequence[Domain]) -> SelectedPersons | None:
        """Return the persons of the cells of a root, all selected; None where the job has no person column.

        Args:
            root: With the sensitive columns as last axes.
        """
        persons = self.persons_of_cells(root)
        return None if persons is None else SelectedPersons.of(persons, [root], sensitive)


def memory_for_cells(job: Job) -> int:
    """Return how many bytes histograms may take: the job's memory, or half where persons count."""
    return job.memory // 2 if job.columns.person else job.memory


def find_best_node(job: Job, coding: Coding, requirements: SearchRequirements, first: Histogram, chunks: ChunkSums) -> SearchResult | None:
    """Search the node of least loss within memory and effort, raising if cancelled; None if none passes.

    Args:
        requirements: The privacy requirements, and the records.
        first: Histogram of the first root.
        chunks: Histograms of the records' chunks at the finest node; not looked at with ``root: dense``.
    """
    memory = memory_for_cells(job)
    limit, cells = most_suppressed(job, coding.records), memory // BYTES_PER_CELL
    method, objective = job.full_domain, job.full_domain.objective
    axes, weights = searched_axes(job, coding), method.weights_of([domain.qid for domain in coding.domains])
    prices = prices_of(objective, coding.hierarchies, coding.domains, len(coding.sensitive), weights=weights)
    if _branches(axes, first.node) or method.root == "dense":
        return _search_above(job, coding, requirements.promise, limit, first, requirements.persons_of_cells(first), prices)

    def count(roots: Sequence[Node]) -> Iterator[Histogram]:
        # What the search of one root kept is in pieces of all sizes, between which the next one's arrays do not fit.
        release_memory()
        for artifact, root in zip(chunks.roots(roots, cells), roots, strict=True):
            release_memory()
            yield load_histogram(artifact, coding, root, chunks.table.store)

    def has_too_many_cells(nodes: Sequence[Node], most: int) -> list[bool]:
        return chunks.nodes_with_too_many_cells(nodes, most, memory // 4)

    examination = Examination(
        axes,
        requirements.promise,
        coding.records,
        requirements.promise.k,
        limit,
        objective,
        cells,
        cells if requirements.people is None else CACHED_WITH_PERSONS * cells,
        method.roots,
        coding.sensitive,
        prices,
        requirements.persons_of_cells,
        raise_if_withdrawn,
    )
    return examination.run(first, count, has_too_many_cells)


def column_broken_by_holders(coding: Coding, requirements: SearchRequirements, histogram: Histogram) -> str | None:
    """Return the column whose too widely held value alone makes one class of all persons fail; else None."""
    if (whose := requirements.selected_persons(histogram, coding.sensitive)) is None:
        return None
    top = tuple(hierarchy.top for hierarchy in coding.hierarchies)
    whole = table_at(histogram, top, coding.hierarchies, coding.sensitive, whose).classes.union(np.ones(1, np.bool_))
    return requirements.promise.column_broken_by_holders(whole.units, whole.spreads)


def find_residual_node(job: Job, coding: Coding, promise: Promise, left: Residual) -> SearchResult | None:
    """Search the best node for suppressed records, at most half suppressed again; None if none passes.

    Args:
        promise: The privacy requirements of every class.
    """
    method, most = job.full_domain, floor(LIMIT * left.records)
    weights = method.weights_of([domain.qid for domain in coding.domains])
    prices = prices_of(method.objective, coding.hierarchies, coding.domains, len(coding.sensitive), left.cells, weights)
    return _search_above(job, coding, promise, most, left.cells, left.persons, prices)


def _search_above(
    job: Job, coding: Coding, promise: Promise, most: int, root: Histogram, persons: CellPersons | None, prices: LevelPrices | None
) -> SearchResult | None:
    """Search the nodes above one root, all of them or by branch and bound; return the best, or None."""
    method, memory, axes = job.full_domain, memory_for_cells(job), searched_axes(job, coding)
    given = root, axes, promise, most, method.objective
    more = coding.sensitive, prices, persons, raise_if_withdrawn
    if _branches(axes, root.node):
        kept = memory // 4 // (BYTES_PER_CODE * (len(coding.axes) + 2))
        return BranchAndBound(Evaluations(*given, kept, *more, effort=_nodes_allowed(method.effort, coding, root))).run()
    return Search(*given, memory // BYTES_PER_CELL, *more).run()


def _branches(axes: Sequence[Hierarchy], root: Node) -> bool:
    """Return whether the search uses branch and bound.

    That is faster, but does not count the passing nodes. Further roots are examined as long as the lattice can be held.
    """
    lattice = Lattice.allowed(axes)
    return lattice.nodes > LARGEST or (lattice.nodes > BRANCHED and root == lattice.root)


def _nodes_allowed(effort: int, coding: Coding, root: Histogram) -> int:
    """Return how many nodes may be rolled up, fewer the more quasi-identifiers there are."""
    qids = len(coding.hierarchies)
    if qids <= FEW_QIDS and root.cells <= FEW_CELLS:
        return 2 * effort
    return max(1, effort * MOST_QIDS // max(MOST_QIDS, qids))


def root_below(job: Job, coding: Coding, search_result: SearchResult, first_root: Histogram, chunks: ChunkSums) -> Histogram:
    """Load the histogram of a searched root that is nowhere coarser than the search result's node."""
    root = next(root for root in search_result.roots if all(low <= level for low, level in zip(root, search_result.node, strict=True)))
    if root == first_root.node:
        return first_root
    return load_histogram(chunks.roots([root], memory_for_cells(job) // BYTES_PER_CELL)[0], coding, root, chunks.table.store)


def replayed_manifest(job: Job) -> Manifest:
    """Return the manifest of the original release that a job replays; raise if job and release differ.

    For a replay of a replay it is the manifest of the original.
    """
    assert job.replay is not None
    (above, name), seen, last = _place_of_replayed(job), set[str](), ""
    while True:
        content = above.read(f"{name}/{MANIFEST}", MOST_BYTES)
        manifest = None if content is None else manifest_of(content, above.location_of(name))
        if manifest is None:
            if last:
                raise ReplayError.origin_gone(last, name)
            remedy = "replay names a release of the target, or its folder relative to the job file"
            raise StorageError.not_a_release(str(job.replay), remedy)
        if manifest.method != job.method.name:
            raise ReplayError.other_method(manifest.release, manifest.method, job.method.name)
        if manifest.replay_of is None:
            break
        # What it replayed was replayed unchanged. A manifest that somebody altered may name any folder, and its own.
        if Path(manifest.replay_of).name != manifest.replay_of or manifest.replay_of in seen:
            raise ReplayError.no_origin(manifest.release)
        seen.add(manifest.replay_of)
        last, name = manifest.release, manifest.replay_of
    known = read_secrets(job)
    mine = hierarchies_as_in(manifest, job, known)
    if not manifest.hierarchies:
        if not is_of_job(manifest, job.model_copy(update={"replay": None}), known):
            raise ReplayError.not_recorded(manifest.release)
    elif list(manifest.hierarchies.items()) != list(mine.items()):
        names = [*mine, *(name for name in manifest.hierarchies if name not in mine)]
        differing = [name for name in names if mine.get(name) != manifest.hierarchies.get(name)]
        raise ReplayError.hierarchies_differ(manifest.release, differing or names)
    return manifest


def _place_of_replayed(job: Job) -> tuple[Place, str]:
    """Return the place of the release that a job replays, and its name: the target's, or else a folder's."""
    assert job.replay is not None
    target, name = target_of(job), job.replay.name
    if str(job.replay) == name and target.exists(f"{name}/{MANIFEST}"):
        return target, name
    return FolderPlace(str(job.replay_path.parent)), job.replay_path.name


def replayed_root(job: Job, coding: Coding) -> Node:
    """Return the original release's node as root.

    Raises ``ReplayError`` if numbers of levels differ, or if the job allows other levels only.
    """
    manifest = replayed_manifest(job)
    assert manifest.node is not None
    tops = {hierarchy.qid: hierarchy.top for hierarchy in coding.hierarchies}
    if differing := [qid for qid, top in manifest.tops.items() if tops.get(qid) != top]:
        raise ReplayError.levels_differ(manifest.release, differing)
    allowed, named = job.full_domain.levels, zip(coding.hierarchies, manifest.node, strict=True)
    if outside := [axis.qid for axis, level in named if (span := allowed.get(axis.qid)) and not span[0] <= level <= span[1]]:
        raise ReplayError.levels_not_allowed(manifest.release, outside)
    return manifest.node + (0,) * len(coding.sensitive)


def apply_given_node(job: Job, coding: Coding, requirements: SearchRequirements, histogram: Histogram) -> SearchResult:
    """Return the unsearched result for the node of ``histogram``; raise if it suppresses over the limit."""
    whose = requirements.selected_persons(histogram, coding.sensitive)
    classes = table_at(histogram, histogram.node, coding.hierarchies, coding.sensitive, whose).classes
    loss = loss_of(classes.records, classes.failing(requirements.promise))
    most = most_suppressed(job, coding.records)
    if loss.suppressed > most:
        raise given_node_error(job, loss.suppressed, coding.records, most)
    nodes = Lattice.allowed(searched_axes(job, coding)).nodes
    return SearchResult(histogram.node, loss, None, nodes, 1, nodes - 1, (histogram.node,))


def given_node_error(job: Job, suppressed_records: int, record_count: int, limit: int) -> PrivacyError:
    """Return (not raise) the error that a replayed or named node suppresses more than the limit."""
    if job.replay is None:
        return LevelsError.node_fails(suppressed_records, record_count, limit)
    return PrivacyError.replay_fails(job.replay.name, suppressed_records, record_count, limit)
