"""Privacy models answer as their definitions do, one class at a time, and no union of classes is worse than its worst part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy import models
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.promise import (
    Promise,
    distinct_diversity,
    entropy_diversity,
    equal_closeness,
    hierarchical_closeness,
    ordered_closeness,
    recursive_diversity,
)
from schemas.registry.sensitive import DistinctSpec, EntropySpec, EqualSpec, HierarchicalSpec, OrderedSpec, RecursiveSpec
from tests.laws import tried
from tests.oracles.tables import observed

COUNTS = st.lists(st.integers(1, 50), min_size=1, max_size=20)
VALUES = 6
TABLES = st.lists(st.lists(st.integers(0, VALUES - 1), min_size=1, max_size=12), min_size=1, max_size=6)
TREE = ((0, 0, 1, 1, 2, 2), (0, 0, 0, 0, 1, 1), (0, 0, 0, 0, 0, 0))
"""Groups of the six values, from fine to coarse."""
ORDER = (3, 0, 5, 1, 4, 2)


def spread_of(classes: Sequence[Sequence[int]]) -> Spread:
    """The spread of the values of one column, written out; some values of the source are in no class."""
    entries = [(owner, value, count) for owner, values in enumerate(classes) for value, count in sorted(Counter(values).items())]
    owners, values, counts = (np.array(column, np.int64) for column in zip(*entries, strict=True))
    whole = np.bincount([value for values in classes for value in values], minlength=VALUES) + np.array([1, 0, 0, 2, 0, 1])
    return Spread(owners, values, counts, whole)


def fails(model: PrivacyModel, classes: Sequence[Sequence[int]], spread: Spread) -> list[bool]:
    return model.failing(np.array([len(values) for values in classes], np.int64), {"x": spread}).tolist()


def closeness(distance: str, t: float) -> Closeness:
    ranks = np.array(ORDER) if distance == "ordered" else None
    groups = tuple(np.array(level) for level in TREE) if distance == "hierarchical" else ()
    return Closeness("x", t, ranks, groups)


MODELS = (
    st.builds(DistinctDiversity, st.just("x"), st.integers(1, 5))
    | st.builds(EntropyDiversity, st.just("x"), st.sampled_from([1.0, 1.5, 2.0, 3.0]))
    | st.builds(RecursiveDiversity, st.just("x"), st.fractions(Fraction(1, 4), 4, max_denominator=4), st.integers(1, 4))
    | st.builds(closeness, st.sampled_from(["equal", "ordered", "hierarchical"]), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
)


@given(COUNTS, st.integers(1, 60))
def test_exactly_the_classes_below_k_fail(counts: list[int], k: int) -> None:
    assert Promise(k).failing(np.array(counts, np.int64)).tolist() == [count < k for count in counts]


def test_a_class_of_exactly_k_records_is_safe() -> None:
    assert Promise(5).failing(np.array([4, 5, 6])).tolist() == [True, False, False]


def test_no_class_is_no_fault() -> None:
    assert Promise(5).failing(np.empty(0, np.int64)).tolist() == []


@given(TABLES, st.integers(1, 5))
def test_distinct_diversity_counts_values(classes: list[list[int]], least: int) -> None:
    assert fails(DistinctDiversity("x", least), classes, spread_of(classes)) == [len(set(values)) < least for values in classes]


@given(TABLES, st.sampled_from([1.0, 1.7, 2.0, 3.0]))
def test_entropy_diversity_is_the_entropy_against_the_logarithm(classes: list[list[int]], least: float) -> None:
    def entropy(values: list[int]) -> float:
        return -sum(count / len(values) * log(count / len(values)) for count in Counter(values).values())

    assert fails(EntropyDiversity("x", least), classes, spread_of(classes)) == [entropy(values) < log(least) - 1e-9 for values in classes]


def test_two_values_that_are_equally_frequent_have_the_entropy_of_two() -> None:
    assert fails(EntropyDiversity("x", 2), [[0, 1] * 7, [0, 0, 1]], spread_of([[0, 1] * 7, [0, 0, 1]])) == [False, True]


@given(TABLES, st.fractions(Fraction(1, 4), 4, max_denominator=8), st.integers(1, 4))
def test_recursive_diversity_is_its_formula(classes: list[list[int]], c: Fraction, least: int) -> None:
    def safe(values: list[int]) -> bool:
        falling = sorted(Counter(values).values(), reverse=True)
        return falling[0] < c * sum(falling[least - 1 :])

    assert fails(RecursiveDiversity("x", c, least), classes, spread_of(classes)) == [not safe(values) for values in classes]


def ground(distance: str, first: int, second: int) -> float:
    """The distance of two values."""
    if first == second:
        return 0.0
    if distance == "equal":
        return 1.0
    if distance == "ordered":
        return abs(ORDER[first] - ORDER[second]) / (VALUES - 1)
    return next(height for height, level in enumerate(TREE, start=1) if level[first] == level[second]) / len(TREE)


def earth_moved(distance: str, shares: Sequence[Fraction], whole: Sequence[Fraction]) -> float:
    """The earth mover's distance as a linear programme, solved by the simplex of SciPy's highs."""
    optimize = pytest.importorskip("scipy.optimize")
    costs = [ground(distance, first, second) for first in range(VALUES) for second in range(VALUES)]
    rows = [[float(cell // VALUES == value) for cell in range(VALUES**2)] for value in range(VALUES)]
    columns = [[float(cell % VALUES == value) for cell in range(VALUES**2)] for value in range(VALUES)]
    return float(optimize.linprog(costs, A_eq=rows + columns, b_eq=[*map(float, shares), *map(float, whole)]).fun)


@given(TABLES, st.sampled_from(["equal", "ordered", "hierarchical"]))
@tried(40)
def test_closeness_is_the_least_work_that_moves_one_distribution_into_the_other(classes: list[list[int]], distance: str) -> None:
    spread = spread_of(classes)
    counts = np.array([len(values) for values in classes], np.int64)
    total = int(spread.source_counts.sum())
    whole = [Fraction(int(count), total) for count in spread.source_counts]
    for values, found in zip(classes, closeness(distance, 0.5).distances(counts, spread), strict=True):
        shares = [Fraction(values.count(value), len(values)) for value in range(VALUES)]
        assert found == pytest.approx(earth_moved(distance, shares, whole), abs=1e-9)


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_a_class_that_is_exactly_t_away_is_safe_however_shares_are_rounded(distance: str) -> None:
    """A class of one of two values, of which the source has every share of fewer than forty; a little nearer it must be too."""
    ranks = np.arange(2) if distance == "ordered" else None
    groups = (np.zeros(2, np.int64),) if distance == "hierarchical" else ()
    one, least = np.array([3]), 1e-6
    for few, many in combinations(range(1, 40), 2):
        spread = {"x": Spread(np.array([0]), np.array([1]), one, np.array([few, many - few]))}
        assert not Closeness("x", few / many, ranks, groups).failing(one, spread)[0]
        assert Closeness("x", few / many - least, ranks, groups).failing(one, spread)[0]


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_a_source_of_one_record_or_none_is_as_near_as_it_can_be(distance: str) -> None:
    model = Closeness("x", 0.1, np.arange(1) if distance == "ordered" else None, (np.zeros(1, int),) * (distance == "hierarchical"))
    one, none = np.ones(1, np.int64), np.zeros(0, np.int64)
    assert model.distances(one, Spread(np.zeros(1, np.int64), np.zeros(1, np.int64), one, one)).tolist() == [0]
    assert [model.distances(none, Spread(none, none, none, np.zeros(size, np.int64))).tolist() for size in (0, 1)] == [[], []]


@pytest.mark.parametrize("distance", ["ordered", "hierarchical"])
@pytest.mark.parametrize("block", [1, VALUES - 1, VALUES, 2 * VALUES, 3 * VALUES + 1])
def test_distances_are_the_same_however_many_classes_are_looked_at_at_a_time(
    monkeypatch: pytest.MonkeyPatch, distance: str, block: int
) -> None:
    classes = [[0, 0, 5], [1], [2, 3, 4, 4], [5, 5], [0, 1, 2, 3, 4, 5], [3], [0, 5]]
    counts, spread, model = np.array([len(values) for values in classes]), spread_of(classes), closeness(distance, 0.2)
    expected = [model.distances(counts[[number]], spread_of_one(spread, number))[0] for number in range(len(classes))]
    monkeypatch.setattr(models, "BLOCK", block)
    assert model.distances(counts, spread).tolist() == pytest.approx(expected)


def spread_of_one(spread: Spread, number: int) -> Spread:
    """The spread of one of the classes alone, with the same source."""
    mine = spread.owners == number
    return Spread(np.zeros(mine.sum(), np.int64), spread.values[mine], spread.counts[mine], spread.source_counts)


def test_the_paper_s_salaries_are_as_far_as_it_says() -> None:
    """Li et al. 2007, example of section 5: nine salaries 3k to 11k, classes {3k, 4k, 5k} and {6k, 8k, 11k}."""
    spread = Spread(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 5, 8]), np.ones(6, np.int64), np.ones(9, np.int64))
    distances = Closeness("x", 0.5, np.arange(9)).distances(np.array([3, 3]), spread)
    assert distances.tolist() == pytest.approx([0.375, 0.167], abs=1e-3)


@pytest.mark.parametrize("distance", ["ordered", "hierarchical"])
@pytest.mark.parametrize("values", range(1, 5))
def test_the_whole_way_from_one_end_to_the_other_is_one_however_many_values_there_are(distance: str, values: int) -> None:
    """A class of the last value, and a source of the first and last; of a single value nothing has a way to go."""
    ranks = np.arange(values)[::-1] if distance == "ordered" else None
    groups = () if distance == "ordered" else (np.zeros(values, np.int64),)
    whole = np.eye(values, dtype=np.int64)[0] * 3 + np.eye(values, dtype=np.int64)[-1]
    spread, one = Spread(np.array([0]), np.array([values - 1]), np.array([7]), whole), np.array([7])
    assert Closeness("x", 0.5, ranks, groups).distances(one, spread).tolist() == pytest.approx([0.75 * (values > 1)])
    assert Closeness("x", 0.7, ranks, groups).failing(one, {"x": spread}).tolist() == [values > 1]
    assert not Closeness("x", 0.75, ranks, groups).failing(one, {"x": spread})[0]


@given(TABLES, MODELS, st.data())
@tried(300)
def test_a_union_never_fails_where_all_of_its_parts_are_safe(classes: list[list[int]], model: PrivacyModel, data: st.DataObject) -> None:
    spread = spread_of(classes)
    safe = [values for values, bad in zip(classes, fails(model, classes, spread), strict=True) if not bad]
    merged = data.draw(st.lists(st.sampled_from(range(len(safe))), unique=True, min_size=1)) if safe else []
    if merged:
        union = [value for part in merged for value in safe[part]]
        parts = spread_of([union])
        assert fails(model, [union], Spread(parts.owners, parts.values, parts.counts, spread.source_counts)) == [False]


@given(TABLES, st.data())
def test_the_union_of_a_spread_is_the_spread_of_the_union(classes: list[list[int]], data: st.DataObject) -> None:
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(classes), max_size=len(classes))))
    found = spread_of(classes).union(marked)
    expected: Any = Counter(value for values, mark in zip(classes, marked, strict=True) if mark for value in values)
    assert dict(zip(found.values.tolist(), found.counts.tolist(), strict=True)) == expected
    assert not found.owners.any()


@given(TABLES, st.integers(1, 8), MODELS, MODELS)
def test_a_promise_fails_what_k_or_any_of_its_models_fails(
    classes: list[list[int]], k: int, first: PrivacyModel, second: PrivacyModel
) -> None:
    spread = spread_of(classes)
    either = [one or other for one, other in zip(fails(first, classes, spread), fails(second, classes, spread), strict=True)]
    either = [one or len(values) < k for one, values in zip(either, classes, strict=True)]
    counts = np.array([len(values) for values in classes], np.int64)
    assert Promise(k, (first, second)).failing(counts, {"x": spread}).tolist() == either


def test_values_are_as_far_apart_as_their_places_in_the_domain_a_null_last() -> None:
    domain = observed("pay", [3, 1, None, 7], pa.int64())
    made = ordered_closeness("pay", OrderedSpec.model_validate({"t": 0.25, "distance": "ordered"}), domain, Path())
    assert (made.column, made.t) == ("pay", 0.25)
    assert made.ranks is not None
    assert made.ranks.tolist() == [0, 1, 2, 3]


def test_values_are_as_far_apart_as_their_lowest_common_group_is_high() -> None:
    """What a tree joins first has one group at the first level above the values, and all have one at the last."""
    tree = {"lungs": {"short": ["flu", "cold"], "long": ["asthma"]}, "other": {"bones": ["gout"]}}
    domain = observed("ill", ["asthma", "cold", "flu", "gout"], pa.string())
    said = {"t": 0.25, "distance": "hierarchical", "hierarchy": {"tree": tree}}
    made = hierarchical_closeness("ill", HierarchicalSpec.model_validate(said), domain, Path())
    assert (made.column, made.t, made.ranks) == ("ill", 0.25, None)
    names = domain.values.to_pylist()
    joined = [
        {frozenset(name for name, mine in zip(names, level.tolist(), strict=True) if mine == one) for one in level} for level in made.groups
    ]
    levels = [["cold flu", "asthma", "gout"], ["cold flu asthma", "gout"], ["cold flu asthma gout"]]
    assert joined == [{frozenset(group.split()) for group in level} for level in levels]


@pytest.mark.parametrize("nulls", ["none", "value"])
@pytest.mark.parametrize("lacks", [True, False])
def test_a_diversity_has_the_numbers_of_its_settings_and_leaves_out_nulls_unless_they_are_values(nulls: str, lacks: bool) -> None:
    domain = observed("ill", ["a", "b", "c", *[None] * lacks], pa.string())
    null = 3 if lacks and nulls == "none" else None
    made = (
        distinct_diversity("ill", DistinctSpec.model_validate({"distinct": 2, "nulls": nulls}), domain, Path()),
        entropy_diversity("ill", EntropySpec.model_validate({"entropy": 1.5, "nulls": nulls}), domain, Path()),
        recursive_diversity("ill", RecursiveSpec.model_validate({"recursive": {"c": 0.3, "l": 2}, "nulls": nulls}), domain, Path()),
    )
    expected = (
        DistinctDiversity("ill", 2, null),
        EntropyDiversity("ill", 1.5, null),
        RecursiveDiversity("ill", Fraction(3, 10), 2, null),
    )
    assert made == expected


def test_where_all_values_are_equally_far_nothing_but_t_is_taken_from_the_settings() -> None:
    domain = observed("ill", ["a", "b", None], pa.string())
    made = equal_closeness("ill", EqualSpec.model_validate({"t": 0.25}), domain, Path())
    assert (made.column, made.t, made.ranks, made.groups) == ("ill", 0.25, None, ())
