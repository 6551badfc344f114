"""All values of one column of a source with their counts, by DuckDB, before there is any job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from core.columns.domains import Domain
from core.formats.proposals import Kind
from schemas.errors.base import SourceError, nearest
from tasks.planning.profiles import format_of, planning_connection, read_as
from tasks.store.database import quote

CASTS: dict[Kind, str] = {"integer": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}


def column_values(files: Sequence[Path], column: str) -> Domain:
    """Counts the distinct values of a column over all records of all files.

    Args:
        files: Of one format.
        column: Its name; in a CSV file it is of the type that ``skald init`` would give it.

    Raises:
        SourceError: the files cannot be read, differ, hold no record, or lack the column.
    """
    entry = format_of(files[0])
    connection = planning_connection()
    try:
        assert entry.sample is not None
        sample = entry.sample(connection, files)
        connection.execute(f"CREATE TEMP VIEW source AS SELECT * FROM {sample.relation}")
        names = [str(row[0]) for row in connection.execute("DESCRIBE source").fetchall()]
        if column not in names:
            raise SourceError.unknown_columns([f"'{column}'{nearest(column, names)}"])
        kind = read_as(connection, [column])[column] if sample.texts else None
        typed = f"CAST({quote(column)} AS {CASTS[kind]})" if kind in CASTS else quote(column)
        table = connection.sql(f"SELECT {typed} AS value, count(*) AS n FROM source GROUP BY 1 ORDER BY 1 NULLS LAST").to_arrow_table()
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error:
        # DuckDB's message would quote the value that it could not read.
        raise SourceError.unreadable(str(files[0]), entry.name) from None
    finally:
        connection.close()
    if not len(table):
        raise SourceError.empty(len(files))
    values, counts = table["value"].combine_chunks(), table["n"].to_numpy().astype(np.int64)
    nulls = int(counts[-1]) if values.null_count else 0
    found = values.drop_null()
    return Domain(column, found.cast(pa.string()) if pa.types.is_large_string(found.type) else found, counts[: len(found)], nulls)
