"""Recount of columns of several tables: values, their persons, and promises on sensitive ones.

In promises on sensitive columns each value of a person counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from core.recount.histories import (
    ReadTable,
    history_values_sql,
    persons_of_rows_sql,
    row_person_table,
    source_value_persons_sql,
    unit_persons_sql,
)
from schemas.errors.base import counted
from schemas.job.identifiers import counts_people
from schemas.job.job import Job
from schemas.relational.table_jobs import table_job
from schemas.relational.tables_job import TablesJob
from tasks.recount.original import Original
from tasks.recount.published_values import PublishedSource, UnitRelation, published_source
from tasks.recount.rows import RowsInOneDatabase, relation_with_values
from tasks.recount.spreads import EVERYWHERE, count_spread, models_counted, uncounted_without_source
from tasks.store.database import quote

KEYS_OF_PERSONS = "keys_of_persons"
"""The table of the persons with the unit's key in the source."""


def source_owners(
    job: TablesJob, originals: Mapping[str, Original | None], connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable]
) -> dict[str, ReadTable]:
    """Create tables of source rows with persons; return them by name, empty if unneeded or one is missing."""
    if not any(table_job(job, table).privacy.columns or table_job(job, table).columns.ways for table in tables):
        return {}
    found = dict[str, ReadTable]()
    for name, read in tables.items():
        if (original := originals.get(name)) is None:
            return {}
        found[name] = replace(read, name=f"source {name}", relation=original.relation)
    for read in found.values():
        connection.execute(persons_of_rows_sql(read, found) if read.references else unit_persons_sql(read))
    unit = found[job.tree.unit]
    keys = "".join(f", {unit.at(column)} AS k{place}" for place, column in enumerate(unit.key))
    connection.execute(f"CREATE TEMP TABLE {KEYS_OF_PERSONS} AS SELECT person{keys} FROM {row_person_table(unit)}")
    return found


def published_table(
    connection: duckdb.DuckDBPyConnection,
    job: Job,
    original: Original,
    read: ReadTable,
    source_rows: ReadTable | None,
    key_types: Sequence[pa.DataType],
) -> PublishedSource | None:
    """Return a table's source as published, changing ``source_rows``; None if it needs an absent source.

    Args:
        connection: The database; from here on the rows of ``source_rows`` have their values as they are published.
        source_rows: Its source as it is joined; None where another source is not at hand.
    """
    if not job.columns.ways:
        return PublishedSource(original)
    if source_rows is None:
        return None
    person = "person"
    # Names know no case.
    while any(column[1:-1].lower().startswith(person) for column in source_rows.sensitive):
        person += "*"
    keys = {quote(f"{person} {place}"): dtype for place, dtype in enumerate(key_types)}
    kept = {column: source_rows.at(column) for column in source_rows.sensitive}
    named = ", ".join([*(f"{place} AS {column}" for column, place in kept.items()), f"person AS {quote(person)}"])
    owned = f"(SELECT {named} FROM {row_person_table(source_rows)})"
    held = f"FROM {owned} WHERE {quote(person)} IS NOT NULL"
    if keys:
        # Keys are unique, so that the join neither loses nor repeats a row.
        names = ", ".join(f"k.k{place} AS {name}" for place, name in enumerate(keys))
        held = f"SELECT o.*, {names} FROM ({held}) AS o JOIN {KEYS_OF_PERSONS} AS k ON o.{quote(person)} = k.person"
    holders = UnitRelation(f"({held})", keys or {quote(person): pa.int64()})
    published = published_source(job, RowsInOneDatabase(connection, read.relation, original.relation), original, holders)
    back = ", ".join([*(f"{column} AS {place}" for column, place in kept.items()), f"{quote(person)} AS person"])
    made = relation_with_values(connection, owned, published.columns, published.joins)
    connection.execute(f'CREATE TEMP TABLE "as published" AS SELECT {back} FROM {made}')
    connection.execute(f"DROP TABLE {row_person_table(source_rows)}")
    connection.execute(f'ALTER TABLE "as published" RENAME TO {row_person_table(source_rows)}')
    return published


def few_persons_faults(job: TablesJob, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable]) -> list[str]:
    """Return faults for shared columns with values of fewer than k persons; needs the persons of rows."""
    k, faults = job.privacy.k, list[str]()
    for table, read in tables.items():
        for name, way in table_job(job, table).columns.ways.items():
            if counts_people(way):
                persons = f"SELECT count(DISTINCT person) AS persons FROM {row_person_table(read)} GROUP BY {read.at(quote(name))}"
                [(few,)] = connection.execute(f"SELECT count(*) FROM ({persons}) WHERE persons < {k:d}").fetchall()
                faults += [f"column '{name}' of '{table}' publishes {counted(few, 'value')} of fewer than {k:,} persons"] if few else []
    return faults


def value_faults(
    job: TablesJob,
    originals: Mapping[str, Original | None],
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, ReadTable],
    source_rows: Mapping[str, ReadTable],
) -> list[str]:
    """Return faults for histories that break l, t or a limit of holders; needs the tables of histories.

    A history without a row of a table publishes no value of it, and is not asked.

    Args:
        originals: The sources. Where one is not available, what is measured from the source is not counted.
        connection: The database, with the persons of rows and the texts of histories.
        source_rows: The sources with the person of each row, and their values as they are published; nothing where one is not at hand.
    """
    asked = {table: of_table for table in tables if (of_table := table_job(job, table)).privacy.columns}
    faults = []
    for table, of_table in asked.items():
        for promise in models_counted(of_table, by_people=True, with_source=bool(source_rows)):
            kind, column, spec = promise
            values = history_values_sql(tables[table], tables[job.tree.unit], quote(column))
            connection.execute(f"CREATE OR REPLACE TEMP TABLE values_of_persons AS {values}")
            everywhere = source_value_persons_sql(source_rows.get(table, tables[table]), quote(column))
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {EVERYWHERE} AS {everywhere}")
            classed, holders = ("values_of_persons", ["combination"], "value"), bool(source_rows) or not kind.held_of_source
            one = count_spread(of_table, connection, promise, classed, originals.get(table), with_holders=holders)
            of_histories = f"of {one.classes:,} histories"
            if one.failing:
                faults.append(f"{one.failing:,} {of_histories} {kind.broken(column, spec)}")
            if one.broken_by_holders:
                faults.append(f"in {one.broken_by_holders:,} {of_histories} too many persons hold the same value of '{column}' ({table})")
    return faults


def uncounted_values(job: TablesJob) -> list[str]:
    """Return a sentence for each l or t promise that cannot be counted because a source is lacking."""
    return [told for table in job.tables for told in uncounted_without_source(table_job(job, table), f" of '{table}'", by_people=True)]
