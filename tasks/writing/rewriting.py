"""Phase 3: every chunk is joined to the recoding, and the records are gathered class by class into the files of the release.

A chunk becomes a *run*: its released records as class numbers and payload, apart by output file. An output file takes its part of every run
and is put in canonical order. What reaches the release is a function of the set of records, not of files, chunks, threads or row order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from core.order.release_order import first_files
from schemas.errors.values import ValuesError
from tasks.counting.coding import DomainTable
from tasks.engine.runs import Run
from tasks.engine.steps import each, results_of_each
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.keys import fingerprint_of
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.writing.classes import write_part
from tasks.writing.people import NO_PERSONS, Assigned, Part, WrittenPersons, people_settings, write_members, write_people_of
from tasks.writing.runs import gathered_rows
from tasks.writing.shared_values import with_shared_values
from tasks.writing.two_level_shuffle import ShuffleParts, shuffle_runs

BYTES_OF_VALUE = 16
"""Bytes that a value of a column takes as the records of a file are put in order: measured of nulls, which take least in the source."""


class ChunkPosition(BaseModel):
    """A chunk and its number in the source, which tells chunks of equal content apart."""

    model_config = ConfigDict(frozen=True)

    chunk: Chunk
    number: int


class PublishedTable(Protocol):
    """Classes as they are published."""

    @property
    def labels(self) -> pa.Table:
        """What each class publishes, in the order of the release."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Shape (classes,), records per class."""


@dataclass(frozen=True)
class Rewriting(DomainTable, ABC):
    """What a release is written by: the source and its recoding, of cells or of single records, beside the domain table."""

    source: ChunkedSource
    recoding: RecodingArtifacts

    @property
    @abstractmethod
    def published(self) -> PublishedTable:
        """What the classes publish, once per process."""

    @property
    def labels(self) -> pa.Table:
        """What each class publishes, in the order of the release."""
        return self.published.labels

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Shape (classes,), records per class."""
        return self.published.sizes

    @abstractmethod
    def read(self, place: ChunkPosition) -> list[object]:
        """Returns what the classes of a chunk's records depend on."""

    @abstractmethod
    def classes(self, place: ChunkPosition) -> NDArray[np.int32]:
        """Returns the class of each record of a chunk, shape (rows,), negative for one that is not released."""

    def classes_of(self, number: int, chunk: Chunk) -> NDArray[np.int32]:
        """Returns the same of a chunk by its number."""
        return self.classes(ChunkPosition(chunk=chunk, number=number))

    @abstractmethod
    def assigned(self, place: ChunkPosition) -> Assigned:
        """Returns the classes of a chunk's records, and what these publish beside labels."""

    @abstractmethod
    def write_run(self, place: ChunkPosition, path: Path) -> int:
        """Writes the released records of a chunk apart by output file; returns how many there are."""

    @cached_property
    def files(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first output file of each class and over how many it is spread, shape (classes,) each."""
        return first_files(self.sizes, self.source.file_rows(self.job))

    @cached_property
    def file_count(self) -> int:
        """Over how many files the release is laid out; some may turn out empty."""
        first, spread = self.files
        return int((first + spread).max(initial=0))


def _run(given: Rewriting, place: ChunkPosition, path: Path) -> int:
    return given.write_run(place, path)


RUNS = FileStep(
    "runs",
    make=_run,
    reads=lambda given, place: given.read(place),
    settings=lambda given: [given.source.payload_key, given.source.file_rows(given.job)],
    code=lambda given: type(given).__module__,
    phase="rewrite",
    suffix=".arrow",
)
"""The released records of a chunk, apart by output file."""


def _members(given: Rewriting, place: ChunkPosition, path: Path) -> int:
    return write_members(path, given.classes(place))


MEMBERS = FileStep("members", make=_members, reads=RUNS.reads, code=RUNS.code, phase="rewrite")
"""The class of each record of a chunk; kept when they were assigned, and made anew only if it is gone."""


def _people(given: Rewriting, place: ChunkPosition, path: Path) -> int:
    return write_people_of(given.job, place.chunk, given.assigned(place), path)


PEOPLE = FileStep(
    "people", make=_people, reads=RUNS.key, settings=lambda given: people_settings(given.job), code=RUNS.code, phase="rewrite"
)
"""Who is in which class of a chunk's records; kept and made anew as their classes are."""


@dataclass(frozen=True)
class FileGathering:
    """What the files of a release are gathered by.

    Attributes:
        rewriting: By what the chunks were rewritten.
        shuffle_parts: What a file is gathered from.
        runs: Fingerprint of all runs.
    """

    rewriting: Rewriting
    shuffle_parts: ShuffleParts
    runs: str

    @classmethod
    def of(cls, run: Run, rewriting: Rewriting, runs: Sequence[Artifact]) -> Self:
        """Returns it for the runs of all chunks, which workers of a cluster set on shuffle parts first."""
        shuffle_parts = shuffle_runs(run, runs, rewriting.file_count, len(rewriting.source.payload))
        return cls(rewriting, shuffle_parts, fingerprint_of(sorted(run.sha256 for run in runs)))

    @property
    def store(self) -> Store:
        """Has the runs, and gets the files."""
        return self.rewriting.store

    @property
    def read(self) -> list[object]:
        """What every file is made of, together with its number."""
        return [self.runs, self.rewriting.recoding.classes.sha256, self.rewriting.source.payload_key]

    def write(self, number: int, path: Path) -> int:
        """Gathers one output file, orders it and writes it as Parquet, without statistics or source metadata; returns its rows."""
        runs, place = self.shuffle_parts.of(number)
        paths, source, memory = [self.store.path(run) for run in runs], self.rewriting.source, self.rewriting.job.memory
        # Equal records stand in one file, however many there are: in which of several would be told by the order of the source.
        records = gathered_rows(paths, place)
        if (needed := records * BYTES_OF_VALUE * (1 + len(source.payload))) > memory:
            raise ValuesError.many_alike(records, needed)
        return write_part(path, self.rewriting.labels, source, paths, place)


def _file(given: FileGathering, number: int, path: Path) -> int:
    return given.write(number, path)


FILES = FileStep(
    "files", make=_file, reads=lambda given, number: [*given.read, number], code=lambda given: type(given.rewriting).__module__
)
"""An output file."""


def rewrite(run: Run, given: Rewriting) -> tuple[list[Artifact], WrittenPersons]:
    """Phase 3: every chunk is joined to the classes of its records, and the files of the release are gathered.

    Returns:
        The files, and who is in which class of the records of every chunk, for the recount; nothing where the job names no person.
    """
    given = replace(given, source=with_shared_values(run, given))
    places = [ChunkPosition(chunk=chunk, number=number) for number, chunk in enumerate(given.source.chunks)]
    runs = each(run, RUNS, given, places)
    members = results_of_each(run, MEMBERS, given, places)
    run.members = [Part.of(place.chunk, kept) for place, kept in zip(places, members, strict=True)]
    files = each(run, FILES, FileGathering.of(run, given, runs), range(given.file_count))
    if not run.job.columns.person:
        return files, NO_PERSONS
    return files, WrittenPersons(tuple(results_of_each(run, PEOPLE, given, places)), (given.recoding.classes,))
