"""How many threads loops may take, which decides when something is done and never what comes of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_share: ContextVar[int] = ContextVar("share", default=CORES)


def threads_here() -> int:
    """Returns how many threads a loop may take here: as many as there are cores, unless somebody said less."""
    return _share.get()


def begin_with(threads: int) -> None:
    """Lets loops in this thread, which has just begun and knows nothing of who began it, take so many threads."""
    _share.set(threads)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Lets loops below take so many threads and no more: what a job allows, shared out among the tasks that work at a time."""
    before = _share.set(threads)
    try:
        yield
    finally:
        _share.reset(before)
