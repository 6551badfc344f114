"""Published values of columns with ``publish``, and the inspection of those published as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.types as pt

from core.columns.column_types import working_type
from core.formats.published import PublishedValues, read_published_values
from core.recoding.publishing import counts_in_steps, published_values
from core.units.digests import Digests, digests_of
from schemas.errors.refusals import PassthroughError
from schemas.job.identifiers import Way, canonical_way, counts_people
from schemas.release.figures import PassedColumn
from tasks.counting.untreated_figures import inspect_columns, refused_columns
from tasks.relational.making.linking import ORPHAN, Linking
from tasks.source.published_columns import check_counted_values, count_values, make_number_table, make_value_table
from tasks.store.database import connect
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.writing.shared_values import released_values


def measure_untreated_tables(given: Linking) -> dict[str, dict[str, PassedColumn]]:
    """Return untreated columns' figures by table, kept in its run too; raise for identifying columns.

    The figures of a table stay with its run, for the manifest. Columns that say how they are published are not looked at, because what is
    published of them is not known yet, and ``rest`` takes in none of these.
    """
    found, refused = dict[str, dict[str, PassedColumn]](), {}
    for name, encoded in given.tables.items():
        table = encoded.table
        names = [column for column in table.source.payload if column not in table.job.columns.ways]
        figures = inspect_columns(table.run, table.source, names, people=persons_with_rows(given, name)) if names else None
        found[name] = {column: figures.columns[column] for column in names} if figures else {}
        table.run.passthrough = found[name]
        if identifying := refused_columns(table.job.columns, found[name]):
            refused[name] = identifying
    if refused:
        raise PassthroughError.identifying_table_columns(refused)
    return found


def persons_with_rows(given: Linking, table: str) -> int:
    """Return how many persons have a row of a table, not counting orphans."""
    if not given.chain(table):
        return given.tables[table].rows
    with connect(given.run.job, given.run.spill) as connection:
        statement = f"SELECT count(DISTINCT a0) FROM {given.rows_of(table)} WHERE status <> {ORPHAN}"
        [(persons,)] = connection.execute(statement).fetchall()
    return int(persons)


BATCH_ROWS = 1 << 17


class WayColumn(NamedTuple):
    """Table and name of a column that is published with changed values."""

    table: str
    column: str


def published_ways(given: Linking, table: str) -> dict[str, Way]:
    """Return by column the ``publish`` setting of a table's columns with changed values."""
    return given.tables[table].table.job.columns.ways


def encoded_column(given: Linking, column: WayColumn) -> str:
    """Return the name of a column with ``publish`` in the encoded rows."""
    return f"p{given.tables[column.table].table.source.payload.index(column.column)}"


def source_column_type(given: Linking, column: WayColumn) -> pa.DataType:
    """Return the Arrow type of a column with ``publish`` in its source."""
    return working_type(given.tables[column.table].table.source.columns.field(column.column).type)


def person_of(given: Linking, table: str) -> str:
    """Return the name of the column that holds the person of each row of a table."""
    return "a0" if given.chain(table) else "row"


def values_with_persons(
    connection: duckdb.DuckDBPyConnection, given: Linking, column: WayColumn, row_relation: str
) -> Iterator[tuple[pa.Array, Digests]]:
    """Yield the values of a column, in batches, with the digests of their persons.

    Args:
        row_relation: What is read after FROM, in which ``m`` are rows of its table.
    """
    kind, person = source_column_type(given, column), person_of(given, column.table)
    statement = f"SELECT m.{encoded_column(given, column)} AS value, m.{person} AS person FROM {row_relation}"
    # What reads from a connection is read out before something else is asked of it.
    for batch in connection.cursor().sql(statement).to_arrow_reader(BATCH_ROWS):
        yield batch.column(0).cast(kind), digests_of([batch.column(1)], batch.num_rows)


def _persons_by_key(
    connection: duckdb.DuckDBPyConnection, given: Linking
) -> tuple[Iterator[tuple[Digests, list[pa.Array]]], list[pa.DataType]]:
    """Return batches of persons with the columns of the unit's key, and the types of these.

    Without a key there are none.
    """
    unit = given.job.tree.unit
    key, columns = given.job.tables[unit].key, given.tables[unit].table.source.columns
    named = ", ".join(["row AS person", *(f"{given.tables[unit].encoded_name(name)} AS key_{place}" for place, name in enumerate(key))])
    # Without a key a person is a row, and has one value.
    read = connection.cursor().sql(f"SELECT {named} FROM {given.rows_of(unit)}").to_arrow_reader(BATCH_ROWS) if key else ()
    batches = ((digests_of([batch.column(0)], batch.num_rows), batch.columns[1:]) for batch in read)
    return batches, [working_type(columns.field(name).type) for name in key]


def _decide(given: Linking, column: WayColumn, path: Path) -> int:
    way, k, kind = published_ways(given, column.table)[column.column], given.job.privacy.k, source_column_type(given, column)
    with connect(given.run.job, given.run.spill) as connection:
        rows = f"(FROM {given.rows_of(column.table)} WHERE status <> {ORPHAN}) AS m"
        values = values_with_persons(connection, given, column, rows)
        # A table without rows has no batch.
        nothing = pa.nulls(0, kind), digests_of([pa.nulls(0, pa.int64())], 0)
        make_value_table(connection, (([one], persons) for one, persons in (nothing, *values)), 1)
        if counts_in_steps(kind, way):
            make_number_table(connection, *_persons_by_key(connection, given))
        counted = count_values(connection, 0, kind, k, way, count_persons=True)
    check_counted_values(column.column, counted, way, given.job.memory)
    return published_values(counted, way, k).write(path)


WAYS = FileStep(
    "publish_of_tables",
    make=_decide,
    reads=lambda given, column: [
        given.linked[column.table].sha256 if column.table in given.linked else given.key,
        # The unit's key draws at which of their values persons count.
        given.key,
        given.job.tables[given.job.tree.unit].key,
        *column,
        canonical_way(published_ways(given, column.table)[column.column]),
    ],
    settings=lambda given: [given.job.privacy.k, sorted(given.job.tree.chains.items())],
    suffix=".arrow",
)
"""The published values of a column, decided from all rows but orphans."""


def decided_values(given: Linking, column: WayColumn) -> PublishedValues:
    """Return how a column's values are published, as decided from all rows, stored or decided now."""
    return read_published_values(given.store.path(WAYS.result(given, column)))


def shared_columns_of(given: Linking, table: str) -> list[WayColumn]:
    """Return the columns of a table whose published values must each be shared by k persons."""
    return [WayColumn(table, name) for name, way in published_ways(given, table).items() if counts_people(way)]


def without_values_of_few(
    connection: duckdb.DuckDBPyConnection, given: Linking, column: WayColumn, published_values: PublishedValues, row_relation: str
) -> PublishedValues:
    """Return published values with those of fewer than k persons replaced; create table ``released``.

    Those of nobody are replaced too: so the recount takes them in the source that classes are held against.

    Args:
        connection: Has what the rows are joined to.
        row_relation: The rows that are published, as of ``values_with_persons``.
    """
    kind, person = source_column_type(given, column), person_of(given, column.table)
    pairs = f"SELECT m.{encoded_column(given, column)} AS value, m.{person} AS person FROM {row_relation}"
    connection.execute(f"CREATE OR REPLACE TABLE released AS {pairs}")
    # Another connection to the same database reads on while this one writes.
    read = connection.cursor().sql("FROM released").to_arrow_reader(BATCH_ROWS)
    held = ((published_values.apply(batch.column(0).cast(kind)), batch.column(1)) for batch in read)
    nothing = published_values.apply(pa.nulls(0, kind)), pa.nulls(0, pa.int64())
    make_value_table(connection, (([values], digests_of([whose], len(whose))) for values, whose in (nothing, *held)), 1)
    return published_values.keeping(released_values(connection, 0, published_values, given.job.privacy.k, count_persons=True).staying)


def published_of_each(connection: duckdb.DuckDBPyConnection, given: Linking, column: WayColumn, decided: Artifact) -> pa.Table:
    """Return a table of a column's distinct source values (``value``) and what is published of each."""
    statement = f"SELECT DISTINCT {encoded_column(given, column)} AS value FROM {given.rows_of(column.table)}"
    values = connection.sql(statement).to_arrow_table()["value"].combine_chunks()
    known = read_published_values(given.store.path(decided))
    published = known.apply(values.cast(source_column_type(given, column)))
    # Moments in the unit in which a column that says nothing would be written.
    return pa.table({"value": values, "published": published.cast(values.type) if pt.is_timestamp(values.type) else published})


def privacy_ways(given: Linking) -> list[object]:
    """Return the treatments of columns under a privacy model, and the keys of their rows, for step keys."""
    found = list[object]()
    for name, table in given.tables.items():
        if asked := table.table.job.privacy.columns:
            ways = {column: canonical_way(way) for column, way in published_ways(given, name).items() if column in asked}
            decided = [WAYS.result(given, WayColumn(name, column)).sha256 for column in sorted(ways)]
            found.append([name, given.linked[name].sha256 if name in given.linked else given.key, ways, decided])
    return found
