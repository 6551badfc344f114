"""What is promised of sensitive columns in any table, with the persons who hold each value."""

from __future__ import annotations

import numpy as np

from core.relational.sensitive import PersonValues, TablePromise
from tasks.lattice.promises import promise_of
from tasks.relational.making.linking import ORPHAN, PUBLISHED
from tasks.relational.making.profiles import HistoryTables
from tasks.store.database import connect


def promises_of_tables(given: HistoryTables) -> list[TablePromise]:
    """Returns what is promised of each table's sensitive values.

    Raises:
        HierarchyError: the hierarchy of a hierarchical distance does not fit the column.
    """
    return [_promise(given, table) for table in given.job.tables if given.tables[table].table.job.privacy.columns]


def _promise(given: HistoryTables, table: str) -> TablePromise:
    coding, of_table = given.codings[table], given.tables[table].table.job
    person = "a0" if given.chain(table) else "row"
    has_rows, columns = np.zeros(given.persons, np.bool_), {}
    with connect(of_table, given.run.spill) as connection:
        rows = given.rows_of(table)
        published = connection.sql(f"SELECT DISTINCT {person} AS person FROM {rows} WHERE status = {PUBLISHED}").to_arrow_table()
        has_rows[published["person"].to_numpy()] = True
        for place, domain in enumerate(coding.sensitive):
            pairs = connection.sql(
                f"SELECT DISTINCT {person} AS person, s{place} AS value FROM {rows} WHERE status = {PUBLISHED} ORDER BY ALL"
            ).to_arrow_table()
            of_all = connection.sql(
                f"SELECT s{place} AS value, count(DISTINCT {person}) AS persons FROM {rows} WHERE status <> {ORPHAN} GROUP BY ALL"
            ).to_arrow_table()
            whole = np.zeros(domain.size, np.int64)
            whole[of_all["value"].to_numpy()] = of_all["persons"].to_numpy()
            columns[domain.qid] = PersonValues(pairs["person"].to_numpy(), pairs["value"].to_numpy().astype(np.int64), whole)
    return TablePromise.of(promise_of(of_table, coding), columns, has_rows)
