"""Who is in which class of a release: what the recount counts people from, kept in the run folder and never published.

Pseudonyms that show which records belong together are kept with them, so that it can be counted whose they are; and digests of what records
publish untreated, so that it can be counted how many people share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from core.persons.digests import Digests, digests_of
from schemas.job.job import Job
from tasks.source.chunks import Chunk
from tasks.source.reading import read_chunk
from tasks.store.store import Artifact


class WrittenPersons(NamedTuple):
    """Who is in which class of a release, in parts, and what the classes publish; nothing where no person is named.

    Attributes:
        people: Tables of ``class``, ``person``, ``value_0`` …, ``link_0`` …, by kind of column the digest of what a record publishes, and
            ``records``.
        classes: Tables of what the classes publish: one with a row for each, or several that name them in ``class``.
    """

    people: tuple[Artifact, ...] = ()
    classes: tuple[Artifact, ...] = ()


AdditionalCounts = Mapping[str, pa.Array]
"""What released records publish beside labels, by what it is called where it is kept: linking pseudonyms as ``link_0`` …, and by kind of
column a digest of all values together; arrays of shape (released,)."""
Assigned = tuple[NDArray[np.int32], AdditionalCounts]
"""The class of each of n records, shape (n,), negative for one that is not released, and what those that are publish beside it."""

NO_PERSONS = WrittenPersons()
"""Of a job that names no person."""


def people_settings(job: Job) -> list[object]:
    """Return the settings that decide what is kept of the people of a run."""
    return [job.columns.person, job.privacy.with_others(job.columns.recounted_value_columns), job.columns.linking]


def write_people_of(job: Job, chunk: Chunk, assigned: Assigned, path: Path) -> int:
    """Write the persons of each class of a chunk's records with their records, those of nobody too, by values and pseudonyms of these.

    Args:
        job: Names the person, and promises something of sensitive values.
        chunk: Whose records they are.
        assigned: The classes of the chunk's records, and what they publish beside these.
        path: Gets them.
    """
    classes, beside = assigned
    return write_people(path, people_table(classes, digests_in(job, chunk), _values_in(job, chunk), beside))


def digests_in(job: Job, chunk: Chunk) -> Digests:
    """Return the digest of the person of each record of a chunk, as the source names them."""
    batches = read_chunk(chunk, job.columns.person, plain=job.columns.person)
    return np.concatenate([np.empty(0, np.uint64), *(digests_of(batch.columns, batch.num_rows) for batch in batches)])


def _values_in(job: Job, chunk: Chunk) -> list[pa.Array]:
    """Return the values of the records of a chunk in the job's sensitive columns, those first that promises look at: shape (n,) each."""
    columns = job.privacy.with_others(job.columns.recounted_value_columns)
    if not columns:
        return []
    names, plain = _value_names(len(columns)), columns[len(job.privacy.columns) :]
    parts = [pa.RecordBatch.from_arrays(batch.columns, names) for batch in read_chunk(chunk, columns, plain=plain)]
    values = pa.Table.from_batches(parts).unify_dictionaries().combine_chunks()
    return [column.chunk(0) if column.num_chunks else column.combine_chunks() for column in values.columns]


def people_table(
    classes: NDArray[np.integer[Any]], digests: Digests, values: Sequence[pa.Array] = (), beside: AdditionalCounts = MappingProxyType({})
) -> pa.Table:
    """Return who is in which class with how many records, by sensitive values and what else these publish.

    Args:
        classes: Shape (n,), the class of each record, negative for one that is not released.
        digests: Shape (n,), of its person.
        values: Its value in each sensitive column that a promise looks at, arrays of shape (n,).
        beside: What those records publish that are released.
    """
    # By number: a column of the source may have any name, ours included.
    names = ["class", "person", *_value_names(len(values))]
    held = pa.table([pa.array(classes, pa.int64()), pa.array(digests), *values], names=names).take(pa.array(np.flatnonzero(classes >= 0)))
    for name, column in beside.items():
        held = held.append_column(name, column)
    # One row for each: that somebody has several in a class and a chunk is rare, and whoever reads them adds up.
    return held.append_column("records", pa.array(np.ones(len(held), np.int64)))


def _value_names(columns: int) -> list[str]:
    """Return what the values of so many sensitive columns are called."""
    return [f"value_{number}" for number in range(columns)]


def write_people(path: Path, table: pa.Table) -> int:
    """Write such a table and return its number of rows."""
    pq.write_table(table, path, compression="lz4", write_statistics=False)
    return len(table)


class Part(BaseModel):
    """Records of a release with their classes.

    Attributes:
        files: Digests of the files that they stand in, one after the other, and how many stand in each; empty of records that were shared
            out over fragments.
        members: Table of ``class`` in the order of the chunk; of a fragment with the digests of its records beside it.
        contents: Table of these digests in the same order; None of a fragment, or where they are not known yet.
        sets: Table of ``column`` (the number of a value's digest), ``digest`` and ``value``, where a digest stands for several values of a
            person; None where each stands for itself.
    """

    model_config = ConfigDict(frozen=True)

    files: tuple[tuple[str, int], ...]
    members: Artifact
    contents: Artifact | None = None
    sets: Artifact | None = None

    @classmethod
    def of(cls, chunk: Chunk, members: Artifact) -> Self:
        """Return the records of a chunk, given their classes."""
        return cls(files=tuple((piece.file.digest, piece.rows) for piece in chunk.pieces), members=members)

    @property
    def in_fragment(self) -> bool:
        """Whether its records stand in no order of the source."""
        return not self.files


def write_fragment_members(path: Path, first: int, classes: NDArray[np.int32], kept: pa.Table) -> int:
    """Write the digests of the records of a fragment, and their classes; return how many there are.

    Args:
        path: Gets them.
        first: What is added to the number of a class, so that it is that of no other fragment.
        classes: Shape (n,), negative for records that are not released.
        kept: n rows of digests, as ``contents_table`` of ``tasks.counting.contents`` has them.
    """
    numbers = np.where(classes < 0, np.int64(-1), classes.astype(np.int64) + first)
    others = {name: kept[name] for name in kept.column_names}
    return write_members(path, numbers, **others)


def write_members(path: Path, classes: NDArray[np.signedinteger], **others: pa.ChunkedArray) -> int:
    """Write the class of each record, negative for one that is not released, and what else is kept of it; return how many there are."""
    table = pa.table({"class": classes, **others})
    # Digests are all different and look like chance: neither a dictionary nor a codec makes them less. Of classes the low bytes do, and the
    # high ones are alike: set apart they take as little as a dictionary would, in a third of the time.
    packed = {name: "none" if name in others else "lz4" for name in table.column_names}
    values = [name for name in others if name.startswith("value_")]
    pq.write_table(table, path, compression=packed, use_dictionary=values, use_byte_stream_split=["class"], write_statistics=False)
    return len(table)
