"""Utility is measured as its definitions say: on worked examples, and against records that are spread out one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.evaluation.utility import (
    Contingency,
    Predicate,
    draw_queries,
    exact_meaning,
    mean_ncp,
    meaning_of,
    relative_errors,
    total_variation,
)
from core.hierarchies.hierarchy import Hierarchy, build_hierarchy
from schemas.job.columns import QuasiIdentifier

AGES = Domain("age", pa.array([20, 21, 25, 30], pa.int64()), np.array([1, 2, 3, 4]), 0)
CITIES = Domain("city", pa.array(["aa", "ab", "b"]), np.array([5, 1, 2]), 2)


def ages() -> Hierarchy:
    return build_hierarchy(QuasiIdentifier.model_validate({"name": "age", "hierarchy": {"widths": [5, 10]}}), AGES, Path())


def cities() -> Hierarchy:
    hierarchy = {"tree": {"*": {"A": ["aa", "ab"], "B": ["b"]}}}
    return build_hierarchy(QuasiIdentifier.model_validate({"name": "city", "hierarchy": hierarchy}), CITIES, Path())


def none(count: int) -> np.ndarray:
    return np.full(count, -1, np.int64)


def members(texts: list[str | None], domain: Domain, hierarchy: Hierarchy, level: int | None) -> list[list[int]]:
    meaning = meaning_of(texts, none(len(texts)), domain, hierarchy, level)
    return [meaning.codes[meaning.labels == label].tolist() for label in range(len(texts))]


def test_labels_of_a_level_stand_for_their_groups() -> None:
    assert members(["[20 - 24]", "[30 - 34]", "*"], AGES, ages(), 1) == [[0, 1], [3], [0, 1, 2, 3]]
    assert members(["20|24", None, "*"], AGES, ages(), 1) == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert members(["A", None, "B"], CITIES, cities(), 1) == [[0, 1], [3], [2]]


def test_local_labels_stand_for_groups_of_any_level_ranges_and_sets() -> None:
    assert members(["[21 - 30]", "[20 - 29]", "25", "21|25"], AGES, ages(), None) == [[1, 2, 3], [0, 1, 2], [2], [1, 2]]
    assert members(["{aa, b}", "A", "ab", "*", None], CITIES, cities(), None) == [[0, 2], [0, 1], [1], [0, 1, 2, 3], [3]]


def test_a_value_that_is_published_stands_for_itself() -> None:
    meaning = meaning_of(["20", "25"], np.array([0, 2]), AGES, ages(), 0)
    assert (meaning.labels.tolist(), meaning.codes.tolist()) == ([0, 1], [0, 2])


def test_labels_that_stand_for_nothing_are_counted_not_shown() -> None:
    with pytest.raises(LookupError) as lost:
        meaning_of(["[20 - 24]", "secret", "[1 - 2]"], none(3), AGES, ages(), None)
    assert lost.value.args == (2,)


def test_generalised_and_marginals_on_a_worked_example() -> None:
    meaning = meaning_of(["[20 - 24]", "[25 - 29]", "[30 - 34]"], none(3), AGES, ages(), 1)
    counts = np.array([3, 3, 4])
    assert mean_ncp(meaning, counts) == pytest.approx((3 * 0.4 + 3 * 0.4) / 10)
    after = meaning.spread(counts)
    assert after.tolist() == [1.5, 1.5, 3, 4]
    assert total_variation(AGES.counts, after) == pytest.approx(0.05)
    words = meaning_of(["A", "B", None], none(3), CITIES, cities(), 1)
    assert mean_ncp(words, np.array([6, 2, 2])) == pytest.approx(0.6 * 2 / 4 + 0.2 * 1 / 4)


@given(st.lists(st.integers(1, 50), min_size=4, max_size=4), st.integers(0, 3))
def test_spread_keeps_every_record_and_moves_nothing_at_level_0(counts: list[int], level: int) -> None:
    hierarchy, domain = ages(), Domain("age", AGES.values, np.array(counts), 0)
    groups = hierarchy.groups[level]
    texts = [str(label) for label in hierarchy.labels[level].to_pylist()]
    meaning = meaning_of(texts, np.arange(4) if level == 0 else none(len(texts)), domain, hierarchy, level)
    after = meaning.spread(np.bincount(groups, weights=counts).astype(np.int64))
    assert after.sum() == pytest.approx(sum(counts))
    moved = total_variation(domain.counts, after)
    assert 0 <= moved <= 1
    if level == 0:
        assert moved == 0


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2))
def test_a_query_counts_each_record_by_the_share_of_its_label(first: int, last: int, label: int) -> None:
    meaning = meaning_of(["[20 - 24]", "[25 - 29]", "[30 - 34]"], none(3), AGES, ages(), 1)
    asked = Predicate(0, min(first, last), max(first, last)).chosen(4)
    table = Contingency(np.array([label]), np.array([1]), np.array([7]))
    inside = [code in range(min(first, last), max(first, last) + 1) for code in meaning.codes[meaning.labels == label]]
    assert table.total(meaning.share(asked), exact_meaning(2).share(np.array([0.0, 1.0]))) == pytest.approx(7 * sum(inside) / len(inside))


@given(st.integers(0, 1000), st.sampled_from([([0], 3), ([0, 1, 2], 3), ([], 2), ([0], 1), ([], 1)]))
def test_queries_are_seeded_and_ask_a_range_and_a_category_where_there_are_both(seed: int, kinds: tuple[list[int], int]) -> None:
    numbers, attributes = kinds
    counts = [np.array([3, 0, 2, 5])] * attributes
    queries = draw_queries(numbers, counts, 20, seed)
    assert queries == draw_queries(numbers, counts, 20, seed)
    for first, second in queries:
        assert 0 <= first.first <= first.last < 4
        assert 1 not in {first.first, first.last, second.first, second.last}
        assert first.attribute != second.attribute or attributes == 1
        for half in (first, second):
            assert half.first == half.last or half.attribute in numbers
        if numbers == [0] and attributes == 3:
            assert first.attribute == 0 != second.attribute


def test_relative_errors_have_a_floor() -> None:
    errors = relative_errors(np.array([100.0, 0.0, 5.0]), np.array([90.0, 4.0, 5.0]), 2000)
    assert errors.tolist() == [0.1, 2.0, 0.0]
