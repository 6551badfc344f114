"""Files whose columns differ, read as if they did not: what a file lacks is null, and narrower types are widened."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.columns.column_types import plain_type, unified, working, working_type
from schemas.errors.base import SourceError


def evolved(names: Sequence[str], schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Returns the columns as which all files are read."""
    columns, unlike = unified(schemas)
    for column, (one, other) in unlike.items():
        types = [str(plain_type(schemas[number].field(column).type)) for number in (one, other)]
        raise SourceError.no_common_type(column, types[0], names[one], types[1], names[other])
    return columns


def differences(schema: pa.Schema, columns: pa.Schema) -> pa.Schema | None:
    """Returns the columns that a file lacks or writes in another type than they are read in; None if there is none."""
    mine = {field.name: plain_type(field.type) for field in schema}
    fields = [field for field in columns if mine.get(field.name) != plain_type(field.type)]
    return pa.schema([(field.name, plain_type(field.type)) for field in fields]) if fields else None


def batches(
    file: pq.ParquetFile, rows: int, groups: list[int], columns: Sequence[str], wanted: pa.Schema, plain: Container[str], name: str
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of row groups.

    Args:
        file: The file.
        rows: Rows of a batch at most.
        groups: Numbers of the row groups.
        columns: What is read.
        wanted: Those of the file's columns that it lacks or that are read in another type, as they are read.
        plain: Columns whose text comes plain, and not as dictionaries.
        name: Of the file, as the user knows it.
    """
    there = [column for column in columns if column in file.schema_arrow.names]
    total = sum(file.metadata.row_group(group).num_rows for group in groups)
    read = file.iter_batches(rows, row_groups=groups, columns=there, use_threads=False) if there else _empty(total, rows)
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
    held, plain = working_type(dtype), working(column)
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
    """Returns decimals as floats of which each, written out, is the decimal again."""
    # Arrow's own cast of 0.1 is 0.09999999999999999.
    floats = column.cast(pa.string()).cast(dtype)
    if not floats.cast(pa.string()).cast(column.type).equals(column):
        raise pa.ArrowInvalid
    return floats
