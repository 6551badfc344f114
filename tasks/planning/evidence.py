"""Further evidence on columns: value patterns, the most frequent value, and repeated columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import duckdb

from core.formats.proposals import ColumnProfile, Proposal
from core.passthrough.value_patterns import identifying_patterns
from tasks.planning.exposure import determines_column
from tasks.store.database import quote

SAMPLE_RECORDS, MOST_LOOKED_AT = 20_000, 1_000
"""Records of which the most frequent value is counted, and different values of a column that are looked at."""
ALIKE, FEWEST, MOST = 0.05, 3, 5_000
"""How much numbers of different values may differ, as a share, and how many these are, for columns to be held against each other."""
MOST_PAIRS = 200
SHORTEST = 4
"""Characters that texts have on average, at least, to be looked at."""


def with_value_patterns(connection: duckdb.DuckDBPyConnection, columns: Sequence[ColumnProfile]) -> tuple[ColumnProfile, ...]:
    """Add to column profiles the most frequent value's share, and what a sample's values look like.

    Args:
        connection: Has the view ``source``.
        columns: What was counted.
    """
    # On one thread, because which records come first would else be a matter of chance.
    connection.execute("SET threads = 1")
    connection.execute(f"CREATE TEMP TABLE evidence AS FROM source USING SAMPLE reservoir({SAMPLE_RECORDS} ROWS) REPEATABLE (2)")
    connection.execute("RESET threads")
    found = tuple(_looked_at(connection, column) for column in columns)
    connection.execute("DROP TABLE evidence")
    return found


def _looked_at(connection: duckdb.DuckDBPyConnection, column: ColumnProfile) -> ColumnProfile:
    if column.kind == "other" or not column.values:
        return column
    name = quote(column.name)
    counts = f"SELECT {name} AS value, count(*) AS n FROM evidence GROUP BY 1"
    figures = "sum(n), sum(n) FILTER (value IS NOT NULL), max(n), count(value), count(*) FILTER (n = 1 AND value IS NOT NULL)"
    [(records, values, top, distinct, alone)] = connection.execute(f"SELECT {figures} FROM ({counts})").fetchall()
    looks: list[str] = []
    if column.kind == "integer" or (column.kind == "text" and column.mean_length >= SHORTEST):
        # Those with the smallest digests: no order of the records decides which are looked at.
        some = (
            f"SELECT DISTINCT {name}::VARCHAR AS value FROM evidence WHERE {name} IS NOT NULL ORDER BY hash(value) LIMIT {MOST_LOOKED_AT}"
        )
        texts = [str(value) for (value,) in connection.execute(some).fetchall()]
        looks = identifying_patterns(column.name, texts, int(distinct), int(alone), int(values or 0), None)
    return replace(column, top=int(top or 0) / max(int(records or 0), 1), value_patterns=tuple(looks))


def columns_that_repeat(connection: duckdb.DuckDBPyConnection, proposals: Sequence[Proposal]) -> dict[str, str]:
    """Return columns whose values correspond one to one with a quasi-identifier's, with its name.

    Published next to it, such a column would undo its coarsening.

    Args:
        connection: Has the view ``source``.
        proposals: For all columns; of two quasi-identifiers the one that comes first is kept, texts before numbers.
    """
    published = [one for one in proposals if one.role in {"quasi_identifier", "sensitive", "insensitive", "weight"}]
    order = sorted(published, key=lambda one: (one.role != "quasi_identifier", one.profile.kind != "text"))
    pairs = [(one, other) for one, other in combinations(order, 2) if one.role == "quasi_identifier" and _may_repeat(one, other)]
    found: dict[str, str] = {}
    for one, other in pairs[:MOST_PAIRS]:
        name, twin = one.profile.name, other.profile.name
        if name in found or twin in found:
            continue
        if determines_column(connection, name, twin) and determines_column(connection, twin, name):
            found[twin] = name
    return found


def _may_repeat(one: Proposal, other: Proposal) -> bool:
    counts = one.profile.distinct, other.profile.distinct
    # Counts are approximate, and a null or a slip makes one more.
    near = abs(counts[0] - counts[1]) <= max(ALIKE * max(counts), 1)
    return near and min(counts) >= FEWEST and max(counts) <= MOST and one.profile.mean_records > 2
