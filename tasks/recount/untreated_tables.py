"""Recount of what several tables publish untreated, by column and together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb

from core.recount.histories import ReadTable, items_sql, row_text_table, row_texts_sql
from core.recount.together import TogetherCount, person_combination_counts_sql
from core.recount.untreated_tables import (
    choice_persons_sql,
    column_persons_sql,
    renamed_table,
    same_persons_sql,
    table_contents_sql,
    tables_with_columns,
    text_persons_sql,
)
from schemas.relational.fitting import TableTree
from schemas.relational.tables_job import TablesJob
from schemas.release.figures import Together
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
            linking = {*table.key, *(column for referred in table.referring.values() for column in referred)}
            known = linking | {qid.name for qid in table.columns.quasi_identifiers}
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
        connection: The database.
        tables: As ``UntreatedTables.carried`` returned them when rows were joined.
        k: What a history must reach.
        known_rows: Rows of each table that an intruder knows; None for all.
    """
    columns = {name: column_counts(connection, tables[name], names) for name, names in untreated.passed.items()}
    kinds = (_together(connection, tables, names, tree, k, known_rows) for names in (untreated.insensitive, untreated.sensitive))
    return UntreatedCounts(columns, *kinds)


def _together(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, ReadTable],
    columns: Mapping[str, Sequence[str]],
    tree: TableTree,
    k: int,
    known_rows: int | None,
) -> TogetherOfTables:
    """Count who stands out by columns together, of each table and of all.

    Arguments as for ``count_untreated``.
    """
    unit = tables[tree.unit]
    together = {name: list(map(quote, names)) for name, names in columns.items() if names}
    if not together:
        return TogetherOfTables()
    [(persons,)] = connection.execute(f"SELECT count(*) FROM {unit.relation}").fetchall()
    of_tables = {}
    for name, names in together.items():
        connection.execute(table_contents_sql(tables[name], unit, names, CONTENTS))
        [row] = connection.execute(person_combination_counts_sql(CONTENTS, k)).fetchall()
        of_tables[name] = Together.from_counts(TogetherCount(*row).counts, k, "person", persons)
    connection.execute(f"DROP TABLE {CONTENTS}")
    having = tables_with_columns(tree.chains, together)
    alone = {name: renamed_table(tables[name], "untreated", together.get(name, ())) for name in having}
    labelled = {name: renamed_table(read, "all", [*read.qids, *together.get(name, ())]) for name, read in tables.items()}
    unique, below = _persons_by_rows(connection, alone, unit, k, known_rows)
    _, with_classes = _persons_by_rows(connection, labelled, unit, k, known_rows)
    return TogetherOfTables(of_tables, Together.from_counts((unique, below, with_classes), k, "person", persons))


def column_counts(connection: duckdb.DuckDBPyConnection, table: ReadTable, names: Collection[str]) -> dict[str, Counts]:
    """Return by column the distinct, unique and all values, and persons; needs the persons of rows."""
    found: dict[str, Counts] = {}
    for name in names:
        [(distinct, alone, values, persons)] = connection.execute(column_persons_sql(table, quote(name))).fetchall()
        found[name] = int(distinct), int(alone), int(values), int(persons)
    return found


def _persons_by_rows(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, ReadTable], unit: ReadTable, k: int, known_rows: int | None
) -> tuple[int, int]:
    """Count the persons alone with what may be known of their rows, and those below k.

    Args:
        connection: The database.
        tables: Renamed tables, parents first and the unit at the beginning.
        unit: The unit's table by its own name.
        k: What a history must reach.
        known_rows: Rows of each table that an intruder knows; None for all.
    """
    for read in reversed(list(tables.values())):
        connection.execute(row_texts_sql(read, [child for child in tables.values() if read.name in child.references]))
    first, *others = tables.values()
    if known_rows is None:
        statement = text_persons_sql(first, k)
    else:
        children = [table for table in others if first.name in table.references]
        connection.execute(same_persons_sql(unit, first))
        if children:
            connection.execute(items_sql(first, children))
        statement = choice_persons_sql(first, len(children), known_rows, k)
    [(unique, below)] = connection.execute(statement).fetchall()
    for read in tables.values():
        connection.execute(f"DROP TABLE {row_text_table(read)}")
    return int(unique), int(below)
