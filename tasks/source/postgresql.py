"""PostgreSQL through ADBC: the rows of one query, in batches as the server sends them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from schemas.errors.base import counted
from schemas.errors.storage import DatabaseError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of
from schemas.reading.typed_texts import accepted_words, typed_sql
from tasks.source.batches import schema_of_columns
from tasks.source.locations import arrow_type

TYPE = b"POSTGRESQL:type"
MOST_BYTES_OF_ADDRESS = 1_000_000
SCHEMES = ("postgresql://", "postgres://")
# Days since 1970 of the first day of year 1 and of the last of year 9999: infinity lies outside, and so does what no calendar here knows.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY = 86_400_000_000


def address(job: Job) -> str:
    """Return the server's address; libpq takes what is missing from its own variables and files."""
    connection = job.source.connection
    if connection is None:
        return SCHEMES[0]
    if connection.uri:
        return connection.uri
    text, where = "", f"the environment variable '{connection.env}'"
    if connection.env:
        text = os.environ.get(connection.env, "").strip()
    elif connection.file:
        where = f"the file '{connection.file}'"
        try:
            text = (content_of(job.resolve(connection.file), MOST_BYTES_OF_ADDRESS).decode().splitlines() or [""])[0].strip()
        except (OSError, ValueError):
            text = ""
    if not text.startswith(SCHEMES):
        raise DatabaseError.no_address(where)
    return text


@contextmanager
def rows_of(uri: str, query: str, types: Mapping[str, str]) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Run a query in a read-only transaction; yield the schema and an iterator of the batches.

    Args:
        uri: The server's address.
        query: A SELECT.
        types: Types of columns, as in ``source.types``; every ``numeric`` needs one.
    """
    try:
        from adbc_driver_manager import dbapi
        from adbc_driver_postgresql.dbapi import connect
    except ImportError:
        raise DatabaseError.not_installed() from None
    try:
        connection = connect(uri, autocommit=True)
    except dbapi.Error:
        raise DatabaseError.unreachable() from None
    try:
        with connection, connection.cursor() as cursor:
            for setting in ("SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "TimeZone = 'UTC'"):
                cursor.execute(f"SET {setting}")
            # The driver puts the query in brackets, which a comment at its end would swallow.
            cursor.execute(f"{query}\n")
            with cursor.fetch_record_batch() as reader:
                schema = _columns(reader.schema, types)
                yield schema, _typed(reader, schema, types, dbapi.Error)
    except (dbapi.Error, pa.ArrowException) as error:
        raise _refused(error) from None


def _refused(error: Exception) -> DatabaseError:
    return DatabaseError.refused("PostgreSQL", getattr(error, "sqlstate", None) or None)


def _columns(schema: pa.Schema, types: Mapping[str, str]) -> pa.Schema:
    if unknown := [name for name in types if name not in schema.names]:
        raise DatabaseError.unknown_types(unknown)
    origin = {field.name: (field.metadata or {}).get(TYPE, b"").decode() for field in schema}
    if bare := [name for name, kind in origin.items() if kind == "numeric" and name not in types]:
        raise DatabaseError.no_precision(bare)
    if money := [f"'{name}' (money)" for name, kind in origin.items() if kind == "money"]:
        raise DatabaseError.no_such_type(money)
    return schema_of_columns(
        pa.schema([field.with_type(arrow_type(types[field.name])) if field.name in types else field for field in schema])
    )


def _typed(
    reader: Iterator[pa.RecordBatch], schema: pa.Schema, types: Mapping[str, str], failed: type[Exception]
) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = next(reader, None)
        except (failed, pa.ArrowException, OSError) as error:
            raise _refused(error) from None
        if batch is None:
            return
        columns = [_fitted(column, field, types.get(field.name)) for column, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _fitted(column: pa.Array, field: pa.Field, dtype: str | None) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage  # A numeric comes as a text that only its name tells from others: 156 and not 156.0.
    if dtype is not None and column.type != field.type:
        made = _typed_texts(column, dtype) if pt.is_string(column.type) else _cast(column, field.type)
        if made is None:
            raise DatabaseError.values_do_not_fit(
                [f"a '{field.name}' is not of the type that source.types gives, which takes {accepted_words(dtype)}"]
            )
        column = made
    if outside := _outside(column):
        raise DatabaseError.values_do_not_fit([f"{counted(outside, 'value')} of '{field.name}' infinite or outside the years 1 to 9999"])
    return column


def _typed_texts(column: pa.Array, dtype: str) -> pa.Array | None:
    """Return texts in a type; None if one of them does not fit."""
    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("texts", pa.table({"text": column}))
        found = connection.sql(f"SELECT {typed_sql('text', dtype)} AS typed FROM texts").to_arrow_table()["typed"].combine_chunks()
    return found.cast(arrow_type(dtype)) if found.null_count == column.null_count else None


def _cast(column: pa.Array, dtype: pa.DataType) -> pa.Array | None:
    """Return values in another type; None if a value would change."""
    if pt.is_timestamp(column.type) and (pt.is_timestamp(dtype) or pt.is_date(dtype)) and column.type.tz != getattr(dtype, "tz", None):
        return None
    try:
        made = column.cast(dtype)
        same = made.cast(column.type).equals(column)
    except pa.ArrowException:
        return None
    return made if same else None


def _outside(column: pa.Array) -> int:
    """Count the dates and timestamps that are infinite or beyond the calendar."""
    first: Any
    if pt.is_date32(column.type):
        whole, first, last = column.view(pa.int32()), FIRST_DAY, LAST_DAY
    elif pt.is_timestamp(column.type) and column.type.unit == "us":
        whole, first, last = column.view(pa.int64()), FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1
    else:
        return 0
    beyond = pc.or_(pc.less(whole, pa.scalar(first, whole.type)), pc.greater(whole, pa.scalar(last, whole.type)))
    return int(pc.sum(beyond).as_py() or 0)
