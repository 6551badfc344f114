"""Parameters that several commands have, and loading of a job's flow, here or through Prefect."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.loading import restore_collector

# ruff: noqa: PLC0415 - a command imports what it needs

JobFile = Annotated[Path, typer.Argument(help="The job, a YAML file.", show_default=False)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a setting, as in privacy.k=10; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON as the last thing on standard output.")]


@contextmanager
def flow_by(load: Callable[[], Any], *, direct: bool) -> Iterator[Any]:
    """Start Prefect's API, or switch Prefect off; load and yield a flow.

    Args:
        load: Returns the flow; whoever imports it decides whether it is one of Prefect's.
        direct: Whether it runs without Prefect.
    """
    with ExitStack() as opened:
        if direct:
            from tasks.engine.flows import SWITCH

            os.environ[SWITCH] = "1"
        else:
            from flows.server.local_api import prefect_api, prepare_prefect

            opened.enter_context(prefect_api(prepare_prefect()))
        flow = load()
        restore_collector()
        yield flow


@contextmanager
def job_flow_by(load: Callable[[], Any], *, direct: bool) -> Iterator[Callable[..., Any]]:
    """Load a flow as ``flow_by`` does, and yield the function that runs a job file with settings."""
    with flow_by(load, direct=direct) as flow:
        if direct:
            yield flow
            return
        from schemas.job.run_parameters import RunParameters

        yield lambda job, settings: flow(RunParameters.of(job, settings))
