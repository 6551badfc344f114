"""Choice of the task runner for chunk tasks: threads, processes, or workers of a Dask cluster.

Two environment variables make the choice, for the command line, a deployment and a Prefect worker alike.
``SKALD_RUNNER`` is ``processes`` or ``dask``; ``SKALD_SCHEDULER`` is the address of a scheduler that exists. Without an address a cluster
on this machine is started for the run. Dask is an optional extra and imported only when it is asked for.

An engine takes an order somewhere and brings an answer back. Orders are picklable and hold no cell value; a worker fulfils them and raises
nothing. All that an engine adds is how it starts its workers, and what it says when one of them dies.
"""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, get_args

from prefect.task_runners import ThreadPoolTaskRunner

from schemas.errors.runners import RUNNER, SCHEDULER, RunnerError, RunnerName
from tasks.engine.calls import MOST_TASKS, most_workers
from tasks.engine.remote.call_queues import CallQueue, queue_of, remove_local_copies
from tasks.engine.remote.calls import Order, RemoteCalls, fulfil
from tasks.store.files import restrict_new_files
from tasks.store.work import BucketWork
from tasks.store.work_folder import FolderWork

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner


class ProcessesTaskRunner(ThreadPoolTaskRunner[Any]):
    """Task runner that keeps Prefect's tasks on threads and sends chunk functions to processes."""

    def __init__(self, workers: int) -> None:
        super().__init__(max_workers=MOST_TASKS)
        self.workers = workers

    def duplicate(self) -> ProcessesTaskRunner:
        """Return a runner with as many processes."""
        return type(self)(self.workers)

    def __enter__(self) -> Self:
        # Spawned and not forked: a copy of a process with threads may hold their locks for ever.
        self.pool = ProcessPoolExecutor(self.workers, get_context("spawn"), initializer=_begin)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.pool.shutdown(cancel_futures=True)

    def calls(self, phase: str, work: FolderWork | BucketWork, spill: Path) -> ProcessCalls:
        """Return the caller of one phase's functions in processes; the runner must have been entered."""
        return ProcessCalls(self.pool, phase, queue_of(work, spill, phase))


class ProcessCalls(RemoteCalls):
    """Caller of one phase's functions in processes of this machine, while threads wait."""

    def __init__(self, pool: ProcessPoolExecutor, phase: str, queue: CallQueue) -> None:
        super().__init__(queue)
        self._pool, self._phase = pool, phase

    def send_and_wait(self, order: Order) -> Any:
        """Send an order to a process, wait, return its answer; raise ``RunnerError`` if the process died."""
        try:
            return self._pool.submit(fulfil, order).result()
        except BrokenProcessPool:
            raise RunnerError.process_died(self._phase) from None


def _begin() -> None:
    restrict_new_files()
    # The pool's own pipes stay open in its other processes: without this they would outlive a run that was killed.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
        remove_local_copies()
        os._exit(1)


_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^\s/:]+:\d{1,5}|(?:(?:tcp|tls|ws|wss|ucx)://)?\[[0-9a-fA-F:]+\]:\d{1,5}")
PROCESSES = 2
"""Workers that are processes of this machine, each with libraries of its own."""


def set_runner(runner: RunnerName | None, scheduler: str | None, *, direct: bool = False) -> None:
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
            raise RunnerError.contradiction("--direct", "tasks of other processes are Prefect's; leave out --direct")
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
        from tasks.engine.runners import ProcessesTaskRunner  # noqa: PLC0415

        return ProcessesTaskRunner(PROCESSES)
    from prefect.task_runners import ThreadPoolTaskRunner  # noqa: PLC0415

    threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=most_workers())
    return threads
