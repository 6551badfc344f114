"""Recount of what several tables publish untreated, by column and together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb

from core.recount.groups import TogetherCount, person_combination_counts_sql
from core.recount.histories import ReadTable, items_sql, row_text_table, row_texts_sql
from core.recount.untreated_tables import (
    choice_persons_sql,
    column_persons_sql,
    known_digest_table,
    known_digests_sql,
    renamed_table,
    same_persons_sql,
    table_contents_sql,
    tables_with_columns,
    text_persons_sql,
)
from schemas.relational.fitting import TableTree
from schemas.relational.tables_job import TablesJob
from schemas.release.figures import Together
from tasks.recount.rows import FLOATING, types_of
from tasks.store.database import quote

CONTENTS = "contents_of_table"
Counts = tuple[int, int, int, int]
"""Of a column distinct values, rows alone with theirs, rows that have one, and persons alone with one of theirs."""


@dataclass(frozen=True)
class UntreatedTables:
    """Names of the columns beside QIDs and keys, by table: untreated, insensitive and sensitive.

    Attributes:
        passed: Those that are published as they are.
        insensitive: Those that are not sensitive, whose values are counted together.
        sensitive: The sensitive ones, whose values are counted together.
    """

    passed: Mapping[str, Sequence[str]]
    insensitive: Mapping[str, Sequence[str]]
    sensitive: Mapping[str, Sequence[str]]

    @classmethod
    def of_job(cls, job: TablesJob, columns: Mapping[str, Sequence[str]]) -> UntreatedTables:
        """Return the columns that a job's tables publish beside QIDs and keys, by kind and table."""
        passed, insensitive, sensitive = {}, {}, {}
        for name, table in job.tables.items():
            known = {*table.linking, *(qid.name for qid in table.columns.quasi_identifiers)}
            others = [column for column in columns[name] if column not in known]
            passed[name] = [column for column in others if column not in table.columns.ways]
            insensitive[name] = [column for column in others if column not in table.columns.sensitive]
            sensitive[name] = [column for column in others if column in table.columns.sensitive]
        return cls(passed, insensitive, sensitive)

    def carried(self, read: ReadTable, *, is_unit: bool) -> ReadTable:
        """Return a table with the columns added that its joined rows must hold for the counts."""
        together = (*self.insensitive.get(read.name, ()), *self.sensitive.get(read.name, ()))
        names = dict.fromkeys(map(quote, (*self.passed.get(read.name, ()), *together)))
        # Who knows what a row publishes may know labels too, and those of its person.
        labels = read.qids if together or (is_unit and any((*self.insensitive.values(), *self.sensitive.values()))) else ()
        return replace(read, sensitive=tuple(dict.fromkeys([*read.sensitive, *names, *labels])))


@dataclass(frozen=True)
class TogetherOfTables:
    """Counts of persons who stand out by columns of one kind together, per table and over all.

    Attributes:
        tables: By those of a table, for each table that has any.
        persons: By those of all tables; None where there are none.
    """

    tables: Mapping[str, Together] = field(default_factory=dict)
    persons: Together | None = None


@dataclass(frozen=True)
class UntreatedCounts:
    """Value counts of untreated columns by table, and who stands out by columns together.

    Attributes:
        columns: Of each untreated column, by table.
        insensitive: Who stands out by the columns that are not sensitive, and ``sensitive`` by those that are.
        sensitive: See ``insensitive``.
    """

    columns: Mapping[str, Mapping[str, Counts]]
    insensitive: TogetherOfTables
    sensitive: TogetherOfTables


def count_untreated(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, ReadTable],
    untreated: UntreatedTables,
    tree: TableTree,
    k: int,
    known_rows: int | None,
) -> UntreatedCounts:
    """Return value counts of untreated columns, and who stands out by them; needs the persons of rows.

    Args:
        tables: As ``UntreatedTables.carried`` returned them when rows were joined.
        known_rows: Rows of each table that an intruder knows; None for all.
    """
    columns = {name: column_counts(connection, tables[name], names) for name, names in untreated.passed.items()}
    [(persons,)] = connection.execute(f"SELECT count(*) FROM {tables[tree.unit].relation}").fetchall()
    of_kinds = (untreated.insensitive, untreated.sensitive)
    kinds = [{name: list(map(quote, names)) for name, names in of_kind.items() if names} for of_kind in of_kinds]
    known = [one for together in kinds if together for one in _known(tables, together, tree)]
    found = iter(_persons_by_rows(connection, tables, tree, known, k, known_rows))
    counted = []
    for together in kinds:
        of_tables = {
            name: Together.from_counts(_of_table(connection, tables, name, names, tree, k), k, "person", persons)
            for name, names in together.items()
        }
        over_all = None
        if together:
            (unique, below), (_, with_classes) = next(found), next(found)
            over_all = Together.from_counts((unique, below, with_classes), k, "person", persons)
        counted.append(TogetherOfTables(of_tables, over_all))
    return UntreatedCounts(columns, *counted)


def _known(tables: Mapping[str, ReadTable], together: Mapping[str, Sequence[str]], tree: TableTree) -> list[Mapping[str, Sequence[str]]]:
    """Return by table the columns of one kind, and these with the labels of all tables."""
    alone = {name: together.get(name, ()) for name in tables_with_columns(tree.chains, together)}
    return [alone, {name: [*read.qids, *together.get(name, ())] for name, read in tables.items()}]


def _of_table(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable], table: str, names: Sequence[str], tree: TableTree, k: int
) -> tuple[int, int, int]:
    """Count who stands out by columns of a table together: alone, below k, and below k with labels."""
    connection.execute(table_contents_sql(tables[table], tables[tree.unit], names, CONTENTS))
    [row] = connection.execute(person_combination_counts_sql(CONTENTS, k)).fetchall()
    connection.execute(f"DROP TABLE {CONTENTS}")
    return TogetherCount(*row).counts


def column_counts(connection: duckdb.DuckDBPyConnection, table: ReadTable, names: Collection[str]) -> dict[str, Counts]:
    """Return by column the distinct, unique and all values, and persons; needs the persons of rows."""
    found: dict[str, Counts] = {}
    types = types_of(connection, table.relation) if names else {}
    for name in names:
        statement = column_persons_sql(table, quote(name), floating=types[name] in FLOATING)
        [(distinct, alone, values, persons)] = connection.execute(statement).fetchall()
        found[name] = int(distinct), int(alone), int(values), int(persons)
    return found


def _persons_by_rows(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, ReadTable],
    tree: TableTree,
    known: Sequence[Mapping[str, Sequence[str]]],
    k: int,
    known_rows: int | None,
) -> list[tuple[int, int]]:
    """Count the persons alone with what may be known of their rows, and those below k.

    Args:
        known: What may be known: by table the quoted names of columns. Each entry has counts of its own.
        known_rows: Rows of each table that an intruder knows; None for all.
    """
    if known_rows is not None:
        return [_persons_by_choices(connection, tables, tree, columns, k, known_rows) for columns in known]
    for name in reversed(tree.tables) if known else ():
        children = [tables[child] for child in tree.tables_below(name) if name in tables[child].references]
        connection.execute(known_digests_sql(tables[name], children, known))
    statements = [text_persons_sql(known_digest_table(tables[tree.unit]), f"text_{number}", k) for number in range(len(known))]
    return [connection.execute(statement).fetchall()[0] for statement in statements]


def _persons_by_choices(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, ReadTable],
    tree: TableTree,
    known: Mapping[str, Sequence[str]],
    k: int,
    known_rows: int,
) -> tuple[int, int]:
    """Count the persons alone with a choice of rows, and those with one below k; arguments as above."""
    renamed = [renamed_table(tables[name], "known", known[name]) for name in tree.tables if name in known]
    for read in reversed(renamed):
        connection.execute(row_texts_sql(read, [child for child in renamed if read.name in child.references]))
    first, *others = renamed
    children = [table for table in others if first.name in table.references]
    connection.execute(same_persons_sql(tables[tree.unit], first))
    if children:
        connection.execute(items_sql(first, children))
    [(unique, below)] = connection.execute(choice_persons_sql(first, len(children), known_rows, k)).fetchall()
    for read in renamed:
        connection.execute(f"DROP TABLE {row_text_table(read)}")
    return int(unique), int(below)
