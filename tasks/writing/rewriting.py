"""Phase 3: each chunk's records get their classes, and are gathered by class into the release's files.

A chunk becomes a *run*: its released records as class numbers and payload, grouped by output file. An output file takes its part of
every run and is put in canonical order. The release depends on the set of records alone, not on files, chunks, threads or row order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.recoding.recoding import SUPPRESSED, Assigner, Recoding, take_labels
from core.recoding.release_order import assign_files, first_files, in_canonical_order
from core.units.source_digests import contents_of
from schemas.errors.values import ValuesError
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from schemas.release.manifest import MASK
from tasks.counting.coding import CellCoder, DomainTable
from tasks.engine.runs import Run
from tasks.engine.steps import results_of_each, run_for_items
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.keys import fingerprint_of
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.writing.people import (
    NO_PERSONS,
    AdditionalColumns,
    Assigned,
    KeptRecords,
    WrittenPersons,
    people_settings,
    write_members,
    write_people_of,
)
from tasks.writing.runs import count_file_records, published_schema, read_file_records, write_release, write_run
from tasks.writing.shared_values import with_shared_values
from tasks.writing.two_level_shuffle import ShuffleParts, shuffle_runs


def additional_columns(
    job: Job, source: ChunkedSource, labels: pa.Table, classes: NDArray[np.int32], payload: pa.RecordBatch
) -> AdditionalColumns:
    """Return released records' linking pseudonyms, and a digest of each record per kind of other columns.

    There is a digest for the untreated, the sensitive and the treated columns.

    Args:
        job: Names the columns, and says whether suppressed records are masked.
        source: Gives the published columns.
        labels: The labels of each class.
        classes: Shape (n,), of the records.
        payload: The records' other published columns.
    """
    published = without_masked_pseudonyms(job, source, labels, classes, payload)
    by_name = dict(zip(source.payload, published.columns, strict=True)) if source.payload else {}
    kinds = {
        "insensitive": [name for name in by_name if name not in source.treatments and name not in job.columns.sensitive],
        "sensitive": [name for name in by_name if name in job.columns.sensitive],
        "pseudonyms": [name for name in by_name if name in source.treatments],
    }
    digests = {kind: _contents([by_name[name] for name in names], len(classes)) for kind, names in kinds.items() if names}
    return {f"link_{number}": by_name[name] for number, name in enumerate(job.columns.linking)} | digests


def _contents(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return a digest of each record's values in some columns; NaN differs from null."""
    # What is not a number is a value of its own here, and no null.
    marks = [pc.fill_null(pc.is_nan(column), False) for column in columns if pa.types.is_floating(column.type)]
    return pa.array(contents_of([*columns, *marks], rows))


def assign_classes(stages: Sequence[tuple[CellCoder, Assigner]], columns: Sequence[pa.Array]) -> NDArray[np.int32]:
    """Return the class of each record, shape (n,), from the first stage that has its cell, or SUPPRESSED."""
    (coder, assigner), *later = stages
    classes = assigner.assign(coder.cells(columns))
    for coder, assigner in later:
        left = np.flatnonzero(classes == SUPPRESSED)
        if not len(left):
            break
        rows = pa.array(left)
        classes[left] = assigner.assign(coder.cells([column.take(rows) for column in columns]))
    return np.maximum(classes, SUPPRESSED)


def write_class_records(
    path: Path,
    job: Job,
    source: ChunkedSource,
    labels: pa.Table,
    sizes: NDArray[np.int64],
    classes: NDArray[np.int32],
    payload: pa.RecordBatch,
) -> int:
    """Write records of given classes as a run, masked ones without pseudonyms; return their number.

    Args:
        job: Says whether suppressed records are masked.
        source: Gives the published columns.
        labels: The labels of each class.
        sizes: Shape (classes,), records per class in the whole release.
        classes: Shape (n,), of the records.
        payload: The records' other published columns.
    """
    payload = without_masked_pseudonyms(job, source, labels, classes, payload)
    first, spread = first_files(sizes, source.file_rows(job))
    return write_run(path, classes, payload, assign_files(classes, first, spread, payload.columns))


def without_masked_pseudonyms(
    job: Job, source: ChunkedSource, labels: pa.Table, classes: NDArray[np.int32], payload: pa.RecordBatch
) -> pa.RecordBatch:
    """Return payload with pseudonyms nulled in records with ``*`` in every quasi-identifier."""
    if not source.treatments or not job.suppression.masks:
        return payload
    is_masked = np.ones(len(labels), np.bool_)
    for column in labels.columns:
        is_masked &= pc.fill_null(pc.equal(column.cast(pa.string()), MASK), False).to_numpy()
    masked = pa.array(is_masked[classes])
    columns = [
        pc.if_else(masked, pa.scalar(None, column.type), column) if name in source.treatments else column
        for name, column in zip(source.payload, payload.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=payload.schema)


def write_output_file(path: Path, labels: pa.Table, source: ChunkedSource, runs: Sequence[Path], number: int) -> int:
    """Read one output file's records from all shuffle files, sort and write them; return their number.

    Args:
        labels: The labels of each class, in the order of the release.
        source: Says which other columns are published.
        runs: Files of ``write_run``.
    """
    classes, payload = read_file_records(runs, number, len(source.payload))
    # Runs come chunk by chunk: without this order the file would tell which records stood together in the source.
    classes, payload = in_canonical_order(classes, payload)
    columns = take_labels(labels, classes) | dict(zip(source.payload, payload, strict=True))
    return write_release(path, columns, published_schema(labels, source))


BYTES_OF_VALUE = 16
"""Bytes that a value of a column takes as the records of a file are put in order: measured of nulls, which take least in the source."""


class ChunkPosition(FrozenModel):
    """A chunk and its number in the source, which distinguishes chunks of equal content."""

    chunk: Chunk
    number: int


class LabelledClasses(NamedTuple):
    """Labels of the classes, one row per class in the order of the release, and their sizes."""

    labels: pa.Table
    sizes: NDArray[np.int64]


@dataclass(frozen=True)
class Rewriting(DomainTable, ABC):
    """Interface of writing a release's files from source, recoding and domain table.

    The recoding is one of cells or of single records.
    """

    source: ChunkedSource
    recoding: RecodingArtifacts

    @property
    @abstractmethod
    def published(self) -> Recoding | LabelledClasses:
        """Return the labels and sizes of the classes, loaded once per process."""

    @property
    def labels(self) -> pa.Table:
        """Return the published labels, one row per class in the order of the release."""
        return self.published.labels

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of records of each class, shape (classes,)."""
        return self.published.sizes

    @abstractmethod
    def class_inputs(self, position: ChunkPosition) -> list[object]:
        """Return the keys of the inputs that determine the classes of a chunk's records."""

    @abstractmethod
    def classes(self, position: ChunkPosition) -> NDArray[np.int32]:
        """Return the class of each record of a chunk, shape (rows,), negative if it is not released."""

    def classes_of(self, number: int, chunk: Chunk) -> NDArray[np.int32]:
        """Return the class of each record of a chunk, given the chunk and its number."""
        return self.classes(ChunkPosition(chunk=chunk, number=number))

    @abstractmethod
    def classes_and_digests(self, position: ChunkPosition) -> Assigned:
        """Return the class of each record of a chunk, and pseudonyms and value digests of released ones."""

    @abstractmethod
    def write_run(self, position: ChunkPosition, path: Path) -> int:
        """Write a chunk's released records grouped by output file; return their number."""

    @cached_property
    def files(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first output file of each class and its number of files, shape (classes,) each."""
        return first_files(self.sizes, self.source.file_rows(self.job))

    @cached_property
    def file_count(self) -> int:
        """Return the number of output files of the release; some may be empty."""
        first, spread = self.files
        return int((first + spread).max(initial=0))


def _run(given: Rewriting, position: ChunkPosition, path: Path) -> int:
    return given.write_run(position, path)


RUNS = FileStep(
    "runs",
    make=_run,
    reads=lambda given, position: given.class_inputs(position),
    settings=lambda given: [given.source.payload_key, given.source.file_rows(given.job)],
    code=lambda given: type(given).__module__,
    phase="rewrite",
    suffix=".arrow",
)
"""The released records of a chunk, apart by output file."""


def _members(given: Rewriting, position: ChunkPosition, path: Path) -> int:
    return write_members(path, given.classes(position))


MEMBERS = FileStep("members", make=_members, reads=RUNS.reads, code=RUNS.code, phase="rewrite")
"""The class of each record of a chunk; kept when they were assigned, and made anew only if it is gone."""


def _people(given: Rewriting, position: ChunkPosition, path: Path) -> int:
    return write_people_of(given.job, position.chunk, given.classes_and_digests(position), path)


PEOPLE = FileStep(
    "people", make=_people, reads=RUNS.key, settings=lambda given: people_settings(given.job), code=RUNS.code, phase="rewrite"
)
"""Who is in which class of a chunk's records; kept and made anew as their classes are."""


@dataclass(frozen=True)
class FileGathering:
    """The runs of a release, in shuffle parts if any, from which its files are gathered.

    Attributes:
        rewriting: The rewriting that wrote the runs.
        shuffle_parts: The runs or shuffle parts that files are gathered from.
        runs: Fingerprint of all runs.
    """

    rewriting: Rewriting
    shuffle_parts: ShuffleParts
    runs: str

    @classmethod
    def of(cls, run: Run, rewriting: Rewriting, runs: Sequence[Artifact]) -> Self:
        """Return the gathering of all runs; on a cluster, divide them into shuffle parts first."""
        shuffle_parts = shuffle_runs(run, runs, rewriting.file_count, len(rewriting.source.payload))
        return cls(rewriting, shuffle_parts, fingerprint_of(sorted(run.sha256 for run in runs)))

    @property
    def store(self) -> Store:
        """Return the store of the runs and files."""
        return self.rewriting.store

    @property
    def inputs(self) -> list[object]:
        """Return the keys of the inputs that determine every output file."""
        return [self.runs, self.rewriting.recoding.classes.sha256, self.rewriting.source.payload_key]

    def write(self, number: int, path: Path) -> int:
        """Gather, sort and write one output file as Parquet; return its rows, raise if out of memory.

        It has neither statistics nor source metadata.
        """
        runs, place = self.shuffle_parts.of(number)
        paths, source, memory = [self.store.path(run) for run in runs], self.rewriting.source, self.rewriting.job.memory
        # Equal records stand in one file, however many there are: in which of several would be told by the order of the source.
        records = count_file_records(paths, place)
        if (needed := records * BYTES_OF_VALUE * (1 + len(source.payload))) > memory:
            raise ValuesError.too_many_equal_records(records, needed)
        return write_output_file(path, self.rewriting.labels, source, paths, place)


def _file(given: FileGathering, number: int, path: Path) -> int:
    return given.write(number, path)


FILES = FileStep(
    "files",
    make=_file,
    reads=lambda given, number: [*given.inputs, number],
    # It stands in the file, and that of the manifest is held against it.
    settings=lambda _given: pa.cpp_version,
    code=lambda given: type(given.rewriting).__module__,
)
"""An output file."""


def rewrite(run: Run, given: Rewriting) -> tuple[list[Artifact], WrittenPersons]:
    """Write a release's files (phase 3) and set ``run.members``; return the files and classes' persons.

    Returns:
        The files, and the tables of persons of every chunk for the recount; these are empty where the job names no person.
    """
    given = replace(given, source=with_shared_values(run, given))
    places = [ChunkPosition(chunk=chunk, number=number) for number, chunk in enumerate(given.source.chunks)]
    runs = run_for_items(run, RUNS, given, places)
    members = results_of_each(run, MEMBERS, given, places)
    run.members = [KeptRecords.of_chunk(place.chunk, kept) for place, kept in zip(places, members, strict=True)]
    files = run_for_items(run, FILES, FileGathering.of(run, given, runs), range(given.file_count))
    if not run.job.columns.person:
        return files, NO_PERSONS
    return files, WrittenPersons(tuple(results_of_each(run, PEOPLE, given, places)), (given.recoding.classes,))
