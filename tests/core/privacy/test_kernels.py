"""Kernels judge a class of few values as the models do."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.privacy.kernels import class_keeps, demands_of
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.promise import Promise
from tests.core.privacy.test_models import VALUES, closeness
from tests.laws import tried

NULLS = st.sampled_from([None, VALUES - 1])
MODELS = (
    st.builds(DistinctDiversity, st.just("x"), st.integers(1, 4), NULLS)
    | st.builds(EntropyDiversity, st.just("x"), st.sampled_from([1.0, 1.5, 2.0, 3.0]), NULLS)
    | st.builds(RecursiveDiversity, st.just("x"), st.fractions(Fraction(1, 4), 4, max_denominator=4), st.integers(1, 4), NULLS)
    | st.builds(closeness, st.sampled_from(["equal", "ordered", "hierarchical"]), st.sampled_from([0.0, 0.1, 0.25, 0.5]))
)
COUNTS = st.lists(st.integers(0, 5), min_size=VALUES, max_size=VALUES).filter(any)


def kept_by_kernels(model: PrivacyModel, counts: list[int], whole: list[int]) -> bool:
    demands = demands_of(Promise(1, (model,)), ("x",), (np.array(whole, np.int64),))
    present = np.flatnonzero(counts)
    return bool(class_keeps(sum(counts), sum(counts), np.array(counts, np.int64), present, len(present), 0, demands))


def kept_by_models(model: PrivacyModel, counts: list[int], whole: list[int]) -> bool:
    present = np.flatnonzero(counts)
    spread = Spread(np.zeros(len(present), np.int64), present, np.array(counts, np.int64)[present], np.array(whole, np.int64))
    return not model.failing(np.array([sum(counts)], np.int64), {"x": spread})[0]


@given(MODELS, COUNTS, COUNTS)
@example(RecursiveDiversity("x", Fraction(3, 2), 2), [3, 2, 0, 0, 0, 0], [0] * VALUES)  # 3 < 3/2 · 2 does not hold
@example(RecursiveDiversity("x", Fraction(5, 2), 2), [4, 2, 0, 0, 0, 0], [0] * VALUES)  # 4 < 5/2 · 2 does
@example(closeness("equal", 0.0), [1, 0, 0, 0, 0, 0], [0] * VALUES)  # a source of one record
@example(closeness("ordered", 0.25), [5, 0, 0, 0, 0, 0], [0] * VALUES)  # the source's own shares
@example(closeness("ordered", 0.25), [5, 0, 0, 0, 0, 0], [0, 5, 5, 5, 5, 5])  # other shares
@example(closeness("hierarchical", 0.4), [2, 0, 0, 0, 0, 0], [-2, 2, 0, 0, 0, 0])  # a third: all within the lowest of three
@example(closeness("hierarchical", 0.4), [2, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 2])  # a half: all the way over the top
@tried(400)
def test_a_class_is_kept_or_refused_as_by_the_models(model: PrivacyModel, counts: list[int], others: list[int]) -> None:
    whole = [mine + other for mine, other in zip(counts, others, strict=True)]
    assert kept_by_kernels(model, counts, whole) == kept_by_models(model, counts, whole)


@pytest.mark.parametrize(
    "model",
    [
        DistinctDiversity("x", 2, 0), EntropyDiversity("x", 1.0), EntropyDiversity("x", 1.0, 0), EntropyDiversity("x", 2.0, 0),
        RecursiveDiversity("x", Fraction(2), 2, 0), RecursiveDiversity("x", Fraction(1), 1, 0), RecursiveDiversity("x", Fraction(3), 3),
        RecursiveDiversity("x", Fraction(2), 1, 0), Closeness("x", 0.3), Closeness("x", 0.3, np.arange(3)),
        Closeness("x", 0.3, np.array([2, 0, 1])),
        Closeness("x", 0.4, None, (np.array([0, 0, 1]), np.zeros(3, np.int64))),
    ],
    ids=repr,
)  # fmt: skip
def test_each_class_of_few_records_is_kept_or_refused_as_by_the_models(model: PrivacyModel) -> None:
    judged = {counts: kept_by_kernels(model, list(counts), [4] * 3) for counts in product(range(4), repeat=3) if any(counts)}
    assert judged == {counts: kept_by_models(model, list(counts), [4] * 3) for counts in judged}
    assert set(judged.values()) == {False, True} or model == EntropyDiversity("x", 1.0)


@pytest.mark.parametrize("ranks", [None, np.arange(2)])
def test_a_class_at_just_the_distance_that_is_asked_for_is_kept(ranks: np.ndarray | None) -> None:
    demands = demands_of(Promise(1, (Closeness("x", 0.5, ranks),)), ("x",), (np.array([2, 2]),))
    for least, kept in ((0.5, True), (np.nextafter(0.5, 0.0), False)):
        asked = demands._replace(distances=np.array([[least, -1.0, -1.0] if ranks is None else [-1.0, least, -1.0]]))
        assert bool(class_keeps(2, 2, np.array([2, 0]), np.array([0]), 1, 0, asked)) == kept


def test_a_column_of_nulls_alone_has_no_value() -> None:
    for model in (DistinctDiversity("x", 1, 0), EntropyDiversity("x", 1.0, 0), RecursiveDiversity("x", Fraction(4), 1, 0)):
        assert not kept_by_kernels(model, [3], [3])
        assert not kept_by_models(model, [3], [3])


def test_a_class_in_which_too_many_persons_hold_a_value_is_refused_however_many_records_there_are() -> None:
    """Five persons, of whom so many hold the first value beside the second, which all hold."""
    promise = Promise(1, (DistinctDiversity("x", 2),)).of_people({"x": np.array([6, 6])}, 10)
    demands = demands_of(promise, ("x",), (np.array([6, 6]),))
    for first, second, kept in ((4, 4, True), (4, 5, False), (5, 4, False), (1, 4, True)):
        assert bool(class_keeps(first + second, 5, np.array([first, second]), np.array([0, 1]), 2, 0, demands)) == kept
