"""Calls of steps: their arguments, and the number of calls and threads at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel

from schemas.errors.runners import WithdrawnError
from schemas.job.job import Job
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact

PER_CORE = 4
"""Tasks that a core may have at a time; more only wait for one another."""
CHUNK_SHARE = 8
"""Which part of the memory the records of a chunk may take, as far as row groups are small enough."""
TASK_OVERHEAD_BYTES = 16_000_000
"""Bytes that a task takes besides its records: buffers of readers and writers."""


def most_workers() -> int:
    """Return the largest number of tasks at a time on this machine: four per available core."""
    return PER_CORE * len(os.sched_getaffinity(0))


def workers_of(job: Job, each: int) -> int:
    """Return how many tasks may run at a time, by threads, cores and memory; at least one.

    Args:
        job: Gives ``threads`` and ``memory``.
        each: Bytes of records that a task holds.
    """
    return max(min(threads_of(job), job.memory // (each + TASK_OVERHEAD_BYTES)), 1)


def threads_of(job: Job) -> int:
    """Return how many threads a job may use: its ``threads``, or the number of cores."""
    return min(job.threads or len(os.sched_getaffinity(0)), most_workers())


def thread_share(job: Job, at_a_time: int) -> int:
    """Return how many of the job's threads each of ``at_a_time`` calls may use; at least one.

    Args:
        job: Gives ``threads``; as many as there are cores if it does not.
        at_a_time: How many calls of steps are made at a time.
    """
    return max(threads_of(job) // max(at_a_time, 1), 1)


FEWEST_TASKS, TASKS_PER_WORKER = 32, 4
"""Into how many tasks a phase is cut: enough for a worker that comes later, or is slower than others, and no fewer than this."""
# A Prefect server is busy long after a map of a thousand tasks has ended.
MOST_TASKS = 1024


@dataclass(frozen=True)
class Call:
    """One call of a step: key, label, arguments, and whether another process may make the call.

    Attributes:
        key: Under which the store has its result; of several artefacts, of all their keys.
        label: Names it in Prefect's UI; no cell value, nothing secret.
        arguments: What the function gets.
        may_leave_process: Whether a worker in another process may do it: the tasks of chunks. Merges and searches take all of the
            job's memory and stay with the flow, unless they read what is of records.
        reads_all_chunks: Whether it is of all chunks for all that, and may take as long.
    """

    key: Key
    label: str
    arguments: tuple[Any, ...]
    may_leave_process: bool = False
    reads_all_chunks: bool = False

    @classmethod
    def once(cls, step: StepCode, label: str, arguments: tuple[Any, ...]) -> Self:
        """Return a call that a worker may make, with a key that no later run finds again."""
        return cls(step.once(), label, arguments, may_leave_process=True)


def tasks_for(workers: int) -> int:
    """Return into how many tasks a phase is divided at most: four per worker, 32 to 1,024.

    ``workers`` is 0 where this process makes the tasks; the number is then ``FEWEST_TASKS``.
    """
    return min(max(FEWEST_TASKS, TASKS_PER_WORKER * workers), MOST_TASKS)


def groups(items: Sequence[Any], most_groups: int = FEWEST_TASKS) -> list[Sequence[Any]]:
    """Return a sequence cut into at most ``most_groups`` consecutive parts of nearly equal length."""
    count = min(len(items), most_groups)
    return [items[len(items) * number // count : len(items) * (number + 1) // count] for number in range(count)]


def artifacts_of(result: Any) -> list[Artifact]:
    """Return all artefacts in a step's result, also those nested in models and sequences."""
    if isinstance(result, Artifact):
        return [result]
    if isinstance(result, BaseModel):
        return [artifact for _, value in result for artifact in artifacts_of(value)]
    # A text is a sequence of texts, each of them again one of itself.
    if isinstance(result, Sequence) and not isinstance(result, str):
        return [artifact for value in result for artifact in artifacts_of(value)]
    return []


_withdrawn: ContextVar[threading.Event | None] = ContextVar("withdrawn", default=None)


@contextmanager
def withdrawn_by(event: threading.Event) -> Iterator[None]:
    """Within the block, let ``raise_if_withdrawn`` raise in this thread once the event is set."""
    before = _withdrawn.set(event)
    try:
        yield
    finally:
        _withdrawn.reset(before)


def raise_if_withdrawn() -> None:
    """Raise ``WithdrawnError`` if the work of this thread was cancelled."""
    event = _withdrawn.get()
    if event is not None and event.is_set():
        raise WithdrawnError
