"""Ranks of codes are those that their axis names, and axes that are put together measure as each by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.mondrian.ranks import CutAxes, CutAxis, axes_scale, ranks_of


@st.composite
def axes(draw: st.DrawFn) -> list[CutAxis]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        size, nulls = draw(st.integers(1, 6)), draw(st.booleans())
        numbers = np.sort(np.array(draw(st.lists(st.floats(-1e9, 1e9), min_size=size, max_size=size, unique=True))))
        if draw(st.booleans()):
            found.append(CutAxis(f"q{number}", np.arange(size + nulls, dtype=np.uint8), numbers, nulls))
        else:
            ranks = np.append(draw(st.permutations(range(size))), range(size, size + nulls)).astype(np.int64)
            found.append(CutAxis(f"q{number}", ranks, None, nulls))
    return found


@given(st.data(), axes())
def test_ranks_are_those_of_the_axes(data: st.DataObject, given_axes: list[CutAxis]) -> None:
    rows = st.tuples(*(st.integers(0, axis.size - 1) for axis in given_axes))
    codes = np.array(data.draw(st.lists(rows, min_size=1)), np.int64)
    expected = [[int(axis.ranks[code]) for axis, code in zip(given_axes, row, strict=True)] for row in codes]
    assert ranks_of(codes, CutAxes.of(given_axes)).tolist() == ranks_of(codes, given_axes).tolist() == expected


@given(axes())
def test_axes_put_together_measure_as_they_did(given_axes: list[CutAxis]) -> None:
    made, alone = CutAxes.of(given_axes), axes_scale(given_axes)
    assert axes_scale(made) is made.scale
    for mine, theirs in zip(made.scale, alone, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(made, given_axes, strict=True):
        assert (mine.qid, mine.size, mine.values, mine.is_code) == (theirs.qid, theirs.size, theirs.values, theirs.is_code)
        assert (mine.numbers is None) == (theirs.numbers is None)
        if mine.numbers is not None and theirs.numbers is not None:
            np.testing.assert_array_equal(mine.numbers, theirs.numbers)
            assert np.shares_memory(mine.numbers, made.scale.positions)
