"""Records go until every set of classes is that of k people, as few as the rule says, whoever comes first."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units.pairs import Pairs
from core.units.set_tree import SetTree, pairs_withheld, withhold

SETS = st.lists(st.frozensets(st.integers(0, 6), min_size=1), min_size=1, max_size=60)


def pairs_of(sets: list[frozenset[int]], persons: list[int]) -> Pairs:
    rows = [(person, item, 1 + (person + item) % 3) for person, mine in zip(persons, sets, strict=True) for item in sorted(mine)]
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return Pairs(columns[0].astype(np.uint64), columns[1], columns[2])


def kept_of(sets: list[frozenset[int]], k: int, order: list[int] | None = None, shares: int = 1) -> tuple[list[frozenset[int]], list[int]]:
    """The sets that are left, by person, and the people of each class, as the tree has it."""
    tree, persons = SetTree(), list(range(1, len(sets) + 1))
    parts = [np.array_split(order or list(range(len(sets))), shares)[number].tolist() for number in range(shares)]
    added = []
    for part in parts:
        mine = sorted(part)
        pairs = pairs_of([sets[place] for place in mine], [persons[place] for place in mine])
        added.append((pairs, tree.add(pairs)))
    settled = tree.settle(k, 7)
    gone = [one for pairs, ends in added for one in [pairs_withheld(pairs, ends, settled)]]
    removed = {pair for one in gone for pair in zip(one.persons.tolist(), one.cells.tolist(), strict=True)}
    left = [frozenset(item for item in mine if (person, item) not in removed) for person, mine in zip(persons, sets, strict=True)]
    return left, settled.people.tolist()


def by_the_rule(sets: list[frozenset[int]], k: int) -> list[frozenset[int]]:
    """The same, set after set: from the longest on, those of fewer than k people lose their last class."""
    left = [tuple(sorted(mine)) for mine in sets]
    # What shares its beginning only may lose more, so that ends are looked at from the longest on.
    for length in range(7, 0, -1):
        sharing = Counter(left)
        left = [mine[:-1] if len(mine) == length and sharing[mine] < k else mine for mine in left]
    return [frozenset(mine) for mine in left]


@given(SETS, st.integers(1, 5))
def test_every_set_that_is_left_is_that_of_k_people_and_so_is_every_class(sets: list[frozenset[int]], k: int) -> None:
    left, people = kept_of(sets, k)
    assert all(count >= k for mine, count in Counter(left).items() if mine)
    classes = Counter(item for mine in left for item in mine)
    assert people == [classes[item] for item in range(7)]
    assert all(count >= k for count in classes.values())
    assert all(mine <= had for mine, had in zip(left, sets, strict=True))


@given(SETS, st.integers(1, 5))
def test_what_goes_is_what_the_rule_says(sets: list[frozenset[int]], k: int) -> None:
    assert kept_of(sets, k)[0] == by_the_rule(sets, k)


@given(SETS, st.integers(1, 5), st.randoms(use_true_random=False), st.integers(1, 4))
def test_neither_order_nor_shares_change_anything(sets: list[frozenset[int]], k: int, draw: object, shares: int) -> None:
    order = list(range(len(sets)))
    draw.shuffle(order)  # type: ignore[attr-defined]
    assert kept_of(sets, k, order, shares) == kept_of(sets, k)


def test_a_tree_of_many_sets_grows() -> None:
    random = np.random.default_rng(0)
    sets = [frozenset(random.choice(7, random.integers(1, 8), replace=False).tolist()) for _ in range(5000)]
    left, people = kept_of(sets, 40)
    assert left == by_the_rule(sets, 40)
    assert sum(people) == sum(map(len, left))


def test_who_comes_after_a_tree_has_grown_ends_where_those_of_the_same_set_do() -> None:
    """A thousand nodes are room for 400 sets of two, and not for as many once more."""
    sets = [frozenset((2 * number, 2 * number + 1)) for number in range(400)]
    tree, pairs = SetTree(), pairs_of(sets, list(range(1, 401)))
    before = tree.add(pairs).tolist()
    assert [tree.add(pairs).tolist() for _ in range(3)] == [before] * 3
    assert len(set(before)) == 400
    assert tree.settle(4, 800).people.tolist() == [4] * 800
    assert tree.settle(5, 800).people.tolist() == [0] * 800
    others = tree.add(pairs_of([frozenset(item + 800 for item in one) for one in sets], list(range(401, 801))))
    assert len({*before, *others.tolist()}) == 800
    assert tree.settle(1, 1600).people.tolist() == [4] * 800 + [1] * 800


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 4)), max_size=40), st.sets(st.tuples(st.integers(1, 5), st.integers(0, 4))))
def test_records_leave_the_classes_that_their_person_leaves(records: list[tuple[int, int]], gone: set[tuple[int, int]]) -> None:
    listed = sorted(gone)
    persons, classes = np.array([pair[0] for pair in listed], np.uint64), np.array([pair[1] for pair in listed], np.int32)
    assigned = np.array([record[1] for record in records], np.int32)
    withhold(assigned, np.array([record[0] for record in records], np.uint64), persons, classes, -1)
    assert assigned.tolist() == [-1 if record in gone else record[1] for record in records]


@pytest.mark.parametrize("people", [1_000, 2_500, 9_000])
def test_a_tree_grows_to_whatever_comes_at_once(people: int) -> None:
    """Each person is in a class of their own, and in a second one with a neighbour."""
    cells = np.stack([np.arange(people) // 2, people + np.arange(people)], axis=1).ravel()
    tree, whose = SetTree(), np.repeat(np.arange(people, dtype=np.uint64), 2)
    ends = tree.add(Pairs(whose, cells, np.ones(len(cells), np.int64)))
    assert len(set(ends.tolist())) == people
    settled = tree.settle(2, 2 * people)
    assert settled.depths[ends].tolist() == [1] * people
    assert settled.people.tolist() == [2] * (people // 2) + [0] * (2 * people - people // 2)
