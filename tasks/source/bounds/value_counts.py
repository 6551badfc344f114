"""Who has which value of a column: counted by DuckDB, in types in which it loses nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.persons.digests import NOBODY, Digests
from core.recoding.publishing import CountedValues

TABLE = "held"
SOMEBODY = f"person <> {int(NOBODY)}"


def comparable(column: pa.Array) -> pa.Array:
    """Returns a column plain, moments as whole numbers, and what is no finite number as null."""
    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    if pt.is_date(plain.type):
        return plain.cast(pa.date32()).cast(pa.int32())
    if pt.is_timestamp(plain.type):
        return plain.cast(pa.int64())
    if pt.is_floating(plain.type):
        return pc.if_else(pc.fill_null(pc.is_finite(plain), False), plain, pa.scalar(None, plain.type))
    return plain


def as_typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns values that ``comparable`` made in the type of their column again."""
    if pt.is_date(kind):
        return values.cast(pa.int32()).cast(pa.date32()).cast(kind)
    if pt.is_timestamp(kind):
        return values.cast(pa.int64()).cast(kind)
    return values.cast(kind)


def hold(connection: duckdb.DuckDBPyConnection, batches: Iterable[tuple[Sequence[pa.Array], Digests | None]], columns: int) -> None:
    """Makes the table of values and whose they are: ``value_0`` …, ``person``.

    Args:
        connection: Gets it.
        batches: Columns of a batch and the digests of its persons; None where each record counts.
        columns: How many columns there are.
    """
    names = [f"value_{number}" for number in range(columns)]

    def tables() -> Iterator[pa.RecordBatch]:
        for given, persons in batches:
            values = [comparable(column) for column in given]
            whose = np.ones(len(values[0]), np.uint64) if persons is None else persons
            yield pa.RecordBatch.from_arrays([*values, pa.array(whose)], names=[*names, "person"])

    connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
    made = tables()
    first = next(made, None)
    assert first is not None
    connection.register("batch", first)
    connection.execute(f"CREATE TEMP TABLE {TABLE} AS SELECT * FROM batch")
    for batch in made:
        connection.register("batch", batch)
        connection.execute(f"INSERT INTO {TABLE} SELECT * FROM batch")
    connection.unregister("batch")


def people_of_value(connection: duckdb.DuckDBPyConnection, column: int, *, persons: bool) -> pa.Table:
    """Returns ``value``, ascending and null last, ``people`` and ``records`` of a column of the table."""
    people = f"count(DISTINCT person) FILTER ({SOMEBODY})" if persons else "count(*)"
    statement = f"SELECT value_{column} AS value, {people} AS people, count(*) AS records FROM {TABLE} GROUP BY 1 ORDER BY 1 NULLS LAST"
    return connection.sql(statement).to_arrow_table()


def count_values(
    connection: duckdb.DuckDBPyConnection, column: int, kind: pa.DataType, k: int, *, persons: bool, every: bool
) -> CountedValues:
    """Counts the values of a column of the table.

    Args:
        connection: Has it.
        column: Position of the column.
        kind: Its type.
        k: People.
        persons: Whether persons are counted, and not records.
        every: Whether each person is to be counted once at the least of all values, and not only of those of fewer than k people.
    """
    found = people_of_value(connection, column, persons=persons)
    values, people, records = (found[name].combine_chunks() for name in ("value", "people", "records"))
    there = len(values) - values.null_count
    nulls = int(people[there].as_py()) if values.null_count else 0
    whose, counts = np.asarray(people)[:there].astype(np.int64), np.asarray(records)[:there].astype(np.int64)
    least = np.where(whose < k, whose, 0) if not every else whose
    if persons:
        connection.register("people", pa.table({"value": values.slice(0, there), "people": whose}))
        few = "TRUE" if every else f"people < {k:d}"
        each = (
            f"SELECT person, min(value_{column}) AS value FROM {TABLE} JOIN people ON value_{column} = people.value "
            f"WHERE {SOMEBODY} AND {few} GROUP BY person"
        )
        statement = (
            f"SELECT p.value, count(e.person) AS people FROM people AS p LEFT JOIN ({each}) AS e USING (value) GROUP BY 1 ORDER BY 1"
        )
        least = np.asarray(connection.sql(statement).to_arrow_table()["people"].combine_chunks()).astype(np.int64)
        connection.unregister("people")
    rest = int(least.sum()) if not every else 0
    return CountedValues(as_typed(values.slice(0, there), kind), whose, least, counts, nulls, rest)


def people_together(connection: duckdb.DuckDBPyConnection, column: int, values: pa.Array, *, persons: bool) -> tuple[int, int]:
    """Returns how many people have one of some values of a column of the table, a null among them, and how many records do.

    Args:
        connection: Has it.
        column: Position of the column.
        values: Of the column, as it is published.
        persons: As for ``count_values``.
    """
    connection.register("chosen", pa.table({"value": comparable(values)}))
    people = f"count(DISTINCT person) FILTER ({SOMEBODY})" if persons else "count(*)"
    statement = f"SELECT {people}, count(*) FROM {TABLE} WHERE EXISTS (FROM chosen WHERE chosen.value IS NOT DISTINCT FROM value_{column})"
    [(found, records)] = connection.execute(statement).fetchall()
    connection.unregister("chosen")
    return int(found), int(records)


def fewest_people(found: pa.Table, kind: pa.DataType, among: pa.Array) -> Any:
    """Returns the value of fewest people among some that are published, as an array of one.

    Args:
        found: As ``people_of_value`` returns it.
        kind: Type of the column.
        among: Shape (m,), whether each of its values may be taken.
    """
    people = np.where(np.asarray(among), np.asarray(found["people"].combine_chunks()), np.iinfo(np.int64).max)
    return as_typed(found["value"].combine_chunks(), kind)[int(np.argmin(people)) :][:1]
