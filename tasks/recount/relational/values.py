"""Recount of promises on sensitive columns, over the persons of each history.

Each value of a person counts once.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from core.recount.relational.history_counts import ReadTable, history_values_sql, source_value_persons_sql
from core.recount.spreads import holder_classes_sql
from schemas.relational.table_jobs import table_job
from schemas.relational.tables_job import TablesJob
from tasks.recount.original import Original
from tasks.recount.spreads import make_source_distribution

EVERYWHERE, VALUES = "everywhere", "values_of_persons"


def value_faults(
    job: TablesJob,
    originals: Mapping[str, Original | None],
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, ReadTable],
    whole: Mapping[str, ReadTable],
) -> list[str]:
    """Return faults for histories that break a promise on sensitive values.

    A history without a row of a table publishes no value of it, and is not asked.

    Args:
        job: Says what is promised.
        originals: The sources; where one is not available, classes are compared with the release.
        connection: The database, with the persons of rows and the texts of histories.
        tables: The written tables.
        whole: The sources with the person of each row, and their values as they are published; nothing where one is not at hand.
    """
    asked = {table: of_table for table in tables if (of_table := table_job(job, table)).privacy.columns}
    faults = []
    for table, of_table in asked.items():
        for kind, column, spec in of_table.privacy.models:
            quoted = '"' + column.replace('"', '""') + '"'
            values = history_values_sql(tables[table], tables[job.tree.unit], quoted)
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {VALUES} AS {values}")
            everywhere = source_value_persons_sql(whole.get(table, tables[table]), quoted)
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {EVERYWHERE} AS {everywhere}")
            types = originals.get(table) or Original("", pa.schema([]))
            levels = make_source_distribution(of_table, connection, column, spec.hierarchy, types, EVERYWHERE) if kind.of_whole else 0
            [(failing, classes, _)] = connection.execute(kind.statement(VALUES, ["combination"], "value", spec, levels)).fetchall()
            if failing:
                faults.append(f"{failing:,} of {classes:,} histories {kind.broken(column, spec)}")
            if kind.held is not None:
                nulls = kind.of_whole or spec.nulls == "value"
                [(held,)] = connection.execute(holder_classes_sql(VALUES, "value", kind.held(spec), EVERYWHERE, nulls=nulls)).fetchall()
                if held:
                    faults.append(f"in {held:,} of {classes:,} histories too many persons hold the same value of '{column}' ({table})")
    return faults
