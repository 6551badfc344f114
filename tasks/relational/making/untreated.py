"""Inspection of the columns that several tables publish as they are."""

from __future__ import annotations

from schemas.errors.refusals import PassthroughError
from schemas.release.figures import PassedColumn
from tasks.counting.untreated import inspect_columns, refused_columns
from tasks.relational.making.linking import ORPHAN, Linking
from tasks.store.database import connect


def measure_untreated_tables(given: Linking) -> dict[str, dict[str, PassedColumn]]:
    """Return untreated columns' figures by table, kept in its run too; raise for identifying columns.

    The figures of a table stay with its run, for the manifest. Columns that say how they are published are not looked at, because what is
    published of them is not known yet, and ``rest`` takes in none of these.

    Returns:
        Figures by table and column, in the order of the release.
    """
    found, refused = dict[str, dict[str, PassedColumn]](), {}
    for name, encoded in given.tables.items():
        table = encoded.table
        names = [column for column in table.source.payload if column not in table.job.columns.ways]
        figures = inspect_columns(table.run, table.source, names, people=persons_with_rows(given, name)) if names else None
        found[name] = {column: figures.columns[column] for column in names} if figures else {}
        table.run.passthrough = found[name]
        if identifying := refused_columns(table.job.columns, found[name]):
            refused[name] = identifying
    if refused:
        raise PassthroughError.identifying_table_columns(refused)
    return found


def persons_with_rows(given: Linking, table: str) -> int:
    """Return how many persons have a row of a table, not counting orphans."""
    if not given.chain(table):
        return given.tables[table].rows
    with connect(given.run.job, given.run.spill) as connection:
        statement = f"SELECT count(DISTINCT a0) FROM {given.rows_of(table)} WHERE status <> {ORPHAN}"
        [(persons,)] = connection.execute(statement).fetchall()
    return int(persons)
