"""Risk figures are those of worked examples, count every record once, and leave suppressed records out."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units.losses import ClassSizes, journalist, least_class, marketer, preset_met, prosecutor, risk_of, without_masked

SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=40)
THRESHOLDS = st.decimals("0.01", "1", places=2)


def table(*sizes: int) -> ClassSizes:
    return ClassSizes.of(Counter(sizes))


def sampled(*pairs: tuple[int, int]) -> ClassSizes:
    """Classes with their records in the data and in the population."""
    sizes, population = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return ClassSizes(sizes, np.ones(len(pairs), np.int64), population)


def test_prosecutor_on_a_worked_example() -> None:
    # Ten records in classes of 1, 2, 3 and 4: the worst is 1, the mean (1 + 1 + 1 + 1) / 10, above 0.4 are those of 1 and 2.
    assert prosecutor(table(1, 2, 3, 4), Decimal("0.4")) == {
        "prosecutor_max": 1.0,
        "prosecutor_mean": 0.4,
        "records_above": 3,
        "share_above": 0.3,
    }


def test_journalist_and_marketer_on_a_worked_example() -> None:
    # Data 1, 2 and 5 of a population's 4, 5 and 10: max 1/4; 3/19 drawn from the population, (1/4 + 2/5 + 5/10) / 8 from the data.
    found = sampled((1, 4), (2, 5), (5, 10))
    assert marketer(found) == pytest.approx(1.15 / 8)
    assert journalist(found, Decimal("0.2")) == {
        "journalist_max": 0.25,
        "journalist_mean": pytest.approx(3 / 19),
        "journalist_share_above": 0.125,
    }


def test_the_journalist_has_the_larger_of_both_mean_risks() -> None:
    # 2/110 drawn from the population, (10/10 + 1/100) / 11 from the data.
    assert journalist(sampled((10, 10), (1, 100)))["journalist_mean"] == pytest.approx(1.01 / 11)


@given(SIZES, THRESHOLDS)
def test_figures_are_those_of_single_records(sizes: list[int], threshold: Decimal) -> None:
    each = [Fraction(1, size) for size in sizes for _ in range(size)]
    found = risk_of(table(*sizes), threshold=threshold)
    assert found["prosecutor_max"] == pytest.approx(float(max(each)))
    assert found["prosecutor_mean"] == pytest.approx(float(sum(each) / len(each)))
    assert found["records_above"] == sum(risk > Fraction(threshold) for risk in each)
    assert found["unique"] == sum(risk == 1 for risk in each)


@given(SIZES)
def test_a_population_that_is_the_source_makes_all_attackers_equal(sizes: list[int]) -> None:
    found = risk_of(table(*sizes))
    assert found["journalist_max"] == found["prosecutor_max"]
    assert found["journalist_mean"] == found["marketer"] == found["prosecutor_mean"]
    assert found["journalist_share_above"] == found["share_above"]


@given(SIZES, st.integers(1, 1000))
def test_suppressed_records_are_stated_and_change_no_other_figure(sizes: list[int], suppressed: int) -> None:
    assert risk_of(table(*sizes), suppressed) == risk_of(table(*sizes)) | {"suppressed": suppressed}


@given(SIZES, st.integers(1, 60))
def test_the_class_of_masked_records_leaves_the_table(sizes: list[int], masked: int) -> None:
    classes = Counter([*sizes, masked])
    assert without_masked(classes, masked, masked) == Counter(sizes)
    assert without_masked(classes, masked, 0) == without_masked(classes, masked, masked - 1) == classes


@given(THRESHOLDS)
def test_least_class_is_the_smallest_that_keeps_the_threshold(threshold: Decimal) -> None:
    least = least_class(threshold)
    assert Fraction(1, least) <= Fraction(threshold)
    assert least == 1 or Fraction(1, least - 1) > Fraction(threshold)


def test_a_maximum_risk_of_009_needs_twelve_records() -> None:
    assert least_class(Decimal("0.09")) == 12
    assert [preset and str(preset[0]) for preset in map(preset_met, (12, 11, 5, 4, 1))] == ["0.09", "0.2", "0.2", None, None]


def test_no_class_has_no_risk_but_counts() -> None:
    assert risk_of(ClassSizes.of({}), 7) == {"records": 0, "classes": 0, "suppressed": 7}
