"""RAYDEN's outlier step agrees with Algorithms 2 and 3 written out, and publishes no class below k."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clustering.cof import outlier_factors, outliers
from core.clustering.gower import ABSENT, UNIT, Points, gower_points
from core.clustering.merged_classes import dense, merge_failing, smaller_than
from core.clustering.nearest import medoids
from core.clustering.outlier_step import OutlierResult, OutlierStep, separate_outliers
from core.clustering.vptree import VantageTree, canon_partition
from core.recoding.classes import records_by_class
from core.recoding.recoding import SUPPRESSED
from tests.covering import each_value
from tests.oracles import rayden as oracle
from tests.oracles.hierarchies import domain_of
from tests.oracles.records import Records, by_class, gower, mixed_records

steps = st.builds(
    OutlierStep,
    st.integers(1, 5),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    st.sampled_from(["paper", "tang"]),
    st.sampled_from(["bounded", "freely"]),
    st.sampled_from(["join", "suppress"]),
)


def handled(points: Points, tree: VantageTree, step: OutlierStep) -> OutlierResult:
    return separate_outliers(points, tree.partition(points), step, lambda rows, groups: tree.partition(points.take(rows), groups))


@given(mixed_records(most=24), st.integers(1, 6), st.sampled_from(["paper", "tang"]))
def test_factors_are_those_of_the_formula(records: Records, k: int, chaining: str) -> None:
    points = gower_points(records.codes, records.domains)
    classes = VantageTree(2 * k).partition(points)
    found = outlier_factors(points, classes, k, chaining)
    for part in by_class(classes):
        for record, factor in oracle.cof(sorted(part), k, chaining, distances(records)).items():
            assert found[record] == pytest.approx(factor, rel=1e-12)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("size", "columns"), [*each_value([257, 256, 255, 128, 65, 64, 33, 32, 31, 15, 2], [9, 3]), (32, 9)])
def test_factors_do_not_hang_on_how_many_records_a_loop_takes_at_a_time(size: int, columns: int) -> None:
    # Nine columns add up to more than half the width of a number holds.
    rows = np.random.default_rng(size).integers(0, [UNIT, 12, *[3] * (columns - 2)], (2 * size, columns)).astype(np.int32)
    rows[::7, 0] = ABSENT
    points, classes = Points.of(rows, 2), np.arange(2 * size, dtype=np.int32) % 2

    def gap(first: int, second: int) -> int:
        apart = np.abs(rows[first].astype(np.int64) - rows[second])
        return int(np.minimum(apart[:2], UNIT).sum()) + UNIT * int(np.count_nonzero(apart[2:]))

    found = outlier_factors(points, classes, 10)
    for part in by_class(classes):
        for record, factor in oracle.cof(sorted(part), 10, "paper", gap).items():
            assert found[record] == pytest.approx(factor, rel=1e-12)


def distances(records: Records) -> oracle.Distance:
    return lambda first, second: gower(records, first, second)


@given(mixed_records(), steps, st.sampled_from(["multiple", "median"]), st.sampled_from(["random", "farthest", "seed"]))
def test_classes_are_those_of_the_algorithms_written_out(records: Records, step: OutlierStep, split: str, vantage: str) -> None:
    outcome = handled(gower_points(records.codes, records.domains), VantageTree(step.k, split, vantage), step)
    options = (step.k, step.alpha, step.chaining, step.leave, step.pool, split, vantage)
    expected, detected, pool = oracle.rayden(len(records.rows), *options, distances(records))
    assert by_class(outcome.classes) == {frozenset(part) for part in expected}
    assert (outcome.detected, outcome.records_left) == (detected, len(pool))
    assert outcome.recovered == sum(record in part for part in expected for record in pool)


@given(mixed_records(), st.integers(1, 8), st.data())
def test_small_partitions_are_merged_with_the_nearest(records: Records, k: int, data: st.DataObject) -> None:
    points = gower_points(records.codes, records.domains)
    drawn = data.draw(st.lists(st.integers(-1, 7), min_size=points.size, max_size=points.size))
    classes = dense(np.array(drawn, np.int32))
    parts = [np.flatnonzero(classes == number).tolist() for number in range(classes.max() + 1)]
    merged, _ = merge_failing(points, classes, smaller_than(k))
    assert by_class(merged) == {frozenset(part) for part in oracle.merge_small(parts, k, distances(records))}
    sizes = np.bincount(merged[merged >= 0])
    assert len(sizes) <= 1 or sizes.min() >= k


@given(mixed_records(), steps)
def test_every_published_class_holds_k_records(records: Records, step: OutlierStep) -> None:
    points = gower_points(records.codes, records.domains)
    outcome = handled(points, VantageTree(step.k, vantage="farthest"), step)
    sizes = np.bincount(outcome.classes[outcome.classes >= 0], minlength=1)
    assert sizes.sum() + outcome.suppressed == points.size
    assert outcome.suppressed == points.size or sizes.min() >= step.k
    assert outcome.recovered <= outcome.records_left <= outcome.detected
    if step.pool == "join" and points.size >= step.k:
        assert outcome.suppressed == 0


def test_equal_records_are_no_outliers() -> None:
    points = Points.of(np.zeros((20, 2), np.int32), 1)
    classes = np.repeat(np.arange(2, dtype=np.int32), 10)
    factors = outlier_factors(points, classes, 5)
    assert (factors == 1).all()
    assert not outliers(factors, classes, 0.0).any()


def test_rounding_makes_no_outliers_among_equal_factors() -> None:
    classes = np.zeros(7, np.int32)
    assert not outliers(np.full(7, 1.1), classes, 0.0).any()
    assert outliers(np.array([1.1] * 6 + [math.inf]), classes, 2.0).tolist() == [False] * 6 + [True]


def test_of_five_records_none_lies_more_than_two_deviations_off() -> None:
    factors = np.array([1.0, 1.0, 1.0, 1.0, 9.0])
    assert not outliers(factors, np.zeros(5, np.int32), 2.0).any()
    assert outliers(np.append(factors, 1.0), np.zeros(6, np.int32), 2.0).sum() == 1


def test_a_record_far_from_its_partition_leaves_and_the_rest_stays_at_k() -> None:
    rows = np.array([[0], [1], [2], [3], [4], [5], [6], [1 << 20]], np.int32)
    points = Points.of(rows, 1)
    tree = VantageTree(4, "median")
    step = OutlierStep(4, pool="suppress")
    kept = separate_outliers(points, np.zeros(8, np.int32), step, lambda taken, groups: tree.partition(points.take(taken), groups))
    assert kept.classes.tolist() == [0] * 7 + [SUPPRESSED]
    assert (kept.detected, kept.records_left, kept.recovered, kept.suppressed) == (1, 1, 0, 1)


def test_the_medoid_has_the_least_sum_of_distances_and_is_the_first_of_equals() -> None:
    points = Points.of(np.array([[0], [10], [20], [5], [5], [90]], np.int32), 1)
    order, ends = records_by_class(np.array([0, 0, 0, 1, 1, 1], np.int32))
    assert medoids(points, order, ends).tolist() == [1, 3]


def test_canon_parts_by_numbers_alone() -> None:
    domains = [domain_of(["a", "b"], pa.string()), domain_of(list(range(12)), pa.int64())]
    records = np.column_stack([np.arange(12) % 2, np.arange(12)])
    classes = canon_partition(records, domains, VantageTree(3))
    turned = canon_partition(np.column_stack([np.arange(12) // 6, np.arange(12)]), domains, VantageTree(3))
    assert np.array_equal(classes, turned)
    assert np.bincount(classes).min() == 3
