"""``skald utility``: the command, and the tables that it prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from flows.commands.running import AsJson, Settings
from flows.terminal.screen import NameTable, Screen, print_json
from schemas.errors.base import printable

if TYPE_CHECKING:
    from tasks.utility.utility import Utility

# ruff: noqa: PLC0415 - each command imports what it needs


def utility(
    release: Annotated[Path, typer.Argument(help="A release folder.", show_default=False)],
    job: Annotated[Path, typer.Option("--job", help="The job that it was made by.", show_default=False)],
    queries: Annotated[int, typer.Option(min=1, help="Random count queries that source and release are asked.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed asks the same queries.")] = 0,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column, or TABLE.COLUMN, that a classifier tells from the QIDs.", show_default=False),
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Measure the utility of a release against its source, without publishing anything.

    The figures are of groups, marginals, counts and a classifier.
    """
    from flows.terminal.runs import progress_bars
    from schemas.job.job import load_job
    from schemas.relational.tables_job import load_tables_job
    from tasks.release.manifest import is_of_tables_as_its_job
    from tasks.utility.utility import measure_utility, measure_utility_of_tables

    if is_of_tables_as_its_job(release, job, settings or ()):
        with progress_bars():
            of_tables = measure_utility_of_tables(load_tables_job(job, settings or ()), release, queries, seed, target)
        if as_json:
            print_json({"tables": {name: one.model_dump(mode="json") for name, one in of_tables.items()}})
        for name, one in of_tables.items() if not as_json else ():
            Screen(highlight=False).print(Group("", Text(f"'{printable(name)}'", style="bold"), utility_summary(one)))
        return
    with progress_bars():
        measured = measure_utility(load_job(job, settings or ()), release, queries, seed, target)
    if as_json:
        print_json(measured.model_dump(mode="json"))
    else:
        Screen(highlight=False).print(utility_summary(measured))


def utility_summary(utility: Utility) -> RenderableType:
    """Return two terminal tables with the utility figures of a release."""
    columns = NameTable("quasi-identifier", "generalised (NCP)", "marginal (TV)", "associations (ΔV)", box=None, header_style="bold")
    for qid, figures in utility.columns.items():
        columns.add_row(qid, f"{figures.generalised:.4f}", f"{figures.marginal:.4f}", f"{figures.association:.4f}")
    facts = NameTable(box=None, show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    suppressed = "" if utility.suppressed is None else f", {utility.suppressed:,} suppressed"
    facts.add_row("records", f"{utility.released:,} of {utility.records:,} in the files{suppressed}")
    facts.add_row("GCP", f"{utility.gcp:.4f} of all records, 1 for one that is not in the files")
    asked = utility.queries
    facts.add_row(
        "count queries",
        f"relative error: median {asked.median:.4f}, mean {asked.mean:.4f} of {asked.queries:,} queries"
        f" (range and category, seed {asked.seed})",
    )
    for width, counts in utility.counts.items():
        facts.add_row(
            f"counts over {width}", f"relative error: median {counts.median:.4f}, mean {counts.mean:.4f} of {counts.queries:,} queries"
        )
    facts.add_row("associations", f"Cramér's V of two columns moved by {utility.association:.4f} in the mean")
    for name, one in utility.published.items():
        error = "" if one.error is None else f", mean absolute error {one.error:g}"
        facts.add_row(f"'{name}'", f"{one.changed:.1%} of its values stand for others too{error}; {one.nulls_text}")
    if told := utility.classifier:
        facts.add_row(
            f"'{told.target}' told",
            f"rightly for {told.release:.2%} of raw records by who learnt from the release, {told.source:.2%} from the source, "
            f"{told.majority:.2%} from nothing",
        )
        each = ", ".join(f"{name} {release:.2%} ({source:.2%})" for name, (source, release) in told.learners.items())
        facts.add_row(
            "", each + ("; of records that nobody learnt from" if told.held_out else "; the release may hold the records asked about")
        )
    return Group(columns, "", facts)
