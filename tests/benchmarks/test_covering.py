"""Small tables of cases hold what they say."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from tests.covering import each_pair, each_value

AXES = st.lists(st.integers(1, 4).map(range), min_size=1, max_size=4)


@given(AXES)
def test_every_value_is_in_a_case(axes: list[range]) -> None:
    cases = each_value(*axes)
    assert len(cases) == max(map(len, axes))
    assert [{case[place] for case in cases} for place in range(len(axes))] == [set(axis) for axis in axes]


@given(AXES)
def test_every_two_values_of_different_axes_are_in_a_case_together(axes: list[range]) -> None:
    cases = each_pair(*axes)
    for one, other in combinations(range(len(axes)), 2):
        assert {(case[one], case[other]) for case in cases} == set(product(axes[one], axes[other]))
