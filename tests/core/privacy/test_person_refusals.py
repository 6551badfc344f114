"""What a refused split of persons discloses is never more than going through all ways to give them their sets of values leaves open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from core.privacy.holders import fewest_too_many
from core.privacy.kernels import demands_of
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.person_refusals import disclosing_refusals_of_persons
from core.privacy.promise import Promise
from core.relational.sensitive import PersonValues, TablePromise, sets_of_values
from tests.oracles.minimality import discloses_of_sets

NULL = 3
MODELS: dict[str, tuple[PrivacyModel, int]] = {
    "distinct 2": (DistinctDiversity("s", 2, NULL), 2),
    "distinct 3": (DistinctDiversity("s", 3), 3),
    "entropy": (EntropyDiversity("s", 1.9, NULL), 2),
    "recursive": (RecursiveDiversity("s", Fraction(3), 2), 2),
    "close": (Closeness("s", 0.5), 2),
}
Sets = list[tuple[int, ...]]
WHOLE = np.array([40, 30, 20, 15, 10, 8, 6, 6, 5, 5])
"""Persons of the source with each value."""


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


def laid_out(classes: list[Sets]) -> tuple[np.ndarray, ...]:
    """Return the classes as arrays: owners and sets of entries, persons of each, and the values of sets, which have their own order."""
    known = sorted({values for sets in classes for values in sets})
    entries = sorted(Counter((number, known.index(values)) for number, sets in enumerate(classes) for values in sets).items())
    columns = [[number for (number, _), _ in entries], [place for (_, place), _ in entries], [many for _, many in entries]]
    starts, codes = np.cumsum([0, *map(len, known)]), [value for values in known for value in values]
    return (*(np.array(column, np.int64) for column in (*columns, codes)), starts.astype(np.int64))


def told_both_ways(model: PrivacyModel, least: int, classes: list[Sets], sizes: list[tuple[int, int]], several: bool) -> list[list[bool]]:
    """Return what the kernel says of classes and what the oracle says; of a column of which somebody has several values if so."""
    promise = Promise(1, (model,)).of_people({"s": WHOLE}, int(WHOLE.sum()) - several)
    demands, null = demands_of(promise, ["s"], [WHOLE]), getattr(model, "null", None)
    fewest = (lambda count, value: int(fewest_too_many(count, value, 0, -1, demands.holder_bounds))) if several else None

    def fails(held: Mapping[Any, int], persons: int) -> bool:
        there = sorted((null if value is None else value, many) for value, many in held.items() if many)
        values, counts = (np.array([one[place] for one in there], np.int64) for place in range(2))
        spread = Spread(np.zeros(len(there), np.int64), values, counts, WHOLE)
        return bool(there) and bool(promise.failing(np.array([persons]), {"s": spread})[0])

    named = [[tuple(None if value == null else value for value in values) for values in sets] for sets in classes]
    close = isinstance(model, Closeness)
    expected = [discloses_of_sets(sets, size, fails, least, fewest, is_close=close) for sets, size in zip(named, sizes, strict=True)]
    owners, sets_of, many, codes, starts = laid_out(classes)
    return [disclosing_refusals_of_persons(owners, sets_of, many, np.array(sizes), starts, codes, 0, demands).tolist(), expected]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("several", [True, False])
def test_a_refusal_discloses_what_the_ways_to_fill_a_half_say(name: str, several: bool) -> None:
    random = np.random.default_rng(17)
    classes = [drawn_sets(random, single=not several) for _ in range(40)]
    sizes = [(size := int(random.integers(1, len(sets))), len(sets) - size) for sets in classes]
    mine, oracle = told_both_ways(*MODELS[name], classes, sizes, several=several)
    assert mine == oracle
    # Where each has one value, halves are nearly always even enough.
    assert set(oracle) == {True, False} or not several


@pytest.mark.parametrize(
    ("model", "several", "sets", "size"),
    [
        (DistinctDiversity("s", 2, 3), False, [(5,), (2,), (9,), (8,), (5,), (), (2,), (6,), (3,), (1,)], 4),
        (DistinctDiversity("s", 2, 0), True,
         [(), (3, 4, 5), (3, 7), (4,), (3, 4), (2, 4, 7), (5,), (3,), (), (), (4, 7), (8,)], 6),
        (DistinctDiversity("s", 1), True, [(7,), (9,), (0, 1, 4), (1, 3, 7)], 1),
        (DistinctDiversity("s", 3), True, [(3,), (3,)], 1), (DistinctDiversity("s", 3), False, [(5,), (0,), (), (3,)], 3),
        (EntropyDiversity("s", 1.9, 3), True, [(0, 2, 4), (8,), (8,), (5,), (0, 4), (0, 4, 8), (), (5,), (8, 9)], 5),
        (RecursiveDiversity("s", Fraction(3), 2), True, [(5,), (1,), (0,), (), (2, 3), (3,)], 3),
        (RecursiveDiversity("s", Fraction(2), 3, 3), True, [(4,), (5,), (2,)], 2),
        (RecursiveDiversity("s", Fraction(3, 2), 1), True, [(9,), (9,)], 1),
        (RecursiveDiversity("s", Fraction(3, 2), 1, 0), True, [(0,), (0,), (1,), (4,), (0,), (), (4,)], 4),
        (RecursiveDiversity("s", Fraction(3, 2), 1, 0), True, [(5,), (1,), (2,), (3,), (3,), ()], 4),
        (RecursiveDiversity("s", Fraction(3, 2), 1, 0), False, [(0,), (5,)], 1),
        (RecursiveDiversity("s", Fraction(3, 2), 1, 0), False, [(3,), (4,)], 1),
    ],
    ids=str,
)  # fmt: skip
def test_a_refusal_that_hangs_on_one_person_or_value_discloses_what_the_ways_say(
    model: PrivacyModel, several: bool, sets: Sets, size: int
) -> None:
    least = max(2, getattr(model, "l", 2)) if not isinstance(model, EntropyDiversity) else 2
    mine, oracle = told_both_ways(model, least, [sets], [(size, len(sets) - size)], several=several)
    assert mine == oracle


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
