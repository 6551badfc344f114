"""The persons of each class of a release, kept in the run folder for the recount and never published.

Linking pseudonyms are kept with them, so that their persons can be counted. So are digests of untreated values, so that the number of
people who share them can be counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.units.digests import Digests, digests_of
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.source.chunks import Chunk
from tasks.source.reading import read_chunk
from tasks.store.store import Artifact, Store
from tasks.store.tables import write_undeclared_table


class WrittenPersons(NamedTuple):
    """Artefacts of the persons and labels of each class; empty where the job names no person.

    Attributes:
        people: Tables of ``class``, ``person``, ``value_0`` …, ``link_0`` …, by kind of column the digest of published values, and
            ``records``.
        classes: Tables of labels: one with a row for each class, or several with a column ``class``.
    """

    people: tuple[Artifact, ...] = ()
    classes: tuple[Artifact, ...] = ()

    def files(self, store: Store) -> tuple[list[Path], list[Path]] | None:
        """Return the files of persons and classes, fetched where needed; None without a person column."""
        return ([store.path(one) for one in self.people], [store.path(one) for one in self.classes]) if self.people else None


AdditionalColumns = Mapping[str, pa.Array]
"""What released records publish beside labels, by what it is called where it is kept: linking pseudonyms as ``link_0`` …, and by kind of
column a digest of all values together; arrays of shape (released,)."""
Assigned = tuple[NDArray[np.int32], AdditionalColumns]
"""The class of each of n records, shape (n,), negative for one that is not released, and what those that are publish beside it."""

NO_PERSONS = WrittenPersons()
"""Of a job that names no person."""


def people_settings(job: Job) -> list[object]:
    """Return the job settings that determine the tables of persons, for their key."""
    return [job.columns.person, job.privacy.with_others(job.columns.recounted_value_columns), job.columns.linking]


def write_people_of(job: Job, chunk: Chunk, assigned: Assigned, path: Path) -> int:
    """Write the table of a chunk's released records with person, class and values; return its rows.

    Records without a person are included.

    Args:
        job: Names the person and sensitive columns.
        assigned: The classes of the chunk's records, and their additional columns.
    """
    classes, beside = assigned
    return write_undeclared_table(people_table(classes, digests_in(job, chunk), _values_in(job, chunk), beside), path)


def digests_in(job: Job, chunk: Chunk) -> Digests:
    """Read a chunk's person columns; return each record's person digest, shape (rows,), uint64."""
    batches = read_chunk(chunk, job.columns.person, plain=job.columns.person)
    return np.concatenate([np.empty(0, np.uint64), *(digests_of(batch.columns, batch.num_rows) for batch in batches)])


def _values_in(job: Job, chunk: Chunk) -> list[pa.Array]:
    """Return the values of a chunk's records in the sensitive columns, arrays of shape (rows,).

    Columns with a privacy model come first.
    """
    columns = job.privacy.with_others(job.columns.recounted_value_columns)
    if not columns:
        return []
    names, plain = _value_names(len(columns)), columns[len(job.privacy.columns) :]
    parts = [pa.RecordBatch.from_arrays(batch.columns, names) for batch in read_chunk(chunk, columns, plain=plain)]
    values = pa.Table.from_batches(parts).unify_dictionaries().combine_chunks()
    return [column.chunk(0) if column.num_chunks else column.combine_chunks() for column in values.columns]


def people_table(
    classes: NDArray[np.integer[Any]],
    digests: Digests,
    values: Sequence[pa.Array],
    additional: AdditionalColumns,
) -> pa.Table:
    """Return a row per released record: class, person, sensitive values, additional columns, 1.

    It has a row of ``records`` = 1 for each released record; readers add them up.

    Args:
        classes: Shape (n,), the class of each record, negative for one that is not released.
        digests: Shape (n,), of its person.
        values: Its value in each sensitive column that a promise looks at, arrays of shape (n,).
    """
    # By number: a column of the source may have any name, ours included.
    names = ["class", "person", *_value_names(len(values))]
    held = pa.table([pa.array(classes, pa.int64()), pa.array(digests), *values], names=names).take(pa.array(np.flatnonzero(classes >= 0)))
    for name, column in additional.items():
        held = held.append_column(name, column)
    # One row for each: that somebody has several in a class and a chunk is rare, and whoever reads them adds up.
    return held.append_column("records", pa.array(np.ones(len(held), np.int64)))


def _value_names(columns: int) -> list[str]:
    """Return the names ``value_0`` … of so many sensitive columns."""
    return [f"value_{number}" for number in range(columns)]


class KeptRecords(FrozenModel):
    """Artefacts of the class and digests of each record, of one chunk or fragment.

    Attributes:
        files: Digest and number of records of each source file, in order; empty for records of a fragment.
        members: Table of ``class`` in the order of the chunk; of a fragment with the digests of its records as further columns.
        contents: Table of these digests in the same order; None of a fragment, or where they are not known yet.
        sets: Table of ``column`` (the number of a value's digest), ``digest`` and ``value``, where a digest stands for several values of a
            person; None where each stands for a single value.
    """

    files: tuple[tuple[str, int], ...]
    members: Artifact
    contents: Artifact | None = None
    sets: Artifact | None = None

    @classmethod
    def of_chunk(cls, chunk: Chunk, record_classes: Artifact) -> Self:
        """Return the kept records of a chunk, given the table of each record's class."""
        return cls(files=tuple((piece.file.digest, piece.rows) for piece in chunk.pieces), members=record_classes)

    @property
    def in_fragment(self) -> bool:
        """Return whether the records belong to a fragment and have no order of the source."""
        return not self.files


def write_fragment_members(path: Path, first: int, classes: NDArray[np.int32], digests: pa.Table) -> int:
    """Write each record's class and digests of a fragment to Parquet; return the number of records.

    Args:
        first: Offset that makes class numbers unique over all fragments.
        classes: Shape (n,), negative for records that are not released.
        digests: n rows of digests, as ``record_digest_table`` of ``tasks.counting.contents`` has them.
    """
    numbers = np.where(classes < 0, np.int64(-1), classes.astype(np.int64) + first)
    others = {name: digests[name] for name in digests.column_names}
    return write_members(path, numbers, **others)


def write_members(path: Path, classes: NDArray[np.signedinteger], **others: pa.ChunkedArray) -> int:
    """Write each record's class, negative if not released, and other columns to Parquet; return the rows."""
    table = pa.table({"class": classes, **others})
    # Digests are all different and look like chance: neither a dictionary nor a codec makes them less. Of classes the low bytes do, and the
    # high ones are alike: set apart they take as little as a dictionary would, in a third of the time.
    packed = {name: "none" if name in others else "lz4" for name in table.column_names}
    values = [name for name in others if "_" in name]
    pq.write_table(table, path, compression=packed, use_dictionary=values, use_byte_stream_split=["class"], write_statistics=False)
    return len(table)
