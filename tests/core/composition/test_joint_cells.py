"""Joint cells of several recodings fit one word or not, and those below k are counted as by a look at every cell."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.composition.classes import JointCells, count_records_at_risk
from core.histograms.cells import Packing
from core.histograms.projections import Bundles
from core.recoding.recoding import SUPPRESSED, Stage


def stage_of(sizes: tuple[int, ...], cells: list[tuple[int, ...]]) -> Stage:
    """A stage that publishes some cells, each as a class of its own."""
    packing = Packing(sizes)
    words = packing.pack([np.array([cell[place] for cell in cells]) for place in range(len(sizes))])
    return Stage((0,) * len(sizes), packing, words, np.arange(len(cells), dtype=np.int32))


@pytest.mark.parametrize("most_cells", [1000, 9, 3])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 1), st.integers(1, 4)), max_size=20), st.integers(1, 4))
def test_joint_cells_have_the_records_and_classes_of_what_falls_into_them(
    most_cells: int, cells: list[tuple[int, int, int, int]], parts: int
) -> None:
    """Two recodings of two columns, beside a sensitive one that neither tells apart; the second publishes one group of the first not."""
    first, second = [np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 0])], [np.array([0, 1, 1, 1, 1, 1]), np.array([0, 0, 0, 0])]
    joint = JointCells([first, second], [2], most_cells)
    packing = Packing((6, 4, 2))
    for some in np.array_split(np.array(cells, np.int64).reshape(-1, 4), parts):
        bundles = Bundles(packing)
        joint.add(bundles, bundles.codes(packing.pack(list(some[:, :3].T.copy()))), some[:, 3].copy())
    records = Counter[tuple[int, int, int]]()
    for qid, other, _, count in cells:
        records[int(first[0][qid]), int(first[1][other]), int(second[0][qid])] += count
    assert joint.fits == (most_cells > 3 or len(records) <= 3)
    if not joint.fits:
        return
    stages = [[stage_of((3, 2), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)])], [stage_of((2, 1), [(1, 0)])]]
    classes, counts = joint.classes(stages)
    found = Counter[tuple[int, int]]()
    for mine, other, count in zip(*(one.tolist() for one in classes), counts.tolist(), strict=True):
        found[mine, other] += count
    expected = Counter[tuple[int, int]]()
    for (qid, other, coarse), count in records.items():
        expected[2 * qid + other, 0 if coarse else SUPPRESSED] += count
    assert found == expected


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


@pytest.mark.parametrize("most_cells", [1000, 8])
def test_without_chunks_there_is_no_joint_cell_whether_all_have_a_place_or_not(most_cells: int) -> None:
    joint = JointCells([[np.arange(3)] * 2], [2], most_cells)
    classes, counts = joint.classes([[stage_of((3, 3), [(0, 0), (2, 1)])]])
    assert ([one.tolist() for one in classes], counts.tolist()) == ([[]], [])
    assert count_records_at_risk(classes, counts, 5) == 0
