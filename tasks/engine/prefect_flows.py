"""Job flows of Prefect, whose parameters are one model; imported only where Prefect is used.

The import takes a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from inspect import getdoc
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.context import FlowRunContext

from schemas.errors.folders import BusyError
from schemas.job.job import Job, load_job
from schemas.job.run_parameters import RunParameters
from schemas.reading.job_files import is_of_tables
from schemas.relational.tables_job import TablesJob, load_tables_job
from tasks.engine.guard import guarded
from tasks.engine.prefect_pages import log_line, show_progress
from tasks.engine.runners import task_runner

TURN_SECONDS = 10.0
"""How often a run that waits for its turn looks whether the other one is over."""


def job_flow(function: Callable[..., Any]) -> Flow[[RunParameters], Any]:
    """Return a Prefect flow, named as a function, that runs it with log and progress artifact."""

    def run(job: RunParameters) -> Any:
        path = Path(job.job_file)
        asked = _asked(path, job.overrides)
        log_line(
            f"Job '{asked.name}': method {asked.method.name}, k = {asked.privacy.k:,}, at most {asked.suppression.limit:.2%} suppressed."
        )
        with show_progress(asked.name):
            return function(path, job.overrides)

    def work(job: RunParameters) -> Any:
        return guarded(run)(job)

    # By these Prefect names the flow and describes it.
    work.__name__ = work.__qualname__ = function.__name__
    work.__module__, work.__doc__ = function.__module__, (getdoc(function) or "").split("\n", maxsplit=1)[0]
    # As types and not as words: Prefect would look words up in the other module.
    work.__annotations__ = {"job": RunParameters, "return": Any}
    runner = task_runner()
    return Flow(work, name=function.__name__, flow_run_name=run_name, task_runner=runner, persist_result=False)


def _asked(path: Path, overrides: Sequence[str]) -> Job | TablesJob:
    """Load the job of a file, which has one table or several."""
    return load_tables_job(path, overrides) if is_of_tables(path, overrides) else load_job(path, overrides)


def run_name() -> str:
    """Return this flow run's name: job name and start time, as ``medical 2026-01-31 02:00 UTC``."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return "run"
    job = RunParameters.model_validate((context.parameters or {})["job"])
    try:
        name = _asked(Path(job.job_file), job.overrides).name
    except Exception:
        # What is wrong with the job is told by the run, and not by what it is called.
        name = Path(job.job_file).stem
    begins = context.flow_run.expected_start_time
    return f"{name} {begins:%Y-%m-%d %H:%M} UTC" if begins else name


def run_when_unlocked(call: Callable[[], Any]) -> Any:
    """Call a function and return its result; a deployment's run retries while the job's folder is locked.

    Any other run ends with the error that the folder is locked.
    """
    context, waits = FlowRunContext.get(), False
    while True:
        try:
            return call()
        except BusyError as error:
            if not (context and context.flow_run and context.flow_run.deployment_id):
                raise
            if not waits:
                log_line(f"{error} This run waits.")
            waits = True
        time.sleep(TURN_SECONDS)
