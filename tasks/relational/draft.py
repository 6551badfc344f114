"""Draft of a first job of several tables: unit, keys, references, roles and bounds on rows.

Keys and references are guessed from names and from the inclusion of values, roles as for one table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb

from core.formats.proposals import propose_role
from schemas.errors.base import JobError, StorageError, listed
from schemas.relational.fitting import TableTree, tree_of
from tasks.planning.draft import GUESSED_VALUES, drafted_k, with_guessed_quasi_identifiers
from tasks.planning.draft_text import type_of_texts, yaml_name
from tasks.planning.listed_hierarchies import with_drafted_hierarchies
from tasks.planning.open_sources import SourceOptions, open_for_draft, profile_source
from tasks.planning.profiles import planning_connection
from tasks.relational.draft_text import LIMIT, DraftedTable, DraftedTables, drafted_tables_text, has_known
from tasks.source.csv_files import csv_sql
from tasks.store.database import files_sql, literal, quote
from tasks.store.files import USER_UMASK, write_atomically

BOUNDS = (20, 10, 7, 5, 4, 3, 2, 1)
"""Rows of a person in each table that are tried, most first; what has more rows than the first is seldom shared."""
EVERY_ROW = 1 << 32
"""More rows than a table of such a job may have."""


class RowsOfPersons:
    """Temporary SQL tables of all tables' rows, each with person and parent row, to try row bounds on.

    Args:
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
        """Return the largest bound at which few persons have rare row counts; None if none helps or is needed.

        Few are at most ``share`` of the persons; row counts are rare if fewer than k share them.
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


INCLUDED = 0.95
"""Which share of a column's values must be keys of another table, so that it is taken for a reference."""
KEY_KINDS = ("integer", "text")


def draft_tables(folders: Sequence[Path], out: Path, *, accept: bool = False) -> DraftedTables:
    """Write a drafted job of several tables and its hierarchy files; return it; raise if the file exists.

    Args:
        folders: A folder for each table, after which it is called.
        out: The job file; one that exists stays as it is.
        accept: Whether every question is answered with its safest answer.
    """
    if out.exists():
        raise StorageError(f"'{out}' exists and stays as it is. Name another file with --out, or move it away.")
    names = Counter(folder.name for folder in folders)
    if repeated := [name for name, times in names.items() if times > 1]:
        # A job names each table once, so that what was drafted could not be read.
        are = "is the name" if len(repeated) == 1 else "are names"
        raise JobError(
            str(out), [f"{listed(repeated)} {are} of several of these folders; tables are called after them, give each another name"]
        )
    tables, ladders = list[DraftedTable](), list[Path]()
    for folder in folders:
        table, written = _drafted(folder, out)
        tables.append(table)
        ladders += written
    with planning_connection() as connection:
        for table in tables:
            table.unique = _unique(connection, table)
        _relate(connection, tables)
        tree, faults = tree_of({table.name: list(table.references.values()) for table in tables})
        if tree is None:
            raise JobError(
                str(out), [*faults, "the references were guessed from names and values; write the job by hand where they are others"]
            )
        _some_known_of_tables(tables, tree)
        _bound_rows(connection, tables, tree)
    ordered = sorted(tables, key=lambda table: len(tree.chains[table.name]))
    drafted = DraftedTables(tuple(ordered), tree, tuple(ladders), accept)
    write_atomically(out, lambda part: part.write_text(drafted_tables_text(drafted, out), "utf-8"), 0o666 & ~USER_UMASK)
    return drafted


def _drafted(folder: Path, out: Path) -> tuple[DraftedTable, list[Path]]:
    with open_for_draft(SourceOptions((str(folder),)), out) as front:
        found = profile_source(front)
        proposals, ladders = with_drafted_hierarchies(front, [propose_role(column) for column in found.columns], out)
        types = {one.profile.name: type_of_texts(one.profile) for one in proposals if one.profile.kind != "text"} if front.texts else {}
        paths = front.source["path"]
        shown = [f"path: {yaml_name(paths[0]) if len(paths) == 1 else '[' + ', '.join(map(yaml_name, paths)) + ']'}"]
        shown += [f"{key}: {yaml_name(str(value))}" for key, value in front.source.items() if key != "path"]
        shown += [f"types: {{{', '.join(f'{yaml_name(name)}: {kind}' for name, kind in types.items())}}}"] if types else []
        how = f"delim = {literal(str(front.source.get('delimiter', ',')))}, header = true, all_varchar = true"
        # Else DuckDB takes folders such as a=b above all the files for a column of theirs.
        hive = f"hive_partitioning = {str(bool(front.source.get('hive'))).lower()}"
        reader = csv_sql(front.files, how) if front.kind == "csv" else f"read_parquet({files_sql(front.files)}, {hive})"
        # The first records are enough to judge columns; k and the share of rows that a bound withholds are of all.
        [(every,)] = front.connection.execute("SELECT count(*) FROM everything").fetchall() if front.has_more else [(found.records,)]
        return DraftedTable(folder.name, f"{{{', '.join(shown)}}}", reader, list(proposals), int(every)), ladders


def _unique(connection: duckdb.DuckDBPyConnection, table: DraftedTable) -> list[str]:
    """Return the number and text columns without nulls in which no value repeats: possible keys."""
    found = []
    for one in table.proposals:
        if one.profile.kind in KEY_KINDS:
            column = quote(one.profile.name)
            statement = f"SELECT count(*) = count({column}) AND count(*) = count(DISTINCT {column}) FROM {table.relation}"
            [(is_key,)] = connection.execute(statement).fetchall()
            found += [one.profile.name] if is_key else []
    return found


def _relate(connection: duckdb.DuckDBPyConnection, tables: Sequence[DraftedTable]) -> None:
    """Find the references between tables and the key of each table.

    Of two tables with one key each, the table that refers is the one whose name the column does not bear.
    """
    for table in tables:
        for other in tables:
            for column, key in _named_alike(table, other):
                mutual = column in table.unique and column == key and _is_called(table, column) >= _is_called(other, column)
                if (
                    not mutual
                    and other.name not in table.references.values()
                    and (share := _included(connection, table, column, other, key))
                ):
                    table.references[column] = other.name
                    table.orphans |= share < 1
                    other.key = key
                    break
    for table in tables:
        named = [column for column in table.unique if column not in table.references and column.lower().endswith("id")]
        table.key = table.key or next(iter(sorted(named, key=lambda column: not _is_called(table, column))), "")


def _some_known_of_tables(tables: Sequence[DraftedTable], tree: TableTree) -> None:
    """Propose quasi-identifiers where no table has any.

    As for one table: those of the unit or, if it has none, of the tables nearest to it.
    """
    near = sorted(tables, key=lambda table: len(tree.chains[table.name]))
    for table, values in ((table, values) for values in GUESSED_VALUES for table in near):
        if has_known(tables):
            return
        linking = {table.key, *table.references}
        named = {
            one.profile.name: one
            for one in with_guessed_quasi_identifiers([one for one in table.proposals if one.profile.name not in linking], values)
        }
        table.proposals = [named.get(one.profile.name, one) for one in table.proposals]


def _bound_rows(connection: duckdb.DuckDBPyConnection, tables: Sequence[DraftedTable], tree: TableTree) -> None:
    """Bound the rows per person in each table below the unit, if too many persons have rare row counts.

    A row count is rare if fewer than k persons share it.
    """
    relations, keys = {table.name: table.relation for table in tables}, {table.name: table.key for table in tables}
    if not keys[tree.unit] or len(tree.tables) == 1:
        return
    rows = RowsOfPersons(connection, relations, keys, {table.name: table.references for table in tables}, tree)
    # Rows that are withheld bring others to k, but how many is known after a search alone.
    bound = rows.bound(drafted_k(rows.persons), LIMIT)
    for table in tables:
        table.most_rows = None if table.name == tree.unit else bound
    for name, beyond in (rows.count_rows_beyond(bound) if bound else {}).items():
        next(table for table in tables if table.name == name).rows_beyond = beyond


def _named_alike(table: DraftedTable, other: DraftedTable) -> Iterator[tuple[str, str]]:
    """Yield pairs of a table's column and another table's key whose names match.

    Both must be numbers or texts.
    """
    for one in table.proposals if table is not other else ():
        for key in other.unique:
            name = one.profile.name
            if (
                one.profile.kind in KEY_KINDS
                and name.lower() in {key.lower(), f"{other.name}_{key}".lower()}
                and _is_name_of_key(key, other)
            ):
                yield name, key


def _is_name_of_key(key: str, table: DraftedTable) -> bool:
    return key.lower().endswith(("id", "key", "no", "number", "code")) or _is_called(table, key)


def _is_called(table: DraftedTable, column: str) -> bool:
    """Return whether a column's name starts with a table's name, as ``person_id`` of ``persons``."""
    return column.lower().startswith(table.name.lower().rstrip("s"))


def _included(connection: duckdb.DuckDBPyConnection, table: DraftedTable, column: str, other: DraftedTable, key: str) -> float:
    """Return the share of a column's distinct values that are keys of another table.

    It is 0 where the share is below ``INCLUDED``, or the values cannot be compared.
    """
    mine, theirs = quote(column), quote(key)
    found = f"count(*) FILTER (EXISTS (SELECT 1 FROM {other.relation} AS o WHERE o.{theirs} = m.value))"
    try:
        statement = f"SELECT {found}, count(*) FROM (SELECT DISTINCT {mine} AS value FROM {table.relation} WHERE {mine} IS NOT NULL) AS m"
        [(there, values)] = connection.execute(statement).fetchall()
    except (duckdb.ConversionException, duckdb.BinderException):
        return 0.0
    share = there / values if values else 0.0
    return share if share >= INCLUDED else 0.0
