"""Flows with or without Prefect: one environment variable decides for all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schemas.errors.base import JobError, SkaldError
from schemas.job.job import Job, load_job
from schemas.reading.regular_files import GivenJob
from tasks.engine.guard import guarded, sanitised_error
from tasks.engine.lineage import RunEvents
from tasks.engine.runners import task_runner

if TYPE_CHECKING:
    from schemas.relational.tables_job import TablesJob

JobOfAny = TypeVar("JobOfAny", Job, "TablesJob")
SWITCH = "SKALD_DIRECT"
_CHECKED: dict[str, Callable[..., Any]] = {}
"""The functions of job flows by the names of their methods."""
_NAMING = ("__module__", "__name__", "__qualname__", "__doc__")
"""What a flow takes from the function within; its parameters are its own, so it forgets what it wraps."""


def without_prefect() -> bool:
    """Return whether the environment asks to run steps without Prefect."""
    return os.environ.get(SWITCH, "") not in {"", "0"}


def as_flow(function: Callable[..., Any]) -> Any:
    """Return a function as a Prefect flow, or as a plain one without Prefect; errors are sanitised.

    Importing Prefect costs a second.
    """
    if without_prefect():
        return guarded(function)
    from prefect import flow  # noqa: PLC0415

    # Prefect's default for a result that is kept is a pickle that all users of the machine can read.
    return flow(name=function.__name__, task_runner=task_runner(), persist_result=False, retries=0)(guarded(function))


def as_job_flow(function: Callable[[Job], Any]) -> Any:
    """Return a job function as a flow of job file and settings that refuses other methods' jobs.

    The flow takes ``job_file``, a YAML file or what a program gives in its place, and ``settings``, overrides such as ``privacy.k=10``.
    With Prefect it is a Prefect flow, whose parameters are one model, checked before a run begins; else a plain function.
    """
    checked = _CHECKED[function.__name__] = with_job_loaded(function)
    return guarded(checked) if without_prefect() else prefect_flow(function.__name__)


def as_tables_flow(function: Callable[[TablesJob], Any]) -> Any:
    """Return a function that runs jobs of several tables as a flow of job file and settings."""

    @wraps(function, assigned=_NAMING)
    def run(job_file: Path | GivenJob, settings: tuple[str, ...] = ()) -> Any:
        from schemas.relational.tables_job import load_tables_job  # noqa: PLC0415 - what jobs of one table do without

        job = load_tables_job(job_file, settings)
        return _run_with_events(job, function, lambda done: done.columns)

    vars(run).pop("__wrapped__")
    if without_prefect():
        return guarded(run)
    from tasks.engine.prefect_pages import job_flow  # noqa: PLC0415

    return job_flow(run)


def plain_flow(method: str) -> Callable[..., Any]:
    """Return a method's flow as a plain function of job file and settings, with sanitised errors."""
    return guarded(_CHECKED[method])


def prefect_flow(method: str) -> Any:
    """Build the Prefect flow that runs jobs of a method from a job file and settings."""
    from tasks.engine.prefect_pages import job_flow  # noqa: PLC0415

    return job_flow(_CHECKED[method])


def with_job_loaded(function: Callable[[Job], Any]) -> Callable[..., Any]:
    """Wrap a function to load its job, refuse another method's, wait for the lock and send lineage events.

    A deployment's run that waits for the folder keeps the job that it has read.
    """

    @wraps(function, assigned=_NAMING)
    def run(job_file: Path | GivenJob, settings: tuple[str, ...] = ()) -> Any:
        job = load_job(job_file, settings)
        asked = job.method.name
        # A job file may have changed since its deployment was made, and a program may have taken the wrong flow.
        if asked != function.__name__:
            fault = f"method.name is '{asked}', and this is the flow of '{function.__name__}'; start that of the method"
            raise JobError(str(job_file), [fault])
        return _run_with_events(job, function, lambda _: {})

    vars(run).pop("__wrapped__")
    return run


def _run_with_events(job: JobOfAny, function: Callable[[JobOfAny], Any], columns: Callable[[Any], Mapping[str, Sequence[str]]]) -> Any:
    """Run a job and send OpenLineage events if the environment asks for them.

    Args:
        job: The job, of one table or of several.
        function: Runs it and returns what was published.
        columns: Returns the published columns of each of several tables from that; empty for one.
    """
    events = RunEvents(job)
    events.send_start()
    try:
        done = _run_when_unlocked(lambda: function(job))
    except BaseException as error:
        # A panic in Polars is no Exception; what interrupts or cancels is none either.
        fault = isinstance(error, Exception) or type(error).__module__ == "pyo3_runtime"
        events.send_end((error if isinstance(error, SkaldError) else sanitised_error(error)) if fault else None)
        raise
    events.send_complete(done.manifest, columns(done), new=done.new)
    return done


def _run_when_unlocked(call: Callable[[], Any]) -> Any:
    """Run a function; within a deployment's run, wait until no other run locks the job's folder."""
    if not in_flow_run():
        return call()
    from tasks.engine.prefect_pages import run_when_unlocked  # noqa: PLC0415

    return run_when_unlocked(call)


def in_flow_run() -> bool:
    """Return whether this thread is in a Prefect flow run, without importing Prefect."""
    prefect = sys.modules.get("prefect.context")
    return prefect is not None and prefect.FlowRunContext.get() is not None
