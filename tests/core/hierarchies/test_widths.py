"""Numerical hierarchies: bins are aligned, exact and published as what they hold."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.hierarchies import (
    bin_edges,
    built,
    closed_label,
    domain_of,
    exact,
    half_open_label,
    places_of,
    published,
    rank_bins,
)

FACTORS = st.lists(st.integers(2, 6), max_size=4)


def widths_from(first: Decimal, factors: list[int]) -> list[Decimal]:
    return list(accumulate([first, *map(Decimal, factors)], lambda width, factor: width * factor))


def decimals(least: int, most: int, places: int) -> st.SearchStrategy[Decimal]:
    return st.builds(lambda whole, place: Decimal(whole).scaleb(-place), st.integers(least, most), st.integers(0, places))


WIDTHS = st.builds(widths_from, decimals(1, 400, 3), FACTORS)
ORIGINS = decimals(-500, 500, 3)
INTEGERS = st.lists(st.one_of(st.integers(-300, 300), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=30, unique=True).map(sorted)
FLOATS = st.lists(
    st.integers(-9999, 9999).map(lambda tenths: tenths / 10) | st.floats(-1e9, 1e9) | st.floats(allow_nan=False, allow_infinity=False),
    min_size=1,
    max_size=20,
    unique=True,
).map(sorted)
DECIMALS = st.lists(decimals(-(10**9), 10**9, 6), min_size=1, max_size=20, unique_by=Fraction).map(sorted)


def test_the_ages_of_the_paper() -> None:
    hierarchy = built({"widths": [1, 2, 4, 8, 16, 32, 64]}, domain_of(list(range(17, 90)), pa.int64()))
    assert hierarchy.levels == 8
    code = list(range(17, 90)).index(33)
    assert [published(hierarchy, level)[code] for level in range(8)] == [
        33, "[32 - 33]", "[32 - 35]", "[32 - 39]", "[32 - 47]", "[32 - 63]", "[0 - 63]", "*",
    ]  # fmt: skip
    assert hierarchy.axes == (73, 37, 19, 10, 5, 3, 2, 1)


def test_the_body_mass_index_of_the_paper() -> None:
    values = [tenths / 10 for tenths in range(150, 420)]
    hierarchy = built({"widths": [0.1, 1, 2, 4, 8], "origin": 0}, domain_of(values))
    assert hierarchy.levels == 6
    code = values.index(23.8)
    assert [published(hierarchy, level)[code] for level in range(6)] == [23.8, "[23 - 24)", "[22 - 24)", "[20 - 24)", "[16 - 24)", "*"]
    assert hierarchy.axes == (270, 27, 14, 8, 5, 1)
    shifted = built({"widths": [0.1, 1, 2, 4, 8], "origin": 1}, domain_of(values))
    assert published(shifted, 2)[code] == "[23 - 25)"


def test_the_encoded_pin_codes_of_the_paper() -> None:
    values = sorted(np.random.default_rng(7).choice(100_000, 1347, replace=False).tolist())
    hierarchy = built({"widths": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], "encode": True}, domain_of(values))
    assert hierarchy.levels == 12
    rank = 221 - 1  # the paper counts ranks from 1
    assert published(hierarchy, 0)[rank] == values[rank]
    assert published(hierarchy, 1)[rank] == f"[{values[rank]} - {values[rank + 1]}]"
    assert published(hierarchy, 2)[rank] == f"[{values[rank]} - {values[rank + 3]}]"
    assert hierarchy.axes[:3] == (1347, 674, 337)


@given(INTEGERS, WIDTHS, ORIGINS)
def test_integers_are_published_as_the_ends_of_their_bin(values: list[int], widths: list[Decimal], origin: Decimal) -> None:
    hierarchy = built({"widths": widths, "origin": origin}, domain_of(values, pa.int64()))
    own = widths[widths[0] <= 1 :]
    assert hierarchy.levels == len(own) + 2
    for level, width in enumerate(own, 1):
        assert published(hierarchy, level) == [closed_label(value, width, origin) for value in values]
        assert hierarchy.bounds[level] is not None
        low, high = (bound.to_pylist() for bound in hierarchy.bounds[level] or ())
        assert hierarchy.labels[level].to_pylist() == [f"[{a} - {b}]" for a, b in zip(low, high, strict=True)]


@given(FLOATS, WIDTHS, ORIGINS)
def test_floats_are_binned_by_the_decimal_that_they_show(values: list[float], widths: list[Decimal], origin: Decimal) -> None:
    hierarchy = built({"widths": widths, "origin": origin}, domain_of(values, pa.float64()))
    check_half_open(hierarchy, values, widths, origin)


@given(DECIMALS, WIDTHS, ORIGINS)
def test_decimals_are_binned_exactly(values: list[Decimal], widths: list[Decimal], origin: Decimal) -> None:
    hierarchy = built({"widths": widths, "origin": origin}, domain_of(values, pa.decimal128(30, 10)))
    check_half_open(hierarchy, values, widths, origin)
    for level in range(1, hierarchy.top):
        low, high = (bound.to_pylist() for bound in hierarchy.bounds[level] or ())
        assert hierarchy.labels[level].to_pylist() == [f"[{a} - {b})" for a, b in zip(low, high, strict=True)]


def check_half_open(hierarchy: Any, values: list[Any], widths: list[Decimal], origin: Decimal) -> None:
    resolution = Fraction(1, 10 ** max(places_of(value) for value in values))
    own = widths[Fraction(widths[0]) <= resolution :]
    assert hierarchy.levels == len(own) + 2
    for level, width in enumerate(own, 1):
        assert published(hierarchy, level) == [half_open_label(value, width, origin) for value in values]


@given(st.lists(st.integers(-9999, 9999), min_size=1, max_size=20, unique=True).map(sorted), WIDTHS)
def test_single_precision_floats_are_read_by_their_own_shortest_text(tenths: list[int], widths: list[Decimal]) -> None:
    values = [tenth / 10 for tenth in tenths]
    single = built({"widths": widths}, domain_of(values, pa.float32()))
    double = built({"widths": widths}, domain_of(values, pa.float64()))
    assert single.labels[1:] == double.labels[1:]
    assert [groups.tolist() for groups in single.groups] == [groups.tolist() for groups in double.groups]


@given(INTEGERS, st.integers(1, 5), FACTORS)
def test_encoded_integers_are_published_as_the_observed_ends_of_their_bin(values: list[int], first: int, factors: list[int]) -> None:
    widths = widths_from(Decimal(first), factors)
    hierarchy = built({"widths": widths, "encode": True}, domain_of(values, pa.int64()))
    for level, width in enumerate(widths[first == 1 :], 1):
        ends = rank_bins(values, int(width))
        assert published(hierarchy, level) == [f"[{low} - {high}]" for low, high in ends]
        bounds = hierarchy.bounds[level]
        assert bounds is not None
        low, high = bounds
        assert low.type == high.type == pa.int64()
        assert [(low[group].as_py(), high[group].as_py()) for group in hierarchy.groups[level]] == ends
        assert hierarchy.axes[level] == len(set(ends))


def test_encoded_decimals_are_closed_and_without_noise() -> None:
    floats = built({"widths": [2], "encode": True}, domain_of([22.5, 23.0, 23.1, 1e16]))
    assert floats.labels[1].to_pylist() == ["[22.5 - 23]", "[23.1 - 10000000000000000]"]
    exactly = built({"widths": [2], "encode": True}, domain_of([Decimal("-0.10"), Decimal("23.00")]))
    assert exactly.labels[1].to_pylist() == ["[-0.10 - 23.00]"]


@given(INTEGERS, WIDTHS, ORIGINS, st.integers(0, 2))
def test_axes_count_the_aligned_bins_from_first_to_last(values: list[int], widths: list[Decimal], origin: Decimal, nulls: int) -> None:
    hierarchy = built({"widths": widths, "origin": origin}, domain_of(values, pa.int64(), nulls))
    merged = widths[0] <= 1
    per_level = [widths[0] if merged else Decimal(1), *widths[merged:]]
    for level, width in enumerate(per_level):
        first, last = (bin_edges(value, width, origin if level or merged else 0)[0] for value in (values[0], values[-1]))
        assert hierarchy.axes[level] == (last - first) / exact(width) + 1 + (nulls > 0)
    assert all(fine >= coarse for fine, coarse in zip(hierarchy.axes, hierarchy.axes[1:], strict=False))


def test_the_bins_of_a_level_do_not_depend_on_how_coarse_the_data_are() -> None:
    spec = {"widths": [5, 10, 100]}
    sparse = built(spec, domain_of([5, 15, 200]))
    single = built(spec, domain_of([15]))
    assert sparse.levels == single.levels == 5
    assert [published(sparse, level)[1] for level in range(5)] == [published(single, level)[0] for level in range(5)]
    assert published(single, 1) == ["[15 - 19]"]


def test_widths_finer_than_an_integer_still_publish_integers() -> None:
    hierarchy = built({"widths": [0.5, 1.5, 3]}, domain_of([-2, 0, 1, 2, 3]))
    assert hierarchy.labels[1].to_pylist() == ["[-3 - -2]", "[0 - 1]", "[2 - 2]", "[3 - 4]"]
    assert built({"widths": [0.5, 1, 2]}, domain_of([33])).labels[1].to_pylist() == ["[33 - 33]"]


def test_negative_numbers_keep_their_order_and_sign() -> None:
    assert built({"widths": [4]}, domain_of([-4, -1, 0])).labels[1].to_pylist() == ["[-4 - -1]", "[0 - 3]"]
    assert built({"widths": [0.5]}, domain_of([-0.05, 0.25])).labels[1].to_pylist() == ["[-0.5 - 0.0)", "[0.0 - 0.5)"]


@pytest.mark.parametrize("dtype", [pa.int8(), pa.uint8(), pa.int32(), pa.uint64()])
def test_bins_reach_beyond_the_ends_of_a_narrow_type(dtype: pa.DataType) -> None:
    assert built({"widths": [100]}, domain_of([0, 120], dtype)).labels[1].to_pylist() == ["[0 - 99]", "[100 - 199]"]


def test_the_greatest_unsigned_integers_do_not_overflow() -> None:
    hierarchy = built({"widths": [2, 2**40]}, domain_of([2**63 - 1, 2**63, 2**64 - 1], pa.uint64()))
    assert published(hierarchy, 1)[2] == f"[{2**64 - 2} - {2**64 - 1}]"
    assert published(hierarchy, 2) == [closed_label(value, 2**40) for value in (2**63 - 1, 2**63, 2**64 - 1)]


@pytest.mark.slow
def test_a_million_integers_fall_into_the_bins_that_division_says() -> None:
    values = np.arange(1_000_000) * 3
    hierarchy = built({"widths": [2**power for power in range(12)]}, domain_of(values))
    assert hierarchy.levels == 13
    for level in range(1, 12):
        bins = values // 2**level
        assert np.array_equal(np.diff(hierarchy.groups[level].astype(np.int64)), np.diff(bins) > 0)
        assert hierarchy.groups[level][-1] == np.unique(bins).size - 1
