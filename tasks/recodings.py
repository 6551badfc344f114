"""Phase 2's second half: choose a root, search the lattice above it, and make the recoding of the node that won."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from core.hierarchy import build_hierarchy, check_static
from core.histogram import Histogram
from core.lattice import Lattice, Node
from core.losses import c_avg, certainty_penalty, dm
from core.privacy import Closeness, DistinctDiversity, EntropyDiversity, KAnonymity, PrivacyModel, RecursiveDiversity, all_of
from core.recoding import Recoding, read_recoding, recode, recoding_tables
from core.rollups import roll_up
from core.roots import dense_root, occupied_root
from core.search import Found
from core.sensitive import classes_of, without_sensitive
from schemas.columns import QuasiIdentifier
from schemas.errors import PrivacyError
from schemas.job import Job
from schemas.job_digest import privacy_content
from schemas.method import full_domain
from tasks.artifacts import Artifact, Store, key_of
from tasks.coding import Coding, load_coding
from tasks.examination import Sought, below, examine, most_suppressed
from tasks.histograms import load_histogram
from tasks.lattice_maps import has_map, keep_map
from tasks.replay import applied, replayed_root
from tasks.tables import read_table

VERSION = 2


class Outcome(BaseModel):
    """What the search found, in figures that may be published.

    Attributes:
        node: Level of each QID, in job order.
        root: The first and most precise root, and all ``roots`` in the order in which they were searched.
        suppressed: s, records in classes that fail.
        masked: How many of them are published with ``*``.
        classes: Published classes, the mask included.
        passing: Nodes that are known to pass, of ``nodes``, or None if they were not counted; ``evaluated`` were rolled up.
        unexamined: Nodes that could be better; 0 certifies the optimum.
        bound: What no node above the roots is below, as the objective measures it, where that is known and tells more.
        gap: By what share of it the node is above it.
        cells: Occupied cells of the root below ``node``.
        whole: Whether the first root is the finest node that may be published.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, suppressed records counting as 1.
        suppressed_for: Suppressed records by what they lacked: ``k`` records with their groups, or the ``spread`` of sensitive values.
    """

    model_config = ConfigDict(frozen=True)

    node: Node
    root: Node
    roots: tuple[Node, ...]
    suppressed: int
    masked: int
    classes: int
    passing: int | None
    nodes: int
    evaluated: int
    unexamined: int
    bound: int | float | None = None
    gap: float | None = None
    cells: int
    whole: bool | None = None
    loss: dict[str, int | float]
    ncp: dict[str, float]
    suppressed_for: dict[str, int] = {}


class RecodingArtifacts(BaseModel):
    """The outcome (JSON), the cells with their classes, and the classes with their labels (Parquet)."""

    model_config = ConfigDict(frozen=True)

    outcome: Artifact
    cells: Artifact
    classes: Artifact


def privacy_model(job: Job, coding: Coding) -> PrivacyModel:
    """Returns what every class must satisfy.

    Raises:
        HierarchyError: the hierarchy of a hierarchical distance does not fit the column.
    """
    models: list[PrivacyModel] = [KAnonymity(job.privacy.k)]
    for column, diversity in job.privacy.l.items():
        if diversity.distinct is not None:
            models.append(DistinctDiversity(column, diversity.distinct))
        elif diversity.entropy is not None:
            models.append(EntropyDiversity(column, float(diversity.entropy)))
        elif diversity.recursive is not None:
            models.append(RecursiveDiversity(column, Fraction(diversity.recursive.c), diversity.recursive.l))
    domains = {domain.qid: domain for domain in coding.sensitive}
    for column, closeness in job.privacy.t.items():
        domain = domains[column]
        ranks = np.arange(domain.size, dtype=np.int64) if closeness.distance == "ordered" else None
        groups: tuple[NDArray[np.int64], ...] = ()
        if closeness.hierarchy is not None:
            hierarchy = build_hierarchy(QuasiIdentifier(name=column, hierarchy=closeness.hierarchy), domain, job.folder)
            groups = tuple(level.astype(np.int64) for level in hierarchy.groups[1:])
        models.append(Closeness(column, float(closeness.t), ranks, groups))
    return all_of(models)


def check_hierarchies(job: Job) -> None:
    """Refuses hierarchies that are wrong whatever the data hold, before any of them is read.

    Raises:
        HierarchyError: a file that cannot be read, ragged rows, labels that do not nest.
    """
    for qid in job.columns.quasi_identifiers:
        check_static(qid, job.folder)
    for column, closeness in job.privacy.t.items():
        if closeness.hierarchy is not None:
            check_static(QuasiIdentifier(name=column, hierarchy=closeness.hierarchy), job.folder)


def choose_root(job: Job, coding: Coding) -> Node:
    """Returns the finest node whose histogram fits the job's memory; where an earlier release is replayed, its node.

    Raises:
        ReplayError: the node does not mean the same over these data.
        PrivacyError: there are fewer than k records, or memory is too small even for the top.
    """
    if coding.records < job.privacy.k:
        raise PrivacyError.too_few_records(job.privacy.k, coding.records)
    if job.replay is not None:
        return replayed_root(job, coding)
    if full_domain(job.method).root == "dense":
        root = dense_root(coding.axes, job.memory)
    else:
        root = occupied_root(coding.axes, job.memory, coding.records)
    if root is None:
        raise PrivacyError.memory_too_small(job.memory)
    return root


def search_key(job: Job, coding: Coding, root: Node, histogram: Artifact) -> str:
    """Returns the fingerprint of all that the search depends on."""
    method = full_domain(job.method)
    return key_of(
        VERSION, histogram.sha256, coding.key, root, privacy_content(job), most_suppressed(job, coding.records),
        method.objective, method.roots, method.effort, job.suppression.treatment, job.intervals,
        *([] if job.replay is None else ["replay"]),
    )  # fmt: skip


def search(job: Job, domain: Artifact, root: Node, histogram: Artifact, parts: Sequence[Artifact], store: Store) -> RecodingArtifacts:
    """Finds the best node and makes its recoding.

    Args:
        job: The job.
        domain: The domain table.
        root: The first root, and with ``root: dense`` the only one.
        histogram: Its cells.
        parts: The chunks' histograms, from which further roots are added up.
        store: Gets the recoding.

    Raises:
        PrivacyError: the best node would suppress everything, or the replayed one more than the limit allows.
    """
    coding = load_coding(job, domain, store)
    key = search_key(job, coding, root, histogram)
    if (kept := _kept(store, key)) and (has_map(store, key) or read_outcome(kept, store).passing is None):
        return kept
    counted, model = load_histogram(histogram, coding, root, store), privacy_model(job, coding)
    sought = Sought(model, coding.records, job.privacy.k)
    found = applied(job, coding, sought, counted) if job.replay else examine(job, coding, sought, counted, parts, store)
    # The top is one class of all N ≥ k records, so a node is always found.
    if found is None or found.loss.suppressed == coding.records:
        raise PrivacyError.nothing_left(coding.records)
    counted = below(job, coding, found, counted, parts, store)
    cells = roll_up(counted, found.node, coding.axes)
    chosen, spreads = without_sensitive(cells, coding.hierarchies), classes_of(cells, coding.sensitive).spreads
    recoding = recode(chosen, coding.hierarchies, model, job.suppression.treatment, job.intervals, spreads)
    published = Published(chosen, ~model.fails(chosen.counts, spreads))
    outcome = _outcome(job, coding, counted, found, published, recoding)
    cells, classes = recoding_tables(recoding)
    if found.statuses is not None:
        keep_map(job, found.statuses, outcome.node, store, key)
    return RecodingArtifacts(
        outcome=store.make("outcome", key, ".json", lambda path: path.write_text(outcome.model_dump_json())),
        cells=store.make("cells", key, ".parquet", lambda path: _write(path, cells)),
        classes=store.make("classes", key, ".parquet", lambda path: _write(path, classes)),
    )


class Published(NamedTuple):
    """The cells of the chosen node, and which of them are published."""

    cells: Histogram
    kept: NDArray[np.bool_]


def _kept(store: Store, key: str) -> RecodingArtifacts | None:
    found = {step: store.find(step, key) for step in RecodingArtifacts.model_fields}
    return None if None in found.values() else RecodingArtifacts.model_validate(found)


def _outcome(job: Job, coding: Coding, root: Histogram, found: Found, chosen: Published, recoding: Recoding) -> Outcome:
    records, suppressed, qids = coding.records, found.loss.suppressed, len(coding.hierarchies)
    node, cells, kept = found.node[:qids], chosen.cells, chosen.kept
    groups, counts, lost = [codes[kept] for codes in cells.groups], cells.counts[kept], cells.counts[~kept]
    few = int(lost[lost < job.privacy.k].sum())
    ncp = {
        hierarchy.qid: certainty_penalty(hierarchy, domain, level, codes, counts, suppressed)
        for hierarchy, domain, level, codes in zip(coding.hierarchies, coding.domains, node, groups, strict=True)
    }
    allowed = Lattice.allowed(coding.hierarchies)
    return Outcome(
        node=node,
        root=found.roots[0][:qids],
        roots=tuple(root[:qids] for root in found.roots),
        suppressed=suppressed,
        masked=int(recoding.sizes.sum()) - (records - suppressed),
        classes=len(recoding.sizes),
        passing=found.passing,
        nodes=found.nodes,
        evaluated=found.evaluated,
        unexamined=found.unexamined,
        bound=found.bound,
        gap=found.gap,
        cells=root.cells,
        whole=found.roots[0][:qids] == allowed.root,
        loss={
            "dm": dm(counts, suppressed, records),
            "dm_star": found.loss.dm_star,
            "dm_all": found.loss.dm_all,
            "gcp": sum(ncp.values()) / len(ncp),
            "precision": float(allowed.precision(node)),
            "c_avg": c_avg(records - suppressed, len(counts), job.privacy.k),
            "suppression_rate": suppressed / records,
        }
        | found.measured,
        ncp=ncp,
        suppressed_for={what: number for what, number in (("k", few), ("spread", int(lost.sum()) - few)) if number},
    )


def read_outcome(artifacts: RecodingArtifacts, store: Store) -> Outcome:
    """Reads what the search found."""
    return Outcome.model_validate_json(store.path(artifacts.outcome).read_bytes())


_loaded: dict[tuple[str, ...], Recoding] = {}
_loading = Lock()


def load_recoding(job: Job, coding: Coding, artifacts: RecodingArtifacts, store: Store) -> Recoding:
    """Reads a recoding from its tables, once per process."""
    key = (*coding.key, artifacts.cells.sha256, artifacts.classes.sha256, job.intervals)
    with _loading:
        if key not in _loaded:
            _loaded.clear()
            _loaded[key] = read_recoding_of(coding, artifacts, job.intervals, store)
        return _loaded[key]


def read_recoding_of(coding: Coding, artifacts: RecodingArtifacts, intervals: Literal["text", "bounds"], store: Store) -> Recoding:
    """Reads a recoding of cells: at the node that its outcome names, or at the finest if each class has labels of its own."""
    cells, classes = read_table(store, artifacts.cells), read_table(store, artifacts.classes)
    node = json.loads(store.path(artifacts.outcome).read_bytes()).get("node", coding.finest[: len(coding.hierarchies)])
    return read_recoding(cells, classes, tuple(node), coding.hierarchies, intervals)


def _write(path: Path, table: pa.Table) -> int:
    pq.write_table(table, path, compression="lz4", write_statistics=False)
    return len(table)
