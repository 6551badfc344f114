"""Where l refuses a cut, nobody is told by it: neither who knows all quasi-identifiers and the algorithm, nor anybody less."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mondrian.partition import Mode, Refused, Rules, Score, partition
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from core.privacy.promise import Promise
from tests.core.mondrian.test_partition import axes_of
from tests.laws import tried
from tests.oracles.minimality import told
from tests.oracles.mondrian import Column

VALUES = 4
MODELS: dict[str, tuple[PrivacyModel, int]] = {
    "distinct 2": (DistinctDiversity("s", 2), 2),
    "distinct 3": (DistinctDiversity("s", 3), 3),
    "nulls": (DistinctDiversity("s", 2, VALUES - 1), 2),
    "entropy": (EntropyDiversity("s", 1.6), 2),
    "recursive": (RecursiveDiversity("s", Fraction(2), 2), 2),
    "recursive 3": (RecursiveDiversity("s", Fraction(9), 3), 3),
    "close": (Closeness("s", 0.4), 2),
}


def classes(
    records: list[tuple[int, int]], values: list[int], k: int, model: PrivacyModel, refused: Refused, mode: Mode
) -> list[list[int]]:
    columns = [Column(range(4), True), Column(range(3), False)]
    rules = Rules(Promise(k, (model,)), ("s",), (np.full(VALUES, 5),), refused)
    ranks, score = np.array(records, np.uint16), np.array(values, np.int32)[:, None].copy()
    chosen: Score = "representativity"
    made = partition(ranks, np.ones(len(records), np.int64), axes_of(columns), rules, chosen, mode=mode, sensitive=score)
    return sorted(sorted(part.tolist()) for part in np.split(made.order, made.starts[1:-1]))


def sizes_of_halves(younger: int, values: list[int], model: PrivacyModel) -> list[int]:
    """Return the sizes of the classes of people of two ages, the younger ones first."""
    ranks = np.array([(int(place >= younger), 0) for place in range(len(values))], np.uint16)
    axes, rules = axes_of([Column(range(2), True), Column(range(1), True)]), Rules(Promise(2, (model,)), ("s",), (np.bincount(values),))
    sensitive = np.array(values, np.int32)[:, None].copy()
    made = partition(ranks, np.ones(len(values), np.int64), axes, rules, "representativity", sensitive=sensitive)
    return np.diff(made.starts).tolist()


TABLES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, VALUES - 1)), min_size=4, max_size=8)


@pytest.mark.promise
@pytest.mark.slow
@given(TABLES, st.integers(1, 3), st.sampled_from(sorted(MODELS)), st.sampled_from(["strict", "median", "relaxed"]))
@tried(150)
def test_nobodys_value_is_told_by_a_cut_that_was_not_made(table: list[tuple[int, int, int]], k: int, name: str, mode: Mode) -> None:
    records, values = [row[:2] for row in table], [row[2] for row in table]
    model, least = MODELS[name]
    found = classes(records, values, k, model, "stop", mode)
    seen = [None if name == "nulls" and value == VALUES - 1 else value for value in values]

    def release(world: list[int | None]) -> list[list[int]]:  # what is seen as no value has a code of its own
        return classes(records, [VALUES - 1 if value is None else value for value in world], k, model, "stop", mode)

    assert not told(found, seen, [], release, least)


@pytest.mark.slow
def test_the_next_best_cut_tells_what_stopping_does_not() -> None:
    """Five people, the three youngest with different illnesses: that they were not set apart tells that the other two share one."""
    records, values = [(0, 0), (0, 0), (1, 0), (2, 0), (2, 0)], [0, 1, 2, 3, 3]
    model = DistinctDiversity("s", 2)

    def told_by(refused: Refused) -> set[int]:
        found = classes(records, values, 2, model, refused, "median")
        return told(found, values, [], lambda world: classes(records, list(world), 2, model, refused, "median"))

    assert classes(records, values, 2, model, "stop", "median") == [[0, 1, 2, 3, 4]]
    assert told_by("next")
    assert not told_by("stop")


@pytest.mark.parametrize(
    ("model", "cuts"),
    [
        (RecursiveDiversity("s", Fraction(9), 2), True),
        # In the ways in which a half is refused, everybody in it has one of two values, and a third is asked for.
        (RecursiveDiversity("s", Fraction(9), 3), False),
    ],
)
def test_a_refusal_leaves_as_many_values_possible_as_the_recursive_model_asks_for(model: PrivacyModel, cuts: bool) -> None:
    """Nine people and eight, whose halves both keep the model: whether they are set apart hangs on what a refusal would have told."""
    values = [0, 0, 1, 1, 2, 2, 3, 3, 4, 0, 0, 1, 1, 2, 3, 4, 4]
    assert sizes_of_halves(9, values, model) == ([9, 8] if cuts else [17])


@pytest.mark.parametrize(
    ("values", "cuts"),
    [
        # Two of the younger share a value. That they were not set apart could only come from the older two, and would tell of these.
        ([0, 0, 1, 2, 3], [5]),
        ([0, 0, 1, 1, 2], [3, 2]),
        ([0, 0, 0, 1, 1, 0, 0, 1, 1, 1], [5, 5]),
    ],
)
def test_a_cut_is_not_tried_where_only_one_half_can_refuse_it(values: list[int], cuts: list[int]) -> None:
    assert sizes_of_halves(len(values) - len(values) // 2, values, DistinctDiversity("s", 2)) == cuts
