"""The distribution of a sensitive column in the source, which every class is held against for t-closeness."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from core.recount.groups import Groups
from core.recount.labels.group_levels import group_levels
from schemas.hierarchies.hierarchy import HierarchySpec
from schemas.job.job import Job
from tasks.recount.original import Original, fetched, with_source_types
from tasks.store.database import quote


def source_value_groups(source: str, column: str) -> Groups:
    """Returns how the records of each value of a sensitive column are counted: ``value``, ``records``."""
    return Groups(source, ((quote(column), "value"),))


def make_source_distribution(
    job: Job, connection: duckdb.DuckDBPyConnection, column: str, along: HierarchySpec | None, original: Original, counted: str
) -> int:
    """Makes the table ``whole`` of all values with their records, places and groups; returns the number of levels of the groups.

    Args:
        job: Says where files of hierarchies are.
        connection: The database.
        column: The sensitive column.
        along: The hierarchy of the distance, if it has one.
        original: Has the column's type.
        counted: What the database reads the column's values with their records as.

    Raises:
        HierarchyError: the hierarchy of the distance cannot be read, or lacks values.
    """
    # A null last, where the ordered distance has it.
    rows = fetched(connection, f"SELECT value, records FROM {counted} ORDER BY 1 NULLS LAST")
    columns = {"value": rows["value"], "records": rows["records"], "place": np.arange(len(rows["value"]))}
    levels = 0
    if along is not None:
        groups = group_levels(column, along, with_source_types(rows["value"], original, column), job.folder)
        levels = len(groups)
        columns |= {f"level_{number}": level.groups for number, level in enumerate(groups, start=1)}
    connection.register("whole_rows", pa.Table.from_pydict(columns))
    connection.execute("CREATE OR REPLACE TEMP TABLE whole AS SELECT * FROM whole_rows")
    connection.unregister("whole_rows")
    return levels
