"""``skald init``: a first job file, drafted from the source; imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column
from rich.text import Text

from flows.terminal.screen import NameTable, Screen

# ruff: noqa: PLC0415 - each command imports what it needs

ROLES = {
    "identifiers": "identifier: not published",
    "withheld": "withheld: not published",
    "quasi_identifiers": "quasi-identifier: coarsened",
    "sensitive": "sensitive: published",
}
SourceNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE",
        help="Files, their folder, a pattern, s3://… or postgresql://reader@host/database; nothing for PostgreSQL by its own variables.",
        show_default=False,
    ),
]
TableName = Annotated[str | None, typer.Option(metavar="NAME", help="The table of a database.", show_default=False)]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="COLUMN=TYPE", help="Of a numeric column of PostgreSQL, as in height=decimal(4,1); may be repeated."),
]
Query = Annotated[str | None, typer.Option(metavar="SELECT", help="A SELECT statement, in the place of a table.", show_default=False)]


def init(
    source: SourceNames = None,
    table: TableName = None,
    query: Query = None,
    types: Types = None,
    out: Annotated[Path, typer.Option(help="The job file to write; one that exists is not touched.")] = Path("job.yaml"),
) -> None:
    """Drafts a commented job file that runs as it is, to be edited. It holds no values; hierarchies are in files for you alone.

    Several folders are several tables of one person: unit, keys and references are proposed from names and values.
    """
    from schemas.errors.base import counted
    from tasks.planning.draft import draft_job
    from tasks.planning.fronts import DATABASE, Given

    if not source and not table and not query:
        raise typer.BadParameter("name a source, or give --table or --query for PostgreSQL")
    if source and len(source) > 1 and all(Path(one).is_dir() for one in source):
        from flows.commands.tables import init_of_tables

        return init_of_tables([Path(one) for one in source], out)
    if types and source and not source[0].startswith(DATABASE):
        raise typer.BadParameter("--type is for PostgreSQL; other sources say their types, and those of CSV are found")
    named = {column: dtype for column, _, dtype in (one.rpartition("=") for one in types or ())}
    drafted = draft_job(Given(tuple(source or ()), table, query, named), out)
    shown = NameTable(Column("column", overflow="fold"), "proposed", "because", box=None, header_style="bold")
    for one in drafted.proposals:
        open_role = "for you to decide: " + ("coarsened" if one.profile.name in drafted.coarsened else "withheld")
        shown.add_row(Text(one.profile.name), ROLES.get(one.role, open_role), one.reason)
    console = Screen(highlight=False)
    console.print(shown)
    if drafted.ladders:
        console.print(f"\n{drafted.ladders[0].parent}: {counted(len(drafted.ladders), 'hierarchy file')}, which you alone can read.")
    undecided = sum(one.role == "open" for one in drafted.proposals)
    decide = f" Decide on {counted(undecided, 'column')} in it." if undecided else " Read it."
    lost = f" It would lose {drafted.gcp:.0%} (GCP, on a sample, by k alone)." if drafted.gcp is not None else ""
    console.print(f"\n{out}: drafted from {counted(drafted.records, 'record')}.{lost}{decide} Then: skald plan {out}, skald run {out}")
