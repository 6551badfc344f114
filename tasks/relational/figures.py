"""Figures of a release of several tables: row counts of each table, and information loss."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow.parquet as pq

from core.recount.relational.history_counts import TablesRecount
from schemas.relational.manifest import ReleasedTable, TablesLoss
from tasks.relational.making.linking import ORPHAN
from tasks.relational.making.writing import ReleasedTables

BATCH_ROWS = 1 << 17
DIGITS = 12
"""Decimal places of a published loss."""


def rows_of_tables(given: ReleasedTables, counted: TablesRecount) -> dict[str, ReleasedTable]:
    """Count the released, withheld, suppressed and orphan rows of each table.

    Released rows are those of the recounted files.
    """
    found, published = {}, np.zeros(given.persons, np.bool_)
    published[given.persons_kept()] = True
    for table in given.job.tables:
        levels = given.published_levels(table)
        rows, released = given.tables[table].rows, counted.records[table]
        orphans, suppressed = 0, rows - released
        if given.chain(table):
            orphans = suppressed = 0
            with pq.ParquetFile(given.store.path(given.linked[table])) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=["a0", "status"]):
                    known = batch.column("status").to_numpy() != ORPHAN
                    orphans += int((~known).sum())
                    suppressed += int((~published[batch.column("a0").fill_null(0).to_numpy()[known]]).sum())
        beyond = rows - released - orphans - suppressed
        found[table] = ReleasedTable(
            records=rows, released=released, withheld=beyond, suppressed=suppressed, orphans=orphans, levels=levels
        )
    return found


def loss_of_tables(tables: Mapping[str, ReleasedTable], penalties: Mapping[str, Mapping[str, float]]) -> TablesLoss:
    """Return the mean certainty penalty per value, of all tables and of each table.

    A value that is not published costs 1. Orphans belong to no person and are no loss. Penalties are of the published grid
    (`core.recount.labels.label_losses`), so that two sources whose labels are the same have the same losses.
    """
    lost, values = {}, {}
    for name, table in tables.items():
        values[name] = (table.records - table.orphans) * len(table.levels)
        gone = (table.withheld + table.suppressed) * len(table.levels)
        lost[name] = sum(penalties.get(name, {}).values()) + gone
    by_table = {name: round(lost[name] / many, DIGITS) for name, many in values.items() if many}
    return TablesLoss(gcp=round(sum(lost.values()) / max(sum(values.values()), 1), DIGITS), by_table=by_table)
