"""``skald compare``: the command alone, without the imports of its flow, so that other commands do not pay for them."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

# ruff: noqa: PLC0415 - each command imports what it needs


def compare(
    job: Annotated[Path, typer.Argument(help="The job, a YAML file.", show_default=False)],
    chunks: Annotated[str, typer.Option(metavar="N,N,…", help="Numbers of chunks; the source is cut into as many as the largest.")] = (
        "1,5,25,125"
    ),
    k: Annotated[str, typer.Option(metavar="K,K,…", help="Values of k, instead of the job's.")] = "10,50,250,1000",
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
    """Compares one node for all chunks with a node for each chunk alone: the paper's Table III and Fig. 3. Publishes nothing."""
    counts, ks = _numbers(chunks, "--chunks"), _numbers(k, "--k")
    from flows.summary import progress_bars

    with _flow(direct, job, settings or ()) as flow, progress_bars(Console(stderr=True)):
        compared = flow(job, tuple(settings or ()), counts, ks, cut, to)
    if as_json:
        sys.stdout.write(compared.comparison.model_dump_json(indent=2) + "\n")
    else:
        from flows.comparison_summary import comparison_summary

        Console(soft_wrap=True, highlight=False).print(comparison_summary(compared.comparison, str(compared.folder), compared.pictures))


def _numbers(text: str, option: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 12 and int(part) for part in parts):
        raise typer.BadParameter(f"{option} takes whole numbers from 1, separated by commas, such as 1,5,25")
    return tuple(sorted({int(part) for part in parts}))


@contextmanager
def _flow(direct: bool, job: Path, settings: Sequence[str]) -> Iterator[Callable[..., Any]]:
    from schemas.run_parameters import RunParameters
    from tasks.steps import SWITCH, without_prefect

    if direct or without_prefect():
        os.environ[SWITCH] = "1"
        from flows.compare import compare as flow

        yield flow
        return
    RunParameters.of(job, settings)  # refuses what Prefect must not keep
    from flows.quiet_prefect import api, prepare

    with api(prepare()):
        from flows.compare import compare as flow

        yield flow
