"""Loading of a job's flow for a command, in this process or through Prefect."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flows.loading import restore_collector

# ruff: noqa: PLC0415 - a command imports what it needs


@contextmanager
def flow_of(load: Callable[[], Any], *, direct: bool) -> Iterator[Callable[..., Any]]:
    """Start Prefect's API, or switch Prefect off; load a flow and yield the function that runs a job file.

    Args:
        load: Returns the flow; whoever imports it decides whether it is one of Prefect's.
        direct: Whether it runs without Prefect.
    """
    if direct:
        from tasks.engine.flows import SWITCH

        os.environ[SWITCH] = "1"
        flow = load()
        restore_collector()
        yield flow
        return
    from flows.server.local_api import prefect_api, prepare_prefect
    from schemas.job.run_parameters import RunParameters

    with prefect_api(prepare_prefect()):
        flow = load()
        restore_collector()
        yield lambda job, settings: flow(RunParameters.of(job, settings))
