"""What the refusal of a cut discloses is what going through the ways one by one says."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest

from core.mondrian.partition import Rules
from core.privacy.holders import fewest_too_many
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.promise import Promise
from core.privacy.refusals import _hold, disclosing_refusals, least_values, refusal_discloses
from tests.oracles.minimality import discloses, held_by_many

NULL, COLUMN = 0, 1
MODELS: dict[str, tuple[PrivacyModel, int]] = {
    "distinct 2": (DistinctDiversity("s", 2, NULL), 2),
    "distinct 3": (DistinctDiversity("s", 3), 3),
    "entropy": (EntropyDiversity("s", 2.4, NULL), ceil(2.4)),
    "recursive": (RecursiveDiversity("s", Fraction(3, 2), 2), 2),
    "recursive 3": (RecursiveDiversity("s", Fraction(9), 3, NULL), 3),
    "close": (Closeness("s", 0.4), 2),
}


def told_both_ways(
    model: PrivacyModel, least: int, codes: np.ndarray, totals: np.ndarray, sizes: np.ndarray, persons: np.ndarray, several: bool
) -> tuple[bool, bool]:
    """Return what the kernel says and what the oracle says of a class; of a column of which somebody has several values if so."""
    width = int(codes.max()) + 1
    whole = np.bincount(codes, weights=totals, minlength=width).astype(np.int64) + 1
    people = int(whole.sum()) - 1 if several else int(whole.sum())
    # The column stands between two of which nothing is asked, so that its number is not taken for the null's, nor for the first or last.
    rules = Rules(Promise(1, (model,)).of_people({"s": whole}, people), ("free", "s", "free too"), (whole[:1], whole, whole[:1]))
    demands, null = rules.demands, getattr(model, "null", None)
    named = {None if code == null else int(code): int(total) for code, total in zip(codes, totals, strict=True)}

    def fails(held: Any) -> bool:
        there = sorted((null if value is None else value, count) for value, count in held.items() if count)
        values, counts = np.array([value for value, _ in there]), np.array([count for _, count in there])
        spread = Spread(np.zeros(len(there), np.int64), values, counts, whole)
        return bool(rules.promise.failing(np.array([counts.sum()]), {"s": spread})[0])

    def fewest(count: int, value: Any) -> int:
        return int(fewest_too_many(count, NULL if value is None else value, COLUMN, -1 if null is None else null, demands.holder_bounds))

    scratch = np.zeros((2, width), np.int64)
    mine = refusal_discloses(codes, totals, sizes, persons, COLUMN, demands, scratch, scratch.copy())
    assert not scratch.any()
    return bool(mine), discloses(named, sizes.tolist(), persons.tolist(), fails, least, fewest if several else None)


@pytest.mark.parametrize("name", MODELS)
def test_a_refusal_discloses_what_the_ways_one_by_one_say(name: str) -> None:
    drawn, said = np.random.default_rng(31), []
    for number in range(60):
        values = int(drawn.integers(1, 14 if number % 3 == 0 else 5))
        codes = np.sort(drawn.permutation(values + 2)[:values])
        totals = drawn.integers(1, 5, values)
        first = int(drawn.integers(1, totals.sum())) if totals.sum() > 1 else 1
        sizes = np.array([first, totals.sum() - first])
        if sizes.min():
            said.append(told_both_ways(*MODELS[name], codes, totals, sizes, sizes, several=False))
    assert all(mine == oracle for mine, oracle in said)
    assert {mine for mine, _ in said} == {False, True}


@pytest.mark.parametrize("name", MODELS)
def test_a_refusal_discloses_what_the_ways_say_where_somebody_has_several_values(name: str) -> None:
    drawn, said = np.random.default_rng(13), []
    while len(said) < 40:
        values = int(drawn.integers(2, 5))
        codes = np.sort(drawn.permutation(values + 1)[:values])
        totals = np.bincount(drawn.integers(0, values, int(drawn.integers(4, 8))), minlength=values)
        first = int(drawn.integers(2, totals.sum() - 1))
        sizes = np.array([first, totals.sum() - first])
        persons = drawn.integers(1, sizes + 1)
        if totals.min():
            said.append(told_both_ways(*MODELS[name], codes, totals, sizes, persons, several=True))
    assert all(mine == oracle for mine, oracle in said)


@pytest.mark.parametrize(
    ("name", "codes", "totals", "sizes", "persons", "several"),
    [
        ("close", [0, 1], [3, 5], [3, 5], [2, 2], True), ("close", [0, 1], [5, 3], [3, 5], [2, 3], True),
        ("close", [0, 2], [2, 5], [5, 2], [4, 2], True), ("close", [0, 1, 3, 4], [1, 3, 1, 2], [5, 2], [1, 1], True),
        ("distinct 2", [0, 3], [1, 4], [3, 2], [3, 2], False), ("distinct 2", [1, 2], [1, 3], [2, 2], [1, 2], True),
        ("distinct 2", [1, 2, 3], [2, 2, 3], [3, 4], [3, 3], True), ("distinct 2", [0, 1, 3, 4], [1, 1, 1, 2], [2, 3], [2, 3], True),
        ("entropy", [0, 1, 2], [1, 3, 3], [3, 4], [1, 2], True), ("recursive", [0, 1], [3, 4], [3, 4], [1, 2], True),
        ("recursive", [1, 2], [4, 3], [3, 4], [2, 1], True), ("recursive", [0, 1], [3, 5], [2, 6], [1, 3], True),
        ("recursive", [0, 1, 2, 4], [1, 1, 1, 1], [2, 2], [2, 1], True),
        ("recursive 3", [0, 1, 2, 4], [2, 1, 1, 3], [5, 2], [1, 1], True), ("recursive", [0, 2], [3, 4], [4, 3], [1, 2], True),
        ("close", [0, 1], [3, 5], [4, 4], [3, 2], True), ("close", [0, 1, 2], [2, 3, 3], [4, 4], [4, 3], True),
        ("distinct 2", [1, 2, 3, 4], [1, 1, 1, 3], [2, 4], [2, 2], True), ("close", [0, 1, 3], [2, 2, 3], [3, 4], [3, 4], False),
        ("close", [1, 2, 3], [3, 2, 2], [4, 3], [4, 3], False), ("distinct 3", [0, 2, 3], [2, 1, 2], [4, 1], [4, 1], False),
        ("entropy", [1, 2, 3], [3, 3, 3], [7, 2], [7, 2], False), ("recursive 3", [1, 2, 3], [2, 1, 1], [1, 3], [1, 3], False),
    ],
)  # fmt: skip
def test_a_refusal_that_hangs_on_one_record_or_person_discloses_what_the_ways_say(
    name: str, codes: list[int], totals: list[int], sizes: list[int], persons: list[int], several: bool
) -> None:
    mine, oracle = told_both_ways(*MODELS[name], *map(np.array, (codes, totals, sizes, persons)), several=several)
    assert mine == oracle


def test_refusals_of_several_classes_are_those_of_each_by_itself() -> None:
    whole = np.array([4, 4, 4])
    rules = Rules(Promise(1, (DistinctDiversity("s", 2),)), ("s",), (whole,))
    classes = [([0, 1], [1, 3], [2, 2]), ([1], [2], [1, 1]), ([0, 1, 2], [2, 2, 2], [3, 3]), ([0, 2], [2, 1], [2, 1])]
    alone = []
    for one in classes:
        scratch = np.zeros((2, 3), np.int64)
        codes, totals, sizes = map(np.array, one)
        alone.append(bool(refusal_discloses(codes, totals, sizes, sizes, 0, rules.demands, scratch, scratch.copy())))
    assert set(alone) == {False, True}
    owners = np.repeat(np.arange(len(classes)), [len(codes) for codes, _, _ in classes])
    codes, totals = (np.concatenate([one[place] for one in classes]) for place in range(2))
    sizes = np.array([one[2] for one in classes])
    assert disclosing_refusals(owners, codes, totals, sizes, sizes, 0, rules.demands).tolist() == alone


@pytest.mark.parametrize(
    ("models", "least"),
    [
        ([], 2), ([Closeness("s", 0.4)], 2), ([DistinctDiversity("s", 1)], 2), ([DistinctDiversity("s", 3)], 3),
        ([EntropyDiversity("s", 1.0)], 2), ([EntropyDiversity("s", 2.0)], 2), ([EntropyDiversity("s", 2.4)], 3),
        ([EntropyDiversity("s", 3.0)], 3), ([RecursiveDiversity("s", Fraction(3), 3)], 3),
    ],
    ids=str,
)  # fmt: skip
def test_a_person_must_possibly_have_as_many_values_as_the_strictest_model_asks_and_two(models: list[PrivacyModel], least: int) -> None:
    rules = Rules(Promise(1, tuple(models)), ("s",), (np.array([4, 4, 4, 4, 4]),))
    assert least_values(0, rules.demands) == least


@pytest.mark.parametrize(
    ("totals", "sizes", "persons", "half", "held", "fewest"),
    [
        ([3, 1, 4], [3, 5], [1, 3], 1, 2, 3), ([3, 1, 1], [4, 1], [2, 1], 0, 2, 1), ([3, 1], [3, 1], [2, 1], 0, 0, 1),
        ([2, 2], [1, 3], [1, 2], 1, 1, 1), ([1, 4], [3, 2], [2, 1], 0, 1, 1), ([2, 3, 2], [4, 3], [3, 2], 0, 1, 2),
        ([4, 1, 2], [3, 4], [2, 4], 0, 0, 2), ([2, 2, 2, 1], [3, 4], [3, 2], 1, 3, 1),
    ],
)  # fmt: skip
def test_what_persons_may_hold_where_so_many_hold_one_value_is_that_of_all_ways_to_give_records_to_persons(
    totals: list[int], sizes: list[int], persons: list[int], half: int, held: int, fewest: int
) -> None:
    possible, lacked = np.zeros((2, len(totals)), np.bool_), np.zeros((2, len(totals)), np.bool_)
    _hold(possible, lacked, np.arange(len(totals)), *map(np.array, (totals, sizes, persons)), half, held, fewest)
    found = [tuple(set(np.flatnonzero(masks[place]).tolist()) for masks in (possible, lacked)) for place in range(2)]
    assert found == held_by_many(dict(enumerate(totals)), sizes, persons, half, held, fewest)


@pytest.mark.parametrize(("values", "half", "expected"), [(10, 2, False), (11, 2, False), (12, 2, True), (12, 1, False)])
def test_nine_values_are_tried_first_and_no_more_where_none_fills_a_half(values: int, half: int, expected: bool) -> None:
    """Of one record each: somebody in the half of two may have what is tried first, or what the other half leaves: the last two."""
    ones, sizes = np.ones(values, np.int64), np.array([half, values - half])
    model = DistinctDiversity("s", values)
    assert told_both_ways(model, values, np.arange(values), ones, sizes, sizes, several=False) == (expected, expected)
