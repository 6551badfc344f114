"""Histograms of one word are summed as Python adds up a Counter, whatever the threads, and what is given stays as it is."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.columns.data_parallel import limit_threads
from core.histograms.domain_counts import Ascending, sum_ascending

CELLS = st.dictionaries(st.integers(0, 30), st.integers(1, 5), max_size=20)
WIDE = st.dictionaries(st.integers(0, 2**63 - 1) | st.integers(0, 5), st.integers(1, 2**40), max_size=20)
"""Cells so far apart, and counts so large, that both do not make one number."""


def ascending(counts: dict[int, int]) -> Ascending:
    return Ascending(np.array(sorted(counts), np.int64), np.array([counts[cell] for cell in sorted(counts)], np.int64))


@given(
    histograms=st.lists(CELLS, min_size=1, max_size=7) | st.lists(WIDE, min_size=1, max_size=7),
    threads=st.integers(1, 5),
    rows=st.integers(1, 100),
)
def test_ranges_of_cells_are_summed_by_several_threads_as_all_by_one(histograms: list[dict[int, int]], threads: int, rows: int) -> None:
    parts = [ascending(counts).only_read() for counts in histograms]
    small = {"LEAST_ROWS": 1, "RANGE": rows, "CELLS_PER_SAMPLE": 3}
    with limit_threads(threads), patch.multiple("core.histograms.domain_counts", **small):
        cells, counts = sum_ascending(parts)
    by_hand = sum((Counter(counts) for counts in histograms), Counter[int]())
    assert list(zip(cells.tolist(), counts.tolist(), strict=True)) == sorted(by_hand.items())
    assert [dict(zip(*(array.tolist() for array in part), strict=True)) for part in parts] == histograms


def test_a_sum_that_is_much_shorter_than_its_parts_holds_no_room_for_them() -> None:
    part = ascending(dict.fromkeys(range(1000), 1))
    summed = sum_ascending([part] * 4)
    assert summed.cells.base is None
    assert summed.counts.tolist() == [4] * 1000


def test_many_rows_are_summed_by_their_digits() -> None:
    random = np.random.default_rng(0)
    drawn = [random.integers(0, 1 << 34, 100_000) for _ in range(7)]
    parts = [Ascending(*np.unique(cells // 50_000, return_counts=True)) for cells in drawn]
    cells, counts = sum_ascending(parts)
    wanted, often = np.unique(np.concatenate(drawn) // 50_000, return_counts=True)
    assert (cells == wanted).all()
    assert (counts == often).all()
