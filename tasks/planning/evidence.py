"""Further evidence on columns: patterns, frequent values, repeated columns, and uniqueness of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import duckdb

from core.formats.proposals import ColumnProfile, Proposal
from core.formats.value_patterns import identifying_patterns
from core.recount.groups import normalised_sql
from tasks.store.database import quote

SAMPLE_RECORDS, MOST_LOOKED_AT = 20_000, 1_000
"""Records of which the most frequent value is counted, and different values of a column that are looked at."""
ALIKE, FEWEST, MOST = 0.05, 3, 5_000
"""How much numbers of different values may differ, as a share, and how many these are, for columns to be held against each other."""
MOST_PAIRS = 200
SHORTEST = 4
"""Characters that texts have on average, at least, to be looked at."""


def with_value_patterns(connection: duckdb.DuckDBPyConnection, columns: Sequence[ColumnProfile]) -> tuple[ColumnProfile, ...]:
    """Return column profiles with the top value's share and the patterns of a sample's values added.

    Creates the SQL table ``evidence``, the sample of 20,000 records.

    Args:
        connection: Has the view ``source``.
    """
    # On one thread, because which records come first would else be a matter of chance. One thread keeps their order, and told to keep it
    # DuckDB holds all records below a LIMIT in memory.
    connection.execute("SET threads = 1")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"CREATE TEMP TABLE evidence AS FROM source USING SAMPLE reservoir({SAMPLE_RECORDS} ROWS) REPEATABLE (2)")
    connection.execute("RESET preserve_insertion_order")
    connection.execute("RESET threads")
    return tuple(_looked_at(connection, column) for column in columns)


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
    """Return columns that correspond one to one with a quasi-identifier, each with that one's name.

    Published next to it, such a column would undo its coarsening.

    Args:
        connection: As for ``determines_column``.
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
        if determines_column(connection, one.profile, other.profile) and determines_column(connection, other.profile, one.profile):
            found[twin] = name
    return found


def _may_repeat(one: Proposal, other: Proposal) -> bool:
    counts = one.profile.distinct, other.profile.distinct
    # Counts are approximate, and a null or a slip makes one more.
    near = abs(counts[0] - counts[1]) <= max(ALIKE * max(counts), 1)
    return near and min(counts) >= FEWEST and max(counts) <= MOST and one.profile.mean_records > 2


DOMINANT = 0.1
"""Share of the records that the most frequent value may have for the values to be people, however often some of them come."""
UNTIDY = 0.01
"""Share of the values that may belong to several others where they determine these all the same: data have slips."""


class ExposedPeople(NamedTuple):
    """Shares of people unique by a column alone, by it with others, and by the others without it."""

    alone: float
    together: float
    without: float


def has_repeats(connection: duckdb.DuckDBPyConnection, column: ColumnProfile) -> bool:
    """Return whether two records have one value of a column, nulls and texts that say nothing aside.

    Args:
        connection: Has the view ``source``.
    """
    name = normalised_sql(quote(column.name), ["empty"]) if column.kind == "text" else quote(column.name)
    repeated = f"SELECT {name} AS value FROM source WHERE {name} IS NOT NULL GROUP BY value HAVING count(*) > 1 LIMIT 1"
    return bool(connection.execute(repeated).fetchall())


def is_dominated(connection: duckdb.DuckDBPyConnection, column: ColumnProfile) -> bool:
    """Return whether one value has more than a tenth of the column's values that are not null.

    No person has so many records, while a figure is often 0. Texts that say that nothing is known are no value.

    Args:
        connection: Has the view ``source``.
    """
    name = normalised_sql(quote(column.name), ["empty"]) if column.kind == "text" else quote(column.name)
    counts = f"SELECT count(*) AS n FROM source WHERE {name} IS NOT NULL GROUP BY {name}"
    [(most,)] = connection.execute(f"SELECT coalesce(max(n), 0) FROM ({counts})").fetchall()
    return int(most) > DOMINANT * column.values


def determines_column(connection: duckdb.DuckDBPyConnection, finer: ColumnProfile, coarser: ColumnProfile) -> bool:
    """Return whether one column's values determine another's, for at least 99 % of the values.

    Args:
        connection: Has the view ``source``, and of some of its records the table ``evidence``.
        finer: The column whose values are looked at, one by one; a null is none.
        coarser: The column that they may determine; a null says nothing.
    """
    _, differing = _differing_values(connection, "evidence", finer.name, coarser.name)
    # Further records never make fewer of them. Numbers of different values are approximate, by far less than a half.
    if differing > UNTIDY * 2 * finer.distinct:
        return False
    values, differing = _differing_values(connection, "source", finer.name, coarser.name)
    return bool(values) and differing <= UNTIDY * values


def _differing_values(connection: duckdb.DuckDBPyConnection, relation: str, finer: str, coarser: str) -> tuple[int, int]:
    """Return how many values a column has beside values of another, and how many have several there."""
    one, other = quote(finer), quote(coarser)
    # Of several values the least and the greatest differ, and no set of them need be held.
    each = f"SELECT min({other}) <> max({other}) AS differs FROM {relation} WHERE {one} IS NOT NULL AND {other} IS NOT NULL GROUP BY {one}"
    [(values, differing)] = connection.execute(f"SELECT count(*), count(*) FILTER (differs) FROM ({each})").fetchall()
    return int(values), int(differing)


def draw_sample(connection: duckdb.DuckDBPyConnection, person: str | None) -> int:
    """Create the SQL table ``sample`` of at most 20,000 records, one per person; return their number.

    The seed is fixed.

    Args:
        person: The column that says whose a record is: one record of each person is taken then, so that the sample is of people.
    """
    # On one thread, because which records come first would else be a matter of chance.
    connection.execute("SET threads = 1")
    one_each = f"SELECT DISTINCT ON ({quote(person)}) * FROM source" if person is not None else "SELECT * FROM source"
    connection.execute(f"CREATE TEMP TABLE sample AS FROM ({one_each}) USING SAMPLE reservoir({SAMPLE_RECORDS} ROWS) REPEATABLE (1)")
    connection.execute("RESET threads")
    [(records,)] = connection.execute("SELECT count(*) FROM sample").fetchall()
    return int(records)


class Exposures(NamedTuple):
    """Shares of people unique by each published column, and among how many that was counted.

    Attributes:
        columns: By column, the shares of people who are unique by it.
        people: Among how many that was counted: persons where a column names them, else records.
        sampled: Whether these are a sample.
    """

    columns: Mapping[str, ExposedPeople]
    people: int
    sampled: bool


MOST_GROUPED = 20_000_000
"""Records of all statements together up to which every record is counted, which takes seconds; beyond it a sample is."""


def columns_exposures(
    connection: duckdb.DuckDBPyConnection,
    columns: Mapping[str, Sequence[str]],
    person: str | None,
    records: int,
    most_rows: int = MOST_GROUPED,
) -> Exposures:
    """Return per column the share of people unique by it, by it with its known others, and by these.

    All records are counted where that is cheap, as a plan does, else those of the sample.

    Args:
        connection: Has the view ``source`` and the table ``sample``.
        columns: The columns, each with the other columns that may be known together with it.
        person: The column that names the person of a record; None where every record is a person of its own.
        most_rows: How many records all statements together may read.
    """
    statements = {frozenset(names) for name, others in columns.items() for names in ((name,), (*others, name), others) if names}
    [(drawn,)] = connection.execute("SELECT count(*) FROM sample").fetchall()
    if drawn < records and records * len(statements) <= most_rows:
        try:
            return _exposures(connection, "source", columns, person, sampled=False)
        except duckdb.OutOfMemoryException:
            # Nothing is spilt while a job is drafted.
            pass
    return _exposures(connection, "sample", columns, person, sampled=drawn < records)


def _exposures(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Mapping[str, Sequence[str]], person: str | None, *, sampled: bool
) -> Exposures:
    names = sorted({*columns, *(other for others in columns.values() for other in others)})
    place = {name: f"column_{number}" for number, name in enumerate(names)}
    # Texts are read once. Of a million records, two have one digest by chance in one table out of 37 million.
    digests = ", ".join([*(f"hash({quote(name)}) AS {place[name]}" for name in names), f"{quote(person) if person else '0'} AS person"])
    connection.execute(f"CREATE OR REPLACE TEMP TABLE exposed AS SELECT {digests} FROM {relation}")
    [(people,)] = connection.execute(f"SELECT {'count(DISTINCT person)' if person else 'count(*)'} FROM exposed").fetchall()
    seen: dict[tuple[str, ...], float] = {}

    def alone(*together: str) -> float:
        # Most columns are looked at together with the same others.
        key = tuple(sorted(together))
        if key not in seen:
            seen[key] = _alone(connection, [place[name] for name in key], persons=bool(person)) / max(people, 1)
        return seen[key]

    found = {name: ExposedPeople(alone(name), alone(*others, name), alone(*others)) for name, others in columns.items()}
    connection.execute("DROP TABLE exposed")
    return Exposures(found, int(people), sampled)


def _alone(connection: duckdb.DuckDBPyConnection, columns: Sequence[str], *, persons: bool) -> int:
    """Count the records, or persons, with a combination that no other has; nulls are no person."""
    if not columns:
        return 0
    one = "SELECT min(person) AS person" if persons else "SELECT 1"
    grouped = f"{one} FROM exposed GROUP BY hash({', '.join(columns)}) HAVING {'min(person) = max(person)' if persons else 'count(*) = 1'}"
    [(count,)] = connection.execute(f"SELECT {'count(DISTINCT person)' if persons else 'count(*)'} FROM ({grouped})").fetchall()
    return int(count)
