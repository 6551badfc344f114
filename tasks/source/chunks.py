"""A source as its steps see it: Parquet files, and the chunks in which they are read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from pydantic import ConfigDict

from core.columns.column_types import merge_schemas, plain_type, to_working_type, working_type
from schemas.errors.base import SourceError, counted
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from tasks.source.listing import Stat, scan_address
from tasks.source.locations import Partition, relation_of_files
from tasks.store.keys import fingerprint_of

PieceKey: TypeAlias = tuple[str | int, ...]
"""Digest, first row, number of rows, and how the file is read if not as it is."""


FILE_SHARE, LEAST_FILE = 12, 8_000_000
"""Which part of the memory the records of a data file take while it is written, and at least how many bytes."""
BYTES_OF_LABELS = 32
"""What the labels and the class of a record take."""
FORMS, PAGE = 4, 1 << 20
"""In how many forms a reader holds a page of a column, about, and the bytes of one."""


class SourceFile(FrozenModel):
    """One source file as Parquet: path, digest, row groups, and how its columns are read.

    Attributes:
        name: Path or address as the user knows it.
        path: The Parquet file to read: the file itself, or the artefact that it was converted or extracted to; None for an object of a
            store, of which every reader asks for what it wants.
        digest: BLAKE3 of the user's file, in hex; with what its folders say of its records where they are partitions.
        stat: What changes when the user's file does, as it was when it was digested; None for rows of a database, which are kept as they
            were.
        groups: Number of records of each of its row groups.
        width: Bytes of a record in memory, about.
        texts: Columns of text that are written plain, which are quicker to read as dictionaries.
        partition: Columns that the file's folders name.
        content: Digest of the rows whatever their order, where they come in none.
        converted: SHA-256 of the Parquet file, where the user's was converted.
        drift: Columns that the file lacks or writes in another type than they are read in; None if there is none.
        long: By column of which values are long, how many bytes one may take.
        normalise: By column what its texts are read without.
        publish: By column that is published otherwise than it is, where it stands what is published of its values, and the digest of that.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    path: Path | None
    digest: str
    stat: Stat | None
    groups: tuple[int, ...]
    width: int = 0
    texts: tuple[str, ...] = ()
    partition: Partition = ()
    content: str | None = None
    converted: str | None = None
    drift: pa.Schema | None = None
    long: dict[str, int] = {}
    normalise: dict[str, list[str]] = {}
    publish: dict[str, tuple[Path, str]] = {}

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(self.groups)

    @property
    def scan_location(self) -> str:
        """The path or pinned object address by which DuckDB reads the file."""
        return str(self.path) if self.path else scan_address(self.name, self.stat or ())


class Piece(FrozenModel):
    """A range of rows of one source file."""

    file: SourceFile
    first: int
    rows: int

    @property
    def key(self) -> PieceKey:
        """Digest of the file, range of rows, and all else that the content depends on."""
        # Another reading makes other rows of the same bytes, such as CSV with other types.
        converted = [self.file.converted] if self.file.converted else []
        drift = self.file.drift or ()
        without = [f"{name} without {', '.join(sorted(steps))}" for name, steps in self.file.normalise.items()]
        published = [f"{name} published {digest}" for name, (_, digest) in self.file.publish.items()]
        return (
            self.file.digest,
            self.first,
            self.rows,
            *converted,
            *(f"{field.name}: {field.type}" for field in drift),
            *without,
            *published,
        )


class Chunk(FrozenModel):
    """Ranges of rows of one file, or several small files, that one step reads at once."""

    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, file: SourceFile, first: int = 0, row_count: int | None = None) -> Self:
        """Return a chunk of the rows of one file, or of a range of them."""
        return cls(pieces=(Piece(file=file, first=first, rows=file.rows if row_count is None else row_count),))

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def key(self) -> tuple[PieceKey, ...]:
        """The keys of the pieces, on which the content depends."""
        return tuple(piece.key for piece in self.pieces)

    @property
    def digests(self) -> frozenset[str]:
        """SHA-256 of each source file of which the chunk holds rows."""
        return frozenset(piece.file.digest for piece in self.pieces)

    @property
    def name(self) -> str:
        """The name in messages: the file, or the first of several."""
        first, *others = (piece.file.name for piece in self.pieces)
        return f"{first}' or one of {counted(len(others), 'file')} beside it, '{others[-1]}" if others else first

    def with_source_values(self) -> Chunk:
        """Return a copy of the chunk that reads source values instead of published ones."""
        return Chunk(
            pieces=tuple(piece.model_copy(update={"file": piece.file.model_copy(update={"publish": {}})}) for piece in self.pieces)
        )


class ChunkedSource(FrozenModel):
    """A job's source: files, chunks, column types, payload columns and key fingerprints.

    Attributes:
        files: In the order of their names.
        chunks: They cover all records, each once.
        payload: Sensitive and insensitive columns and pseudonyms, in the order of the release.
        columns: Names and types as which all files are read.
        published: Types of the payload.
        keys: Fingerprints of keys and ids of vaults by pseudonymised column, once they are read.
        treatments: How these columns are treated, in canonical form, and suppressed records with them.
        evolved: By column that files write differently, what was made of it.
        text_bytes: How long the values of columns that are published as they are are on average, in bytes, rounded up; 0 of numbers. Empty
            until they were looked at.
        own_texts: Those of text among them in which nearly every value is another, so that a dictionary costs more than it saves.
        source_types: Types of the source's values, of columns that are published as another type.
        withheld: Records that are not in the files because the job bounds those of a person, and of how many persons.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    files: tuple[SourceFile, ...]
    chunks: tuple[Chunk, ...]
    payload: tuple[str, ...]
    columns: pa.Schema
    published: tuple[pa.DataType, ...]
    keys: dict[str, str] = {}
    treatments: dict[str, Any] = {}
    evolved: dict[str, str] = {}
    text_bytes: dict[str, int] = {}
    own_texts: tuple[str, ...] = ()
    source_types: dict[str, pa.DataType] = {}
    withheld: tuple[int, int] = (0, 0)

    def file_rows(self, job: Job) -> int:
        """Return how many records a data file of the release should hold, by job and memory.

        It depends on the records of the source, whatever files and chunks they come in.
        """
        return min(job.rows_per_file, max(max(job.task_memory // FILE_SHARE, LEAST_FILE) // self._published_bytes, 1))

    @property
    def _published_bytes(self) -> int:
        return BYTES_OF_LABELS + sum(map(_bytes_of, self.published)) + sum(self.text_bytes.get(name, 0) for name in self.payload)

    def task_bytes(self, job: Job) -> int:
        """Return about how many bytes of records one task holds: of a chunk, or of a data file and a copy.

        Who reads a chunk holds a page of every column in several forms, packed, unpacked and decoded: of hundreds that is most.
        """
        largest = max((sum(piece.rows * piece.file.width for piece in chunk.pieces) for chunk in self.chunks), default=0)
        group = max((max(file.groups, default=0) * file.width for file in self.files), default=0)
        pages = FORMS * min(group, PAGE * len(self.columns))
        return max(largest, pages, 2 * min(self.file_rows(job), self.records) * self._published_bytes)

    @property
    def records(self) -> int:
        """N, the number of records."""
        return sum(file.rows for file in self.files)

    @property
    def payload_key(self) -> object:
        """The key of the published columns besides their records: names, types, treatments and their keys."""
        # What a program noted beside the schema, as pandas does, changes no byte of a release.
        columns = self.columns.to_string(show_field_metadata=False, show_schema_metadata=False)
        return self.payload, columns, self.treatments, self.keys

    @property
    def digest(self) -> str:
        """The fingerprint of the records, whatever the names and order of the files."""
        return fingerprint_of(sorted(file.content or file.digest for file in self.files))

    @property
    def relation(self) -> str:
        """The SQL relation by which DuckDB reads the source."""
        return relation_of_files([(file.scan_location, file.partition) for file in self.files], same_columns=not self.evolved)


def _bytes_of(dtype: pa.DataType) -> int:
    """Return the bytes of a value of a type, without the characters of text."""
    try:
        return -(-int(dtype.bit_width) // 8)
    except ValueError:
        return 8


def common_schema(names: Sequence[str], schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the schema in which unlike files are read as one; raise ``SourceError`` if there is none."""
    columns, unlike = merge_schemas(schemas)
    for column, (one, other) in unlike.items():
        types = [str(plain_type(schemas[number].field(column).type)) for number in (one, other)]
        raise SourceError.no_common_type(column, types[0], names[one], types[1], names[other])
    return columns


def differing_fields(file_schema: pa.Schema, expected: pa.Schema) -> pa.Schema | None:
    """Return fields that a file lacks or has in another type, in the type they are read in; None if none."""
    mine = {field.name: plain_type(field.type) for field in file_schema}
    fields = [field for field in expected if mine.get(field.name) != plain_type(field.type)]
    return pa.schema([(field.name, plain_type(field.type)) for field in fields]) if fields else None


def batches(
    file: pq.ParquetFile, most_rows: int, groups: list[int], columns: Sequence[str], wanted: pa.Schema, plain: Container[str], name: str
) -> Iterator[pa.RecordBatch]:
    """Yield rows of some row groups in batches of the wanted types, text dictionary-encoded.

    Args:
        most_rows: Rows of a batch at most.
        wanted: Those of the file's columns that it lacks or that are read in another type, as they are read.
        plain: Columns whose text comes plain, and not as dictionaries.
        name: Of the file, as the user knows it.
    """
    there = [column for column in columns if column in file.schema_arrow.names]
    total = sum(file.metadata.row_group(group).num_rows for group in groups)
    read = file.iter_batches(most_rows, row_groups=groups, columns=there, use_threads=False) if there else _empty(total, most_rows)
    for batch in read:
        arrays = []
        for column in columns:
            dtype = plain_type(wanted.field(column).type) if column in wanted.names else None
            if column not in there:
                assert dtype is not None
                made = pa.nulls(batch.num_rows, working_type(dtype))
            else:
                made = batch.column(column) if dtype is None else _widened(batch.column(column), dtype, column, name)
            # Text comes as it does from other files.
            arrays.append(made if column in plain or not pt.is_string(made.type) else pc.dictionary_encode(made))
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _empty(total: int, rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, total, rows):
        yield pa.RecordBatch.from_arrays([pa.nulls(min(rows, total - first))], names=["nothing"])


def _widened(column: pa.Array, dtype: pa.DataType, name: str, file: str) -> pa.Array:
    held, plain = working_type(dtype), to_working_type(column)
    if isinstance(plain, pa.DictionaryArray):
        if pt.is_string(held) and plain.dictionary.type == held:
            return plain
        plain = plain.dictionary_decode()
    try:
        if pt.is_decimal(plain.type) and pt.is_floating(held):
            return _as_floats(plain, held)
        return plain.cast(held)
    except pa.ArrowInvalid:
        raise SourceError.not_exact(name, file, str(dtype)) from None


def _as_floats(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return decimals as floats that are written out as the same decimals, or raise ``ArrowInvalid``."""
    # Arrow's own cast of 0.1 is 0.09999999999999999.
    floats = column.cast(pa.string()).cast(dtype)
    if not floats.cast(pa.string()).cast(column.type).equals(column):
        raise pa.ArrowInvalid
    return floats
