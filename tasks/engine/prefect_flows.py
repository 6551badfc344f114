"""A job's flow as Prefect has it: its parameters are one model. Imported only where Prefect is wanted, since that takes a second."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc
from pathlib import Path
from typing import Any

from prefect import Flow

from schemas.job.job import load_job
from schemas.job.run_parameters import RunParameters
from tasks.engine.guard import guarded
from tasks.engine.prefect_pages import followed
from tasks.engine.runners import task_runner


def job_flow(function: Callable[..., Any]) -> Flow[[RunParameters], Any]:
    """Returns the flow of a function of job file and settings, under the function's name, which is the method's.

    Raises:
        JobError: the job file is wrong; carries every fault of the file, not only the first.
        RunnerError: Dask is asked for and not installed, or the scheduler's address is none.
    """

    def run(job: RunParameters) -> Any:
        path = Path(job.job_file)
        asked = load_job(path, job.overrides)
        with followed(asked.name):
            return function(path, job.overrides)

    def work(job: RunParameters) -> Any:
        return guarded(run)(job)

    # By these Prefect names the flow and describes it.
    work.__name__ = work.__qualname__ = function.__name__
    work.__module__, work.__doc__ = function.__module__, (getdoc(function) or "").split("\n", maxsplit=1)[0]
    # As types and not as words: Prefect would look words up in the other module.
    work.__annotations__ = {"job": RunParameters, "return": Any}
    return Flow(work, name=function.__name__, task_runner=task_runner(), persist_result=False)
