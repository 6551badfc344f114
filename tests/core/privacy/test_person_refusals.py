"""What a refused split of persons discloses is never more than going through all ways to give them their sets of values leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from core.privacy.promise import Promise
from core.relational.sensitive import PersonValues, TablePromise, sets_of_values

NULL = 3
MODELS: dict[str, tuple[PrivacyModel, int]] = {
    "distinct 2": (DistinctDiversity("s", 2, NULL), 2),
    "distinct 3": (DistinctDiversity("s", 3), 3),
    "entropy": (EntropyDiversity("s", 1.9, NULL), 2),
    "recursive": (RecursiveDiversity("s", Fraction(3), 2), 2),
    "close": (Closeness("s", 0.5), 2),
}
Sets = list[tuple[int, ...]]


def promise_of(model: PrivacyModel, sets: Sets, others: int) -> TablePromise:
    """Return the promise of a table in which persons have these values; in the source as many others have each value."""
    pairs = np.array([(person, value) for person, values in enumerate(sets) for value in values] or np.zeros((0, 2)), np.int64)
    whole = np.bincount(pairs[:, 1], minlength=NULL + 1) + others
    column = PersonValues(pairs[:, 0], pairs[:, 1], whole)
    return TablePromise.of(Promise(1, (model,)), {"s": column}, np.array([bool(values) for values in sets]), len(sets) + others)


def told(promise: TablePromise, size: int, right: int) -> bool:
    """Return whether the refusal of a split would disclose; both halves in the order of persons."""
    halves = np.repeat([0, 1], [size, right])
    return bool(promise.disclosing(halves, np.array([size, right]))[0])


def failing_ways(model: PrivacyModel, sets: Sets, size: int, others: int) -> Iterator[tuple[Sets, Sets]]:
    """Go through all ways to give the sets to the persons of both halves, and yield those in which a half breaks the promise."""
    for chosen in {tuple(sorted(sets[place] for place in places)) for places in combinations(range(len(sets)), size)}:
        rest = sorted(sets)
        for values in chosen:
            rest.remove(values)
        promise = promise_of(model, [*chosen, *rest], others)
        halves = np.repeat([0, 1], [size, len(rest)])
        if promise.failing(halves, np.array([size, len(rest)])).any():
            yield list(chosen), rest


def drawn_sets(random: np.random.Generator, single: bool) -> Sets:
    """Draw the sets of some persons, of whom some have none."""
    lengths = [1] if single else [0, 1, 1, 2, 3]
    values = int(random.integers(2, NULL + 2))
    return [
        tuple(sorted(random.choice(values, size=min(int(random.choice(lengths)), values), replace=False).tolist()))
        for _ in range(random.integers(4, 9))
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("single", [True, False])
def test_a_refusal_that_is_risked_leaves_everybody_enough_values_and_none_certain(name: str, single: bool) -> None:
    random, seen = np.random.default_rng(11), set()
    model, least = MODELS[name]
    for _ in range(60):
        sets, others = drawn_sets(random, single), int(random.integers(0, 3))
        size = int(random.integers(2, len(sets) - 1))
        promise = promise_of(model, sets, others)
        telling, ways = told(promise, size, len(sets) - size), list(failing_ways(model, sets, size, others))
        seen.add((telling, bool(ways)))
        if telling or not ways:
            continue
        bounded = len(promise.promise.models) > 1
        for half in range(2):
            open_ = {value for way in ways for values in way[half] for value in values} - {getattr(model, "null", None)}
            assert len(open_) >= least
            certain = set(open_).intersection(*(set(values) for way in ways for values in way[half]))
            assert not (bounded and certain)
    # Of each kind some were drawn: the law is not empty.
    assert (False, True) in seen or name == "distinct 3"
    assert (True, True) in seen or (name, single) == ("entropy", True)


def test_what_is_told_does_not_hang_on_who_has_which_set() -> None:
    random = np.random.default_rng(5)
    for model, _ in MODELS.values():
        for _ in range(12):
            sets = drawn_sets(random, single=False)
            size = int(random.integers(2, len(sets) - 1))
            shuffled = [sets[place] for place in random.permutation(len(sets))]
            assert told(promise_of(model, sets, 1), size, len(sets) - size) == told(promise_of(model, shuffled, 1), size, len(sets) - size)


def test_a_split_that_cannot_fail_is_tried_and_persons_without_rows_are_not_asked() -> None:
    model = DistinctDiversity("s", 2)
    many = [(number, (number + 1) % 6) for number in range(6)]
    assert list(failing_ways(model, many, 3, 0)) == []
    assert not told(promise_of(model, many, 0), 3, 3)
    assert not told(promise_of(model, [()] * 6, 1), 3, 3)


def test_classes_are_looked_at_each_by_itself() -> None:
    random, model = np.random.default_rng(9), DistinctDiversity("s", 2, NULL)
    nodes = [drawn_sets(random, single=False) for _ in range(9)]
    everybody = [values for sets in nodes for values in sets]
    promise = promise_of(model, [*everybody, (0,), (1,)], 0)
    halves, sizes, alone = np.full(len(everybody) + 2, 2 * len(nodes), np.int64), [], []
    for number, sets in enumerate(nodes):
        first = sum(map(len, nodes[:number]))
        halves[first : first + len(sets)] = 2 * number + np.repeat([0, 1], [2, len(sets) - 2])
        sizes += [2, len(sets) - 2]
        mine = np.full(len(halves), 2, np.int64)
        mine[first : first + len(sets)] = np.repeat([0, 1], [2, len(sets) - 2])
        alone.append(bool(promise.disclosing(mine, np.array(sizes[-2:]))[0]))
    assert promise.disclosing(halves, np.array(sizes)).tolist() == alone
    assert len(set(alone)) == 2


def test_sets_are_numbered_by_what_they_hold() -> None:
    column = PersonValues(np.array([3, 0, 0, 1, 1, 3]), np.array([2, 1, 0, 0, 1, 5]), np.ones(6, np.int64))
    sets = sets_of_values(column, 5)
    held = [tuple(sets.codes[sets.starts[number] : sets.starts[number + 1]].tolist()) for number in sets.of_person]
    assert held == [(0, 1), (0, 1), (), (2, 5), ()]
    assert len(sets.starts) == 4
