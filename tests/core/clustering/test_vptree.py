"""VP-tree partitions are those of the recursive algorithm, and none is smaller than k."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clustering.cof import outlier_factors
from core.clustering.gower import Points, gower_points
from core.clustering.nearest import nearest, nth_smallest
from core.clustering.vptree import VantageTree, near_sizes
from core.columns.data_parallel import limit_threads
from tests.house.replaced import COF_LEAST_ROWS, VPTREE_LEAST_ROWS
from tests.oracles import rayden as oracle
from tests.oracles.records import Records, by_class, gower, mixed_records

trees = st.builds(
    VantageTree,
    st.integers(1, 6),
    st.sampled_from(["multiple", "median"]),
    st.sampled_from(["random", "farthest", "seed"]),
    st.integers(0, 3),
)


@given(mixed_records(), trees)
def test_partitions_are_those_of_the_paper(records: Records, tree: VantageTree) -> None:
    classes = tree.partition(gower_points(records.codes, records.domains))
    distance = oracle_distance(records)
    expected = oracle.vp_tree([list(range(len(records.rows)))], tree.k, tree.split, tree.vantage, tree.seed, distance)
    assert by_class(classes) == {frozenset(part) for part in expected}


def oracle_distance(records: Records) -> oracle.Distance:
    return lambda first, second: gower(records, first, second)


@given(mixed_records(), trees, st.data())
def test_groups_are_cut_each_by_itself(records: Records, tree: VantageTree, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=len(records.rows), max_size=len(records.rows)))
    groups = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    classes = tree.partition(gower_points(records.codes, records.domains), groups)
    parts = [np.flatnonzero(groups == group).tolist() for group in range(groups.max() + 1)]
    expected = oracle.vp_tree(parts, tree.k, tree.split, tree.vantage, tree.seed, oracle_distance(records))
    assert by_class(classes) == {frozenset(part) for part in expected}


@given(mixed_records(most=80), trees)
def test_partitions_hold_k_to_2k_minus_1_records_and_every_record_once(records: Records, tree: VantageTree) -> None:
    tree = replace(tree, k=min(tree.k, len(records.rows)))
    sizes = np.bincount(tree.partition(gower_points(records.codes, records.domains)))
    assert tree.k <= sizes.min()
    assert sizes.max() <= 2 * tree.k - 1
    assert sizes.sum() == len(records.rows)


@given(st.integers(1, 50), st.integers(1, 20), st.sampled_from(["multiple", "median"]))
def test_both_sides_of_a_cut_hold_k(k: int, more: int, split: str) -> None:
    size = 2 * k + more * 3
    near = int(near_sizes(np.array([size]), k, split)[0])
    assert k <= near <= size - k


def test_multiples_of_k_leave_one_partition_at_most_that_is_larger() -> None:
    points = Points.of(np.random.default_rng(0).integers(0, 1 << 20, (1003, 2)).astype(np.int32), 2)
    sizes = np.bincount(VantageTree(10, "multiple").partition(points))
    assert sorted(sizes.tolist())[:-1] == [10] * 99
    assert sizes.max() == 13


@pytest.mark.parametrize("vantage", ["random", "farthest", "seed"])
def test_equal_records_are_cut_all_the_same(vantage: str) -> None:
    sizes = np.bincount(VantageTree(5, vantage=vantage).partition(Points.of(np.zeros((63, 3), np.int32), 1)))
    assert sizes.min() >= 5
    assert sizes.sum() == 63


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60), st.data())
def test_selection_finds_the_value_of_a_rank(values: list[int], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(values) - 1))
    assert nth_smallest(np.array(values, np.int64), rank) == sorted(values)[rank]


@given(mixed_records(most=40), st.sampled_from(["differs", "ignored"]), st.booleans())
def test_the_nearest_is_found_and_the_first_of_equals(records: Records, missing: str, with_itself: bool) -> None:
    points = gower_points(records.codes, records.domains, missing)
    own = np.full(points.size, -1) if with_itself else np.arange(points.size)
    found = nearest(points, points, own)
    for row in range(points.size):
        others = [other for other in range(points.size) if other != own[row]]
        expected = min(others, key=lambda other: (gower(records, row, other, missing), other)) if others else -1
        assert found[row] == expected


def test_the_nearest_of_many_is_that_of_a_search_from_end_to_end() -> None:
    random = np.random.default_rng(4)
    rows = np.column_stack([random.integers(0, 1 << 20, (3000, 2)), random.integers(0, 4, (3000, 2))]).astype(np.int32)
    own = np.arange(3000)
    thorough = nearest(Points.of(rows, 2, missing=0), Points.of(rows, 2, missing=0), own)
    assert np.array_equal(nearest(Points.of(rows, 2), Points.of(rows, 2), own), thorough)


@given(mixed_records(most=80), trees, st.integers(2, 5))
def test_several_cores_make_the_partitions_and_factors_of_one(records: Records, tree: VantageTree, threads: int) -> None:
    points = gower_points(records.codes, records.domains)
    with limit_threads(1):
        alone = tree.partition(points)
        factors = outlier_factors(points, alone, tree.k)
    with limit_threads(threads), patch(VPTREE_LEAST_ROWS, 1), patch(COF_LEAST_ROWS, 1):
        assert tree.partition(points).tolist() == alone.tolist()
        assert outlier_factors(points, alone, tree.k).tolist() == factors.tolist()
