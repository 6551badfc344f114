"""Reads and writes the Parquet tables that pass between steps, each checked before it is written.

Tables of the whole source are checked by their Pandera schemas, value by value. Those of chunks, of which there may be thousands, are
checked by what their columns' types say.
"""

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
    return _write(path, checked(table, schema, step), ascending)


def write_of_chunk(path: Path, table: pa.Table, types: pa.Schema, step: str, ascending: str | None = None) -> int:
    """Writes a table of one chunk and returns its number of rows.

    Args:
        path: Where to.
        table: What.
        types: Its columns.
        step: Names it in a message.
        ascending: As in ``write_table``.

    Raises:
        StorageError: it has other columns.
    """
    if not table.schema.equals(types):
        raise StorageError.malformed(step, ["columns"])
    return _write(path, table, ascending)


def _write(path: Path, table: pa.Table, ascending: str | None) -> int:
    plain = [name for name in table.column_names if name != ascending]
    encoding = {ascending: "DELTA_BINARY_PACKED"} if ascending else None
    pq.write_table(table, path, compression="lz4", write_statistics=False, use_dictionary=plain, column_encoding=encoding)
    return len(table)


def read_table(store: Store, artifact: Artifact) -> pa.Table:
    """Reads an artefact; it was checked when it was written, and the store knows its digest.

    Raises:
        StorageError: it is not what its step promises.
    """
    try:
        # A file of its own, which is no part of a dataset: to look whether it is one takes longer than to read a small table.
        with pa.OSFile(str(store.path(artifact))) as opened, pq.ParquetFile(opened) as file:
            return file.read(use_threads=False)
    except (pa.ArrowException, OSError):
        raise StorageError.malformed(artifact.step, ["not readable"]) from None
