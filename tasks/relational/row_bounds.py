"""How many rows of a person a draft of several tables may keep, so that numbers of rows set few persons apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from schemas.relational.tree import TableTree
from tasks.store.database import quote

BOUNDS = (20, 10, 7, 5, 4, 3, 2, 1)
"""Rows of a person in each table that are tried, most first; what has more rows than the first is seldom shared."""
NOBODY_BOUND = 1 << 31


class RowsOfPersons:
    """The rows of all tables, each with its person and the row that it hangs from, in tables of the database.

    Args:
        connection: The database.
        relations: By table, what DuckDB reads it as.
        keys: By table, the column that names a row; empty where none does.
        references: By table, the table that each column refers to.
        tree: Which hangs from which.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        relations: Mapping[str, str],
        keys: Mapping[str, str],
        references: Mapping[str, Mapping[str, str]],
        tree: TableTree,
    ) -> None:
        self._connection, self._tree = connection, tree
        key = f"{quote(keys[tree.unit])}::VARCHAR"
        self._make(tree.unit, f"SELECT {key} AS key, 0 AS nearest, '' AS above, {key} AS person FROM {relations[tree.unit]}")
        for table in tree.tables[1:]:
            nearest = sorted(references[table].items(), key=lambda one: -len(tree.chains[one[1]]))
            named = f"{quote(keys[table])}::VARCHAR" if keys[table] else "NULL"
            rows = [
                f"SELECT {named} AS key, {place} AS nearest, {quote(column)}::VARCHAR AS above FROM {relations[table]} WHERE "
                + " AND ".join([f"{quote(column)} IS NOT NULL", *(f"{quote(nearer)} IS NULL" for nearer, _ in nearest[:place])])
                for place, (column, _) in enumerate(nearest)
            ]
            joins = [f"LEFT JOIN {_rows(other)} AS p{place} ON m.nearest = {place} AND p{place}.key = m.above" for place, (_, other) in
                     enumerate(nearest)]  # fmt: skip
            person = f"coalesce({', '.join(f'p{place}.person' for place in range(len(nearest)))})"
            self._make(table, f"SELECT m.*, {person} AS person FROM ({' UNION ALL '.join(rows)}) AS m {' '.join(joins)}")
        self._nearest = {table: sorted(references[table].values(), key=lambda other: -len(tree.chains[other])) for table in tree.tables[1:]}

    def _make(self, table: str, statement: str) -> None:
        numbered = "row_number() OVER (PARTITION BY person ORDER BY nearest, above, key) AS number"
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {_rows(table)} AS SELECT *, {numbered} FROM ({statement}) WHERE person IS NOT NULL"
        )

    @property
    def persons(self) -> int:
        """How many persons there are."""
        [(persons,)] = self._connection.execute(f"SELECT count(*) FROM {_rows(self._tree.unit)}").fetchall()
        return int(persons)

    def set_apart(self, most: int, k: int) -> int:
        """Returns how many persons share the numbers of their rows with fewer than k, where each table keeps at most so many of a person.

        Numbers of rows are those below each row too, as a history shows them.
        """
        for table in reversed(self._tree.tables):
            joins, shapes = [], ["''"]
            below = [(child, self._nearest[child].index(table)) for child in self._tree.tables[1:] if table in self._nearest[child]]
            for place, (child, number) in enumerate(below):
                lists = (
                    f"SELECT above, list_sort(list(shape))::VARCHAR AS shape FROM {_shapes(child)} WHERE nearest = {number} GROUP BY above"
                )
                joins.append(f"LEFT JOIN ({lists}) AS c{place} ON c{place}.above = m.key")
                shapes.append(f"coalesce(c{place}.shape, '-')")
            kept = "" if table == self._tree.unit else f"WHERE m.number <= {most:d}"
            statement = f"SELECT m.nearest, m.above, {' || '.join(shapes)} AS shape FROM {_rows(table)} AS m {' '.join(joins)} {kept}"
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {_shapes(table)} AS {statement}")
        groups = f"SELECT count(*) AS persons FROM {_shapes(self._tree.unit)} GROUP BY shape HAVING count(*) < {k:d}"
        [(persons,)] = self._connection.execute(f"SELECT coalesce(sum(persons), 0)::BIGINT FROM ({groups})").fetchall()
        return int(persons)

    def bound(self, k: int, share: float, bounds: Sequence[int] = BOUNDS) -> int | None:
        """Returns the largest bound by which at most a share of the persons is set apart; None where none is needed, or none helps."""
        most = share * self.persons
        if self.set_apart(NOBODY_BOUND, k) <= most:
            return None
        return next((bound for bound in bounds if self.set_apart(bound, k) <= most), None)


def _rows(table: str) -> str:
    return quote(f"rows of {table}")


def _shapes(table: str) -> str:
    return quote(f"shapes of {table}")
