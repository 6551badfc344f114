"""A label that is said to be of a level covers the values of its group there, whatever its text looks like."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hierarchies.hierarchy import Hierarchy
from core.hierarchies.levels import as_text
from core.recount.labels.group_levels import group_levels
from core.recount.labels.label_spans import ClaimedLabels, Spans, claimed_spans, match_level_labels, match_value_labels
from core.recount.labels.value_scales import texts_with_nulls
from tests.core.recount.test_group_levels import DATE_ENDS, DAYS, ENDS, NUMBERS, UNITS, WIDTHS
from tests.oracles.hierarchies import built, domain_of, quasi_identifier

AWKWARD = [
    "a",
    "{a}",
    "{a, b}",
    "b",
    "*",
    "null",
    "Other",
    "Asian",
    "[5, 8)",
    "[0, 20[",
    "[0 - 20]",
    ">= 3",
    "<= 3",
    "E11",
    "E11.1",
    "12***",
]
NULLS = st.integers(0, 1)


def claims_of(
    spec: Any, hierarchy: Hierarchy, values: pa.Array, nodes: list[int], columns: list[pa.Array], folder: Path
) -> list[ClaimedLabels]:
    above = group_levels("x", quasi_identifier(spec).hierarchy, values, folder)
    assert len(above) == hierarchy.top
    return [match_level_labels(above[level - 1], columns) if level else match_value_labels(values, columns) for level in nodes]


def covered(found: tuple[np.ndarray, Spans] | None, label: int) -> set[int]:
    """The values that a label covers, by their place."""
    assert found is not None
    positions, spans = found
    held = set(spans.covered(label).tolist())
    return {place for place, position in enumerate(positions.tolist()) if position in held}


def check(spec: Any, values: pa.Array, nulls: int, folder: Path = Path(), *, bounds: bool = False) -> None:
    """What every level publishes is read as the values of its groups; of two levels together, as those of both."""
    values = pa.array(sorted(set(values.to_pylist())), values.type)
    hierarchy = built(spec, domain_of(values, nulls=nulls), folder)
    held = pa.concat_arrays([values, pa.nulls(nulls, values.type)])
    for level in range(hierarchy.levels):
        columns = list(hierarchy.bounds[level] or ()) if bounds else [hierarchy.labels[level]]
        groups = hierarchy.groups[level]
        mine = claims_of(spec, hierarchy, held, [level], columns, folder)
        found = claimed_spans(mine, np.zeros(len(columns[0]), np.bool_))
        for label in range(len(columns[0])):
            assert covered(found, label) == set(np.flatnonzero(groups == label).tolist())
    if bounds or hierarchy.top < 1:
        return
    nodes = [0, hierarchy.top - 1] if hierarchy.top > 1 else [0, 1]
    texts = [as_text(labels) if not pa.types.is_string(labels.type) else labels for labels in (hierarchy.labels[node] for node in nodes)]
    distinct = pa.concat_arrays(texts).unique()
    found = claimed_spans(claims_of(spec, hierarchy, held, nodes, [distinct], folder), np.zeros(len(distinct), np.bool_))
    for label, text in enumerate(distinct.to_pylist()):
        wanted = set[int]()
        for node, labels in zip(nodes, texts, strict=True):
            of_text = [group for group, other in enumerate(labels.to_pylist()) if other == text]
            wanted |= set(np.flatnonzero(np.isin(hierarchy.groups[node], of_text)).tolist())
        assert covered(found, label) == wanted


@given(st.data(), st.lists(st.sampled_from(AWKWARD), min_size=1, max_size=8, unique=True), st.integers(1, 3), NULLS)
def test_a_listed_group_is_what_is_listed_under_it(data: st.DataObject, values: list[str], depth: int, nulls: int) -> None:
    rows = [[value] for value in values]
    for _ in range(depth):
        # A group of a group has one parent, so that levels nest.
        parent = {label: data.draw(st.sampled_from(AWKWARD)) for label in {row[-1] for row in rows}}
        for row in rows:
            row.append(parent[row[-1]])
    with TemporaryDirectory() as folder:
        Path(folder, "x.csv").write_text("\n".join(";".join(f'"{part}"' for part in row) for row in rows))
        check({"csv": "x.csv"}, pa.array(values), nulls, Path(folder))


@given(st.lists(st.text("12*", max_size=4), min_size=1, max_size=12), st.sampled_from([[3, 1], [2], [4, 2]]), NULLS)
def test_codes_that_are_masked_already_are_codes(values: list[str], kept: list[int], nulls: int) -> None:
    check({"prefix": kept}, pa.array(values), nulls)


@given(st.lists(DAYS, min_size=1, max_size=15), UNITS, DATE_ENDS, NULLS)
def test_an_end_cuts_a_calendar_unit(values: list[Any], units: list[str], ends: dict[str, Any], nulls: int) -> None:
    check({"date": units} | ends, pa.array(values), nulls)


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("dtype", [pa.int64(), pa.decimal128(9, 3), pa.float64()], ids=str)
@given(st.data(), WIDTHS, ENDS, NULLS)
def test_an_end_cuts_a_bin(
    dtype: pa.DataType, bounds: bool, data: st.DataObject, widths: list[Any], ends: dict[str, int], nulls: int
) -> None:
    values = data.draw(st.lists(NUMBERS[dtype], min_size=1, max_size=12))
    check({"widths": widths} | ends, pa.array(values, dtype), nulls, bounds=bounds)


def test_a_label_of_no_level_is_none() -> None:
    values = pa.array(["a", "b"])
    spec = {"tree": {"*": {"g": ["a"], "h": ["b"]}}}
    above = group_levels("x", quasi_identifier(spec).hierarchy, values, Path())
    assert claimed_spans([match_level_labels(above[0], [pa.array(["g", "a"])])], np.zeros(2, np.bool_)) is None
    assert claimed_spans([match_level_labels(above[0], [pa.array(["g", "*"])])], np.array([False, True])) is not None


@pytest.mark.parametrize(
    ("values", "texts", "places"),
    [
        (pa.array([False, True, None]), ["true", None, "x", "false"], [1, 2, -1, 0]),
        (pa.array([False, True]), [None, "true"], [-1, 1]),
        (pa.array([5, 7, None]), ["7", None, "6", "5", "[5 - 6)"], [1, 2, -1, 0, -1]),
        (pa.array(["a", "b"]), ["b", "c", None], [1, -1, -1]),
    ],
)
def test_a_text_has_the_place_of_the_value_that_it_writes(values: pa.Array, texts: list[str | None], places: list[int]) -> None:
    assert match_value_labels(values, [pa.array(texts, pa.string())]).numbers.tolist() == places


def test_a_group_of_no_value_adds_nothing_to_what_its_label_covers() -> None:
    """At another level the label is the last value's: it covers that one, and does not begin at the first."""
    finest = ClaimedLabels(np.arange(3), np.array([2, 0]))
    coarser = ClaimedLabels(np.array([0, 0, 1]), np.array([2, 0]))
    found = claimed_spans([finest, coarser], np.zeros(2, np.bool_))
    assert found is not None
    positions, spans = found
    assert (positions.tolist(), spans.low.tolist(), spans.high.tolist(), spans.sets) == ([0, 1, 2], [2, 0], [3, 2], {})


@pytest.mark.parametrize(
    ("values", "texts", "shortest"),
    [
        (pa.array(["b", None, "", "1.50"]), ["b", None, "", "1.50"], None), (pa.array(["b", None], pa.large_string()), ["b", None], None),
        (pa.array([None, 7, -1]), [None, "7", "-1"], None), (pa.array([True, None, False]), ["true", None, "false"], None),
        (pa.array([1.0, None, 0.5]), ["1.0", None, "0.5"], ["1", None, "0.5"]), (pa.array([], pa.int64()), [], None),
        (pa.array([None], pa.date32()), [None], None), (pa.array([date(2024, 2, 29)]), ["2024-02-29"], None),
    ],
    ids=str,
)  # fmt: skip
def test_each_value_has_its_text_and_a_null_none(values: pa.Array, texts: list[str | None], shortest: list[str | None] | None) -> None:
    assert texts_with_nulls(values) == texts
    assert texts_with_nulls(values, -1) == (shortest or texts)


def test_of_many_texts_each_has_the_place_of_the_whole_number_that_it_writes() -> None:
    """So many are read at once: ranges and numbers that are no values have no place."""
    numbers = list(range(0, 2_400, 2))
    texts = [None, "1", "[0 - 2]", *map(str, reversed(numbers))]
    found = match_value_labels(pa.array([*numbers, None]), [pa.array(texts)]).numbers
    assert found.tolist() == [len(numbers), -1, -1, *reversed(range(len(numbers)))]


def test_two_bounds_are_a_value_where_both_are_that_value() -> None:
    values = pa.array([5, 7, 9])
    low, high = pa.array([5, 7, 9, 5, None]), pa.array([5, 9, 9, 4, None])
    assert match_value_labels(values, [low, high]).numbers.tolist() == [0, -1, 2, -1, -1]
    assert match_value_labels(values, [high, low]).numbers.tolist() == [0, -1, 2, -1, -1]
