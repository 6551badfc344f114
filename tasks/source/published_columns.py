"""Published values of columns with a ``publish`` setting, decided before records are counted.

Every step after this one reads columns as they are published, so that l and t are of what is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from core.columns.column_types import is_coarsenable, plain_type, working_type
from core.recoding.publishing import CountedValues, counts_in_steps, is_number, published_values, scalar_of
from core.units.digests import NOBODY, Digests, digests_of
from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from schemas.job.identifiers import Publishing, Way, canonical_way, counts_people
from schemas.job.job import Job
from tasks.source.chunks import Chunk, SourceFile
from tasks.source.person_records import drawn_values_sql, person_number_sql
from tasks.source.reading import read_chunk
from tasks.store.database import connect
from tasks.store.keys import StepCode
from tasks.store.store import Store

TABLE = "held"
NUMBERS_OF_PERSONS = "numbers_of_persons"
SOMEBODY = f"person <> {int(NOBODY)}"


def comparable_values(column: pa.Array) -> pa.Array:
    """Return a column without dictionary, dates and times as whole numbers, NaN and infinity as null."""
    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    if pt.is_date(plain.type):
        return plain.cast(pa.date32()).cast(pa.int32())
    if pt.is_timestamp(plain.type):
        return plain.cast(pa.int64())
    if pt.is_floating(plain.type):
        return pc.if_else(pc.fill_null(pc.is_finite(plain), False), plain, pa.scalar(None, plain.type))
    return plain


def as_typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values of ``comparable_values`` cast back to their column's type."""
    if pt.is_date(kind):
        return values.cast(pa.int32()).cast(pa.date32()).cast(kind)
    if pt.is_timestamp(kind):
        return values.cast(pa.int64()).cast(kind)
    return values.cast(kind)


def make_value_table(
    connection: duckdb.DuckDBPyConnection, batches: Iterable[tuple[Sequence[pa.Array], Digests | None]], column_count: int
) -> None:
    """Create SQL table ``held`` of the values and persons of records: ``value_0`` …, ``person``.

    Args:
        batches: Columns of a batch and the digests of its persons; None where each record counts.
    """
    names = [f"value_{number}" for number in range(column_count)]

    def tables() -> Iterator[pa.RecordBatch]:
        for given, persons in batches:
            values = [comparable_values(column) for column in given]
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


def people_of_value(connection: duckdb.DuckDBPyConnection, column: int, *, count_persons: bool) -> pa.Table:
    """Return a table of each ``value`` of a column of ``held``, ascending, with ``people``, ``records``."""
    people = f"count(DISTINCT person) FILTER ({SOMEBODY})" if count_persons else "count(*)"
    statement = f"SELECT value_{column} AS value, {people} AS people, count(*) AS records FROM {TABLE} GROUP BY 1 ORDER BY 1 NULLS LAST"
    return connection.sql(statement).to_arrow_table()


def count_values(
    connection: duckdb.DuckDBPyConnection, column: int, kind: pa.DataType, k: int, way: Way, *, count_persons: bool
) -> CountedValues:
    """Return the people and records of each value of a column of table ``held``, and of rare ones.

    Args:
        way: How it is published. For means each person counts at one of all values, else at one of those of fewer than k people.
        count_persons: Whether persons are counted, and not records. Where ``counts_in_steps``, their numbers are in a table.
    """
    every = is_mean(way)
    found = people_of_value(connection, column, count_persons=count_persons)
    values, people, records = (found[name].combine_chunks() for name in ("value", "people", "records"))
    there = len(values) - values.null_count
    nulls = int(people[there].as_py()) if values.null_count else 0
    whose, counts = np.asarray(people)[:there].astype(np.int64), np.asarray(records)[:there].astype(np.int64)
    drawn = np.where(whose < k, whose, 0) if not every else whose
    rest = int(drawn.sum()) if not every else 0
    if count_persons:
        connection.register("people", pa.table({"value": values.slice(0, there), "people": whose}))
        few = "TRUE" if every else f"people < {k:d}"
        rows = f"SELECT person, people.value FROM {TABLE} JOIN people ON value_{column} = people.value WHERE {SOMEBODY} AND {few}"
        [(rest,)] = connection.execute(f"SELECT count(DISTINCT person) FROM ({rows})").fetchall() if not every else [(0,)]
        drawn = _drawn(connection, rows) if counts_in_steps(kind, way) else np.zeros(there, np.int64)
        connection.unregister("people")
    return CountedValues(as_typed(values.slice(0, there), kind), whose, drawn, counts, nulls, int(rest))


def _drawn(connection: duckdb.DuckDBPyConnection, rows: str) -> np.ndarray:
    """Count the persons at each value of the table ``people``, each at that of a drawn row."""
    number = f"(SELECT min(number) FROM {NUMBERS_OF_PERSONS} AS n WHERE n.person = spans.person)"
    each = drawn_values_sql(rows, ["person"], number)
    statement = f"SELECT p.value, count(e.value) AS people FROM people AS p LEFT JOIN ({each}) AS e USING (value) GROUP BY 1 ORDER BY 1"
    return np.asarray(connection.sql(statement).to_arrow_table()["people"].combine_chunks()).astype(np.int64)


def make_number_table(
    connection: duckdb.DuckDBPyConnection, batches: Iterable[tuple[Digests, Sequence[pa.Array]]], types: Sequence[pa.DataType]
) -> None:
    """Create SQL table ``numbers_of_persons``: each person's number, which draws a record.

    Args:
        batches: The digests of persons, and the columns that name them; a person may come more than once.
    """
    names = {f"name_{place}": dtype for place, dtype in enumerate(types)}
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {NUMBERS_OF_PERSONS} (person UBIGINT, number UBIGINT)")
    for persons, columns in batches:
        arrays = [pa.array(persons), *(column.cast(dtype) for column, dtype in zip(columns, types, strict=True))]
        connection.register("batch", pa.RecordBatch.from_arrays(arrays, names=["person", *names]))
        each = f"SELECT DISTINCT person, {', '.join(names)} FROM batch WHERE {SOMEBODY}"
        connection.execute(f"INSERT INTO {NUMBERS_OF_PERSONS} SELECT person, {person_number_sql(names)} FROM ({each})")
        connection.unregister("batch")


def people_with_values(connection: duckdb.DuckDBPyConnection, column: int, values: pa.Array, *, count_persons: bool) -> tuple[int, int]:
    """Return how many people and records have any of some values in a column of table ``held``.

    A null may be among the values.

    Args:
        values: Of the column, as it is published.
        count_persons: As for ``count_values``.
    """
    connection.register("chosen", pa.table({"value": comparable_values(values)}))
    people = f"count(DISTINCT person) FILTER ({SOMEBODY})" if count_persons else "count(*)"
    statement = f"SELECT {people}, count(*) FROM {TABLE} WHERE EXISTS (FROM chosen WHERE chosen.value IS NOT DISTINCT FROM value_{column})"
    [(found, records)] = connection.execute(statement).fetchall()
    connection.unregister("chosen")
    return int(found), int(records)


def fewest_people(people_of_values: pa.Table, kind: pa.DataType, among: pa.Array) -> Any:
    """Return the value that the fewest people have, among allowed ones, as an array of length one.

    Args:
        people_of_values: As ``people_of_value`` returns it.
        among: Shape (m,), whether each of its values may be taken.
    """
    people = np.where(np.asarray(among), np.asarray(people_of_values["people"].combine_chunks()), np.iinfo(np.int64).max)
    return as_typed(people_of_values["value"].combine_chunks(), kind)[int(np.argmin(people)) :][:1]


PUBLISHED = StepCode("publish", __name__)
BYTES_PER_VALUE = 800
"""What a different value takes in the recount."""
LARGEST_OF_MEANS = 1e140
"""Squares of larger numbers, and sums of these, may be infinite."""
NUMBERS = "only numbers are rounded, cut or put into groups; say publish: shared, which takes every type"


def decide_published_values(job: Job, files: Sequence[SourceFile], columns: pa.Schema, store: Store) -> tuple[list[SourceFile], pa.Schema]:
    """Decide values of columns with ``publish``; return files that read as these, and column types.

    Args:
        columns: Names and types as which all files are read.
    """
    if not job.columns.ways:
        return list(files), columns
    for name, way in job.columns.ways.items():
        _check_type(name, columns.field(name).type, way)
    if job.is_of_several:
        # Who has a value is known once rows are joined to their persons.
        return list(files), columns
    made = {}
    for name, way in job.columns.ways.items():
        key = PUBLISHED.key([Chunk.of(file).key for file in files], name, canonical_way(way), job.columns.person, job.privacy.k)
        made[name] = store.make(
            PUBLISHED.name,
            key,
            ".arrow",
            lambda path, name=name: _decided(job, files, name, columns, store, path),  # type: ignore[misc]
        )
    places = {name: (store.path(one), one.sha256) for name, one in made.items()}
    fields = [field.with_type(pa.float64()) if is_mean(job.columns.ways.get(field.name)) else field for field in columns]
    return [file.model_copy(update={"publish": places}) for file in files], pa.schema(fields)


def is_mean(way: Way | None) -> bool:
    """Return whether the numbers of a column are published as means, which are fractions."""
    return isinstance(way, Publishing) and way.microaggregate is not None


def _decided(job: Job, files: Sequence[SourceFile], name: str, columns: pa.Schema, store: Store, path: Path) -> int:
    way, k, kind = job.columns.ways[name], job.privacy.k, working_type(columns.field(name).type)
    with connect(job, store.folder.parent / "spill") as connection:
        make_value_table(connection, _read(job, files, name), 1)
        if job.columns.person and counts_in_steps(kind, way):
            make_number_table(connection, _persons(job, files), [working_type(columns.field(one).type) for one in job.columns.person])
        counted = count_values(connection, 0, kind, k, way, count_persons=bool(job.columns.person))
    check_counted_values(name, counted, way, job.memory)
    return published_values(counted, way, k).write(path)


def check_counted_values(name: str, counted: CountedValues, way: Way, memory: int) -> None:
    """Raise for more values than the memory holds, and for means of too large numbers."""
    # The recount holds every value once more, one by one.
    if (needed := len(counted.values) * BYTES_PER_VALUE) > memory:
        raise SourceError.too_many_values(name, len(counted.values), needed)
    # No integer and no decimal is as large.
    floating = is_mean(way) and pt.is_floating(counted.values.type)
    if floating and (large := np.abs(np.asarray(counted.values.cast(pa.float64()))) > LARGEST_OF_MEANS).any():
        raise ValuesError.too_large(name, int(large.sum()), LARGEST_OF_MEANS)


def _read(job: Job, files: Sequence[SourceFile], name: str) -> Iterator[tuple[list[pa.Array], Digests | None]]:
    persons = job.columns.person
    for file in files:
        for batch in read_chunk(Chunk.of(file), [name, *persons], plain=[name, *persons]) if file.rows else ():
            yield [batch.column(0)], digests_of(batch.columns[1:], batch.num_rows) if persons else None


def _persons(job: Job, files: Sequence[SourceFile]) -> Iterator[tuple[Digests, list[pa.Array]]]:
    persons = job.columns.person
    for file in files:
        for batch in read_chunk(Chunk.of(file), persons, plain=persons) if file.rows else ():
            yield digests_of(batch.columns, batch.num_rows), batch.columns


def _check_type(name: str, kind: pa.DataType, way: Way) -> None:
    # Types that a program defines over others, such as JSON over text, are read otherwise by the recount: they stay as they are.
    defined = isinstance(plain_type(kind), pa.BaseExtensionType)
    plain = plain_type(kind) if defined else plain_type(working_type(kind))
    if not isinstance(way, Publishing):
        if not is_coarsenable(plain):
            remedy = "make it text, a number, a boolean, a date or a timestamp, or list it under withheld"
            raise SourceError.wrong_type(name, str(plain), "published as shared", remedy)
        return
    if not is_number(plain) or pt.is_float16(plain):
        raise SourceError.wrong_type(name, str(plain), "published so", NUMBERS)
    numbers = [one for one in (way.round, way.top, way.bottom) if one is not None]
    try:
        fitting = all(_fits(one, plain) and scalar_of(one, plain) is not None for one in numbers)
    except (ValueError, OverflowError, pa.ArrowException):
        fitting = False
    if not fitting:
        raise SourceError.wrong_type(name, str(plain), "published so", "give round, top and bottom as values of that type")


def _fits(number: Decimal, kind: pa.DataType) -> bool:
    """Return whether a number fits the decimal places of a type."""
    return not pt.is_decimal(kind) or bool(number.scaleb(kind.scale) == number.scaleb(kind.scale).to_integral_value())


def shared_columns(job: Job) -> list[str]:
    """Return the columns published so that at least k people share each value."""
    return [name for name, way in job.columns.ways.items() if counts_people(way)]


def rows_of_people(batch: pa.RecordBatch, column_count: int, kept_rows: np.ndarray) -> tuple[list[pa.Array], Digests | None]:
    """Return the first columns of a mask's records, and the digest of the others, None if there are none."""
    kept = batch.filter(pa.array(kept_rows))
    return kept.columns[:column_count], digests_of(kept.columns[column_count:], len(kept)) if kept.num_columns > column_count else None
