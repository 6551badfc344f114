"""``skald utility``: the command alone."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

# ruff: noqa: PLC0415 - each command imports what it needs


def utility(
    release: Annotated[Path, typer.Argument(help="A release folder.", show_default=False)],
    job: Annotated[Path, typer.Option("--job", help="The job that it was made by.", show_default=False)],
    queries: Annotated[int, typer.Option(min=1, help="Random count queries that source and release are asked.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed asks the same queries.")] = 0,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A column that a classifier tells from the QIDs.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replaces a setting, as in privacy.k=10; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Prints JSON as the last thing on standard output.")] = False,
) -> None:
    """Measures what a release is worth: groups, marginals, counts and a classifier, against the source. Publishes nothing."""
    from flows.terminal.runs import progress_bars
    from flows.terminal.utility import utility_summary
    from schemas.job.job import load_job
    from tasks.utility.utility import measure

    with progress_bars(Console(stderr=True)):
        measured = measure(load_job(job, settings or ()), release, queries, seed, target)
    if as_json:
        sys.stdout.write(measured.model_dump_json(indent=2) + "\n")
    else:
        Console(soft_wrap=True, highlight=False).print(utility_summary(measured))
