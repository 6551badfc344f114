"""Who holds a value: the four conditions are what they say, and say nothing new where everybody has one value."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.mondrian.partition import Rules
from core.privacy.holders import HolderBounds, Holders, fewest_too_many, held_by_few_persons
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.promise import Promise
from tests.laws import tried
from tests.oracles.persons import too_many_hold

Person = list[int]
"""The values that a person has in the class, of six, the last one of which is the null; each once."""
NULL, VALUES = 5, 6
PERSONS = st.lists(st.lists(st.integers(0, NULL), min_size=1, max_size=3, unique=True), min_size=1, max_size=9)
OF_ONE = st.lists(st.lists(st.integers(0, NULL), min_size=1, max_size=1), min_size=1, max_size=9)
ASKED: list[dict[str, Any]] = [
    {"l": {"x": {"distinct": 2}}},
    {"l": {"x": {"distinct": 3, "nulls": "value"}}},
    {"l": {"x": {"entropy": 1.5}}},
    {"l": {"x": {"entropy": 2, "nulls": "value"}}},
    {"l": {"x": {"recursive": {"c": Fraction(3, 2), "l": 2}}}},
    {"l": {"x": {"recursive": {"c": Fraction(1, 2), "l": 3}}}},
    {"t": {"x": {"t": 0.1}}},
    {"t": {"x": {"t": 0.4}}},
]


def model_of(asked: dict[str, Any]) -> PrivacyModel:
    [(section, columns)] = asked.items()
    if section == "t":
        return Closeness("x", columns["x"]["t"])
    null = None if columns["x"].get("nulls") else NULL
    match columns["x"]:
        case {"distinct": least}:
            return DistinctDiversity("x", least, null)
        case {"entropy": least}:
            return EntropyDiversity("x", float(least), null)
        case {"recursive": {"c": c, "l": least}}:
            return RecursiveDiversity("x", c, least, null)
    raise LookupError(section)


def pairs(people: list[Person], asked: dict[str, Any]) -> list[tuple[Any, Any]]:
    said = asked.get("l", {}).get("x", {"nulls": "value"})
    null = NULL if said.get("nulls") else None
    return [(number, null if value == NULL else value) for number, values in enumerate(people) for value in values]


def table(inside: list[Person], outside: list[Person]) -> tuple[np.ndarray, dict[str, Spread], np.ndarray]:
    mine, whole = (np.bincount([value for one in people for value in one], minlength=VALUES) for people in (inside, inside + outside))
    there = np.flatnonzero(mine)
    return np.array([len(inside)]), {"x": Spread(np.zeros(len(there), np.int64), there, mine[there], whole)}, whole


def conditions(promise: Promise) -> list[Holders]:
    return [one for one in promise.models if isinstance(one, Holders)]


@given(PERSONS, PERSONS, st.sampled_from(ASKED))
def test_the_conditions_are_those_that_are_written_down(inside: list[Person], outside: list[Person], asked: dict[str, Any]) -> None:
    outside = [*outside, [0, 1]]
    counts, spreads, whole = table(inside, outside)
    [condition] = conditions(Promise(1, (model_of(asked),)).of_people({"x": whole}, len(inside + outside)))
    assert condition.failing(counts, spreads)[0] == too_many_hold(pairs(inside, asked), pairs(inside + outside, asked), asked, always=True)


@tried(300)
@given(OF_ONE, PERSONS, st.sampled_from(ASKED))
def test_where_everybody_has_one_value_the_models_imply_them(inside: list[Person], outside: list[Person], asked: dict[str, Any]) -> None:
    """So nothing changes for data in which nobody has several values."""
    # In a whole in which others have several values, the shares of t are of pairs; there the law is of people with one value each.
    outside = [one[:1] for one in outside]
    counts, spreads, _ = table(inside, outside)
    if not model_of(asked).failing(counts, spreads)[0]:
        assert not too_many_hold(pairs(inside, asked), pairs(inside + outside, asked), asked, always=True)


@given(OF_ONE, PERSONS, st.sampled_from(ASKED))
def test_classes_of_people_with_one_value_each_are_refused_by_them_only_where_the_model_refuses_them(
    inside: list[Person], outside: list[Person], asked: dict[str, Any]
) -> None:
    counts, spreads, whole = table(inside, [*outside, [0, 1]])
    [condition] = conditions(Promise(1, (model_of(asked),)).of_people({"x": whole}, len(inside) + len(outside) + 1))
    assert model_of(asked).failing(counts, spreads)[0] or not condition.failing(counts, spreads)[0]


@given(OF_ONE, st.sampled_from(ASKED))
def test_a_table_of_people_with_one_value_each_has_the_model_it_had(inside: list[Person], asked: dict[str, Any]) -> None:
    promise = Promise(2, (model_of(asked),))
    assert promise.of_people({"x": table(inside, [])[2]}, len(inside)) is promise


@pytest.mark.parametrize("asked", ASKED)
def test_a_value_that_everybody_holds_breaks_every_model(asked: dict[str, Any]) -> None:
    """Ten people with two values each, of whom there are ten others with each of the six values alone."""
    inside, others = [[0, 1]] * 10, [[value] for value in range(VALUES)] * 10
    counts, spreads, whole = table(inside, others)
    promise = Promise(1, (model_of(asked),)).of_people({"x": whole}, 70)
    assert promise.failing(counts, spreads)[0]
    assert model_of(asked).failing(counts, spreads)[0] or promise.column_broken_by_holders(counts, spreads) == "x"


TOO_MUCH: dict[str, Any] = {"l": {"x": {"entropy": 7, "nulls": "value"}}}
"""More than six values have, however even they are."""


@pytest.mark.parametrize("whole", [np.array([9, 5, 4, 2, 1, 6]), np.array([9, 0, 0, 0, 0, 20])], ids=["all values", "one and nulls"])
@pytest.mark.parametrize("asked", [*ASKED, {"l": {"x": {"distinct": 5}}}, {"t": {"x": {"t": 0.0}}}, TOO_MUCH])
def test_the_compiled_conditions_know_by_how_many_persons_a_value_is_held_by_too_many(
    asked: dict[str, Any], whole: NDArray[np.int64]
) -> None:
    model = model_of(asked)
    promise = Promise(1, (model,)).of_people({"x": whole}, 24)
    [condition], bounds = conditions(promise), Rules(promise, ("x",), (whole,)).demands.holder_bounds
    null = getattr(model, "null", None)
    for persons in range(1, 13):
        counts = np.arange(1, persons + 1)
        for value in range(VALUES):
            held = Spread(np.zeros(persons, np.int64), np.full(persons, value), counts, whole)
            too_many = counts[condition.too_many(held, np.full(persons, persons))] if value != null else []
            expected = int(min(too_many, default=persons + 1))
            assert fewest_too_many(persons, value, 0, -1 if null is None else null, bounds) == expected, (persons, value)
            others = np.ones(VALUES, np.int64)
            for several in range(1, persons + 1):
                others[value] = several
                few = held_by_few_persons(persons, others, np.array([value, 0]), 1, 0, -1 if null is None else null, bounds)
                assert few == (several < expected), (persons, value, several)


@pytest.mark.parametrize("others", [{"entropy": 1.5}, {"recursive": {"c": Fraction(1, 2), "l": 3}}], ids=str)
@pytest.mark.parametrize("least", [2, 5])
def test_of_several_conditions_on_a_column_the_strictest_counts(least: int, others: dict[str, Any]) -> None:
    whole = np.array([9, 5, 4, 2, 1, 6])
    models = model_of({"l": {"x": {"distinct": least}}}), model_of({"l": {"x": others}}), model_of({"t": {"x": {"t": 0.4}}})

    def bounds(*asked: PrivacyModel) -> HolderBounds:
        return Rules(Promise(1, asked).of_people({"x": whole}, 24), ("x",), (whole,)).demands.holder_bounds

    together, alone = bounds(*models), [bounds(one) for one in models]
    for persons in range(1, 13):
        fewest = [fewest_too_many(persons, 0, 0, NULL, one) for one in alone]
        assert fewest_too_many(persons, 0, 0, NULL, together) == min(fewest)


def test_the_largest_share_under_entropy_is_that_of_the_rest_spread_evenly() -> None:
    """Of five values, at l = 2, a share of 0.82946… still has an entropy of ln 2; 829 of 1,000 have, 830 have not."""
    whole = np.array([900, 100, 100, 100, 100, 0])
    [condition] = conditions(Promise(1, (EntropyDiversity("x", 2.0, NULL),)).of_people({"x": whole}, 1_000))

    def fails(held: int) -> bool:
        spread = Spread(np.zeros(2, np.int64), np.array([0, 1]), np.array([held, 1_000]), whole)
        return bool(condition.too_many(spread, np.array([1_000, 2_000]))[0])

    assert [fails(held) for held in (200, 500, 829, 830, 1_000)] == [False, False, False, True, True]


def test_nothing_is_known_of_a_union_by_its_parts() -> None:
    """Half of the same people hold each value in either of two classes, and together everybody holds both."""
    people = [*range(8), *range(8)]
    values = [number % 2 for number in range(8)] + [1 - number % 2 for number in range(8)]
    whole = np.array([8, 8])
    promise = Promise(1, (DistinctDiversity("x", 2),)).of_people({"x": whole}, 8)
    halves = Spread(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([4, 4, 4, 4]), whole)
    assert Counter(zip(people, values, strict=True)).total() == 16
    assert promise.failing(np.array([8, 8]), {"x": halves}).tolist() == [False, False]
    assert promise.failing(np.array([8]), {"x": halves.union(np.array([True, True]))}).tolist() == [True]
    assert promise.relaxed != promise
    assert not promise.is_closed_under_union
