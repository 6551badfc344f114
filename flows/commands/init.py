"""``skald init``: drafts a first job file from the source; imports its modules when it runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column
from rich.text import Text

from flows.terminal.screen import NameTable, Screen

if TYPE_CHECKING:
    from tasks.planning.draft import DraftedJob

# ruff: noqa: PLC0415 - each command imports what it needs

ROLES = {
    "identifier": "identifier: not published",
    "key": "number of a record: not published",
    "withheld": "withheld: not published",
    "quasi_identifier": "quasi-identifier: coarsened",
    "sensitive": "sensitive: published",
    "insensitive": "insensitive: published",
    "weight": "weight: published",
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
    as_json: Annotated[bool, typer.Option("--json", help="Print roles and questions as JSON; the job is written all the same.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Answer every question with its safest answer, and say which.")] = False,
) -> None:
    """Draft a commented job file that runs as it is, to be edited.

    It holds no values; hierarchies are in files for you alone.

    Several folders are several tables of one person: unit, keys and references are proposed from names and values.
    """
    from flows.terminal.runs import progress_bars
    from tasks.planning.draft import draft_job
    from tasks.planning.open_sources import DATABASE, SourceOptions

    if not source and not table and not query:
        raise typer.BadParameter("name a source, or give --table or --query for PostgreSQL")
    if source and len(source) > 1 and all(Path(one).is_dir() for one in source):
        if table or query or types:
            raise typer.BadParameter("--table, --query and --type are for one source, and several folders are a table each")
        from flows.commands.tables import init_of_tables

        return init_of_tables([Path(one) for one in source], out, as_json=as_json, accept=accept)
    if types and source and not source[0].startswith(DATABASE):
        raise typer.BadParameter("--type is for PostgreSQL; other sources say their types, and those of CSV are found")
    named = {column: dtype for column, _, dtype in (one.rpartition("=") for one in types or ())}
    with progress_bars():
        drafted = draft_job(SourceOptions(tuple(source or ()), table, query, named), out, accept=accept)
    if as_json:
        typer.echo(json.dumps(_as_json(drafted, out)))
    else:
        _show(drafted, out, accept=accept)


def _as_json(drafted: "DraftedJob", out: Path) -> dict[str, object]:
    """Return the drafted roles and questions as JSON data."""
    columns = [
        {"name": one.profile.name, "role": one.role, **({"publish": one.publish_setting} if one.publish_setting else {})}
        | {"confidence": one.confidence, "because": one.reason}
        for one in drafted.proposals
    ]
    questions = [{"columns": list(one.columns), "question": one.question, "safest": one.safest} for one in drafted.questions]
    return {"columns": columns, "questions": questions, "job": str(out)}


def _show(drafted: "DraftedJob", out: Path, *, accept: bool) -> None:
    """Print the drafted roles, reasons and questions."""
    from schemas.errors.base import counted
    from schemas.reading.model import share_text
    from tasks.planning.draft_text import counted_among, next_commands_sentence

    alone = Column("alone", justify="right"), Column("with others", justify="right")
    shown = NameTable(Column("column", overflow="fold"), "proposed", "because", *alone, box=None, header_style="bold")
    # Decisions first, then by role.
    for one in sorted(drafted.proposals, key=lambda one: (one.question is None, list(ROLES).index(one.role))):
        asked = "" if one.question is None else "accepted: " if accept else "for you to decide: "
        publish = f", {one.publish_setting}" if one.publish_setting else ""
        away = drafted.exposed.columns.get(one.profile.name)
        shares = tuple(share_text(one, narrow=True) for one in (away.alone, away.together)) if away else ("", "")
        shown.add_row(Text(one.profile.name), f"{asked}{ROLES[one.role]}{publish}", one.reason, *shares)
    console = Screen(highlight=False)
    console.print(shown)
    if (among := counted_among(drafted.exposed, drafted.unit, drafted.records, has_more=drafted.has_more)) != f"all {drafted.unit}s":
        console.print(Text(f"\nalone, with others: of {among}."))
    for number, question in enumerate(drafted.questions, 1):
        answer = "Accepted" if accept else "Meanwhile, and safest"
        console.print(Text(f"\n{number}. {question.question} {', '.join(question.columns)}"))
        console.print(Text(f"   {answer}: {question.safest_words}, {question.meaning}."))
    if drafted.hierarchy_files:
        console.print(
            f"\n{drafted.hierarchy_files[0].parent}: {counted(len(drafted.hierarchy_files), 'hierarchy file')}, which you alone can read."
        )
    decide = f" Decide on {counted(len(drafted.questions), 'question')}." if drafted.questions and not accept else " Read it."
    lost = f" It would lose {share_text(drafted.gcp, 0)} (GCP, on a sample, {drafted.promises})." if drafted.gcp is not None else ""
    then = drafted.obstacle or next_commands_sentence(str(out))
    console.print(f"\n{out}: drafted from {counted(drafted.records, 'record')}.{lost}{decide} {then}")
