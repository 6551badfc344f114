"""What labels cost: by themselves, whatever the source holds, and never less where a label is coarser."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recount.labels.label_losses import LabelForm, column_loss, exact_column_loss

ROWS = (("nurse", "care", "*"), ("doctor", "care", "*"), ("midwife", "care", "*"), ("smith", "craft", "*"), ("baker", "craft", "*"))
LISTED = LabelForm(pa.string(), ROWS)


def mean(reading: LabelForm, labels: Sequence[str | None], records: Sequence[int] = ()) -> float:
    """Return the mean penalty of records with some labels, one with each unless it is said otherwise."""
    counts = np.array(records or [1] * len(labels), np.int64)
    return column_loss(reading, labels, counts).penalty / int(counts.sum())


@pytest.mark.parametrize(
    ("labels", "costs"),
    [
        (["nurse", "smith"], [0, 0]),
        (["care", "craft"], [Fraction(3, 5), Fraction(2, 5)]),
        (["nurse", "craft", "*"], [0, Fraction(2, 5), 1]),
        (["{nurse, smith}", "baker"], [Fraction(2, 5), 0]),
        (["care", None], [Fraction(3, 6), 0]),
        (["{care, null}", "nurse"], [Fraction(4, 6), 0]),
        (["{nurse, smith, null}", "baker"], [Fraction(3, 6), 0]),
        (["{nurse, null}", "baker"], [Fraction(2, 6), 0]),
        (["mining", "nurse"], [Fraction(1, 5), 0]),
        (["mining", "midwife", "craft"], [Fraction(1, 5), 0, Fraction(2, 5)]),
    ],
    ids=str,
)
def test_a_listed_group_costs_its_share_of_what_is_listed(labels: list[str | None], costs: list[Fraction]) -> None:
    assert mean(LISTED, labels) == pytest.approx(float(sum(costs, Fraction(0))) / len(costs))


@pytest.mark.parametrize(
    ("labels", "costs"),
    [(["1**"], [1]), (["1**", "2**"], [Fraction(1, 2)] * 2), (["1**", "12*", "123"], [1, 1, 0]), (["1**", "11*", "12*"], [1, 0.5, 0.5])],
    ids=str,
)
def test_a_beginning_costs_its_share_of_the_labels_below_it(labels: list[str], costs: list[float]) -> None:
    assert mean(LabelForm(pa.string(), mask="*"), labels) == pytest.approx(float(sum(costs)) / len(costs))


@pytest.mark.parametrize(
    ("kind", "labels", "costs"),
    [
        (pa.int64(), ["[20 - 29]", "[30 - 39]"], [9 / 19, 9 / 19]),
        (pa.int64(), ["25", "[30 - 35]"], [0, 0.5]),
        (pa.int64(), ["[20 - 29]", ">= 30"], [0.9, 0.5]),
        (pa.int64(), ["<= 19", "[20 - 29]", ">= 30"], [1 / 3, 9 / 11, 1 / 3]),
        (pa.int64(), [">= 90", "<= 90"], [0.5, 0.5]),
        (pa.int64(), ["*", "7"], [1, 0]),
        (pa.float64(), ["[1.5 - 2.5)", "[2.5 - 3.5)"], [0.5, 0.5]),
        (
            pa.decimal128(38, 2),
            ["[10000000000000000000000000.00 - 10000000000000000000000000.01]", "10000000000000000000000000.02"],
            [0.5, 0],
        ),
        (pa.int64(), [f"[{2**63 - 3} - {2**63 - 2}]", str(2**63 - 1)], [0.5, 0]),
        (pa.date32(), ["2020", "2021"], [365 / 730, 364 / 730]),
        (pa.date32(), ["<= 1936", "2000-01-01"], [0.5, 0]),
        (pa.date32(), [">= 2000", "2010-01-01", "1990-01-01"], [3653 / 7305, 0, 0]),
        (pa.date32(), ["<= 2000", "2010-01-01", "1990-01-01"], [4017 / 7305, 0, 0]),
        (pa.date32(), ["2020-Q1", "2020-Q2"], [90 / 181, 90 / 181]),
        (pa.timestamp("us"), ["[2020-01-01 00:00:00 - 2020-01-02 00:00:00]", "2020-01-03 00:00:00"], [0.5, 0]),
        (pa.timestamp("us", "UTC"), ["2020-01-01", "2020-01-02"], [0.5, 0.5]),
        (pa.timestamp("us"), ["[0001-01-01 00:00:00 - 5001-01-01 00:00:00]", "9999-12-31 00:00:00"], [1_826_212 / 3_652_058, 0]),
        (
            pa.timestamp("ns"),
            ["[2020-01-01 00:00:00.000000000 - 2020-01-01 00:00:00.000000001]", "2020-01-01 00:00:00.000000002"],
            [0.5, 0],
        ),
        (pa.float64(), ["nan", "[1.0 - 2.0]"], [0, 1]),
        (pa.int64(), ["{[20 - 29], null}", "[30 - 39]"], [1, 9 / 19]),
    ],
    ids=str,
)
def test_a_range_costs_its_length_over_that_of_the_published_grid(kind: pa.DataType, labels: list[str], costs: list[float]) -> None:
    assert mean(LabelForm(kind, ranges=True), labels) == pytest.approx(sum(costs) / len(costs))


def test_groups_of_numbers_cost_the_length_of_what_is_listed() -> None:
    rows = (("1", "low", "*"), ("2", "low", "*"), ("5", "high", "*"), ("9", "high", "*"))
    assert mean(LabelForm(pa.int64(), rows), ["low", "high"]) == pytest.approx((1 / 8 + 4 / 8) / 2)


def test_a_group_of_several_levels_is_read_at_the_finest_that_has_all_labels_but_the_withheld() -> None:
    rows = (("a", "care", "care", "*"), ("b", "care", "care", "*"), ("c", "craft", "care", "*"), ("d", "craft", "care", "*"))
    assert mean(LabelForm(pa.string(), rows), ["care", "craft", "*"]) == pytest.approx((2 / 4 + 2 / 4 + 1) / 3)
    assert mean(LabelForm(pa.string(), rows), ["care"]) == pytest.approx(2 / 4)


def test_a_number_is_a_value_however_it_is_listed_and_costs_nothing_beside_groups_of_what_is_no_number() -> None:
    rows = (("1.0", "some", "*"), ("nan", "some", "*"), ("2.0", "few", "*"), ("3.0", "few", "*"))
    assert mean(LabelForm(pa.float64(), rows), ["some", "2.00"]) == pytest.approx((2 / 4 + 0) / 2)


def test_a_beginning_costs_the_labels_below_it() -> None:
    reading = LabelForm(pa.string(), mask="*")
    assert mean(reading, ["12***", "13***", "2****"]) == pytest.approx(1 / 3)
    assert mean(reading, ["1****", "12345", "13***"]) == pytest.approx((2 / 2 + 0 + 1 / 2) / 3)
    assert mean(LabelForm(pa.string(), mask="*", sparse="000"), ["000", "12345"]) == pytest.approx(1 / 4)


@pytest.mark.parametrize(
    "reading", [LISTED, LabelForm(pa.string(), mask="*"), LabelForm(pa.int64(), ranges=True), LabelForm(pa.string())], ids=str
)
def test_a_column_that_is_withheld_costs_all(reading: LabelForm) -> None:
    assert mean(reading, ["*"]) == 1
    assert mean(reading, ["*", None]) == 0.5


def test_of_an_unknown_kind_a_label_costs_its_share_of_the_labels() -> None:
    assert mean(LabelForm(pa.string()), ["odd", "even"]) == 0.5
    assert mean(LabelForm(pa.string()), ["odd"]) == 1


def test_what_is_published_as_it_is_costs_nothing() -> None:
    kept = exact_column_loss(LISTED, np.array([2, 3], np.int64))
    assert (kept.penalty, kept.leaves, kept.numeric) == (0, 1, False)


ENDS = st.tuples(st.integers(-50, 50), st.integers(0, 30)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(st.tuples(ENDS, st.integers(1, 9)), min_size=1, max_size=8, unique_by=lambda one: one[0]))
def test_losses_lie_between_none_and_all_and_are_those_of_the_hull(found: list[tuple[tuple[int, int], int]]) -> None:
    labels = [str(low) if low == high else f"[{low} - {high}]" for (low, high), _ in found]
    counts = [many for _, many in found]
    length = max(high for (_, high), _ in found) - min(low for (low, _), _ in found)
    plain = sum(many * (high - low) / length if length else 0 for (low, high), many in found) / sum(counts)
    assert mean(LabelForm(pa.int64(), ranges=True), labels, counts) == pytest.approx(plain)
    assert 0 <= plain <= 1


def test_of_one_published_value_each_record_covers_all() -> None:
    assert exact_column_loss(LabelForm(pa.string()), np.array([4], np.int64)).leaves == 4
    assert exact_column_loss(LabelForm(pa.string()), np.array([], np.int64)).leaves == 0


@pytest.mark.parametrize(("label", "members"), [("{head, nurse, smith}", 2), ("{head, smith}", 2), ("{smith, head, nurse, head}", 3)])
def test_a_value_with_a_comma_is_one_member_of_a_set(label: str, members: int) -> None:
    rows = (*ROWS, ("head, nurse", "care", "*"), ("head", "care", "*"))
    assert mean(LabelForm(pa.string(), rows), [label]) == pytest.approx(members / 7)


@pytest.mark.parametrize(("label", "cost"), [("{a, b", 0), ("a, b}", 0), ("{a}", 0), ("{a, b}", 2 / 5), ("{a, c", 1 / 5)])
def test_a_label_is_a_set_only_between_braces(label: str, cost: float) -> None:
    rows = tuple((value, "*") for value in ("{a, b", "a, b}", "{a}", "a", "b"))
    assert mean(LabelForm(pa.string(), rows), [label]) == pytest.approx(cost)


def test_a_value_as_it_is_costs_one_of_those_that_are_listed_where_leaves_are_counted() -> None:
    found = column_loss(LISTED, ["nurse", "craft", "*", None], np.array([3, 2, 1, 4], np.int64))
    # A null is listed as one more.
    assert (found.penalty, found.numeric) == (pytest.approx(2 * 2 / 6 + 1), False)
    assert found.leaves == pytest.approx((3 + 4) / 6 + 2 * 2 / 6 + 1)


@pytest.mark.parametrize(("ranges", "cost"), [(True, (2 / 8 + 0 + 3 / 8) / 3), (False, (1 + 0 + 1) / 4 / 3)])
def test_numbers_in_ranges_cost_their_length_though_their_values_are_listed(ranges: bool, cost: float) -> None:
    rows = tuple((str(number), "some", "*") for number in (1, 3, 6, 9))
    assert mean(LabelForm(pa.int64(), rows, ranges), ["[1 - 3]", "3", "[6 - 9]"]) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("label", "members"), [("{a, b}", 2), ("{a, b, c}", 3), ("{x, a, b}", 3), ("{a, b, c, d}", 4), ("{c, d, a}", 2), ("{c, d, e, f}", 2)]
)
def test_of_values_with_commas_the_longest_that_is_listed_is_taken_and_others_one_by_one(label: str, members: int) -> None:
    rows = tuple((value, "*") for value in ("a", "b", "c, d", "c, d, e", "x", "y", "z", "f", "g", "a, b, c, q"))
    expected = {"{a, b, c, d}": 3}.get(label, members)
    assert mean(LabelForm(pa.string(), rows), [label]) == pytest.approx(expected / len(rows))


@pytest.mark.parametrize(("sets", "cost"), [(True, 0), (False, Fraction(1, 5))])
def test_of_a_column_without_a_list_a_set_costs_its_values_over_all_that_labels_name(sets: bool, cost: Fraction) -> None:
    labels = ["{a, b}", "c", "e", "f", "{a, d}"]
    assert mean(LabelForm(pa.string(), sets=sets), labels) == pytest.approx(float(2 * Fraction(2, 6) + 3 * cost) / 5)
    # Of a value that has commas it is not known where it ends; no set costs more than all.
    assert mean(LabelForm(pa.string(), sets=sets), ["{a, a, a}"]) == 1


def test_groups_beside_sets_are_read_at_the_finest_level_that_has_all_of_them() -> None:
    rows = (("a", "care", "care", "*"), ("b", "care", "care", "*"), ("c", "craft", "care", "*"), ("d", "craft", "care", "*"))
    assert mean(LabelForm(pa.string(), rows), ["care", "craft", "{a, b}"]) == pytest.approx(2 / 4)


def test_numbers_without_a_list_are_read_as_ranges() -> None:
    assert mean(LabelForm(pa.int64()), ["[20 - 29]", "[30 - 39]"]) == pytest.approx(9 / 19)
