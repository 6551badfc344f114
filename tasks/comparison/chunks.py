"""The steps of ``skald compare``: histograms of units at full resolution, the best node of each chunk and of all, and the recount.

No scan depends on k or on the number of chunks. Each unit, the smallest chunk, is counted once at full resolution; larger chunks and the
coarser roots that memory demands are made of these counts. Only one chunk's histogram is in memory at a time, or one per worker where
they are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from core.columns.node import Node
from core.evaluation.per_chunk_baseline import Published, concatenated_sql
from core.histograms.histogram import Histogram
from core.lattice.roots import dense_root, occupied_root
from core.lattice.search import Found
from core.losses.losses import certainty_penalty
from core.persons.node_cells import cells_at
from core.privacy.models import KAnonymity
from schemas.errors.base import JobError, PrivacyError
from schemas.errors.methods import ComparisonError
from schemas.job.job import Job
from schemas.job.method import full_domain
from schemas.job.objectives import OBJECTIVES
from schemas.tables import histogram_schema
from tasks.counting.chunk_histograms import cell_table
from tasks.counting.coding import Coding, load_coding
from tasks.counting.further_roots import ChunkSums
from tasks.counting.histograms import fingerprints, load_histogram
from tasks.counting.visits import People
from tasks.lattice.levels import searched
from tasks.lattice.optimum import Sought, below, examine, memory_for_cells
from tasks.lattice.promises import most_suppressed
from tasks.source.chunks import Chunk, Source
from tasks.store.database import connect, literal
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store
from tasks.store.tables import write_table

OPTIMA, RECOUNTS = Step("optima", __name__), Step("recounts", __name__)


class Portion(BaseModel):
    """The records of one chunk, or of all: their histogram at the finest node that the memory can hold.

    Attributes:
        histogram: The cells of ``root``.
        root: Level 0 of every QID where memory allows.
        records: How many records there are.
        parts: Histograms at the finest node that add up to these records, from which further roots can be made.
        pieces: The same by pieces of the source, each with its ``pairs`` of person and cell; none where no person is named.
    """

    model_config = ConfigDict(frozen=True)

    histogram: Artifact
    root: Node
    records: int
    parts: tuple[Artifact, ...] = ()
    pieces: tuple[Artifact, ...] = ()
    pairs: tuple[Artifact, ...] = ()


class Optimum(BaseModel):
    """The best node of one portion at one k, in figures that may be shown.

    Attributes:
        k: Least size of a class, in persons where they are named.
        records: N.
        node: Level of each QID; None where no node passes, as with k > N: then nothing is released and all records are suppressed.
        classes: Published classes.
        suppressed: s.
        dm_star: Σ|E|² + s² (eq. 4).
        gcp: Mean normalised certainty penalty; a suppressed record counts as 1.
        unexamined: Nodes finer than the root that could be better; 0 certifies the optimum.
    """

    model_config = ConfigDict(frozen=True)

    k: int
    records: int
    node: Node | None
    classes: int
    suppressed: int
    dm_star: int
    gcp: float
    unexamined: int


class OptimumArtifacts(BaseModel):
    """An optimum (JSON), and its published classes with their sizes (Parquet)."""

    model_config = ConfigDict(frozen=True)

    optima: Artifact
    optima_classes: Artifact


class Recounted(BaseModel):
    """The classes of concatenated releases: how many, and Σ|E|²."""

    model_config = ConfigDict(frozen=True)

    classes: int
    squares: int


def check_objective(job_file: Path, job: Job) -> None:
    """Refuses an objective that the experiment is not about: it compares DM*, or DM over all cells.

    Raises:
        JobError: another objective.
    """
    objective = full_domain(job.method).objective
    if not OBJECTIVES[objective].of_classes:
        taken = " or ".join(name for name, one in OBJECTIVES.items() if one.of_classes)
        raise JobError(str(job_file), [f"method.objective: skald compare takes {taken}, not {objective}"])


def check_experiment(source: Source, chunks: Sequence[int], ks: Sequence[int], *, cut: bool) -> None:
    """Refuses numbers of chunks and k that no experiment can be made of.

    Raises:
        ComparisonError: more chunks than records, or with ``cut`` numbers that do not divide the largest.
        PrivacyError: k exceeds the records of the whole source. (In a chunk it may: that chunk is then suppressed as a whole.)
    """
    most = max(chunks)
    if most > source.records:
        raise ComparisonError.too_many_chunks(most, source.records)
    if cut and (odd := [number for number in chunks if most % number]):
        raise ComparisonError.not_dividing(odd[0], most)
    if max(ks) > source.records:
        raise PrivacyError.too_few(max(ks), source.records)


def cut_source(source: Source, units: int) -> list[list[Chunk]]:
    """Cuts the source into units of equal size to within one record, in the order of files and rows.

    A unit that is a chunk of the source stays one, so that what a run has counted is found again.
    """
    cuts: list[list[Chunk]] = []
    ends = np.cumsum([chunk.rows for chunk in source.chunks])
    for number in range(units):
        # Whole numbers all the way: a border that is rounded twice could leave a record out, or count it twice.
        first, last = (source.records * border // units for border in (number, number + 1))
        pieces = []
        # A chunk's end is where the next one begins: "right" passes over a chunk that ends just where this unit begins.
        for position in range(int(np.searchsorted(ends, first, "right")), int(np.searchsorted(ends, last, "left")) + 1):
            chunk = source.chunks[position]
            start = int(ends[position]) - chunk.rows
            low, high = max(first, start), min(last, start + chunk.rows)
            pieces.append(chunk.part(low - start, high - start))
        cuts.append(pieces)
    return cuts


def root_of(job: Job, coding: Coding, records: int, *, bins: bool) -> Node:
    """Returns the finest node whose histogram fits the job's memory for so many records.

    Args:
        job: The job.
        coding: Domains and hierarchies.
        records: Of the portion.
        bins: Whether the job's ``method.root`` counts; else the occupied cells do, at full resolution wherever these fit.

    Raises:
        PrivacyError: not even the top fits.
        HierarchyError: the job names levels that there are not, or that may not be published.
    """
    axes = searched(job, coding)[: len(coding.hierarchies)]
    if bins and full_domain(job.method).root == "dense":
        root = dense_root(axes, memory_for_cells(job))
    else:
        root = occupied_root(axes, memory_for_cells(job), records)
    if root is None:
        raise PrivacyError.memory_too_small(job.memory)
    return root


def optima_key(job: Job, coding: Coding, portion: Portion, k: int) -> Key:
    """Returns the key of an optimum."""
    # k and the records allowed, not the job's own k: experiments with other numbers of chunks ask for the same optimum again.
    read = fingerprints([portion.histogram]), fingerprints(portion.parts), fingerprints(portion.pairs), coding.key, portion.root
    return OPTIMA.key(*read, k, most_suppressed(job, portion.records), full_domain(job.method).canonical(), job.memory)


def search_portions(job: Job, domain: Artifact, ks: Sequence[int], store: Store, portion: Portion) -> list[OptimumArtifacts]:
    """Finds the best node of a portion for every k, loading its histogram once.

    Raises:
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: artefacts are gone.
        HierarchyError: a hierarchy has no such level, or none within that may be published.
    """
    coding = load_coding(job, domain, store)
    keys = [optima_key(job, coding, portion, k) for k in ks]
    found = [_kept(store, key) for key in keys]
    if None in found:
        histogram, published = load_histogram(portion.histogram, coding, portion.root, store), Published.of(coding.hierarchies)
        people = People(coding, portion.pieces, portion.pairs, store, job.memory) if job.columns.person else None
        found = [
            kept or _make(job, coding, published, Searched(histogram, portion.parts, people), k, key, store)
            for kept, k, key in zip(found, ks, keys, strict=True)
        ]
    return [artifacts for artifacts in found if artifacts]


def _kept(store: Store, key: Key) -> OptimumArtifacts | None:
    found = {step: store.find(step, key) for step in OptimumArtifacts.model_fields}
    # Both or neither: after a kill between the two an optimum would be there whose classes could not be recounted.
    return None if None in found.values() else OptimumArtifacts.model_validate(found)


class Searched(NamedTuple):
    """The histogram of a portion's first root, what further ones are added up from, and whose the records are if persons are named."""

    first: Histogram
    parts: tuple[Artifact, ...]
    people: People | None


def _make(job: Job, coding: Coding, published: Published, searched: Searched, k: int, key: Key, store: Store) -> OptimumArtifacts:
    first, parts, people = searched
    # The limit is taken of these records alone: a chunk that is anonymised alone cannot borrow from another.
    sought = Sought(KAnonymity(k), first.records, k, people)
    chunks = ChunkSums(parts, store)
    found = examine(job, coding, sought, first, chunks)
    histogram = below(job, coding, found, first, chunks) if found else first
    optimum, classes = _optimum(coding, published, histogram, sought, found)
    words = len(published.packing.words)
    return OptimumArtifacts(
        optima=store.make("optima", key, ".json", lambda path: path.write_text(optimum.model_dump_json())),
        optima_classes=store.make(
            "optima_classes", key, ".parquet", lambda path: write_table(path, classes, histogram_schema(words), "optima_classes")
        ),
    )


def _optimum(coding: Coding, published: Published, histogram: Histogram, sought: Sought, found: Found | None) -> tuple[Optimum, pa.Table]:
    records, k = histogram.records, sought.k
    # A limit of 1 lets a node pass that publishes nothing: that is a lost chunk, not an optimum.
    if found is None or found.loss.suppressed == records:
        nothing = cell_table(tuple(np.empty(0, np.int64) for _ in published.packing.words), np.empty(0, np.int64))
        # Eq. 4 with s = N. At 0 a chunk that cannot be released at all would look like the best of them.
        return Optimum(k=k, records=records, node=None, classes=0, suppressed=records, dm_star=records**2, gcp=1, unexamined=0), nothing
    at = cells_at(histogram, found.node, coding.hierarchies, (), sought.visits_to(histogram))
    chosen, kept = at.cells, ~sought.model.fails(at.persons, {})
    counts, suppressed = chosen.counts[kept], found.loss.suppressed
    penalties = [
        certainty_penalty(hierarchy, domain, level, codes[kept], counts, suppressed)
        for hierarchy, domain, level, codes in zip(coding.hierarchies, coding.domains, found.node, chosen.groups, strict=True)
    ]
    optimum = Optimum(
        k=k, records=records, node=found.node, classes=len(counts), suppressed=suppressed, dm_star=found.loss.dm_star,
        gcp=sum(penalties) / len(penalties), unexamined=found.unexamined,
    )  # fmt: skip
    return optimum, cell_table(published.classes(chosen, kept), counts)


def read_optimum(artifacts: OptimumArtifacts, store: Store) -> Optimum:
    """Reads an optimum."""
    return Optimum.model_validate_json(store.path(artifacts.optima).read_bytes())


def recount_key(releases: Sequence[OptimumArtifacts]) -> Key:
    """Returns the key of the recount of concatenated classes."""
    # By content and sorted: the concatenated table is the same in whatever order its chunks come.
    return RECOUNTS.key(sorted(release.optima_classes.sha256 for release in releases))


def recount_releases(job: Job, domain: Artifact, releases: Sequence[OptimumArtifacts], store: Store, spill: Path) -> Artifact:
    """Counts the classes of the releases of chunks, concatenated, out of core.

    Raises:
        HierarchyError: a hierarchy does not fit its column.
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: the disk is full, or more memory is needed than there is.
    """
    words = len(Published.of(load_coding(job, domain, store).hierarchies).packing.words)

    def write(path: Path) -> int:
        statement = concatenated_sql([literal(str(store.path(release.optima_classes))) for release in releases], words)
        with connect(job, spill) as connection:
            found = connection.execute(statement).fetchone()
        assert found is not None
        return path.write_text(Recounted(classes=found[0], squares=int(found[1])).model_dump_json())

    return store.make("recounts", recount_key(releases), ".json", write)


def read_recount(artifact: Artifact, store: Store) -> Recounted:
    """Reads a recount."""
    return Recounted.model_validate_json(store.path(artifact).read_bytes())
