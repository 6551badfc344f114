"""``skald compare``, ``utility`` and ``lattice``: what methods, releases and levels cost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from flows.commands.running import AsJson, JobFile, Settings, flow_by
from flows.terminal.screen import NameTable, Screen, check_suffix, print_json
from schemas.errors.base import listed, nearest, printable

# ruff: noqa: PLC0415 - each command imports what it needs


def compare_command(
    job: JobFile,
    methods: Annotated[str, typer.Option(metavar="NAME,NAME,…", help="The methods, each with a process of its own.")] = "all",
    k: Annotated[str | None, typer.Option(metavar="K,K,…", help="Values of k, instead of the job's.", show_default=False)] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the figures go; <target>-comparison if left out.", show_default=False)
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
    direct: Annotated[bool, typer.Option("--direct", help="Run the same steps in this process, without Prefect.")] = False,
) -> None:
    """Compare methods on the job's own data by loss, risk and cost.

    Publishes nothing. Exits with 3 if the promise refused every method, and with 2 if none could run for another reason.
    """
    from schemas.job.method import METHODS
    from schemas.reading.job_files import is_of_tables
    from schemas.relational.tables_job import TABLES_METHODS

    ks, given = () if k is None else _numbers(k, "--k"), tuple(settings or ())
    asked = _methods(methods, TABLES_METHODS if is_of_tables(job, given) else tuple(METHODS))
    from pkgutil import resolve_name

    from flows.terminal.runs import progress_bars
    from schemas.job.run_parameters import RunParameters
    from tasks.engine.flows import without_prefect

    direct = direct or without_prefect()
    if not direct:
        RunParameters.of(job, given)  # refuses what Prefect must not keep
    load = partial(resolve_name, "flows.compare:compare_methods")
    with flow_by(load, direct=direct) as flow, progress_bars():
        compared = flow(job, given, asked, ks, to)
    if as_json:
        sys.stdout.write(compared.comparison.model_dump_json(indent=2) + "\n")
    else:
        from flows.terminal.methods import methods_summary

        Screen(highlight=False).print(methods_summary(compared.comparison, str(compared.folder)))
    if code := compared.comparison.exit_code:
        raise typer.Exit(code)


def _methods(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the method names in a list with commas, each of the known ones; all of these for ``all``."""
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if asked == ("all",):
        return tuple(known)
    if unexpected := [name for name in asked if name not in known]:
        raise typer.BadParameter(
            f"--methods: there is no method '{unexpected[0]}'{nearest(unexpected[0], known)} here; there are {listed(known, 9)}"
        )
    return asked


def _numbers(text: str, option: str) -> tuple[int, ...]:
    """Return the numbers in a list with commas, in ascending order."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 12 and int(part) for part in parts):
        raise typer.BadParameter(f"{option} takes whole numbers from 1, separated by commas, such as 1,5,25")
    return tuple(sorted({int(part) for part in parts}))


if TYPE_CHECKING:
    from tasks.utility.utility import Utility


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
    from schemas.reading.model import share_text

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
        facts.add_row(f"'{name}'", f"{share_text(one.changed)} of its values stand for others too{error}; {one.nulls_text}")
    if told := utility.classifier:
        facts.add_row(
            f"'{told.target}' told",
            f"rightly for {share_text(told.release, 2)} of raw records by who learnt from the release, "
            f"{share_text(told.source, 2)} from the source, {share_text(told.majority, 2)} from nothing",
        )
        each = ", ".join(f"{name} {share_text(release, 2)} ({share_text(source, 2)})" for name, (source, release) in told.learners.items())
        facts.add_row(
            "", each + ("; of records that nobody learnt from" if told.held_out else "; the release may hold the records asked about")
        )
    return Group(columns, "", facts)


if TYPE_CHECKING:
    from schemas.job.job import Job


def lattice(
    job: JobFile,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the picture goes; <job's name>-lattice.svg, or -front.html, if left out.", show_default=False
        ),
    ] = None,
    front: Annotated[
        bool, typer.Option("--front", help="Write a page of nodes to choose from, loss against suppression against risk; searches them.")
    ] = False,
    settings: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead, and write a picture only with --to.")] = False,
) -> None:
    """Draw the lattice of a job, without publishing a release.

    The picture shows which nodes pass, fail or were cut by the bound, and the chosen one.
    """
    from core.lattice.picture import lattice_picture
    from flows.terminal.runs import progress_bars
    from schemas.job.job import load_job
    from tasks.lattice.recodings import map_json
    from tasks.planning.pareto_page import lattice_of
    from tasks.store.files import check_takes_file
    from tasks.utility.methods import write_figure

    check_suffix(to, ".html" if front else ".svg")
    loaded = load_job(job, settings or ())
    path = to or Path(f"{loaded.name}-front.html" if front else f"{loaded.name}-lattice.svg")
    if writes := to is not None or not as_json:
        check_takes_file(path, loaded.target_path)
    if front:
        return _write_front(loaded, path if writes else None, as_json=as_json)
    with progress_bars():
        drawn = lattice_of(loaded)
    if writes:
        write_figure(path, lambda part: part.write_text(lattice_picture(drawn).alone(), encoding="utf-8"))
    if as_json:
        sys.stdout.write(map_json(drawn).decode() + "\n")
    else:
        Screen(highlight=False).print(f"The lattice of {loaded.name}: {path}")


def _write_front(job: Job, path: Path | None, *, as_json: bool) -> None:
    """Write the page of the Pareto front if there is a path; print its path or the front as JSON."""
    from flows.terminal.runs import progress_bars
    from tasks.planning.pareto_page import measure_pareto_front, render_pareto_page
    from tasks.utility.methods import write_figure

    with progress_bars():
        found = measure_pareto_front(job)
    if path:
        write_figure(path, lambda part: part.write_text(render_pareto_page(found), encoding="utf-8"))
    if as_json:
        sys.stdout.write(found.model_dump_json(indent=2) + "\n")
    else:
        Screen(highlight=False).print(f"{len(found.nodes)} nodes to choose from: {path}")
