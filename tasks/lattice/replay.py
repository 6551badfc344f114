"""Replays: the levels of an earlier release applied to other data, without a search.

They must mean the same in both jobs and satisfy the requirements.
"""

from __future__ import annotations

from pathlib import Path

from core.columns.domains import Node
from core.histograms.histogram import Histogram
from core.lattice.lattice import Lattice
from core.lattice.search import SearchResult
from core.units.class_table import table_at
from core.units.losses import loss_of
from schemas.errors.base import PrivacyError, StorageError
from schemas.errors.methods import LevelsError, ReplayError
from schemas.job.job import Job
from schemas.job.method import full_domain
from schemas.release.evidence import MANIFEST
from schemas.release.manifest import Manifest
from tasks.counting.coding import Coding
from tasks.lattice.optimum import SearchRequirements
from tasks.lattice.promises import most_suppressed, searched_axes
from tasks.release.manifest import MOST_BYTES, hierarchies_as_in, is_of_job, manifest_of
from tasks.store.keys import read_secrets
from tasks.store.place import FolderPlace, Place, target_of


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
    allowed, named = full_domain(job.method).levels, zip(coding.hierarchies, manifest.node, strict=True)
    if outside := [axis.qid for axis, level in named if (span := allowed.get(axis.qid)) and not span[0] <= level <= span[1]]:
        raise ReplayError.levels_not_allowed(manifest.release, outside)
    return manifest.node + (0,) * len(coding.sensitive)


def apply_given_node(job: Job, coding: Coding, requirements: SearchRequirements, histogram: Histogram) -> SearchResult:
    """Return the unsearched result for the node of ``histogram``; raise if it suppresses over the limit."""
    whose = requirements.selected_persons(histogram, coding.sensitive)
    classes = table_at(histogram, histogram.node, coding.hierarchies, coding.sensitive, whose).classes
    loss = loss_of(classes.records, classes.failing(requirements.promise))
    most = most_suppressed(job, requirements.records)
    if loss.suppressed > most:
        raise given_node_error(job, loss.suppressed, requirements.records, most)
    nodes = Lattice.allowed(searched_axes(job, coding)).nodes
    return SearchResult(histogram.node, loss, None, nodes, 1, nodes - 1, (histogram.node,))


def given_node_error(job: Job, suppressed_records: int, record_count: int, limit: int) -> PrivacyError:
    """Return (not raise) the error that a replayed or named node suppresses more than the limit."""
    if job.replay is None:
        return LevelsError.node_fails(suppressed_records, record_count, limit)
    return PrivacyError.replay_fails(job.replay.name, suppressed_records, record_count, limit)
