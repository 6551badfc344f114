"""Choice of the task runner for chunk tasks: threads, processes, or the workers of a Dask cluster.

Two environment variables make the choice, for the command line, a deployment and a Prefect worker alike.
``SKALD_RUNNER`` is ``processes`` or ``dask``; ``SKALD_SCHEDULER`` is the address of a scheduler that exists. Without an address a cluster
on this machine is started for the run. Dask is an optional extra and imported only when it is asked for.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast, get_args

from schemas.errors.runners import RUNNER, SCHEDULER, RunnerError, RunnerName
from tasks.engine.calls import most_workers

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/:]+:\d{1,5}|(?:(?:tcp|tls|ws|wss|ucx)://)?\[[0-9a-fA-F:]+\]:\d{1,5}")
PROCESSES = 2
"""Workers that are processes of this machine, each with libraries of its own."""


def set_runner(runner: RunnerName | None, scheduler: str | None, *, direct: bool) -> None:
    """Set the task runner of flows imported later in ``os.environ``; raise ``RunnerError`` on conflict.

    A scheduler's address alone means Dask.

    Args:
        runner: ``threads``, ``processes`` or ``dask``; None keeps what the environment says.
        scheduler: Address of a Dask scheduler that exists, as in ``tcp://host:8786``.
        direct: Whether the run does without Prefect.
    """
    if scheduler:
        check_address(scheduler)
    if scheduler and runner in {"threads", "processes"}:
        raise RunnerError.contradiction("--scheduler", "leave it out, or use --runner dask")
    if runner or scheduler:
        os.environ[RUNNER] = "dask" if scheduler else str(runner)
        # Emptied where none is given, or an address of the environment would outlive the choice of this machine.
        os.environ[SCHEDULER] = scheduler or ""
    if chosen_runner() != "threads" and direct:
        if runner or scheduler:
            raise RunnerError.contradiction("--direct", "tasks of other processes are Prefect's; leave out --direct and SKALD_DIRECT")
        # An option overrules the environment; only two options contradict each other.
        del os.environ[RUNNER]


def check_address(address: str) -> None:
    """Raise ``RunnerError`` for a malformed scheduler address, which Dask would try for long."""
    if not _ADDRESS.fullmatch(address):
        raise RunnerError.not_an_address(address)


def chosen_runner() -> RunnerName:
    """Return the task runner's name by the environment, or ``threads``; raise ``RunnerError`` if unusable."""
    name = os.environ.get(RUNNER) or "threads"
    if name not in get_args(RunnerName):
        raise RunnerError.unknown(name)
    if name == "dask" and not (find_spec("prefect_dask") and find_spec("distributed")):
        raise RunnerError.not_installed()
    return cast("RunnerName", name)


def task_runner() -> TaskRunner[Any]:
    """Return Prefect's task runner of the environment's choice for a flow; raise if it is unusable.

    A run hands it as many tasks at a time as it has workers.
    """
    runner = chosen_runner()
    if runner == "dask":
        from tasks.engine.dask_runner import dask_runner  # noqa: PLC0415

        scheduler = os.environ.get(SCHEDULER) or None
        if scheduler:
            check_address(scheduler)
        return dask_runner(scheduler, PROCESSES)
    if runner == "processes":
        from tasks.engine.remote.processes import ProcessesTaskRunner  # noqa: PLC0415

        return ProcessesTaskRunner(PROCESSES)
    from prefect.task_runners import ThreadPoolTaskRunner  # noqa: PLC0415

    threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=most_workers())
    return threads
