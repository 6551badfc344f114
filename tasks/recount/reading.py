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


def zoned(values: pa.Array, original: Original, column: str) -> pa.Array:
    """Returns the instants of a column of the source with their time zone, which DuckDB forgets, and everything else as it is."""
    if column not in original.columns.names or not pt.is_timestamp(values.type):
        return values
    zone = getattr(original.columns.field(column).type, "tz", None)
    return values.cast(pa.timestamp(values.type.unit, zone)) if zone else values
