"""Losses are those of their formulas, worked by hand, exact at any size, and bounded as the search relies on."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.privacy.promise import Promise
from core.units.losses import c_avg, certainty_penalty, dm, group_penalties, loss_of, sum_of_squares, united_losses
from tests.oracles.hierarchies import built, domain_of
from tests.oracles.lattice import losses
from tests.oracles.tables import examples, nodes_of

COUNTS = st.lists(st.integers(1, 30), min_size=1, max_size=15)
K = st.integers(1, 40)


def loss(counts: list[int], k: int) -> Any:
    array = np.array(counts, np.int64)
    return loss_of(array, Promise(k).failing(array))


def test_losses_of_a_worked_example() -> None:
    found = loss([10, 7, 3, 2], k=5)
    assert found.suppressed == 3 + 2
    assert found.dm_star == 10**2 + 7**2 + 5**2
    assert found.dm_all == 10**2 + 7**2 + 3**2 + 2**2
    assert dm(np.array([10, 7]), found.suppressed, 22) == 10**2 + 7**2 + 5 * 22


def test_without_suppression_all_discernibility_losses_are_one() -> None:
    found = loss([10, 7], k=5)
    assert (found.suppressed, found.dm_star, found.dm_all) == (0, 149, 149)
    assert dm(np.array([10, 7]), 0, 17) == 149


def test_with_everything_suppressed_nothing_is_published() -> None:
    found = loss([3, 2], k=5)
    assert (found.suppressed, found.dm_star, found.dm_all) == (5, 25, 13)
    assert dm(np.empty(0, np.int64), 5, 5) == 25


@given(st.data(), K)
def test_losses_of_a_histogram_are_those_of_its_records(data: st.DataObject, k: int) -> None:
    example = data.draw(examples())
    node = data.draw(nodes_of(example))
    found, expected = loss(example.histogram(node).counts.tolist(), k), losses(example.rows, example.ladders, node, k)
    assert (found.suppressed, found.dm_star, found.dm_all) == (expected.suppressed, expected.dm_star, expected.dm_all)


@given(COUNTS, K)
def test_the_sum_over_all_cells_is_never_above_dm_star(counts: list[int], k: int) -> None:
    assert loss(counts, k).dm_all <= loss(counts, k).dm_star


@given(st.data(), COUNTS, K)
def test_merging_cells_never_lowers_the_sum_over_all_and_never_suppresses_more(data: st.DataObject, counts: list[int], k: int) -> None:
    into = data.draw(st.lists(st.integers(0, 5), min_size=len(counts), max_size=len(counts)))
    merged = [sum(count for count, place in zip(counts, into, strict=True) if place == cell) for cell in sorted(set(into))]
    assert loss(merged, k).dm_all >= loss(counts, k).dm_all
    assert loss(merged, k).suppressed <= loss(counts, k).suppressed


def test_merging_small_cells_can_lower_dm_star_so_the_search_must_not_take_it_for_monotone() -> None:
    assert loss([2, 2, 2, 2, 2], k=4).dm_star == 100
    assert loss([4, 6], k=4).dm_star == 52


@given(st.lists(st.integers(0, 2**33), max_size=8))
def test_sums_of_squares_are_exact_past_floats_and_past_64_bits(counts: list[int]) -> None:
    assert sum_of_squares(np.array(counts, np.int64)) == sum(count**2 for count in counts)


@pytest.mark.parametrize("counts", [[2**27 + 1, 1], [2**31, 2**29 + 1], [2_999_999_999], [3_000_000_000], [2**32, 2**32, 1], [2**40 + 1]])
def test_sums_of_squares_at_the_edges_of_their_types(counts: list[int]) -> None:
    assert sum_of_squares(np.array(counts, np.int64)) == sum(count**2 for count in counts)


@pytest.mark.parametrize(("released", "classes", "k", "expected"), [(100, 10, 10, 1.0), (95, 10, 5, 1.9), (7, 2, 3, 7 / 6), (0, 0, 5, 0.0)])
def test_c_avg_is_the_mean_class_in_units_of_k(released: int, classes: int, k: int, expected: float) -> None:
    assert c_avg(released, classes, k) == expected


def test_losses_of_labels_are_of_records_but_for_the_mean_class_which_is_of_what_k_counts() -> None:
    squares = 3 * 4**2 + 9**2
    assert united_losses({4: 3, 9: 1}, {2: 3, 5: 1}, 2) == {"dm": squares, "dm_star": squares, "c_avg": 11 / 4 / 2}
    assert united_losses({}, {}, 2) == {"dm": 0, "dm_star": 0, "c_avg": 0.0}


AGES = domain_of([20, 21, 24, 30], pa.int64())


def test_penalties_of_numbers_are_the_interval_within_the_domain_over_its_range() -> None:
    hierarchy = built({"widths": [5]}, AGES)
    assert group_penalties(hierarchy, AGES, 0).tolist() == [0, 0, 0, 0]
    assert group_penalties(hierarchy, AGES, 1).tolist() == [4 / 10, 0]
    assert group_penalties(hierarchy, AGES, 2).tolist() == [1]
    assert group_penalties(built({"widths": [2, 4]}, AGES), AGES, 1).tolist() == [1 / 10, 1 / 10, 0]
    assert group_penalties(built({"widths": [4], "top": 24}, AGES), AGES, 1).tolist() == [3 / 10, 6 / 10]


@pytest.mark.parametrize(("values", "costs"), [([0, 10], [7 / 10, 2 / 10]), ([0, 4, 10], [7 / 10, 2 / 10]), ([3], [0])])
def test_penalties_of_two_numbers_are_those_of_the_interval_too(values: list[int], costs: list[float]) -> None:
    domain = domain_of(values, pa.int64())
    assert group_penalties(built({"widths": [8]}, domain), domain, 1).tolist() == costs


def test_a_value_that_keeps_its_name_costs_nothing() -> None:
    words = domain_of(["a", "b", "cc"], pa.string())
    assert group_penalties(built({"tree": {"a": ["a"], "bs": ["b"], "c": ["cc"]}}, words), words, 1).tolist() == [0, 1 / 3, 1 / 3]


def test_penalties_of_words_are_the_values_covered_over_all_values() -> None:
    words = domain_of(["a", "b", "c", "d", "e"], pa.string())
    hierarchy = built({"tree": {"first": ["a", "b", "c"], "second": ["d"], "third": ["e"]}}, words)
    assert group_penalties(hierarchy, words, 0).tolist() == [0] * 5
    assert group_penalties(hierarchy, words, 1).tolist() == [3 / 5, 1 / 5, 1 / 5]
    assert group_penalties(hierarchy, words, 2).tolist() == [1]


MOMENTS = [datetime(2020, 1, 1), datetime(2020, 1, 11), datetime(2021, 4, 10)]
DAYS = [moment.date() for moment in MOMENTS]


@pytest.mark.parametrize(
    ("values", "year"),
    [
        (pa.array(DAYS, pa.date32()), 365),
        (pa.array(DAYS, pa.date64()), 365),
        (pa.array(MOMENTS, pa.timestamp("us")), 366),
        # Days of a zone are not all of one length: there the range of the values counts.
        (pa.array(MOMENTS, pa.timestamp("ms", "UTC")), 10),
    ],
    ids=lambda given: str(given.type) if isinstance(given, pa.Array) else "",
)
def test_penalties_of_dates_are_days_over_days(values: pa.Array, year: int) -> None:
    dates = domain_of(values)
    assert group_penalties(built({"date": ["day", "year"]}, dates), dates, 1)[0] == pytest.approx(year / 465)


@pytest.mark.parametrize(("unit", "days"), [("month", 28), ("quarter", 90), ("year", 365), ("decade", 3651)])
def test_a_unit_of_the_calendar_is_as_long_as_it_is(unit: str, days: int) -> None:
    dates = domain_of([date(1990, 1, 1), date(2012, 2, 7), date(2035, 1, 1)], pa.date32())
    assert group_penalties(built({"date": [unit]}, dates), dates, 1)[1] == pytest.approx(days / 16436)


def test_days_beyond_an_end_reach_to_the_end_of_the_domain() -> None:
    dates = domain_of([date(1930, 1, 1), date(1930, 5, 1), date(1950, 1, 1)], pa.date32())
    found = group_penalties(built({"date": ["year"], "bottom": 1936}, dates), dates, 1)
    assert found[0] == pytest.approx((date(1936, 12, 31) - date(1930, 1, 1)).days / 7305)


def test_penalties_of_decimals_are_range_over_range() -> None:
    prices = domain_of([Decimal("1.00"), Decimal("1.25"), Decimal("3.00")], pa.decimal128(9, 2))
    assert group_penalties(built({"widths": [1]}, prices), prices, 1).tolist() == [0.5, 0]


def test_penalties_of_decimals_that_are_one_float_are_range_over_range() -> None:
    far = domain_of([Decimal(10**25), Decimal(10**25 + 1), Decimal(10**25 + 4)], pa.decimal128(38, 0))
    assert group_penalties(built({"widths": [1, 2]}, far), far, 1).tolist() == [0.5, 0]


def test_a_null_costs_nothing_alone_and_everything_in_the_star() -> None:
    ages = Domain("x", AGES.values, AGES.counts, 3)
    hierarchy = built({"widths": [5]}, ages)
    assert group_penalties(hierarchy, ages, 1).tolist() == [4 / 10, 0, 0]
    assert group_penalties(hierarchy, ages, 2).tolist() == [1]


@pytest.mark.parametrize(("nulls", "penalty"), [(0, 0), (2, 1)])
def test_a_column_of_one_value_is_general_only_where_it_hides_a_null(nulls: int, penalty: float) -> None:
    constant = Domain("x", pa.array([7]), np.array([3]), nulls)
    hierarchy = built({"widths": [5]}, constant)
    assert group_penalties(hierarchy, constant, hierarchy.top).tolist() == [penalty]


def test_the_certainty_penalty_is_the_mean_over_records_with_1_for_a_suppressed_one() -> None:
    hierarchy = built({"widths": [5]}, AGES)
    found = certainty_penalty(hierarchy, AGES, 1, np.array([0, 1, 0], np.uint8), np.array([6, 5, 4]), suppressed_records=5)
    assert found == pytest.approx((10 * 0.4 + 5 * 0 + 5 * 1) / 20)
    everything_lost = certainty_penalty(hierarchy, AGES, 1, np.empty(0, np.uint8), np.empty(0, np.int64), suppressed_records=5)
    assert everything_lost == 1


@given(st.data())
def test_penalties_lie_between_0_and_1_and_grow_with_the_level(data: st.DataObject) -> None:
    example = data.draw(examples(most_qids=1))
    [hierarchy], [domain] = example.hierarchies, example.domains
    per_value = [group_penalties(hierarchy, domain, level)[hierarchy.groups[level]] for level in range(hierarchy.levels)]
    assert not per_value[0].any()
    assert all((coarse >= fine).all() for fine, coarse in pairwise(per_value))
    assert per_value[-1].tolist() == [float(domain.size > 1)] * domain.size


def test_sums_of_squares_stay_exact_where_floats_would_round() -> None:
    counts = np.array([134_217_729, 2], np.int64)
    assert sum_of_squares(counts) == 134_217_729**2 + 4
    assert Fraction(float(134_217_729**2 + 4)) != 134_217_729**2 + 4


def test_a_column_without_values_costs_nothing() -> None:
    for kind in (pa.string(), pa.int64()):
        nothing = Domain("x", pa.array([], kind), np.array([], np.int64), 0)
        hierarchy = built({"prefix": [1]} if kind == pa.string() else {"widths": [5]}, nothing)
        for level in range(hierarchy.levels):
            assert not group_penalties(hierarchy, nothing, level).any()


@pytest.mark.parametrize("most", [1 << 26, 1 << 31, 1 << 33])
def test_losses_are_exact_however_many_records_there_are(most: int) -> None:
    counts = [most, most - 1, 3, 2, most + 5]
    found = loss(counts, k=5)
    published = sum(count**2 for count in counts if count >= 5)
    assert (found.suppressed, found.dm_star, found.dm_all) == (5, published + 25, published + 13)


def test_each_cell_is_published_or_not() -> None:
    with pytest.raises(IndexError):
        loss_of(np.array([3, 4]), np.array([True]))


def test_of_two_numbers_too_a_bin_costs_as_much_of_the_range_as_it_covers() -> None:
    two = domain_of([20, 30], pa.int64())
    hierarchy = built({"widths": [5]}, two)
    assert [group_penalties(hierarchy, two, level).tolist() for level in range(3)] == [[0, 0], [4 / 10, 0], [1]]
