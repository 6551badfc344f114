"""``skald init``: a first job file, drafted from the source; imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

# ruff: noqa: PLC0415 - each command imports what it needs

ROLES = {
    "identifiers": "identifier: not published",
    "quasi_identifiers": "quasi-identifier: coarsened",
    "sensitive": "sensitive: published",
    "open": "for you to decide",
}


def init(
    source: Annotated[
        list[Path], typer.Argument(metavar="FOLDER|FILES", help="Parquet or CSV files, or their folder.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The job file to write; one that exists is not touched.")] = Path("job.yaml"),
) -> None:
    """Drafts a commented job file from the source's columns, to be edited. It holds names of columns and no values."""
    from schemas.errors.base import counted
    from tasks.planning.draft import draft_job

    proposals, records = draft_job(source, out)
    table = Table(Column("column", overflow="fold"), "proposed", "because", box=None, header_style="bold")
    for proposal in proposals:
        table.add_row(Text(proposal.profile.name), ROLES[proposal.role], proposal.reason)
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(table)
    undecided = sum(proposal.role == "open" for proposal in proposals)
    decide = f" Decide on {counted(undecided, 'column')} in it, then: " if undecided else " Read it, then: "
    console.print(f"\n{out}: drafted from {counted(records, 'record')}.{decide}skald plan {out}")
