"""Histograms of one word are summed as Python adds up a Counter, whatever the threads, and what is given stays as it is."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.columns.thread_share import at_most
from core.histograms.merges import Ascending, sum_ascending

CELLS = st.dictionaries(st.integers(0, 30), st.integers(1, 5), max_size=20)


def ascending(counts: dict[int, int]) -> Ascending:
    return Ascending(np.array(sorted(counts), np.int64), np.array([counts[cell] for cell in sorted(counts)], np.int64))


@given(histograms=st.lists(CELLS, min_size=1, max_size=7), threads=st.integers(1, 5))
def test_ranges_of_cells_are_summed_by_several_threads_as_all_by_one(histograms: list[dict[int, int]], threads: int) -> None:
    parts = [ascending(counts).only_read() for counts in histograms]
    with at_most(threads), patch("core.histograms.merges.LEAST_ROWS", 1):
        cells, counts = sum_ascending(parts)
    by_hand = sum((Counter(counts) for counts in histograms), Counter[int]())
    assert list(zip(cells.tolist(), counts.tolist(), strict=True)) == sorted(by_hand.items())
    assert [dict(zip(*(array.tolist() for array in part), strict=True)) for part in parts] == histograms


def test_a_sum_that_is_much_shorter_than_its_parts_holds_no_room_for_them() -> None:
    part = ascending(dict.fromkeys(range(1000), 1))
    summed = sum_ascending([part] * 4)
    assert summed.cells.base is None
    assert summed.counts.tolist() == [4] * 1000
