"""The cost of sorting whole numbers: by libraries, which compare, and digit by digit."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.sorting import GREATEST_DIGEST, order_of, sort_numbers
from core.histograms.domain_counts import Ascending, sum_ascending
from core.histograms.histogram import count_cells

Ways = dict[str, Callable[[NDArray[np.int64], int], Any]]
SORTS: Ways = {
    "numpy.sort": lambda numbers, _: np.sort(numbers),
    "polars": lambda numbers, _: pl.Series(numbers).sort(),
    "digits": lambda numbers, bits: sort_numbers(numbers, (1 << bits) - 1),
}
ORDERS: Ways = {
    "numpy.argsort": lambda numbers, _: np.argsort(numbers),
    "pyarrow": lambda numbers, _: pc.array_sort_indices(pa.array(numbers)),
    "polars": lambda numbers, _: pl.Series(numbers).arg_sort(),
    "digits": lambda numbers, bits: order_of(numbers, (1 << bits) - 1),
}
SIZES, BITS = (50_000, 250_000, 1_000_000, 4_000_000), (20, 32, 40, 62)
TRIED = 100_000
"""Numbers that are sorted at least, in as many tries as that takes."""
CHUNKS, OF_CHUNK, CELLS = 40, 250_000, 3_500_000_000


def sorting(_: argparse.Namespace) -> None:
    """Print nanoseconds of CPU for each number, of one thread: uniform at random, of so many bits."""
    random = np.random.default_rng(0)
    for what, ways in (("sorted", SORTS), ("the order", ORDERS)):
        print(f"\n{what:<12}{'bits':>6}" + "".join(f"{name:>15}" for name in ways))
        for size in SIZES:
            for bits in BITS:
                numbers = random.integers(0, 1 << bits, size)
                each = [_nanoseconds(partial(work, numbers, bits), size) for work in ways.values()]
                print(f"{size:>12,}{bits:>6}" + "".join(f"{cost:>15.0f}" for cost in each), flush=True)
    digests = random.integers(0, 1 << 64, SIZES[-2], np.uint64)
    print(f"\n{len(digests):,} digests: numpy.sort {_nanoseconds(lambda: np.sort(digests), len(digests)):.0f}, ", end="")
    print(f"by their digits {_nanoseconds(lambda: sort_numbers(digests, GREATEST_DIGEST), len(digests)):.0f}")
    parts = [Ascending(*_cells(random.integers(0, CELLS, OF_CHUNK))) for _ in range(CHUNKS)]
    rows = sum(len(part.cells) for part in parts)
    print(f"histograms of {CHUNKS} chunks, {rows:,} rows, summed: {_nanoseconds(lambda: sum_ascending(parts), rows):.0f}")


def _cells(cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    (found,), counts = count_cells((cells,), CELLS)
    return found, counts


def _nanoseconds(work: Callable[[], Any], numbers: int) -> float:
    """Return the least of several tries, which other work of the machine disturbs least."""
    tries = []
    for _ in range(max(3, TRIED // numbers)):
        start = time.process_time()
        work()
        tries.append(time.process_time() - start)
    return min(tries) / numbers * 1e9
