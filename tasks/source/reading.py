"""Rows of a chunk, read in batches, so that memory depends on neither chunk nor file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.columns.column_types import inclusive_moments, normalised, plain_type, to_working_type
from core.formats.published import PublishedValues, read_published_values
from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from tasks.source.chunks import Chunk, Piece, SourceFile, batches
from tasks.source.listing import while_stable
from tasks.source.locations import partition_column
from tasks.source.pinned import open_as_listed
from tasks.source.unpacked import UNIT, Unpacked, rows_of_long


class Unreadable:
    """Counter of values that no run can read: text that is not UTF-8, dates beyond the calendar."""

    def __init__(self) -> None:
        self._texts, self._moments, self._types = Counter[str](), Counter[str](), dict[str, pa.DataType]()

    def check_batch(self, batch: pa.RecordBatch, columns: Sequence[str]) -> bool:
        """Count unreadable values in columns of a batch; return whether none was found so far."""
        for name in columns:
            column = batch.column(name)
            self._texts[name] += count_undecodable(column)
            self._moments[name] += _outside(column)
            self._types[name] = plain_type(column.type)
        return not self._texts.total() and not self._moments.total()

    def check(self, file: str) -> None:
        """Raise ``ValuesError`` if unreadable values were counted in a file."""
        for name, count in (+self._texts).items():
            raise ValuesError.not_utf8(name, file, count)
        for name, count in (+self._moments).items():
            ends = inclusive_moments(self._types[name])
            assert ends is not None
            raise ValuesError.moments_out_of_range(name, count, ends[0].text, ends[1].text)


def count_undecodable(column: pa.Array) -> int:
    """Return how many values of a text column are not UTF-8; 0 for other types."""
    kind = plain_type(column.type)
    if not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)):
        return 0
    # A few entries stand for all records, and are nearly always right: then nothing else is looked at.
    entries = column.dictionary if isinstance(column, pa.DictionaryArray) else column
    if _is_text(entries):
        return 0
    # Few files come here, so that a loop over the values does no harm.
    bad = {number for number in range(len(entries)) if not _is_text(entries.slice(number, 1))}
    return sum(place in bad for place in column.indices.to_pylist()) if isinstance(column, pa.DictionaryArray) else len(bad)


def _is_text(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _outside(column: pa.Array) -> int:
    """Count the dates and times of a column that some programs cannot read; 0 for other types."""
    dtype = plain_type(column.type)
    ends = inclusive_moments(dtype)
    if ends is None:
        return 0
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    first, last = ends
    numbers = column.view(pa.int32() if dtype.bit_width == 32 else pa.int64())
    least, most = (end.as_py() for end in pc.min_max(numbers).values())
    if least is None or (first.number <= least and most <= last.number):
        return 0
    outside = pc.or_(pc.less(numbers, first.number), pc.greater(numbers, last.number))
    return int(pc.sum(outside).as_py())


BATCH_ROWS, BATCH_BYTES = 131_072, 16_000_000
FEWEST = 256
"""Records of a batch, however long."""
MOST_INDEX_BYTES = 5
"""Bytes that a place in a dictionary of a megabyte never takes."""
LARGE_GROUP, AHEAD = 32_000_000, 1 << 18
"""Bytes of a row group of which a column is not read at once, and how many of each column are instead."""


def read_chunk(chunk: Chunk, columns: Sequence[str], *, plain: Sequence[str] = (), as_written: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield a chunk's rows in batches of at most 131,072, columns as asked, text as dictionaries.

    Text comes as dictionaries, as it is written in the file: coding the few entries of a dictionary is far cheaper than the rows.

    Args:
        plain: Those whose text comes plain: of what names persons nearly every value is another, and a dictionary costs more than it saves.
        as_written: Whether all text comes plain and unchecked, for who asks only which values are equal: of identifiers hardly any are, and
            what is not published may hold any bytes.
    """
    plain = columns if as_written else plain
    waiting: list[pa.RecordBatch] = []
    held = 0
    for piece in chunk.pieces:
        for batch in _read_piece(piece, columns, plain, as_written=as_written):
            # What is done with a batch costs as much for a few rows as for many, but those of one file are large enough. No columns are no
            # table that could be put together.
            many = held + batch.num_rows > _batch_rows(piece, columns)
            if waiting and (many or len(chunk.pieces) == 1 or not columns or batch.schema != waiting[0].schema):
                yield _together(waiting)
                waiting, held = [], 0
            waiting.append(batch)
            held += batch.num_rows
    if waiting:
        yield _together(waiting)


def _together(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    [batch] = pa.Table.from_batches(parts).unify_dictionaries().combine_chunks().to_batches()
    return batch


def _read_piece(piece: Piece, columns: Sequence[str], plain: Sequence[str], *, as_written: bool) -> Iterator[pa.RecordBatch]:
    with open_source_file(piece.file) as file:
        yield from _rows(piece, file, columns, plain, as_written=as_written)


@contextmanager
def open_source_file(file: SourceFile) -> Iterator[Any]:
    """Yield a source file opened for reading; raise ``SourceError`` if it changed since digested."""
    if file.path is None:
        assert file.stat is not None
        with open_as_listed(file.name, file.stat) as read:
            yield read
        return
    with while_stable(file.path, file.name, file.stat):
        try:
            read = pa.OSFile(str(file.path))
        except OSError:
            raise SourceError.unreadable(file.name, "parquet") from None
        with read:
            yield read


def _rows(piece: Piece, read: Any, columns: Sequence[str], plain: Sequence[str], *, as_written: bool) -> Iterator[pa.RecordBatch]:
    named = {name for name, *_ in piece.file.partition}
    held = [name for name in columns if name not in named]
    coded = [name for name in piece.file.texts if name in held and name not in plain]
    published = {name: read_published_values(path) for name, (path, _) in piece.file.publish.items() if name in columns}
    try:
        # Of an object, columns that stand side by side are asked for together; of a file here, no more is held than is worked on.
        local = piece.file.path is not None
        ahead = AHEAD if local and max(piece.file.groups, default=0) * piece.file.width > LARGE_GROUP else 0
        kept: dict[str, Any] = {"pre_buffer": not local, "buffer_size": ahead, "coerce_int96_timestamp_unit": UNIT}
        metadata, (skip, groups) = pq.read_metadata(read), _row_groups(piece)
        coded = _coded(coded, metadata, groups)
        with pq.ParquetFile(read, metadata=metadata, read_dictionary=coded, **kept) as file:
            left, bad = piece.rows, Unreadable()
            # Long values take what they take unpacked, whatever a footer says of them.
            most = min(_told_rows(piece, held, coded, file, groups), _long_rows(piece, held))
            for batch in _batches(file, piece, groups, held, plain, most):
                rows = batch.slice(skip, left)
                skip = max(skip - batch.num_rows, 0)
                left -= rows.num_rows
                sound = bad.check_batch(rows, [] if as_written else held)
                if rows.num_rows and sound:
                    yield _with_partition(rows, piece, columns, plain, published)
                if not left:
                    break
    except (pa.ArrowException, OSError):
        raise SourceError.unreadable(piece.file.name, "parquet") from None
    bad.check(piece.file.name)
    # The footer promised more rows than came: it is not the file that was cut into chunks.
    if left:
        raise SourceError.changed(piece.file.name)


def _with_partition(
    rows: pa.RecordBatch, piece: Piece, columns: Sequence[str], plain: Container[str], published: Mapping[str, PublishedValues]
) -> pa.RecordBatch:
    """Return columns in order and working types, with those of the file's folders.

    Text is a dictionary unless it is in ``plain``.
    """
    found = [partition_column(piece.file.partition, name, rows.num_rows) for name in columns]
    read = [to_working_type(rows.column(name)) if column is None else column for name, column in zip(columns, found, strict=True)]
    without = piece.file.normalise
    read = [normalised(column, without[name]) if name in without else column for name, column in zip(columns, read, strict=True)]
    read = [published[name].apply(column) if name in published else column for name, column in zip(columns, read, strict=True)]
    arrays = [_text_as(column, plain=name in plain) for name, column in zip(columns, read, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _text_as(column: pa.Array, *, plain: bool) -> pa.Array:
    """Return text columns plain or as dictionaries."""
    if not pa.types.is_string(plain_type(column.type)) or plain != isinstance(column, pa.DictionaryArray):
        return column
    return column.dictionary_decode() if plain else column.dictionary_encode()


def _batches(
    file: pq.ParquetFile, piece: Piece, groups: list[int], columns: Sequence[str], plain: Container[str], rows: int
) -> Iterator[pa.RecordBatch]:
    drift = piece.file.drift
    if drift is None or not set(columns) & set(drift.names):
        # Chunks are worked on side by side already.
        read: Iterator[pa.RecordBatch] = file.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=False)
        return read
    return batches(file, rows, groups, columns, drift, plain, piece.file.name)


def _batch_rows(piece: Piece, columns: Sequence[str]) -> int:
    """Return the number of rows of some columns to read at a time."""
    # Of which column the bytes are is not known: with text among them it may be this one.
    each = piece.file.width if set(columns) & set(piece.file.texts) else min(piece.file.width, 16 * len(columns))
    return min(BATCH_ROWS, max(BATCH_BYTES // max(each, 1), FEWEST), _long_rows(piece, columns))


def _long_rows(piece: Piece, columns: Sequence[str]) -> int:
    """Return the number of rows to read at a time where columns have long values."""
    return rows_of_long(piece.file.long[name] for name in columns if name in piece.file.long)


def _told_rows(piece: Piece, columns: Sequence[str], coded: Sequence[str], file: pq.ParquetFile, groups: Sequence[int]) -> int:
    """Return the number of rows to read at a time, by the row groups' sizes of each column."""
    rows, types = _batch_rows(piece, columns), file.schema_arrow
    # What a file lacks is made, and columns of columns have several places.
    if rows == BATCH_ROWS or not set(columns) <= set(types.names) or file.metadata.num_columns != len(types):
        return rows
    parts, each = [file.metadata.row_group(number) for number in groups], 0.0
    for name, place in zip(columns, map(types.get_field_index, columns), strict=True):
        kind, held = types.field(place).type, [part.column(place) for part in parts]
        if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
            each += kind.bit_width / 8
        elif name not in coded and any(map(_in_dictionary, held)):
            # What its values take once they are unpacked, nobody says.
            return rows
        else:
            each += 4 + max((column.total_uncompressed_size / max(column.num_values, 1) for column in held), default=0)
    return min(BATCH_ROWS, max(int(BATCH_BYTES / max(each, 1)), FEWEST))


def _coded(texts: Sequence[str], metadata: pq.FileMetaData, groups: Sequence[int]) -> list[str]:
    """Return the texts to read as dictionaries.

    Values beside a dictionary Arrow would hold until all of a row group are read, and copy all that it holds with every batch.
    """
    parts = [metadata.row_group(number).column(place) for number in groups for place in range(metadata.num_columns) if texts]
    plain = {part.path_in_schema for part in parts if not _in_dictionary(part)}
    return [name for name in texts if name not in plain]


def _in_dictionary(column: pq.ColumnChunkMetaData) -> bool:
    """Return whether the pages of a column hold hardly any values outside its dictionary."""
    if not column.has_dictionary_page:
        return False
    packed = column.data_page_offset - column.dictionary_page_offset
    share = 1 - packed / max(column.total_compressed_size, 1)
    return bool(column.total_uncompressed_size * share < MOST_INDEX_BYTES * max(column.num_values, 1))


class Footer(NamedTuple):
    """Columns, row groups, unpacked size and long columns of a Parquet file.

    Attributes:
        columns: Without metadata, which may hold anything, an index or a value.
        groups: Number of records of each row group.
        size: Bytes that all of them take unpacked.
        long: By column of which values are long, how many bytes one may take; empty where that was not looked at.
        plain: Columns of text that Arrow cannot read as dictionaries: each value is written as a change of the one before it.
    """

    columns: pa.Schema
    groups: tuple[int, ...]
    size: int
    long: dict[str, int]
    plain: frozenset[str]


def read_footer(path: Path, name: str, found: Unpacked) -> Footer:
    """Return the footer of a Parquet file of this machine, with the lengths of its values.

    Args:
        name: What the user calls it.
    """
    try:
        with pa.OSFile(str(path)) as file:
            return footer_of(file, name, found)
    except OSError:
        raise SourceError.unreadable(name, "parquet") from None


def footer_of(opened: Any, name: str, found: Unpacked | None = None) -> Footer:
    """Return the footer of an open Parquet file; raise ``SourceError`` if it cannot be read.

    Args:
        name: What the user calls it.
        found: How long its values are. None where that is not looked at, as across a network.
    """
    try:
        with pq.ParquetFile(opened, coerce_int96_timestamp_unit=UNIT) as file:
            metadata = file.metadata
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            rows, size = tuple(group.num_rows for group in groups), sum(group.total_byte_size for group in groups)
            found = found or Unpacked({}, 0)
            return Footer(file.schema_arrow.remove_metadata(), rows, size + found.size, found.long, _changes(metadata))
    except (pa.ArrowException, OSError):
        raise SourceError.unreadable(name, "parquet") from None


def _changes(metadata: pq.FileMetaData) -> frozenset[str]:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    places = [place for place in range(metadata.num_columns) if metadata.schema.column(place).physical_type == "BYTE_ARRAY"]
    columns = (group.column(place) for group in groups for place in places)
    return frozenset(column.path_in_schema for column in columns if any(encoding.startswith("DELTA") for encoding in column.encodings))


def long_texts(opened: Any, name: str, texts: Sequence[str], least: int) -> list[str]:
    """Return those of ``texts`` whose values average ``least`` bytes or more in the first row group."""
    try:
        with pq.ParquetFile(opened) as file:
            if not file.metadata.num_row_groups:
                return []
            group = file.metadata.row_group(0)
    except (pa.ArrowException, OSError):
        raise SourceError.unreadable(name, "parquet") from None
    parts = [group.column(place) for place in range(group.num_columns)]
    long = {part.path_in_schema for part in parts if part.total_uncompressed_size >= least * max(part.num_values, 1)}
    return [text for text in texts if text in long]


def row_bytes(schema: pa.Schema) -> int:
    """Return about how many bytes a record of a schema takes in memory, without its text."""
    return sum(4 if plain_texts(pa.schema([field])) else 8 for field in schema)


def plain_texts(schema: pa.Schema) -> tuple[str, ...]:
    """Return the text columns of a schema whose type is no dictionary."""
    return tuple(field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_string_view(field.type))


def _row_groups(piece: Piece) -> tuple[int, list[int]]:
    """Return the number of rows to skip, and the row groups that hold a piece."""
    ends = list(accumulate(piece.file.groups))
    starts = [0, *ends]
    groups = [number for number, end in enumerate(ends) if starts[number] < piece.first + piece.rows and end > piece.first]
    return piece.first - starts[groups[0]] if groups else 0, groups
