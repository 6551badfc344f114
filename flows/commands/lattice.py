"""``skald lattice``: the command, which imports its modules when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.running import JobFile, Settings
from flows.terminal.screen import Screen, check_suffix

if TYPE_CHECKING:
    from schemas.job.job import Job

# ruff: noqa: PLC0415 - each command imports what it needs


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
        check_takes_file(path)
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
