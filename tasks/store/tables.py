"""Reads and writes the Parquet tables that pass between steps, each checked by its Pandera schema before it is written."""

from __future__ import annotations

from pathlib import Path

import pandera.polars as pandera
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pandera.errors import SchemaError, SchemaErrors

from core.columns.column_types import in_utc
from schemas.errors.base import StorageError
from tasks.store.store import Artifact, Store


def checked(table: pa.Table, schema: pandera.DataFrameSchema, step: str) -> pa.Table:
    """Returns the table if it satisfies the schema.

    Raises:
        StorageError: it does not; names the checks, never a value.
    """
    try:
        schema.validate(pl.DataFrame(table.cast(pa.schema([field.with_type(in_utc(field.type)) for field in table.schema]))), lazy=True)
    except SchemaErrors as errors:
        # The names of checks alone: Pandera's failure cases and its message hold cells.
        raise StorageError.malformed(step, sorted({str(check) for check in errors.failure_cases["check"]})) from None
    except SchemaError as error:
        raise StorageError.malformed(step, [str(error.reason_code)]) from None
    return table


def write_table(path: Path, table: pa.Table, schema: pandera.DataFrameSchema, step: str, ascending: str | None = None) -> int:
    """Writes a checked table and returns its number of rows.

    Args:
        path: Where to.
        table: What.
        schema: What it must satisfy.
        step: Names it in a message.
        ascending: A column of ascending integers, if there is one: written as differences it takes a quarter of time and space.

    Raises:
        StorageError: it does not; names the checks, never a value.
    """
    plain = [name for name in table.column_names if name != ascending]
    encoding = {ascending: "DELTA_BINARY_PACKED"} if ascending else None
    pq.write_table(
        checked(table, schema, step), path, compression="lz4", write_statistics=False, use_dictionary=plain, column_encoding=encoding
    )
    return len(table)


def read_table(store: Store, artifact: Artifact) -> pa.Table:
    """Reads an artefact; it was checked when it was written, and the store knows its digest.

    Raises:
        StorageError: it is not what its step promises.
    """
    try:
        return pq.read_table(store.path(artifact), use_threads=False)
    except (pa.ArrowException, OSError):
        raise StorageError.malformed(artifact.step, ["not readable"]) from None
