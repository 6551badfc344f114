"""Batches of records, written as one Parquet file in bounded memory.

Row groups do not depend on how the records arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.columns.column_types import holds_bytes, plain_type, to_working_type
from schemas.errors.base import StorageError, counted
from schemas.errors.storage import DatabaseError
from schemas.errors.values import ValuesError
from schemas.reading.typed_texts import accepted_words, typed_sql
from tasks.source.locations import arrow_type
from tasks.source.unpacked import MOST_VALUE

# DuckDB's own size of row groups, so that files of all origins are cut alike.
GROUP_ROWS = 122_880
GROUP_BYTES = 64_000_000
# Days since 1970 of the first day of year 1 and of the last of year 9999: infinity lies outside, and so does what no calendar here knows.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY = 86_400_000_000
FEW = 16
"""Values after which a page may end: of long ones a thousand are a page that nobody unpacks."""


def schema_of_columns(schema: pa.Schema) -> pa.Schema:
    """Return a schema as Parquet keeps it, without metadata; raise ``DatabaseError`` for other types."""
    if faults := [f"'{field.name}' ({_name(field.type)})" for field in schema if not _is_kept(field.type)]:
        raise DatabaseError.no_such_type(faults)
    return pa.schema([pa.field(field.name, _kept(field.type)) for field in schema])


def _is_kept(dtype: pa.DataType) -> bool:
    plain = plain_type(dtype)
    if isinstance(plain, pa.OpaqueType) or (plain != dtype and (pt.is_nested(plain) or isinstance(plain, pa.BaseExtensionType))):
        return False
    try:
        # It alone knows its types: no intervals, unions, decimals of negative scale, structs without a field, at whatever depth.
        pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([("column", dtype)])).close()
    except (pa.ArrowException, OSError):
        return False
    return True


def _name(dtype: pa.DataType) -> str:
    return str(dtype.type_name) if isinstance(dtype, pa.OpaqueType) else str(dtype)


def _kept(dtype: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(dtype) and pt.is_string_view(dtype.value_type):
        return pa.dictionary(dtype.index_type, pa.string(), dtype.ordered)
    return dtype


def write_batches(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], name: str) -> int:
    """Write batches as Parquet in row groups of 122,880 rows or 64 MB; return the number of rows.

    Args:
        schema: From ``schema_of_columns``.
        batches: Of these columns, in this order; dictionaries may differ from batch to batch.
        name: Where they come from, as the user knows it.
    """
    rows = size = 0
    waiting: list[pa.RecordBatch] = []
    with pq.ParquetWriter(path, schema, compression="zstd", write_statistics=False, write_batch_size=FEW) as writer:

        def write(count: int) -> None:
            nonlocal waiting, size
            table = pa.Table.from_batches(waiting, schema)
            writer.write_table(table.slice(0, count).unify_dictionaries())
            waiting = table.slice(count).to_batches()
            size = sum(batch.get_total_buffer_size() for batch in waiting) if len(waiting) > 1 else 0

        for batch in batches:
            check_values(batch, name)
            waiting.append(_as_kept(batch, schema))
            rows += batch.num_rows
            size += batch.nbytes
            while (held := sum(part.num_rows for part in waiting)) >= GROUP_ROWS or (size >= GROUP_BYTES and held):
                write(min(held, GROUP_ROWS))
        if rows:
            write(sum(part.num_rows for part in waiting))
    return check_row_count(path, rows)


def equal_groups(batches: Iterable[pa.RecordBatch], group_rows: int) -> Iterator[pa.Table]:
    """Yield the rows in groups of equal size, so that a file does not depend on how its records arrived."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one_held.num_rows for one_held in held) >= group_rows:
            together = pa.Table.from_batches(held)
            whole = together.num_rows // group_rows * group_rows
            for first in range(0, whole, group_rows):
                yield together.slice(first, group_rows)
            held = together.slice(whole).to_batches()
    if held:
        yield pa.Table.from_batches(held)


def check_row_count(path: Path, row_count: int) -> int:
    """Return ``row_count`` if a Parquet file has as many; raise ``StorageError`` if not."""
    if pq.read_metadata(path).num_rows != row_count:
        raise StorageError.malformed("converted", ["number of rows"])
    return row_count


def check_values(batch: pa.RecordBatch, name: str) -> None:
    """Raise ``ValuesError`` if a batch has a text or binary value larger than a source may have.

    Args:
        name: Where they come from, as the user knows it.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        entries = column.dictionary if isinstance(column, pa.DictionaryArray) else column
        entries = entries.storage if isinstance(entries, pa.ExtensionArray) else entries
        # Where all of them take no more, none does.
        if holds_bytes(entries.type) and entries.nbytes > MOST_VALUE and (pc.max(pc.binary_length(entries)).as_py() or 0) > MOST_VALUE:
            raise ValuesError.too_long(field.name, name, MOST_VALUE)


def _as_kept(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        without_null_entries(to_working_type(column) if column.type != field.type else column) if pt.is_dictionary(column.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def without_null_entries(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column whose dictionary has no null, as Parquet wants it; its records are null by index."""
    if not column.dictionary.null_count:
        return column
    there = np.asarray(column.dictionary.is_valid())
    places = pa.array(np.cumsum(there) - there, column.indices.type, mask=~there)
    return pa.DictionaryArray.from_arrays(places.take(column.indices), column.dictionary.drop_null(), ordered=column.type.ordered)


def fitted_column(column: pa.Array, field: pa.Field, dtype: str | None) -> pa.Array:
    """Return a column of a query in its type; raise ``DatabaseError`` if a value would be another one.

    Args:
        column: As the driver gives it.
        field: Of the schema that is kept.
        dtype: From ``source.types``, where the column has one.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage  # A numeric comes as a text that only its name tells from others: 156 and not 156.0.
    if dtype is not None and column.type != field.type:
        # Arrow asks decimals for room for every integer of a width, and not for those that are there.
        written = pt.is_string(column.type) or (pt.is_integer(column.type) and pt.is_decimal(field.type))
        made = _typed_texts(column.cast(pa.string()), dtype) if written else _cast(column, field.type)
        if made is None:
            raise DatabaseError.values_do_not_fit(
                [f"a '{field.name}' is not of the type that source.types gives, which takes {accepted_words(dtype)}"]
            )
        column = made
    if outside := _outside(column):
        raise DatabaseError.values_do_not_fit(
            [f"{counted(outside, 'value')} of '{field.name}' infinite, 24:00 or outside the years 1 to 9999"]
        )
    return column


def _typed_texts(column: pa.Array, dtype: str) -> pa.Array | None:
    """Return texts in a type; None if one of them does not fit."""
    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("texts", pa.table({"text": column}))
        found = connection.sql(f"SELECT {typed_sql('text', dtype)} AS typed FROM texts").to_arrow_table()["typed"].combine_chunks()
    return found.cast(arrow_type(dtype)) if found.null_count == column.null_count else None


def _cast(column: pa.Array, dtype: pa.DataType) -> pa.Array | None:
    """Return values in another type; None if a value would change, or a number become a time."""
    kinds = {(pt.is_temporal(one), getattr(one, "tz", None)) for one in (column.type, dtype)}
    if not pt.is_string(dtype) and len(kinds) > 1:
        return None
    try:
        made = column.cast(dtype)
        # Arrow makes another double of 0.3 as a decimal than of its digits.
        back = made.cast(pa.string()) if pt.is_decimal(dtype) and pt.is_floating(column.type) else made
        same = back.cast(column.type).equals(column)
    except pa.ArrowException:
        return None
    return made if same else None


def _outside(column: pa.Array) -> int:
    """Count the infinite dates and timestamps, those beyond the calendar, and times of 24:00."""
    if pt.is_date32(column.type):
        whole, first, last = column.view(pa.int32()), FIRST_DAY, LAST_DAY
    elif pt.is_timestamp(column.type) and column.type.unit == "us":
        whole, first, last = column.view(pa.int64()), FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1
    elif pt.is_time64(column.type):
        whole, first, last = column.view(pa.int64()), 0, DAY - 1
    else:
        return 0
    beyond = pc.or_(pc.less(whole, pa.scalar(first, whole.type)), pc.greater(whole, pa.scalar(last, whole.type)))
    return int(pc.sum(beyond).as_py() or 0)
