"""``skald compare``: the command alone, without the imports of its flow, so that other commands do not pay for them."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from flows.terminal.screen import Screen
from schemas.errors.base import listed, nearest

# ruff: noqa: PLC0415 - each command imports what it needs

CHUNKS, KS = "1,5,25,125", "10,50,250,1000"


def compare_command(
    job: Annotated[Path, typer.Argument(help="The job, a YAML file.", show_default=False)],
    methods: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME,…", help="Compares methods, each with a process of its own, or 'all' of them.", show_default=False),
    ] = None,
    chunks: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help=f"Numbers of chunks; the source is cut into as many as the largest. [default: {CHUNKS}]"),
    ] = None,
    k: Annotated[
        str | None, typer.Option(metavar="K,K,…", help=f"Values of k, instead of the job's. [default: {KS}; with --methods the job's k]")
    ] = None,
    cut: Annotated[
        bool, typer.Option("--cut", help="Cuts the same data into more chunks; else more chunks are more data, as in the paper.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the figures go; <target>-comparison if left out.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replaces a setting, as in suppression.limit=0; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Prints JSON as the last thing on standard output.")] = False,
    direct: Annotated[bool, typer.Option("--direct", help="Runs the same steps in this process, without Prefect.")] = False,
) -> None:
    """Compares one node for all chunks with one for each (the paper's Fig. 3), or with --methods whole methods. Publishes nothing."""
    if methods is not None:
        if chunks is not None or cut:
            raise typer.BadParameter("--chunks and --cut are for the comparison of chunks; leave them out, or leave out --methods")
        _compare_methods(job, tuple(settings or ()), _methods(methods), () if k is None else _numbers(k, "--k"), to, as_json, direct)
        return
    counts, ks = _numbers(CHUNKS if chunks is None else chunks, "--chunks"), _numbers(KS if k is None else k, "--k")
    from flows.terminal.runs import progress_bars

    with _flow("flows.compare:compare", direct, job, settings or ()) as flow, progress_bars(Console(stderr=True)):
        compared = flow(job, tuple(settings or ()), counts, ks, cut, to)
    if as_json:
        sys.stdout.write(compared.comparison.model_dump_json(indent=2) + "\n")
    else:
        from flows.terminal.comparisons import comparison_summary

        Screen(highlight=False).print(comparison_summary(compared.comparison, str(compared.folder)))


def _compare_methods(
    job: Path, settings: tuple[str, ...], methods: tuple[str, ...], ks: tuple[int, ...], to: Path | None, as_json: bool, direct: bool
) -> None:
    from flows.terminal.runs import progress_bars

    with _flow("flows.compare_methods:compare_methods", direct, job, settings) as flow, progress_bars(Console(stderr=True)):
        compared = flow(job, settings, methods, ks, to)
    if as_json:
        sys.stdout.write(compared.comparison.model_dump_json(indent=2) + "\n")
    else:
        from flows.terminal.methods import methods_summary

        Screen(highlight=False).print(methods_summary(compared.comparison, str(compared.folder)))


def _methods(text: str) -> tuple[str, ...]:
    from schemas.job.method import METHODS

    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if asked == ("all",):
        return tuple(METHODS)
    if strange := [name for name in asked if name not in METHODS]:
        raise typer.BadParameter(
            f"--methods: there is no method '{strange[0]}'{nearest(strange[0], METHODS)}; there are {listed(METHODS, 9)}"
        )
    return asked


def _numbers(text: str, option: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 12 and int(part) for part in parts):
        raise typer.BadParameter(f"{option} takes whole numbers from 1, separated by commas, such as 1,5,25")
    return tuple(sorted({int(part) for part in parts}))


@contextmanager
def _flow(path: str, direct: bool, job: Path, settings: Sequence[str]) -> Iterator[Callable[..., Any]]:
    from pkgutil import resolve_name

    from schemas.job.run_parameters import RunParameters
    from tasks.engine.flows import SWITCH, without_prefect

    if direct or without_prefect():
        os.environ[SWITCH] = "1"
        yield resolve_name(path)
        return
    RunParameters.of(job, settings)  # refuses what Prefect must not keep
    from flows.server.local_api import api, prepare

    with api(prepare()):
        yield resolve_name(path)
