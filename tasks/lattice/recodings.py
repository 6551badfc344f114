"""Phase 2: choice of a root, search of the lattice above it, its map, and recoding to the best node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from core.columns.domains import Node
from core.hierarchies.hierarchy import check_recounted, check_static
from core.histograms.histogram import Histogram
from core.lattice.lattice import Lattice, dense_root, occupied_root
from core.lattice.search import LatticeMap, SearchResult, Statuses, map_of
from core.local_suppression.recoding import stages_table
from schemas.errors.base import JobError, PrivacyError
from schemas.errors.hierarchies import HierarchyError
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.counting.coding import Coding, DomainTable
from tasks.counting.histograms import ChunkSums, fingerprints, has_given_node, load_histogram, sums_of_chunks
from tasks.counting.person_cells import PersonsOfSource, persons_of
from tasks.engine.progress import release_memory
from tasks.engine.runs import Run
from tasks.engine.steps import remote_takes_all_chunks, run_for_item
from tasks.lattice.kept_recodings import OF_CELLS, RecodingArtifacts, read_recoding_artifacts, write_recoding_of_cells
from tasks.lattice.linked_people import best_linked_node, keeps_linked, write_withheld
from tasks.lattice.node_recodings import Local, RecodingWithLosses, recode_locally, recode_node
from tasks.lattice.optimum import (
    SearchRequirements,
    apply_given_node,
    column_broken_by_holders,
    find_best_node,
    memory_for_cells,
    replayed_root,
    root_below,
)
from tasks.lattice.promises import (
    check_at_least_k,
    class_settings,
    named_node,
    no_class_error,
    promise_of,
    promise_of_people,
    searched_axes,
)
from tasks.store.keys import Key
from tasks.store.step import FilesStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import write_undeclared_table

MAP = "lattice"
_MAP_JSON = TypeAdapter(LatticeMap)


def has_map(store: Store, key: Key) -> bool:
    """Return whether the lattice map of a search is in the store."""
    return store.find(MAP, key) is not None


def write_map(job: Job, statuses: Statuses, node: Node, store: Store, key: Key) -> Artifact:
    """Write the lattice map of a search to the store as JSON; return its artefact.

    Args:
        job: Gives the names.
        statuses: In the shape of the searched lattice; sensitive columns are axes of one level, after the QIDs.
        node: The chosen node.
    """
    names = [qid.name for qid in job.columns.quasi_identifiers]

    def write(path: Path) -> int:
        path.write_bytes(map_json(map_of(job.name, names, statuses.reshape(statuses.shape[: len(names)]), node)))
        return 1

    return store.make(MAP, key, ".json", write)


def read_map(outcome: Artifact, store: Store) -> LatticeMap | None:
    """Return the stored lattice map of the search with this outcome; None if there is none."""
    kept = store.find(MAP, outcome.key)
    return _MAP_JSON.validate_json(store.path(kept).read_bytes()) if kept else None


def map_json(drawn: LatticeMap) -> bytes:
    """Return a lattice map as the bytes of indented JSON."""
    return _MAP_JSON.dump_json(drawn, indent=2)


class Outcome(FrozenModel):
    """Node, roots, suppression, losses and certificate of a lattice search and its recoding.

    Attributes:
        node: Level of each QID, in job order.
        root: The first and most precise root, and all ``roots`` in the order in which they were searched.
        suppressed: s, records in classes that fail.
        masked: How many of them are published with ``*``.
        local: Figures of records that fail at ``node`` but are treated locally; these are not among ``suppressed``.
        classes: Published classes, the mask included.
        nodes_passing: Nodes that are known to pass, of ``nodes``, or None if they were not counted; ``evaluated`` were rolled up.
        unexamined: Nodes that could be better; 0 certifies the optimum.
        bound: Lower bound on the objective of all nodes above the roots, where known and useful.
        gap: The node's objective above ``bound``, as a share of it.
        cells: Occupied cells of the root below ``node``.
        lattice_is_complete: Whether the first root is the finest node that may be published.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, suppressed records counting as 1.
        suppressed_for: Suppressed records by the failed requirement: ``k``, or the ``spread`` of sensitive values.
        people: Persons of the source, and records of the one who has most; None where the job has no person column.
        linked: Nodes that were tried so that k people share each set of classes; 0 where the best node did it without suppressing more.
    """

    node: Node
    root: Node
    roots: tuple[Node, ...]
    suppressed: int
    masked: int
    classes: int
    nodes_passing: int | None
    nodes: int
    evaluated: int
    unexamined: int
    bound: int | float | None = None
    gap: float | None = None
    cells: int
    lattice_is_complete: bool | None = None
    loss: dict[str, int | float]
    ncp: dict[str, float]
    suppressed_for: dict[str, int] = {}
    local: Local | None = None
    people: tuple[int, int] | None = None
    linked: int = 0


def check_hierarchies(job: Job) -> None:
    """Raise for hierarchies that are invalid on any data: ``HierarchyError``, ``JobError`` if several."""
    qids, faults = list(job.columns.quasi_identifiers), []
    for column, closeness in job.privacy.t.items():
        if closeness.hierarchy is not None:
            qids.append(QuasiIdentifier(name=column, hierarchy=closeness.hierarchy))
    for qid in qids:
        try:
            check_recounted(qid)
            check_static(qid, job.folder)
        except HierarchyError as fault:
            faults.append(fault)
    if len(faults) > 1:
        raise JobError(str(job.folder), [str(fault) for fault in faults])
    if faults:
        raise faults[0]


def choose_root(job: Job, coding: Coding) -> Node:
    """Return the given node, else the finest root that fits memory; raise ``PrivacyError`` if none."""
    check_at_least_k(job, coding.records)
    if job.replay is not None:
        return replayed_root(job, coding)
    if node := named_node(job, coding):
        return node
    memory, axes = memory_for_cells(job), searched_axes(job, coding)
    dense = job.full_domain.root == "dense"
    root = dense_root(axes, memory) if dense else occupied_root(axes, memory, coding.records)
    if root is None:
        raise PrivacyError.memory_too_small(job.memory)
    return root


class SearchedCells(NamedTuple):
    """Histograms that a lattice search starts from: first root, chunks and person–cell pairs.

    Attributes:
        root: The first root, and with ``root: dense`` the only one.
        parts: The chunks' histograms, from which further roots are added up.
        pairs: Their pairs of person and cell; none where the job has no person column.
        chunks: Counts the cells of further roots; without it the searching process reads the chunks' histograms.
    """

    root: Node
    histogram: Artifact
    parts: Sequence[Artifact]
    pairs: Sequence[Artifact]
    chunks: ChunkSums | None = None


def _read(given: DomainTable, cells: SearchedCells) -> list[object]:
    """Return the keys of a search's inputs."""
    # Chunks tell more than their sum at a root that is not the finest.
    further = [] if cells.root == given.coding.finest else fingerprints(cells.parts)
    return [cells.histogram.sha256, cells.root, further, fingerprints(cells.pairs)]


def _settings(given: DomainTable) -> list[object]:
    """Return the job settings that determine a search's result."""
    job = given.job
    # How much is examined, the memory decides; and the picture of the lattice has the job's name.
    return [*class_settings(job, given.coding), job.memory, job.suppression.rounds, job.replay is not None, job.name]


def _search(given: DomainTable, cells: SearchedCells) -> RecodingArtifacts:
    """Find the best node and make its recoding."""
    job, store, coding = given.job, given.store, given.coding
    key, (root, histogram, parts, pairs, chunks) = SEARCH.key(given, cells), cells
    if (kept := _kept(job, store, key)) and (has_map(store, key) or store.read_model(kept.outcome, Outcome).nodes_passing is None):
        return kept
    counted = load_histogram(histogram, coding, root, store)
    people = PersonsOfSource(coding, parts, pairs, store, job.memory) if job.columns.person else None
    whose = count_enough_persons(job, people, counted)
    promise = promise_of(job, coding) if people is None else promise_of_people(job, coding, counted, persons_of(people, counted))
    sought = SearchRequirements(promise, people)
    chunks = chunks or ChunkSums(given, parts)
    found = apply_given_node(job, coding, sought, counted) if has_given_node(job) else find_best_node(job, coding, sought, counted, chunks)
    # The top is one class of all, k persons or more, so a node is always found, unless the job leaves the top out.
    if found is None or found.loss.suppressed == coding.records:
        raise no_class_error(job, coding, column_broken_by_holders(coding, sought, counted))
    counted = root_below(job, coding, found, counted, chunks)
    release_memory()
    linked = best_linked_node(job, coding, sought, found, counted) if keeps_linked(job) else None
    sought_alone, found = found, linked.with_linked_loss(found) if linked else found
    if job.suppression.is_local:
        made = recode_locally(job, coding, sought, found, counted, parts, store)
    else:
        whose_cells = None if linked else sought.selected_persons(counted, coding.sensitive)
        made = recode_node(job, coding, promise, found, counted, whose_cells, linked)
    outcome = _outcome(coding, counted, found, made).model_copy(
        update={"people": whose, "linked": 0 if linked is None or found is sought_alone else linked.evaluated}
    )
    if found.statuses is not None:
        write_map(job, found.statuses, outcome.node, store, key)
    later = store.make("later", key, ".parquet", partial(write_undeclared_table, stages_table(made.recoding.later))) if made.local else None
    withheld = store.make("withheld", key, ".npy", partial(write_withheld, linked)) if linked else None
    return write_recoding_of_cells(store, key, made.recoding, outcome).model_copy(update={"later": later, "withheld": withheld})


SEARCH = FilesStep("search", make=_search, reads=_read, settings=_settings)
"""The search of the lattice, and the recoding of the node that won."""


def search_lattice(
    run: Run, domain: Artifact, root: Node, histogram: Artifact, chunk_histograms: Sequence[Artifact], pairs: Sequence[Artifact]
) -> RecodingArtifacts:
    """Search the best node (phase 2); return the artefacts of its recoding, stored or made."""
    job, cells = run.job, SearchedCells(root, histogram, chunk_histograms, pairs)
    # Whose the records are, and what becomes of single ones that are left, is read record by record: where a worker may take as much
    # memory as the flow, it searches. Else the flow does, and has further roots counted. A release that is replayed is here.
    elsewhere = bool(pairs or job.suppression.is_local) and job.replay is None and remote_takes_all_chunks(run)
    if not elsewhere:
        cells = cells._replace(chunks=sums_of_chunks(run, domain, chunk_histograms))
    return run_for_item(run, SEARCH, DomainTable.of(run, domain), cells, "search", elsewhere=elsewhere)


def count_enough_persons(job: Job, people: PersonsOfSource | None, root: Histogram) -> tuple[int, int] | None:
    """Return the number of persons and the most records of one; raise if fewer than k, None for records.

    None where the job has no person column.
    """
    if people is None:
        return None
    whose = persons_of(people, root)
    check_at_least_k(job, whose.number, "person")
    return whose.number, whose.most_records


def _kept(job: Job, store: Store, key: Key) -> RecodingArtifacts | None:
    further = [*(["later"] if job.suppression.is_local else []), *(["withheld"] if keeps_linked(job) else [])]
    return read_recoding_artifacts(store, key, OF_CELLS | {step: step for step in further})


def _outcome(coding: Coding, root: Histogram, found: SearchResult, made: RecodingWithLosses) -> Outcome:
    """Collect the outcome of a search and its recoding."""
    qids = len(coding.hierarchies)
    return Outcome(
        node=found.node[:qids],
        root=found.roots[0][:qids],
        roots=tuple(root[:qids] for root in found.roots),
        suppressed=made.suppressed,
        masked=made.masked,
        classes=len(made.recoding.sizes),
        nodes_passing=found.nodes_passing,
        nodes=found.nodes,
        evaluated=found.evaluated,
        unexamined=found.unexamined,
        bound=found.bound,
        gap=found.gap,
        cells=root.cells,
        lattice_is_complete=found.roots[0][:qids] == Lattice.allowed(coding.hierarchies).root,
        loss=made.loss,
        ncp=made.ncp,
        suppressed_for=made.suppressed_for,
        local=made.local,
    )
