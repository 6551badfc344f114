"""Loops over the pairs of persons and cells find what lists and sets of each person find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.units.kernels import (
    add_weights,
    count_known_persons,
    count_repeated_persons,
    distinct_pairs,
    drop_person_cells,
    first_cells,
    group,
    merge_person_cells,
    weigh_cells,
)
from core.units.pairs import number_persons

CELLS = 6
COARSER = st.lists(st.integers(0, 2), min_size=CELLS, max_size=CELLS)
WANTED = st.lists(st.booleans(), min_size=CELLS, max_size=CELLS)
PERSONS = st.lists(st.lists(st.integers(0, CELLS - 1), min_size=1, max_size=5, unique=True), max_size=6)


def written(persons: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """The pairs of persons as kernels read them: the first cell of each person is inverted."""
    return np.array([cell if place else ~cell for mine in persons for place, cell in enumerate(mine)], np.int32)


def unseen(size: int) -> NDArray[np.int32]:
    return np.full(size, -1, np.int32)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, CELLS - 1)), max_size=14))
def test_cells_are_grouped_by_person_and_those_of_one_alone_are_left_out(records: list[tuple[int, int]]) -> None:
    owners, cells = (np.array([record[place] for record in records], np.int32) for place in range(2))
    starts, grouped = group(owners, cells, 5)
    mine = [[cell for owner, cell in records if owner == person] for person in range(5)]
    assert [grouped[starts[person] : starts[person + 1]].tolist() for person in range(5)] == mine
    per_cell = np.zeros(CELLS, np.int32)
    found = distinct_pairs(starts, grouped, per_cell, unseen(CELLS))
    different = [list(dict.fromkeys(one)) for one in mine]
    assert found.tolist() == written([one for one in different if len(one) > 1]).tolist()
    assert per_cell.tolist() == [sum(cell in one for one in different) for cell in range(CELLS)]
    first = first_cells(owners, cells, 5)
    assert first.tolist() == [one[0] if one else 0 for one in mine]


def test_who_is_nobody_has_no_cell() -> None:
    owners, cells = np.array([-1, 1, -1, 0, 1], np.int32), np.array([5, 4, 3, 2, 1], np.int32)
    starts, grouped = group(owners, cells, 2)
    assert (starts.tolist(), grouped.tolist()) == ([0, 1, 3], [2, 4, 1])
    assert first_cells(owners, cells, 2).tolist() == [2, 4]


@example([[0, 1, 2], [3], [4, 0, 3]], [0, 1, 1, 2, 0, 0], [True, True, False])
@given(PERSONS, COARSER, st.lists(st.booleans(), min_size=3, max_size=3))
def test_persons_come_to_coarser_cells_once(persons: list[list[int]], coarser: list[int], wanted: list[bool]) -> None:
    class_of, marks, repeats = np.array(coarser, np.int32), np.array(wanted), np.zeros(3, np.int64)
    found = merge_person_cells(written(persons), class_of, marks, unseen(3), repeats)
    classes = [[coarser[cell] for cell in mine if wanted[coarser[cell]]] for mine in persons]
    assert found.tolist() == written([list(dict.fromkeys(mine)) for mine in classes]).tolist()
    again = Counter(one for mine in classes for one, times in Counter(mine).items() for _ in range(times - 1))
    assert repeats.tolist() == [again[one] for one in range(3)]
    counted = np.zeros(3, np.int64)
    numbers = np.where(marks, np.arange(3), -1)
    count_repeated_persons(written(persons), class_of, numbers, unseen(3), counted)
    assert counted.tolist() == repeats.tolist()


@given(PERSONS, WANTED)
def test_persons_of_one_wanted_cell_are_left_out(persons: list[list[int]], wanted: list[bool]) -> None:
    found = drop_person_cells(written(persons), np.array(wanted))
    left = [[cell for cell in mine if wanted[cell]] for mine in persons]
    assert found.tolist() == written([mine for mine in left if len(mine) > 1]).tolist()


@given(PERSONS, WANTED, st.lists(st.integers(-1, 2), min_size=CELLS, max_size=CELLS))
def test_who_was_there_before_is_known_in_every_class(persons: list[list[int]], before: list[bool], classes: list[int]) -> None:
    known = np.zeros(3, np.int64)
    count_known_persons(written(persons), np.array(before), np.array(classes, np.int32), unseen(3), known)
    expected = [0, 0, 0]
    for mine in persons:
        met, seen = any(before[cell] for cell in mine), set[int]()
        for number in (classes[cell] for cell in mine if classes[cell] >= 0):
            expected[number] += met or number in seen
            seen.add(number)
    assert known.tolist() == expected


def test_weights_of_cells_add_up_in_their_classes() -> None:
    weights, class_of = np.array([[1, 10], [2, 20], [4, 40]], np.int32), np.array([1, 0, 1], np.int32)
    sums = np.array([[100, 0], [0, 1], [7, 7]], np.int32)
    add_weights(class_of, weights, sums)
    assert sums.tolist() == [[102, 20], [5, 51], [7, 7]]


def test_cells_are_numbered_and_weighed_in_one_pass() -> None:
    """Two columns of three and of two groups, of which classes keep whether the first is the last one, and all of the second."""
    codes = np.array([[0, 1], [2, 0], [1, 1], [2, 1]], np.uint8)
    weights, sums, class_of = np.array([[1], [2], [4], [8]], np.int32), np.zeros((4, 1), np.int32), np.zeros(4, np.int32)
    weigh_cells(codes, np.array([0, 3]), np.array([0, 0, 2, 0, 1]), weights, class_of, sums)
    assert (class_of.tolist(), sums.ravel().tolist()) == ([1, 2, 1, 3], [0, 5, 2, 8])


@given(st.lists(st.integers(0, 9), max_size=12))
def test_persons_are_numbered_as_they_come(digests: list[int]) -> None:
    numbers, known = number_persons(np.array(digests, np.uint64) << np.uint64(2))
    order = list(dict.fromkeys(digests))
    assert numbers.tolist() == [order.index(digest) for digest in digests]
    assert known.tolist() == [digest << 2 for digest in order]
