"""Promises on the sensitive columns of all tables, with the persons who hold each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.domains import domain_as_published, with_null
from core.relational.sensitive import PersonValues, TablePromise
from tasks.lattice.promises import promise_of
from tasks.relational.making.linking import ORPHAN, PUBLISHED
from tasks.relational.making.profiles import HistoryTables
from tasks.relational.making.published_values import (
    WayColumn,
    decided_values,
    person_of,
    published_ways,
    shared_columns_of,
    without_values_of_few,
)
from tasks.store.database import connect


def promises_of_tables(
    given: HistoryTables, withheld: Mapping[str, NDArray[np.int64]] | None = None, published: NDArray[np.bool_] | None = None
) -> list[TablePromise]:
    """Return the l and t promises of each table that has any, with the values' holders.

    Args:
        withheld: Rows of each table that are not published, with all that hangs from them.
        published: Shape (persons,), who is published, so that values of fewer than k of them are published as the rest is; everybody is
            asked with what is published of all persons if left out.
    """
    asked = [table for table in given.job.tables if given.tables[table].table.job.privacy.columns]
    return [_promise(given, table, withheld or {}, published) for table in asked]


def _promise(given: HistoryTables, table: str, withheld: Mapping[str, NDArray[np.int64]], kept: NDArray[np.bool_] | None) -> TablePromise:
    coding, of_table = given.codings[table], given.tables[table].table.job
    person = person_of(given, table)
    has_rows, columns = np.zeros(given.persons, np.bool_), {}
    with connect(of_table, given.run.spill) as connection:
        rows, left = given.rows_of(table), f"{given.rows_of(table)} AS m"
        above = {"row": table} | {f"a{depth}": name for depth, name in enumerate(given.chain(table)) if depth}
        for number, (column, name) in enumerate(above.items() if withheld and given.chain(table) else ()):
            connection.register(f"withheld_{number}", pa.table({"row": pa.array(withheld.get(name, np.zeros(0, np.int64)))}))
            left += f" ANTI JOIN withheld_{number} AS w{number} ON w{number}.row = m.{column}"
        if kept is not None:
            connection.register("kept", pa.table({"person": np.flatnonzero(kept)}))
            left += f" SEMI JOIN kept ON kept.person = m.{person}"
        published = connection.sql(f"SELECT DISTINCT m.{person} AS person FROM {left} WHERE m.status = {PUBLISHED}").to_arrow_table()
        has_rows[published["person"].to_numpy()] = True
        # Classes are held against the source, whatever is withheld of it.
        [(everybody,)] = connection.execute(f"SELECT count(DISTINCT {person}) FROM {rows} WHERE status <> {ORPHAN}").fetchall()
        domains = []
        for place, observed in enumerate(coding.sensitive):
            known = None
            if observed.qid in published_ways(given, table):
                way = WayColumn(table, observed.qid)
                known = decided_values(given, way)
                if kept is not None and way in shared_columns_of(given, table):
                    released = f"{left} WHERE m.status = {PUBLISHED}"
                    known = without_values_of_few(connection, given, way, known, released)
            codes, domain = np.arange(observed.size), observed
            if known is not None:
                codes, domain = domain_as_published(observed, known.apply(with_null(observed)))
            domains.append(domain)
            connection.register("codes", pa.table({"code": np.arange(len(codes)), "value": codes}))
            pairs = connection.sql(
                f"SELECT DISTINCT m.{person} AS person, c.value FROM {left} JOIN codes AS c ON c.code = m.s{place} "
                f"WHERE m.status = {PUBLISHED} ORDER BY ALL"
            ).to_arrow_table()
            of_all = connection.sql(
                f"SELECT c.value, count(DISTINCT {person}) AS persons FROM {rows} JOIN codes AS c ON c.code = s{place} "
                f"WHERE status <> {ORPHAN} GROUP BY ALL"
            ).to_arrow_table()
            whole = np.zeros(domain.size, np.int64)
            whole[of_all["value"].to_numpy()] = of_all["persons"].to_numpy()
            columns[domain.qid] = PersonValues(pairs["person"].to_numpy(), pairs["value"].to_numpy().astype(np.int64), whole)
    return TablePromise.of(promise_of(of_table, replace(coding, sensitive=tuple(domains))), columns, has_rows, int(everybody))


def suppress_broken_promises(
    given: HistoryTables, published: NDArray[np.bool_], withheld: Mapping[str, NDArray[np.int64]], owners: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of persons still published once histories that break l or t are suppressed.

    Values of fewer than k published persons become the rest, which may break a promise again.

    Args:
        published: Shape (persons,), who is published so far.
        withheld: Rows of theirs that are not.
        owners: Shape (persons,), the history of each; of others than ``published`` any number.
    """
    if not any(column.column in given.tables[table].table.job.privacy.columns for table in given.job.tables
               for column in shared_columns_of(given, table)):  # fmt: skip
        return published
    nobody = int(owners.max(initial=0)) + 1
    while published.any():
        classes = np.where(published, owners, nobody)
        sizes = np.bincount(classes, minlength=nobody + 1)
        broken = np.zeros(nobody + 1, np.bool_)
        for promise in promises_of_tables(given, withheld, published):
            broken |= promise.failing(classes, sizes)
        broken[nobody] = False
        if not broken.any():
            break
        published = published & ~broken[classes]
    return published
