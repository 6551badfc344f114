"""Distances of mixed records are Gower's, in whole numbers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clustering.gower import UNIT, distance, euclidean_points, gower_points
from core.columns.numbers import is_numerical
from tests.oracles.hierarchies import domain_of
from tests.oracles.records import Records, gower, mixed_records


def measured(points, first: int, second: int) -> int:
    return distance(points.rows, first, points.rows, second, points.metric)


@given(mixed_records(most=12), st.sampled_from(["differs", "ignored"]))
def test_a_distance_is_the_sum_over_the_qids(records: Records, missing: str) -> None:
    points = gower_points(records.codes, records.domains, missing)
    for first in range(points.size):
        for second in range(points.size):
            assert measured(points, first, second) == gower(records, first, second, missing) * UNIT


@given(mixed_records(most=12))
def test_with_hierarchies_categories_are_as_far_apart_as_their_common_ancestor_is_high(records: Records) -> None:
    points = gower_points(records.codes, records.domains, hierarchies=records.hierarchies)
    flat = gower_points(records.codes, records.domains)
    for first in range(points.size):
        for second in range(points.size):
            expected = Fraction(measured(flat, first, second), UNIT)
            for qid, hierarchy in enumerate(records.hierarchies):
                mine, other = records.codes[first, qid], records.codes[second, qid]
                if not records.numerical[qid] and mine != other:
                    height = next(
                        level for level in range(hierarchy.levels) if hierarchy.groups[level][mine] == hierarchy.groups[level][other]
                    )
                    expected += Fraction(height, hierarchy.top) - 1
            assert abs(Fraction(measured(points, first, second), UNIT) - expected) <= Fraction(len(records.domains), 2**20)


@given(mixed_records(most=8), st.booleans())
def test_the_distance_is_a_metric_where_missing_values_differ(records: Records, by_hierarchy: bool) -> None:
    points = gower_points(records.codes, records.domains, hierarchies=records.hierarchies if by_hierarchy else None)
    gaps = np.array([[measured(points, first, second) for second in range(points.size)] for first in range(points.size)])
    assert points.is_metric
    assert (gaps == gaps.T).all()
    assert (np.diag(gaps) == 0).all()
    assert (gaps[:, None, :] <= gaps[:, :, None] + gaps[None, :, :]).all()


@pytest.mark.parametrize(("missing", "one_missing"), [("differs", UNIT), ("ignored", 0)])
def test_both_missing_is_no_distance_and_one_missing_is_as_the_job_says(missing: str, one_missing: int) -> None:
    domains = [domain_of([1, 5], pa.int64(), nulls=2), domain_of(["a", "b"], pa.string(), nulls=2)]
    points = gower_points(np.array([[0, 0], [2, 0], [2, 2], [2, 2]]), domains, missing)
    assert [measured(points, *pair) for pair in [(0, 1), (1, 2), (2, 3), (0, 2)]] == [one_missing, one_missing, 0, 2 * one_missing]


def test_euclidean_points_leave_words_out_and_square() -> None:
    domains = [domain_of(["a", "b"], pa.string()), domain_of([0, 3, 10], pa.int64()), domain_of([0, 4, 10], pa.int64())]
    points = euclidean_points(np.array([[0, 0, 0], [1, 1, 1]]), domains)
    assert points.rows.shape == (2, 2)
    assert measured(points, 0, 1) == pytest.approx((0.3**2 + 0.4**2) * UNIT**2, rel=1e-5)
    assert not points.is_metric


@pytest.mark.parametrize(
    ("values", "numerical"),
    [
        (pa.array([1, 2], pa.int32()), True),
        (pa.array([0.5, 2]), True),
        (pa.array([date(2000, 1, 1), date(2001, 1, 1)]), True),
        (pa.array([Decimal("1.25"), Decimal("2.50")]), True),
        (pa.array(["1", "2"]), False),
        (pa.array([False, True]), False),
    ],
)
def test_numbers_and_dates_are_compared_by_distance_and_all_else_is_equal_or_not(values: pa.Array, numerical: bool) -> None:
    assert is_numerical(domain_of(values)) == numerical
