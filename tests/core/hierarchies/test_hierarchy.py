"""The laws that every hierarchy keeps, of whatever kind."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from tests.oracles.hierarchies import built, domain_of, first_appearance, published

NULLS = st.integers(0, 3)
WIDTHS = st.sampled_from([[1, 2, 4, 8], [0.1, 0.5, 5], [3, 9, 900], [7]])


def distinct(values: st.SearchStrategy[Any], least: int = 1) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=least, max_size=20, unique=True).map(sorted)


def numerical(encode: bool) -> st.SearchStrategy[Hierarchy]:
    widths = st.sampled_from([[1, 2, 4, 8], [3, 9]]) if encode else WIDTHS
    integers = st.builds(domain_of, distinct(st.integers(-200, 200), 0), st.just(pa.int64()), NULLS)
    tenths = distinct(st.integers(-200, 200)).map(lambda whole: [number / 10 for number in whole])
    floats = st.builds(domain_of, tenths, st.just(pa.float64()), NULLS)
    return st.builds(lambda spec, domain: built({"widths": spec, "encode": encode}, domain), widths, integers | floats)


@st.composite
def trees(draw: st.DrawFn) -> Hierarchy:
    leaves = draw(distinct(st.integers(0, 99), 1))
    cuts = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    tree: dict[str, dict[str, list[int]]] = {}
    for leaf in leaves:
        branch = leaf % cuts[0]
        tree.setdefault(f"root {branch % cuts[1]}", {}).setdefault(f"branch {branch}", []).append(leaf)
    observed = sorted(draw(st.sets(st.sampled_from(leaves))))
    return built({"tree": tree}, domain_of(observed, pa.int64(), draw(NULLS)))


PREFIXES = st.builds(
    lambda prefix, domain: built({"prefix": prefix}, domain),
    st.sampled_from([[5, 3, 1], [2]]),
    st.builds(domain_of, distinct(st.text("ab", max_size=5)), st.just(pa.string()), NULLS),
)
CALENDARS = st.builds(
    lambda units, domain: built({"date": units}, domain),
    st.sampled_from([["day", "month", "quarter", "year", "decade"], ["quarter", "decade"]]),
    st.builds(domain_of, distinct(st.dates(date(1960, 1, 1), date(1999, 1, 1))), st.just(pa.date32()), NULLS),
)
ORDERED = numerical(encode=False) | numerical(encode=True) | CALENDARS
ALL = ORDERED | PREFIXES | trees()


@given(ALL)
def test_every_level_nests_in_every_coarser_one(hierarchy: Hierarchy) -> None:
    for fine in range(hierarchy.levels):
        for coarse in range(fine, hierarchy.levels):
            rolled = hierarchy.rolled(fine, coarse)
            assert rolled.dtype == np.uint32
            assert np.array_equal(rolled[hierarchy.groups[fine]], hierarchy.groups[coarse])


@given(ALL)
def test_groups_are_dense_and_numbered_by_first_appearance(hierarchy: Hierarchy) -> None:
    for level, groups in enumerate(hierarchy.groups):
        assert groups.dtype == np.uint32
        assert groups.tolist() == first_appearance(groups.tolist())
        if len(groups):
            assert int(groups.max()) + 1 == len(hierarchy.labels[level])


@given(ORDERED)
def test_groups_of_ordered_kinds_ascend_with_the_domain(hierarchy: Hierarchy) -> None:
    assert all(np.all(np.diff(groups.astype(np.int64)) >= 0) for groups in hierarchy.groups)


@given(ALL)
def test_groups_of_one_level_are_published_differently(hierarchy: Hierarchy) -> None:
    for labels in hierarchy.labels:
        assert len(labels.unique()) == len(labels)


@given(ALL)
def test_a_null_is_a_group_of_its_own_until_the_star(hierarchy: Hierarchy) -> None:
    null = hierarchy.labels[0].null_count
    for groups, labels, bounds in zip(hierarchy.groups[:-1], hierarchy.labels, hierarchy.bounds, strict=False):
        assert labels.null_count == null
        if null:
            assert labels[-1].as_py() is None
            assert np.flatnonzero(groups == groups.max()).tolist() == [len(groups) - 1]
            assert not bounds or (bounds[0][-1].as_py() is None and bounds[1][-1].as_py() is None)


@given(ALL)
def test_level_zero_is_the_values_and_the_last_level_one_star(hierarchy: Hierarchy) -> None:
    assert np.array_equal(hierarchy.groups[0], np.arange(len(hierarchy.labels[0])))
    assert not hierarchy.groups[hierarchy.top].any()
    assert hierarchy.labels[-1].to_pylist() == ["*"]
    assert all(labels.type == pa.string() for labels in hierarchy.labels[1:])
    assert hierarchy.top == hierarchy.levels - 1


@given(ALL)
def test_axes_hold_all_groups_and_never_grow(hierarchy: Hierarchy) -> None:
    assert hierarchy.axes[-1] == 1
    assert all(axis >= len(labels) for axis, labels in zip(hierarchy.axes[:-1], hierarchy.labels, strict=False))
    if len(hierarchy.groups[0]):
        assert all(fine >= coarse for fine, coarse in zip(hierarchy.axes, hierarchy.axes[1:], strict=False))


@given(numerical(encode=False) | numerical(encode=True))
def test_numerical_levels_have_bounds_for_every_group(hierarchy: Hierarchy) -> None:
    values = hierarchy.labels[0].to_pylist()
    for level, (labels, bounds) in enumerate(zip(hierarchy.labels, hierarchy.bounds, strict=True)):
        assert bounds is not None
        low, high = bounds
        assert len(low) == len(high) == len(labels)
        if level == hierarchy.top:
            assert low.null_count == high.null_count == 1
            continue
        for value, group in zip(values, hierarchy.groups[level].tolist(), strict=True):
            assert value is None or low[group].as_py() <= value <= high[group].as_py()


@given(PREFIXES | CALENDARS | trees())
def test_other_kinds_have_no_bounds(hierarchy: Hierarchy) -> None:
    assert hierarchy.bounds == (None,) * hierarchy.levels


@given(st.sampled_from([{"widths": [1, 5]}, {"widths": [1, 5], "encode": True}]), distinct(st.integers(-50, 50)))
def test_a_null_changes_nothing_but_its_own_group(spec: dict[str, Any], values: list[int]) -> None:
    without, with_null = built(spec, domain_of(values, pa.int64())), built(spec, domain_of(values, pa.int64(), nulls=1))
    assert without.levels == with_null.levels
    for level in range(without.top):
        assert [*published(without, level), None] == published(with_null, level)
        assert without.axes[level] + 1 == with_null.axes[level]


@pytest.mark.parametrize(
    ("spec", "dtype", "levels"),
    [
        ({"widths": [1, 2]}, pa.int64(), 3),
        ({"widths": [2, 4], "encode": True}, pa.decimal128(5, 2), 4),
        ({"prefix": [5, 3]}, pa.string(), 3),
        ({"date": ["day", "year"]}, pa.date32(), 3),
        ({"tree": {"x": {"y": ["a"]}, "z": {"w": ["b"]}}}, pa.string(), 4),
    ],
)
def test_a_column_without_values_or_records_still_has_its_levels(spec: dict[str, Any], dtype: pa.DataType, levels: int) -> None:
    nulls, empty = built(spec, domain_of([], dtype, nulls=4)), built(spec, domain_of([], dtype))
    assert nulls.levels == empty.levels == levels
    assert [labels.to_pylist() for labels in nulls.labels] == [[None]] * nulls.top + [["*"]]
    assert [groups.tolist() for groups in nulls.groups] == [[0]] * levels
    assert nulls.axes == (1,) * levels
    assert [groups.tolist() for groups in empty.groups] == [[]] * levels
    assert nulls.rolled(0, nulls.top).tolist() == [0]


def test_groups_cannot_be_changed() -> None:
    hierarchy = built({"widths": [1, 2]}, domain_of([1, 2]))
    for groups in hierarchy.groups:
        with pytest.raises(ValueError, match="read-only"):
            groups[0] = 1


def test_the_values_of_a_domain_may_be_a_slice_of_a_longer_array() -> None:
    cases: list[tuple[pa.Array, dict[str, Any]]] = [
        (pa.array([0, 1, 2, 3, 4, 5]), {"widths": [2]}),
        (pa.array([0.5, 1.5, 2.5, 3.5, 4.5]), {"widths": [2]}),
        (pa.array(["aa", "ab", "ba", "bb"]), {"prefix": [1]}),
        (pa.array([date(2020, 1, 1), date(2020, 2, 1), date(2021, 1, 1)]), {"date": ["year"]}),
    ]
    for whole, spec in cases:
        part = whole.slice(1, 2)
        copy = pa.array(part.to_pylist(), part.type)
        sliced, copied = (built(spec, Domain("x", values, np.ones(2, np.int64), 1)) for values in (part, copy))
        assert sliced.labels == copied.labels
        assert [groups.tolist() for groups in sliced.groups] == [groups.tolist() for groups in copied.groups]


def test_a_finer_level_cannot_be_had_from_a_coarser_one() -> None:
    with pytest.raises(ValueError, match="finer"):
        built({"widths": [1, 2]}, domain_of([1, 2])).rolled(2, 1)
