"""Classes of persons: k in each, none that could be cut further, and axes that say what rows are like."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.hierarchies.hierarchy import Hierarchy
from core.relational.person_cuts import NO_ROW, cut_persons, leaf_ranks, rank_profiles, row_count_axis, value_axis

# The values of a group are no neighbours before they are ranked.
GROUPS = tuple(np.array(level, np.uint32) for level in ([0, 1, 2, 3, 4], [0, 1, 0, 1, 2], [0, 0, 0, 0, 1], [0] * 5))
COLUMN = Hierarchy("a", GROUPS, (), (), ())
PRICES = [np.full(5, price) for price in (0.0, 0.3, 0.6, 1.0)]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 4), st.integers(0, 6)), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_persons_are_in_one_class_each_of_k_or_more_that_no_cut_could_part(persons: list[tuple[int, int, int]], k: int) -> None:
    own, row, many = np.array(persons).T
    ranks = leaf_ranks(COLUMN)
    axes = [
        value_axis(COLUMN, PRICES, ranks[own], 1.0),
        value_axis(COLUMN, PRICES, np.where(row < 0, NO_ROW, ranks[row]), 0.5),
        row_count_axis(many, 1.0),
    ]
    members = np.flatnonzero(own < 4) if (own < 4).sum() >= k else np.arange(len(persons))
    if len(members) < k:
        return
    classes = cut_persons(axes, members, k).classes
    assert sorted(np.concatenate(classes).tolist()) == members.tolist()
    for one in classes:
        assert len(one) >= k
        for axis in axes:
            counts = Counter(axis.ranks[one].tolist())
            lower = np.cumsum([counts[rank] for rank in sorted(counts)])
            assert not any(k <= left <= len(one) - k for left in lower)


def test_values_of_a_group_are_neighbours_and_persons_without_rows_are_apart() -> None:
    assert leaf_ranks(COLUMN).tolist() == [0, 2, 1, 3, 4]
    axis = value_axis(COLUMN, PRICES, np.array([NO_ROW]), 1.0)
    assert [level.tolist() for level in axis.groups] == [[0, 1, 2, 3, 4, 5], [0, 1, 1, 2, 2, 3], [0, 1, 1, 1, 1, 2], [0] * 6]


def test_no_axis_is_one_class() -> None:
    [one] = cut_persons([], np.arange(4), 2).classes
    assert one.tolist() == [0, 1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=30))
def test_profiles_of_rows_are_their_least_greatest_and_most_frequent_value(rows: list[tuple[int, int]]) -> None:
    persons, ranks = np.array(rows, np.int64).reshape(-1, 2).T
    found = rank_profiles(persons, ranks, 6)
    for person in range(6):
        mine = [rank for whose, rank in rows if whose == person]
        most = min(mine, key=lambda rank: (-mine.count(rank), rank)) if mine else NO_ROW
        assert found[:, person].tolist() == ([min(mine), max(mine), most] if mine else [NO_ROW] * 3)
