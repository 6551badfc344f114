"""All values of one column of a source with their counts, by DuckDB, before there is any job."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from core.columns.domains import Domain
from core.formats.proposals import Kind
from schemas.errors.base import SourceError, nearest
from tasks.planning.open_sources import OpenSource
from tasks.planning.profiles import read_as
from tasks.store.database import quote

CASTS: dict[Kind, str] = {"integer": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}


def column_values(front: OpenSource, column: str) -> Domain:
    """Counts the distinct values of a column over all records of a source.

    Args:
        front: The source.
        column: Its name; in a CSV file it is of the type that ``skald init`` would give it.

    Raises:
        SourceError: the source holds no record, or lacks the column.
    """
    names = [str(row[0]) for row in front.connection.execute("DESCRIBE everything").fetchall()]
    if column not in names:
        raise SourceError.unknown_columns([f"'{column}'{nearest(column, names)}"])
    kind = read_as(front.connection, [column])[column] if front.texts else None
    domain = counted_values(front.connection, "everything", column, kind)
    if not domain.records:
        raise SourceError.empty(len(front.files))
    return domain


def typed(column: str, kind: Kind | None) -> str:
    """Returns a column in SQL, as of a kind if its texts are read as that."""
    return f"CAST({quote(column)} AS {CASTS[kind]})" if kind in CASTS else quote(column)


def counted_values(connection: duckdb.DuckDBPyConnection, relation: str, column: str, kind: Kind | None) -> Domain:
    """Counts the distinct values of a column of a view or table.

    Args:
        connection: Has it.
        relation: Its name.
        column: Of the column.
        kind: What its texts are read as; None to take them as they are.
    """
    counts = f"SELECT {typed(column, kind)} AS value, count(*) AS n FROM {relation} GROUP BY 1 ORDER BY 1 NULLS LAST"
    table = connection.sql(counts).to_arrow_table()
    values, numbers = table["value"].combine_chunks(), table["n"].to_numpy().astype(np.int64)
    nulls = int(numbers[-1]) if values.null_count else 0
    found = values.drop_null()
    return Domain(column, found.cast(pa.string()) if pa.types.is_large_string(found.type) else found, numbers[: len(found)], nulls)
