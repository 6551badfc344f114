"""Bounds on the rows per person in a draft, so that few persons have rare row counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from schemas.relational.tree import TableTree
from tasks.store.database import quote

BOUNDS = (20, 10, 7, 5, 4, 3, 2, 1)
"""Rows of a person in each table that are tried, most first; what has more rows than the first is seldom shared."""
EVERY_ROW = 1 << 32
"""More rows than a table of such a job may have."""


class RowsOfPersons:
    """Temporary SQL tables of all tables' rows, each with person and parent row, to try row bounds on.

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
        # The references of each table, the nearest first: a row hangs from the first of them that is not null.
        self._references = {
            table: dict(sorted(referring.items(), key=lambda one: -len(tree.chains[one[1]]))) for table, referring in references.items()
        }
        key = f"{quote(keys[tree.unit])}::VARCHAR"
        self._make(tree.unit, f"SELECT {key} AS key, 0 AS nearest, '' AS above, {key} AS person FROM {relations[tree.unit]}")
        for table in tree.tables[1:]:
            named = f"{quote(keys[table])}::VARCHAR" if keys[table] else "NULL"
            columns = [quote(column) for column in self._references[table]]
            nearest = " ".join(f"WHEN {column} IS NOT NULL THEN {place}" for place, column in enumerate(columns))
            above = ", ".join(f"{column}::VARCHAR" for column in columns)
            rows = f"SELECT {named} AS key, CASE {nearest} END AS nearest, coalesce({above}) AS above FROM {relations[table]}"
            parents = list(enumerate(self._references[table].values()))
            joins = (f"LEFT JOIN {_rows(other)} AS p{place} ON m.nearest = {place} AND p{place}.key = m.above" for place, other in parents)
            person = ", ".join(f"p{place}.person" for place, _ in parents)
            self._make(table, f"SELECT m.*, coalesce({person}) AS person FROM ({rows}) AS m {' '.join(joins)}")

    def _make(self, table: str, statement: str) -> None:
        numbered = "row_number() OVER (PARTITION BY person ORDER BY nearest, above, key) AS number"
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {_rows(table)} AS SELECT *, {numbered} FROM ({statement}) WHERE person IS NOT NULL"
        )

    @property
    def persons(self) -> int:
        """Number of persons in the unit's table, counted in the database."""
        [(persons,)] = self._connection.execute(f"SELECT count(*) FROM {_rows(self._tree.unit)}").fetchall()
        return int(persons)

    def count_rare_persons(self, row_bound: int, k: int) -> int:
        """Return how many persons have row counts that fewer than k share if each keeps ``row_bound`` rows.

        Numbers of rows are those below each row too, as a history shows them.
        """
        for table in reversed(self._tree.tables):
            joins, shapes = [], ["''"]
            referring = ((child, list(self._references[child].values())) for child in self._tree.tables[1:])
            below = [(child, others.index(table)) for child, others in referring if table in others]
            for place, (child, number) in enumerate(below):
                lists = (
                    f"SELECT above, list_sort(list(shape))::VARCHAR AS shape FROM {_shapes(child)} WHERE nearest = {number} GROUP BY above"
                )
                joins.append(f"LEFT JOIN ({lists}) AS c{place} ON c{place}.above = m.key")
                shapes.append(f"coalesce(c{place}.shape, '-')")
            kept = "" if table == self._tree.unit else f"WHERE m.number <= {row_bound:d}"
            statement = f"SELECT m.nearest, m.above, {' || '.join(shapes)} AS shape FROM {_rows(table)} AS m {' '.join(joins)} {kept}"
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {_shapes(table)} AS {statement}")
        groups = f"SELECT count(*) AS persons FROM {_shapes(self._tree.unit)} GROUP BY shape HAVING count(*) < {k:d}"
        [(persons,)] = self._connection.execute(f"SELECT coalesce(sum(persons), 0)::BIGINT FROM ({groups})").fetchall()
        return int(persons)

    def count_rows_beyond(self, row_bound: int) -> dict[str, int]:
        """Return by table about how many rows a bound of ``row_bound`` rows per person withholds.

        What hangs from them is counted too.
        The run draws rows that stay, and here the first do, so that tables below others may lose a few more or fewer.
        """
        beyond = {}
        for table in self._tree.tables:
            parents = enumerate(self._references[table].values())
            kept = " OR ".join(
                f"(m.nearest = {place} AND EXISTS (SELECT 1 FROM {_kept(other)} AS p WHERE p.key = m.above))" for place, other in parents
            )
            few = "" if table == self._tree.unit else f"QUALIFY row_number() OVER (PARTITION BY person ORDER BY number) <= {row_bound:d}"
            rows = f"SELECT m.* FROM {_rows(table)} AS m WHERE {kept or 'true'} {few}"
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {_kept(table)} AS {rows}")
            if table != self._tree.unit:
                counts = f"SELECT (SELECT count(*) FROM {_rows(table)}) - (SELECT count(*) FROM {_kept(table)})"
                [(beyond[table],)] = self._connection.execute(counts).fetchall()
        return beyond

    def bound(self, k: int, share: float, bounds: Sequence[int] = BOUNDS) -> int | None:
        """Return the largest of ``bounds`` at which few persons have rare row counts; None if none helps.

        Few are at most ``share`` of the persons; row counts are rare if fewer than k share them. None where no bound helps or none is
        needed.
        """
        most = share * self.persons
        found = next((bound for bound in (EVERY_ROW, *bounds) if self.count_rare_persons(bound, k) <= most), EVERY_ROW)
        return None if found == EVERY_ROW else found


def _rows(table: str) -> str:
    return quote(f"rows of {table}")


def _kept(table: str) -> str:
    return quote(f"kept rows of {table}")


def _shapes(table: str) -> str:
    return quote(f"shapes of {table}")
