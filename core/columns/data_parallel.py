"""Data-parallel loops over rows on several cores; the results do not depend on the number of cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from contextvars import ContextVar
from itertools import islice
from threading import Lock
from typing import TypeVar

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_share: ContextVar[int] = ContextVar("share", default=CORES)


def threads_here() -> int:
    """Return the number of threads that a loop may use here: the number of cores, unless limited."""
    return _share.get()


def set_thread_budget(threads: int) -> None:
    """Set the thread budget of loops in this newly started thread."""
    _share.set(threads)


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Limit the threads of loops within this context: a task's share of what the job allows."""
    before = _share.set(threads)
    try:
        yield
    finally:
        _share.reset(before)


Result = TypeVar("Result")
Item = TypeVar("Item")
Taker = TypeVar("Taker")
LEAST_ROWS = 1 << 16
"""Rows of a part for which a thread is worth its start."""
AT_A_TIME = 4
"""Columns that are worked on at a time where each takes memory for every record."""


def parts_in_parallel(
    work: Callable[[slice], Result], row_count: int, most_parts: int | None = None, least: int = LEAST_ROWS
) -> list[Result]:
    """Run a function on slices of the rows, in parallel threads; return its results in order.

    Args:
        work: Called with the rows of a part, in a thread of its own; what it calls lets others go on, as compiled loops do.
        row_count: Number of rows.
        most_parts: Parts at most, for work that takes memory of its own.
        least: Rows of a part for which a thread is worth its start.
    """
    parts = max(min(threads_here(), row_count // least, row_count if most_parts is None else most_parts), 1)
    slices = [slice(row_count * number // parts, row_count * (number + 1) // parts) for number in range(parts)]
    if parts == 1:
        return [work(slices[0])]
    with ThreadPoolExecutor(parts, initializer=set_thread_budget, initargs=(max(threads_here() // parts, 1),)) as pool:
        return list(pool.map(work, slices))


def each_in_parallel(work: Callable[[Item], Result], items: Sequence[Item], most_threads: int | None = None) -> list[Result]:
    """Run a function on each item, several at a time in threads; return the results in order.

    Each call has a thread to itself, and a free thread takes the next item: items need not be of a size.

    Args:
        work: Called with an item, in a thread of its own; what it calls lets others go on, as compiled loops do.
        items: Of any size.
        most_threads: Threads at most, for work that takes memory of its own.
    """
    threads = min(threads_here(), len(items), most_threads or len(items))
    if threads <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads, initializer=set_thread_budget, initargs=(max(threads_here() // threads, 1),)) as pool:
        return list(pool.map(work, items))


def feed_in_parallel(give: Callable[[Taker, Item], None], coming: Iterable[Item], takers: Sequence[Taker]) -> None:
    """Call ``give`` with each taker and each item, in any order, for several takers at a time.

    No more than two items are held at a time. No taker gets two items at once. A free thread goes on with the next item; in what order a
    taker gets them is left open.

    Args:
        give: Called with a taker and an item, in some thread; what it calls lets others go on.
        coming: The items, each of which is looked for while those before are given. What has a thread of its own, as `prefetch` does, is
            closed at the end, whatever that is: an exception would keep it, until a collection of garbage waits for its thread anywhere.
    """
    items = iter(coming)
    with closing(items) if isinstance(items, Generator) else nullcontext():
        _results_in_parallel(give, items, takers)


def _results_in_parallel(give: Callable[[Taker, Item], None], coming: Iterator[Item], takers: Sequence[Taker]) -> None:
    threads = min(threads_here(), len(takers))
    if threads <= 1:
        for item in coming:
            for taker in takers:
                give(taker, item)
        return
    turns = [Lock() for _ in takers]

    def given(turn: Lock, taker: Taker, item: Item) -> None:
        with turn:
            give(taker, item)

    before: list[Future[None]] = []
    with ThreadPoolExecutor(threads, initializer=set_thread_budget, initargs=(max(threads_here() // threads, 1),)) as pool:
        for item in coming:
            now = [pool.submit(given, turn, taker, item) for turn, taker in zip(turns, takers, strict=True)]
            _wait_for(before)
            before = now
        _wait_for(before)


def _wait_for(all_of: list[Future[None]]) -> None:
    """Wait for all futures and drop them, because a failed one holds its exception.

    The first exception is raised.
    """
    while all_of:
        all_of.pop(0).result()


def least_for_threads(items: int, row_count: int, least: int) -> int:
    """Return the least number of items in a part that is worth a thread.

    Args:
        items: How many there are; each is worked on as a whole.
        row_count: Rows of all of them.
        least: Rows of a part for which a thread is worth its start.
    """
    return max(-(-least * items // max(row_count, 1)), 1)


def prefetch(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items while another thread prepares the next one.

    At most one prepared item waits. With a single thread, nothing is prepared beforehand.
    """
    if threads_here() == 1:
        yield from items
        return
    coming = iter(items)
    with ThreadPoolExecutor(1, initializer=set_thread_budget, initargs=(threads_here(),)) as pool:
        following = pool.submit(lambda: list(islice(coming, 1)))
        while item := following.result():
            following = pool.submit(lambda: list(islice(coming, 1)))
            yield item[0]
