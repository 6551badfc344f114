"""Uniqueness of people by column, counted by DuckDB on a sample without returning values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import duckdb

from core.formats.proposals import ColumnProfile
from tasks.store.database import quote

SAMPLE_RECORDS = 20_000
DOMINANT = 0.1
"""Share of the records that the most frequent value may have for the values to be people, however often some of them come."""
UNTIDY = 0.01
"""Share of the values that may belong to several others where they determine these all the same: data have slips."""


class ExposedPeople(NamedTuple):
    """Shares of the sample's records that are unique by a column and by others.

    Attributes:
        alone: By this column.
        together: By it and others.
        without: By the others alone.
    """

    alone: float
    together: float
    without: float


def is_dominated(connection: duckdb.DuckDBPyConnection, column: ColumnProfile) -> bool:
    """Return whether one value has more than a tenth of the records with a value in the column.

    No person has so many records, while a figure is often 0.

    Args:
        connection: Has the view ``source``.
        column: The column.
    """
    name = quote(column.name)
    counts = f"SELECT count(*) AS n FROM source WHERE {name} IS NOT NULL GROUP BY {name}"
    [(most,)] = connection.execute(f"SELECT coalesce(max(n), 0) FROM ({counts})").fetchall()
    return int(most) > DOMINANT * column.values


def determines_column(connection: duckdb.DuckDBPyConnection, finer: str, coarser: str) -> bool:
    """Return whether one column's values determine another's, except for at most 1% of the values.

    Args:
        connection: Has the view ``source``.
        finer: The column whose values are looked at, one by one; a null is none.
        coarser: The column that they may determine; a null says nothing.
    """
    one, other = quote(finer), quote(coarser)
    # Of several values the least and the greatest differ, and no set of them need be held.
    each = f"SELECT min({other}) <> max({other}) AS differs FROM source WHERE {one} IS NOT NULL AND {other} IS NOT NULL GROUP BY {one}"
    [(values, differing)] = connection.execute(f"SELECT count(*), count(*) FILTER (differs) FROM ({each})").fetchall()
    return bool(values) and differing <= UNTIDY * values


def draw_sample(connection: duckdb.DuckDBPyConnection, person: str | None) -> int:
    """Draw the SQL table ``sample`` from the source, one record per person; return its size.

    The seed is fixed.

    Args:
        connection: Has the view.
        person: The column that says whose a record is: one record of each person is taken then, so that the sample is of people.
    """
    # On one thread, because which records come first would else be a matter of chance.
    connection.execute("SET threads = 1")
    one_each = f"SELECT DISTINCT ON ({quote(person)}) * FROM source" if person is not None else "SELECT * FROM source"
    connection.execute(f"CREATE TEMP TABLE sample AS FROM ({one_each}) USING SAMPLE reservoir({SAMPLE_RECORDS} ROWS) REPEATABLE (1)")
    connection.execute("RESET threads")
    [(records,)] = connection.execute("SELECT count(*) FROM sample").fetchall()
    return int(records)


def columns_exposures(connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Sequence[str]]) -> dict[str, ExposedPeople]:
    """Return by column the shares of sample records that it makes unique, alone and with the others.

    Args:
        connection: Has the table.
        columns: The columns, each with the other columns that may be known together with it.
    """
    [(records,)] = connection.execute("SELECT count(*) FROM sample").fetchall()
    seen: dict[tuple[str, ...], float] = {}

    def alone(*names: str) -> float:
        # Most columns are looked at together with the same others.
        if names not in seen:
            seen[names] = _alone(connection, names) / max(records, 1)
        return seen[names]

    return {name: ExposedPeople(alone(name), alone(*others, name), alone(*others)) for name, others in columns.items()}


def _alone(connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> int:
    if not columns:
        return 0
    grouped = f"SELECT 1 FROM sample GROUP BY {', '.join(map(quote, columns))} HAVING count(*) = 1"
    [(count,)] = connection.execute(f"SELECT count(*) FROM ({grouped})").fetchall()
    return int(count)
