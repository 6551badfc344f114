"""Reads the rows of a chunk in batches, so that memory depends on neither chunk nor file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.column_types import working
from schemas.errors.base import SourceError
from tasks.source.at_rest import at_rest
from tasks.source.chunks import Chunk
from tasks.source.evolving import batches
from tasks.source.partitions import partition_column
from tasks.source.values import Unreadable

BATCH_ROWS = 131_072


def read_chunk(chunk: Chunk, columns: Sequence[str], *, plain: Sequence[str] = (), as_written: bool = False) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a chunk, in batches of at most 131,072, with the given columns in the given order.

    Text comes as dictionaries, as it is written in the file: coding the few entries of a dictionary is far cheaper than the rows.

    Args:
        chunk: What is read.
        columns: Which of its columns.
        plain: Those whose text comes plain: of what names persons nearly every value is another, and a dictionary costs more than it saves.
        as_written: Whether all text comes plain and unchecked, for who asks only which values are equal: of identifiers hardly any are, and
            what is not published may hold any bytes.

    Raises:
        SourceError: the file changed since it was digested, or cannot be read to its end, or a column of text holds bytes that are no
            UTF-8, or one of dates or times what no calendar has; they are counted to the end of the chunk before it is raised.
    """
    with at_rest(chunk.file.path, chunk.file.name, chunk.file.stat):
        yield from _rows(chunk, columns, columns if as_written else plain, as_written=as_written)


def _rows(chunk: Chunk, columns: Sequence[str], plain: Sequence[str], *, as_written: bool) -> Iterator[pa.RecordBatch]:
    named = {name for name, *_ in chunk.file.partition}
    held = [name for name in columns if name not in named]
    coded = [name for name in held if name not in plain]
    try:
        with pq.ParquetFile(chunk.file.path, read_dictionary=_text_columns(chunk.file.path, coded)) as file:
            skip, groups = _row_groups(file.metadata, chunk)
            left, bad = chunk.rows, Unreadable()
            for batch in _batches(file, chunk, groups, held):
                rows = batch.slice(skip, left)
                skip = max(skip - batch.num_rows, 0)
                left -= rows.num_rows
                sound = bad.look_at(rows, [] if as_written else held)
                if rows.num_rows and sound:
                    yield _with_partition(rows, chunk, columns)
                if not left:
                    break
    except (pa.ArrowException, OSError):
        raise SourceError.unreadable(chunk.file.name, "parquet") from None
    bad.check(chunk.file.name)
    # The footer promised more rows than came: it is not the file that was cut into chunks.
    if left:
        raise SourceError.changed(chunk.file.name)


def _with_partition(rows: pa.RecordBatch, chunk: Chunk, columns: Sequence[str]) -> pa.RecordBatch:
    """Returns the columns in their order and working types, with those that the file's folders name."""
    found = [partition_column(chunk.file.partition, name, rows.num_rows) for name in columns]
    arrays = [working(rows.column(name)) if column is None else column for name, column in zip(columns, found, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _batches(file: pq.ParquetFile, chunk: Chunk, groups: list[int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    drift = chunk.file.drift
    if drift is None or not set(columns) & set(drift.names):
        # Chunks are worked on side by side already.
        plain: Iterator[pa.RecordBatch] = file.iter_batches(BATCH_ROWS, row_groups=groups, columns=list(columns), use_threads=False)
        return plain
    return batches(file, BATCH_ROWS, groups, columns, drift, chunk.file.name)


def _text_columns(path: Path, columns: Sequence[str]) -> list[str]:
    schema = pq.read_schema(path)
    return [name for name in columns if name in schema.names and _is_text(schema.field(name).type)]


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_string_view(dtype))


def _row_groups(metadata: pq.FileMetaData, chunk: Chunk) -> tuple[int, list[int]]:
    """Returns how many rows to skip and the row groups that hold the chunk."""
    groups: list[int] = []
    start = skip = 0
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        if start < chunk.first + chunk.rows and start + rows > chunk.first:
            if not groups:
                skip = chunk.first - start
            groups.append(number)
        start += rows
    return skip, groups
