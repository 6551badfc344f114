"""``skald hierarchy``: drafts, completes and draws the hierarchy of a column.

Counts go to the screen, values to private files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from flows.commands.init import Query, TableName
from flows.commands.running import JobFile, Settings
from flows.terminal.screen import NameTable, Screen, check_suffix

if TYPE_CHECKING:
    from schemas.job.job import Job

# ruff: noqa: PLC0415 - each command imports what it needs

hierarchy = typer.Typer(no_args_is_help=True, help="Draft, complete and show hierarchies. Values go into private files.")
ColumnName = Annotated[str, typer.Option("--column", metavar="NAME", help="The column.", show_default=False)]
OfTables = Annotated[str, typer.Option("--column", metavar="NAME", help="The column; TABLE.COLUMN of several tables.", show_default=False)]


@hierarchy.command("draft")
def draft_hierarchy_file(
    source: Annotated[list[str], typer.Argument(metavar="SOURCE", help="Files, their folder, a pattern or s3://….", show_default=False)],
    column: ColumnName,
    out: Annotated[Path, typer.Option(metavar="FILE.csv", help="The file to write; one that exists is not touched.", show_default=False)],
    table: TableName = None,
    query: Query = None,
) -> None:
    """Write a first hierarchy of a column from its values, to be edited.

    It groups dates, ranges, codes or shared words; if there are none, it joins rare values.
    """
    from schemas.errors.base import counted
    from tasks.planning.draft_text import yaml_name
    from tasks.planning.listed_hierarchies import draft_file
    from tasks.planning.open_sources import SourceOptions

    drafted = draft_file(SourceOptions(tuple(source), table, query), column, out)
    console = Screen(highlight=False)
    console.print(_levels(drafted.draft.groups))
    values = counted(len(drafted.draft.rows), "value")
    console.print(f"\n{column}: {values} of {counted(drafted.records, 'record')}; {drafted.draft.how}.")
    console.print(f"{out}: readable by you alone. Edit it, then say in the job: hierarchy: {{csv: {yaml_name(str(out))}}}")


@hierarchy.command("complete")
def complete_hierarchy_file(job: JobFile, column: OfTables, settings: Settings = None) -> None:
    """Add the values that a job's own CSV hierarchy lacks.

    Each goes to the group of its neighbours, or to a group of others.
    """
    from flows.terminal.runs import progress_bars
    from schemas.errors.base import counted
    from tasks.planning.listed_hierarchies import complete_file

    with progress_bars():
        done = complete_file(*_column_of(job, column, settings or ()))
    console = Screen(highlight=False)
    if not (added := len(done.placed.rows)):
        console.print(f"{done.path}: has all {counted(done.values, 'value')} of '{column}'. Nothing was changed.")
        return
    table = NameTable(Column("", justify="right"), "", box=None, show_header=False)
    for count, words in (
        (done.placed.spelt, "where the same is with other capitals or spaces"),
        (done.placed.between, "where the numbers on both sides are"),
        (done.placed.beginning, "where codes are that begin alike"),
        (done.placed.others, "in a group 'other', or where all lines are"),
    ):
        if count:
            table.add_row(f"{count:,}", words)
    console.print(table)
    lines, records = counted(added, "line"), counted(done.records, "record")
    console.print(f"\n{done.path}: {lines} added at the end, for {records}; readable by you alone. Read them.")


@hierarchy.command("show")
def show_hierarchy(
    job: JobFile,
    column: OfTables,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Where the picture goes; <job's name>-hierarchy.svg if left out.", show_default=False),
    ] = None,
    settings: Settings = None,
) -> None:
    """Draw a hierarchy over the values of the source.

    The picture has its levels, the groups of each and how many records they have.
    """
    from core.charts.hierarchy_levels import LevelRow, hierarchy_picture
    from flows.terminal.runs import progress_bars
    from tasks.planning.listed_hierarchies import levels_of_values
    from tasks.store.files import check_takes_file, open_folder, write_atomically

    check_suffix(to, ".svg")
    loaded, name = _column_of(job, column, settings or ())
    path = to or Path(f"{loaded.name}-hierarchy.svg")
    check_takes_file(path, loaded.target_path)
    with progress_bars():
        domain, ladder = levels_of_values(loaded, name)
    size = len(domain.values)
    rungs = [
        LevelRow(groups[:size], [str(label) for label in labels.to_pylist()] if level else [])
        for level, (groups, labels) in enumerate(zip(ladder.groups, ladder.labels, strict=True))
    ]
    picture = hierarchy_picture(f"The hierarchy of {column}", rungs, domain.counts)
    open_folder(path.parent)
    write_atomically(path, lambda part: part.write_text(picture.alone(), encoding="utf-8"))
    console = Screen(highlight=False)
    console.print(_levels(tuple(len(set(rung.groups.tolist())) for rung in rungs)))
    console.print(f"\n{path}: readable by you alone, as its labels may be values.")


def _column_of(file: Path, column: str, settings: Sequence[str]) -> tuple[Job, str]:
    """Return the job of a column's table, and the column's name there."""
    from schemas.relational.table_jobs import nearest_of_tables, table_job
    from schemas.relational.tables_job import TablesJob, load_any_job

    loaded = load_any_job(file, settings)
    if not isinstance(loaded, TablesJob):
        return loaded, column
    table = max((name for name in loaded.tables if column.startswith(f"{name}.")), key=len, default=None)
    if table is None:
        hint = nearest_of_tables(column, loaded, "quasi_identifiers")
        raise typer.BadParameter(
            f"names no table{hint}: write TABLE.COLUMN, with a table of {', '.join(loaded.tables)}", param_hint="--column"
        )
    return table_job(loaded, table), column.removeprefix(f"{table}.")


def _levels(groups: tuple[int, ...]) -> Table:
    """Return a table of the number of groups per level."""
    table = NameTable("level", Column("groups", justify="right"), box=None, header_style="bold")
    for level, count in enumerate(groups):
        table.add_row(str(level), f"{count:,}")
    return table
