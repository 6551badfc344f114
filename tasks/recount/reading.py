"""What DuckDB read, as Arrow arrays."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.types as pt

from tasks.recount.original import Original


def fetched(connection: duckdb.DuckDBPyConnection, statement: str) -> dict[str, pa.Array]:
    """Returns the columns that a statement yields."""
    rows = connection.sql(statement)
    table = rows.to_arrow_table()
    rows.close()
    return {name: table[name].combine_chunks() for name in table.column_names}


def as_given(values: pa.Array, original: Original, column: str) -> pa.Array:
    """Returns the moments of a column of the source with their unit and time zone, which DuckDB forgets, and everything else as it is."""
    if column not in original.columns.names or not pt.is_timestamp(values.type):
        return values
    given = original.columns.field(column).type
    if not pt.is_timestamp(given):
        return values
    try:
        return values.cast(given)
    except pa.ArrowInvalid:
        # Files that differ are read in the finer unit.
        return values.cast(pa.timestamp(values.type.unit, given.tz))
