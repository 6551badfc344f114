"""Loops over many rows in parts, on all cores: each part does what it would do alone, so nothing depends on how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Made = TypeVar("Made")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LEAST_ROWS = 1 << 16
"""Rows of a part for which a thread is worth its start."""


def parts_abreast(work: Callable[[slice], Made], rows: int, most: int = CORES) -> list[Made]:
    """Does some work on parts of so many rows at a time, and returns what it makes of each, in order.

    Args:
        work: Called with the rows of a part, in a thread of its own; what it calls lets others go on, as compiled loops do.
        rows: Number of rows.
        most: Parts at most, for work that takes memory of its own.
    """
    parts = max(min(most, CORES, rows // LEAST_ROWS), 1)
    slices = [slice(rows * number // parts, rows * (number + 1) // parts) for number in range(parts)]
    if parts == 1:
        return [work(slices[0])]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, slices))
