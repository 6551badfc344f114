"""Histories as numbers: equal for equal multisets and for no others."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.relational.histories import (
    NOWHERE,
    Profile,
    add_rows,
    class_of_each,
    combine_profiles,
    cost_of_lost,
    failing_persons,
    number_profiles,
)

PERSONS = 6
SEEDS = np.array([11, 12], np.uint64)
ROWS = st.lists(st.tuples(st.integers(0, PERSONS - 1), st.integers(0, 2), st.integers(0, 1)), max_size=24)
NOTHING = np.zeros((0, 2), np.uint64)


def sums_of(rows: list[tuple[int, int, int]], below: np.ndarray | None = None) -> np.ndarray:
    parents = np.array([row[0] for row in rows], np.uint32)
    codes = np.array([row[1:] for row in rows], np.uint32).reshape(len(rows), 2).T.copy()
    sums = np.zeros((PERSONS, 2), np.uint64)
    groups, starts = np.array([0, 1, 2, 0, 1], np.uint32), np.array([0, 3])
    add_rows(codes, groups, starts, NOTHING if below is None else below, parents, np.zeros_like(parents), 0, SEEDS, sums)
    return sums


@given(ROWS, st.randoms(use_true_random=False))
def test_profiles_are_equal_where_multisets_are_in_whatever_order(rows: list[tuple[int, int, int]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    numbers = number_profiles(sums_of(rows)).numbers
    assert np.array_equal(sums_of(rows), sums_of(shuffled))
    multisets = [frozenset(Counter(row[1:] for row in rows if row[0] == person).items()) for person in range(PERSONS)]
    for one in range(PERSONS):
        for other in range(PERSONS):
            assert (numbers[one] == numbers[other]) == (multisets[one] == multisets[other])


def test_what_hangs_from_a_row_is_part_of_it_and_rows_that_are_not_published_are_not() -> None:
    below = np.array([[0, 0], [5, 6]], np.uint64)
    sums = sums_of([(0, 1, 1), (1, 1, 1)], below)
    assert tuple(sums[0]) != tuple(sums[1])
    gone = sums_of([(0, 1, 1)])
    parents = np.array([0, NOWHERE], np.uint32)
    codes = np.array([[1, 2], [1, 0]], np.uint32)
    again = np.zeros((PERSONS, 2), np.uint64)
    add_rows(codes, np.array([0, 1, 2, 0, 1], np.uint32), np.array([0, 3]), NOTHING, parents, np.zeros(2, np.uint32), 0, SEEDS, again)
    assert np.array_equal(gone, again)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40), st.integers(1, 5))
def test_persons_fail_whose_numbers_fewer_than_k_share(persons: list[tuple[int, int, int]], k: int) -> None:
    columns = np.array(persons, np.uint32).T
    # Sizes whose product passes what a number holds, so that what is put together is numbered anew.
    numbers = combine_profiles([Profile(column, size) for column, size in zip(columns, (1 << 30, 1 << 31, 1 << 32), strict=True)])
    shared = Counter(persons)
    assert failing_persons(numbers, k) == sum(many for many in shared.values() if many < k)
    classes, sizes = class_of_each(numbers)
    assert [int(sizes[one]) for one in classes] == [shared[person] for person in persons]


def test_half_a_digest_in_common_is_no_digest_in_common() -> None:
    sums = np.array([[1, 1], [1, 2], [1, 1], [0, 2]], np.uint64)
    numbers = number_profiles(sums).numbers
    assert numbers[0] == numbers[2]
    assert len(set(numbers.tolist())) == 3


def test_lost_rows_cost_what_their_labels_had_left() -> None:
    codes, extra = np.array([[0, 1, 1]], np.uint32), np.array([1.0, 0.25])
    persons, parents = np.array([0, 1, 2], np.uint32), np.array([0, 1, NOWHERE], np.uint32)
    lost = np.array([False, True, True])
    assert cost_of_lost(codes, extra, np.array([0]), persons, parents, lost) == 0.25
