"""The distribution of a sensitive column in the source, which every class is held against for t-closeness."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from core.recount.labels.group_levels import group_levels, places
from schemas.hierarchies.hierarchy import HierarchySpec
from schemas.job.job import Job
from tasks.recount.original import Original
from tasks.recount.reading import as_given, fetched
from tasks.store.database import quote


def make_whole(job: Job, connection: duckdb.DuckDBPyConnection, column: str, along: HierarchySpec | None, original: Original) -> int:
    """Makes the table ``whole`` of all values with their shares, places and groups; returns the number of levels of the groups.

    Raises:
        HierarchyError: the hierarchy of the distance cannot be read, or lacks values.
    """
    name = quote(column)
    # A null last, where the ordered distance has it.
    rows = fetched(connection, f"SELECT {name} AS value, count(*) AS records FROM {original.relation} GROUP BY ALL ORDER BY 1 NULLS LAST")
    counts = rows["records"].to_numpy()
    columns = {"value": rows["value"], "share": counts / max(counts.sum(), 1), "place": np.arange(len(counts))}
    levels = 0
    if along is not None:
        groups = group_levels(column, along, as_given(rows["value"], original, column), job.folder)
        levels = len(groups)
        columns |= {f"level_{level}": np.array(places(groups[level - 1]), np.int64) for level in range(1, levels + 1)}
    connection.register("whole_rows", pa.Table.from_pydict(columns))
    connection.execute("CREATE OR REPLACE TEMP TABLE whole AS SELECT * FROM whole_rows")
    connection.unregister("whole_rows")
    return levels
