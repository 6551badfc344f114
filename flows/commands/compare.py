"""``skald compare``: the command, which imports its flow only when it runs."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.running import AsJson, JobFile, Settings, flow_by
from flows.terminal.screen import Screen
from schemas.errors.base import listed, nearest

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
    asked, ks, given = _methods(methods), () if k is None else _numbers(k, "--k"), tuple(settings or ())
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


def _methods(text: str) -> tuple[str, ...]:
    """Return the method names in a list with commas, or all methods for ``all``."""
    from schemas.job.method import METHODS

    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if asked == ("all",):
        return tuple(METHODS)
    if unexpected := [name for name in asked if name not in METHODS]:
        raise typer.BadParameter(
            f"--methods: there is no method '{unexpected[0]}'{nearest(unexpected[0], METHODS)}; there are {listed(METHODS, 9)}"
        )
    return asked


def _numbers(text: str, option: str) -> tuple[int, ...]:
    """Return the numbers in a list with commas, in ascending order."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 12 and int(part) for part in parts):
        raise typer.BadParameter(f"{option} takes whole numbers from 1, separated by commas, such as 1,5,25")
    return tuple(sorted({int(part) for part in parts}))
