"""Chunk tasks in processes of this machine, by the standard library alone.

An engine takes an order somewhere and brings an answer back. Orders are picklable and hold no cell value; a worker fulfils them and raises
nothing. All that an engine adds is how it starts its workers, and what it says when one of them dies.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Self

from prefect.task_runners import ThreadPoolTaskRunner

from schemas.errors.runners import RunnerError
from tasks.engine.calls import MOST_TASKS
from tasks.engine.remote.call_queues import CallQueue, queue_of, remove_local_copies
from tasks.engine.remote.calls import Order, RemoteCalls, fulfil
from tasks.store.files import restrict_new_files
from tasks.store.work import HeldWork


class ProcessesTaskRunner(ThreadPoolTaskRunner[Any]):
    """Task runner that keeps Prefect's tasks on threads and sends chunk functions to processes.

    Args:
        workers: How many.
    """

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

    def calls(self, phase: str, work: HeldWork, spill: Path) -> ProcessCalls:
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
