"""Rows of a class aligned: one of each person to a group, the cheapest choice of each person's, one label for a group."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hierarchies.hierarchy import Hierarchy
from core.relational.alignment import LOST, NOBODY, LevelTables, aligned_rows, level_tables_of, levels_of_groups, matched_rows

GROUPS = ([0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], [0] * 6)
PRICES = ([0.0] * 6, [0.2] * 6, [0.6, 0.6, 0.6, 0.6, 0.2, 0.2], [1.0] * 6)
"""Six values, in pairs, of which two are together one level below the last, where a price grows with its group."""
VALUES = st.tuples(st.integers(0, 5), st.integers(0, 5))
ROWS = st.lists(st.tuples(VALUES, st.integers(0, 2)), max_size=4)


def ladders(least: int = 0) -> LevelTables:
    groups = tuple(np.array(level, np.uint32) for level in GROUPS)
    column = Hierarchy("a", groups, (), (), (), least)
    prices = [np.array(level) for level in PRICES]
    return level_tables_of((column, column), [prices, prices])


def level_of(values: list[int], least: int = 0) -> int:
    """Return the finest level at which values have one label, by looking at each."""
    return next(level for level in range(least, 4) if len({GROUPS[level][value] for value in values}) == 1)


def price_of(values: list[int]) -> float:
    return PRICES[level_of(values)][values[0]] * len(values)


@given(st.lists(st.tuples(st.integers(-1, 3), VALUES), max_size=20), st.integers(0, 3))
def test_a_group_is_published_at_the_finest_level_that_its_values_share(rows: list[tuple[int, tuple[int, int]]], least: int) -> None:
    groups = np.array([NOBODY if group < 0 else group for group, _ in rows], np.uint32)
    codes = np.array([values for _, values in rows], np.uint32).reshape(-1, 2).T.copy()
    found = levels_of_groups(codes, groups, 4, ladders(least))
    for group in range(4):
        if mine := [values for other, values in rows if other == group]:
            assert found[:, group].tolist() == [level_of([values[column] for values in mine], least) for column in range(2)]


@given(st.lists(st.lists(ROWS, min_size=1, max_size=4), max_size=4), st.randoms(use_true_random=False))
def test_every_group_has_one_row_of_each_person_and_as_many_groups_as_the_fewest_rows(
    sets: list[list[list[tuple[tuple[int, int], int]]]], random: object
) -> None:
    rows = [(place, member, *row) for place, members in enumerate(sets) for member, mine in enumerate(members) for row in mine]
    random.shuffle(rows)  # type: ignore[attr-defined]
    codes = np.array([row[2] for row in rows], np.uint32).reshape(-1, 2).T.copy()
    below, owners = np.array([row[3] for row in rows], np.int64), np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
    persons = np.array([len(members) for members in sets], np.int64)
    made = aligned_rows(codes, below, (owners[:, 0], owners[:, 1]), codes.astype(np.int64), persons, ladders())
    groups: dict[int, list[tuple[int, int]]] = {}
    for row, group in enumerate(made.groups.tolist()):
        if group != NOBODY:
            groups.setdefault(group, []).append(rows[row][:2])
    of_sets = [0] * len(sets)
    for group, mine in groups.items():
        [place] = {place for place, _ in mine}
        assert sorted(member for _, member in mine) == list(range(len(sets[place])))
        assert made.sizes[group] == len(mine)
        of_sets[place] += 1
    assert len(made.sizes) == len(groups)
    assert of_sets == [min(map(len, members)) for members in sets]


@given(
    st.lists(st.tuples(VALUES, st.integers(0, 2)), min_size=1, max_size=3),
    st.lists(st.tuples(VALUES, st.integers(0, 2)), min_size=3, max_size=6),
)
def test_the_rows_of_a_person_are_the_cheapest_of_all_choices_that_keep_the_order(
    heads: list[tuple[tuple[int, int], int]], mine: list[tuple[tuple[int, int], int]]
) -> None:
    """Rows below that find no partner cost besides: those of the row, or those of the group."""
    rows = [*heads, *mine]
    codes, below = np.array([values for values, _ in rows], np.uint32).T.copy(), np.array([many for _, many in rows], np.int64)
    levels = np.zeros((len(heads), 2), np.int64)
    places = np.arange(len(heads), len(rows))
    chosen = matched_rows(codes, places, below, 1, np.arange(len(heads)), levels, below[: len(heads)].copy(), ladders(), LOST)

    def cost(some: tuple[int, ...]) -> float:
        total = 0.0
        for (values, many), (others, others_many) in zip(heads, (mine[place] for place in some), strict=True):
            total += sum(price_of(list(pair)) for pair in zip(values, others, strict=True)) + LOST * abs(many - others_many)
        return total

    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert cost(tuple(chosen)) == pytest.approx(min(map(cost, combinations(range(len(mine)), len(heads)))))
