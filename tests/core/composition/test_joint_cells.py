"""Joint cells of several recodings fit one word or not, and those below k are counted as by a look at every cell."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.composition.classes import JointCells, count_records_at_risk
from core.recoding.recoding import SUPPRESSED

CELLS = st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(1, 4)), max_size=12)


@pytest.mark.parametrize(("columns", "fits"), [(1, True), (6, True), (7, False)])
def test_joint_cells_fit_where_one_word_numbers_them(columns: int, fits: bool) -> None:
    # Two recodings tell 32 codes of each column apart only together: 1,024 pairs, of which six columns need 60 bits.
    codes = np.arange(1024)
    assert JointCells([[codes // 32] * columns, [codes % 32] * columns], [], 1000).fits is fits


@given(CELLS, st.integers(1, 6))
def test_records_at_risk_are_those_of_joint_classes_below_k(cells: list[tuple[int, int, int]], k: int) -> None:
    records = Counter[tuple[int, int]]()
    for first, second, count in cells:
        if (first, second) != (SUPPRESSED, SUPPRESSED):
            records[first, second] += count
    columns = np.array(cells, np.int64).reshape(-1, 3)
    classes = [columns[:, place].astype(np.int32) for place in range(2)]
    assert count_records_at_risk(classes, columns[:, 2], k) == sum(count for count in records.values() if count < k)


def test_without_cells_nobody_is_at_risk() -> None:
    assert count_records_at_risk([np.empty(0, np.int32)], np.empty(0, np.int64), 5) == 0
