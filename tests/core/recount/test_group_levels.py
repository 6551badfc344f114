"""The recount's reading of hierarchies and the writer's agree on every kind, type and level, and on every label to the letter."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.labels.group_levels import group_levels
from core.recount.labels.label_readers import label_axis
from core.recount.labels.label_spans import read_labels
from schemas.errors.hierarchies import HierarchyError
from tests.oracles.hierarchies import built, domain_of, first_appearance, published, quasi_identifier

WIDTHS = st.sampled_from([[1], [1, 5, 10], [4, 8, 32], [7], [0.5, 1, 10], [0.1, 0.3], [0.01, 100]])
ENDS = st.fixed_dictionaries({}, optional={"bottom": st.integers(-5, 20), "top": st.integers(30, 90), "origin": st.integers(-3, 3)})
NUMBERS = {
    pa.int16(): st.integers(-300, 300),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.decimal128(9, 3): st.integers(-99999, 99999).map(lambda number: Decimal(number) / 1000),
    pa.float64(): st.integers(-9999, 9999).map(lambda number: number / 100) | st.floats(-1e20, 1e20),
    pa.float32(): st.floats(-1e6, 1e6, width=32),
}
DAYS = st.dates(date(1, 1, 1), date(2400, 1, 1))
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2030, 1, 1)) | DAYS.map(lambda day: datetime(day.year, day.month, day.day))
UNITS = st.sets(st.sampled_from(["day", "month", "quarter", "year", "decade"]), min_size=1).map(
    lambda units: [unit for unit in ("day", "month", "quarter", "year", "decade") if unit in units]
)
DATE_ENDS = st.fixed_dictionaries(
    {},
    optional={
        "bottom": st.integers(1, 1950) | st.dates(date(1, 1, 1), date(1950, 12, 31)).map(str),
        "top": st.integers(1951, 2399) | st.dates(date(1951, 1, 1), date(2400, 1, 1)).map(str),
    },
)
TEXTS = st.text("01*a", min_size=0, max_size=5)


def agree(spec: Mapping[str, Any], values: pa.Array, nulls: int, folder: Path = Path()) -> None:
    """Both readings group the values, and the null, alike at every level, and publish the same for them."""
    known = pc.unique(values)
    known = known.take(pc.array_sort_indices(known))
    hierarchy = built(spec, domain_of(known, nulls=nulls), folder)
    with_null = pa.concat_arrays([known, pa.nulls(1 if nulls else 0, known.type)])
    levels = group_levels("x", quasi_identifier(spec).hierarchy, with_null, folder)
    assert len(levels) == hierarchy.top
    for number, level in enumerate(levels, start=1):
        assert first_appearance(level.groups.tolist()) == first_appearance(hierarchy.groups[number].tolist())
        assert [level.labels[group] for group in level.groups] == published(hierarchy, number)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@given(st.data(), WIDTHS, ENDS, st.integers(0, 1))
def test_bins_of_numbers(dtype: pa.DataType, data: st.DataObject, widths: list[Any], ends: dict[str, int], nulls: int) -> None:
    values = data.draw(st.lists(NUMBERS[dtype], min_size=1, max_size=20))
    agree({"widths": widths} | ends, pa.array(values, dtype), nulls)


@pytest.mark.parametrize(
    ("kind", "widths", "values"),
    [
        (pa.int64(), [0.1, 1], [2**60, 2**61 + 3]),
        (pa.decimal128(38, 18), [5, 10], [Decimal("3e-18"), Decimal("7e-18")]),
        (pa.decimal128(38, 3), [0.001, 10], [Decimal("0.001"), Decimal(2**53)]),
    ],
    ids=["times ten too large", "of too wide a bin", "times a thousand too large"],
)
def test_bins_of_numbers_that_fit_64_bits_where_what_is_reckoned_of_them_does_not(kind: pa.DataType, widths: Any, values: Any) -> None:
    agree({"widths": widths}, pa.array(values, kind), 0)


@example([-0.0], [2, 4], 0, 0)
@example([1.0, 2.0, 3.0, 4.0, 5.0], [2, 4], -2, 0)
@example([1.0, 2.0, 3.0, 4.0, 5.0], [2, 4], 3, 1)
@given(st.lists(NUMBERS[pa.float64()], min_size=1, max_size=20), st.sampled_from([[1], [2, 4], [3]]), st.integers(-5, 5), st.integers(0, 1))
def test_bins_of_ranks(values: list[float], widths: list[int], origin: int, nulls: int) -> None:
    agree({"widths": widths, "encode": True, "origin": origin}, pa.array(values), nulls)


@given(st.lists(TEXTS, min_size=1, max_size=20), st.sampled_from([[4, 2], [3], [5, 1], [9, 1]]), st.sampled_from("*#a"), st.integers(0, 1))
def test_beginnings_of_text(values: list[str], kept: list[int], mask: str, nulls: int) -> None:
    agree({"prefix": kept, "mask": mask}, pa.array(values), nulls)


@given(st.lists(TEXTS, min_size=1, max_size=20), st.lists(st.text("01", min_size=2, max_size=2), min_size=1, max_size=3), st.integers(0, 1))
def test_sparse_beginnings(values: list[str], sparse: list[str], nulls: int) -> None:
    agree({"prefix": [3, 1], "sparse": sparse}, pa.array(values), nulls)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20), st.integers(0, 1))
def test_beginnings_of_numbers(values: list[int], nulls: int) -> None:
    agree({"prefix": [4, 2]}, pa.array(values), nulls)


@given(st.lists(DAYS, min_size=1, max_size=20), UNITS, DATE_ENDS, st.integers(0, 1))
def test_units_of_dates(values: list[date], units: list[str], ends: dict[str, Any], nulls: int) -> None:
    agree({"date": units} | ends, pa.array(values), nulls)


@pytest.mark.parametrize(
    "ends", [{"bottom": "1936-05-01"}, {"bottom": 1936}, {"top": "1936-05-01"}, {"top": 1936}, {"top": 1937, "bottom": 1935}]
)
def test_the_day_of_an_end_itself_lies_beyond_it(ends: dict[str, Any]) -> None:
    days = ["1935-12-31", "1936-01-01", "1936-04-30", "1936-05-01", "1936-05-02", "1936-12-31", "1937-01-01"]
    agree({"date": ["day", "month", "year"]} | ends, pa.array(map(date.fromisoformat, days), pa.date32()), 0)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Zurich", "Asia/Kolkata", "-03:30"])
@given(st.lists(MOMENTS, min_size=1, max_size=12), UNITS, DATE_ENDS, st.integers(0, 1))
def test_units_of_moments(zone: str | None, values: list[datetime], units: list[str], ends: dict[str, Any], nulls: int) -> None:
    agree({"date": units} | ends, pa.array(values, pa.timestamp("us")).cast(pa.timestamp("us", zone)), nulls)


LISTED = {
    "text": pa.array(["a", "b", "c d", ""]),
    "numbers": pa.array([-1, 0, 5, 70]),
    "truth": pa.array([False, True]),
    "floats": pa.array([-0.5, 2.0, 1e16, 1e-7]),
    "decimals": pa.array([Decimal("-1.50"), Decimal("0.00"), Decimal("2.25")]),
    "days": pa.array([date(1960, 2, 29), date(2020, 1, 1)]),
    "moments": pa.array([datetime(1960, 1, 1), datetime(2020, 2, 29, 23, 30, 1, 250_000)], pa.timestamp("us")),
    "instants": pa.array([datetime(2020, 1, 1), datetime(2020, 7, 1, 12, 30)], pa.timestamp("us")).cast(
        pa.timestamp("us", "Europe/Zurich")
    ),
}
SPELT = {
    "text": ["a", "b", "c d", ""],
    "numbers": ["-1", "0", "5", "70"],
    "truth": ["false", "true"],
    "floats": ["-0.5", "2", "1e+16", "0.0000001"],
    "decimals": ["-1.5", "0", "2.25"],
    "days": ["1960-02-29", "2020-01-01"],
    "moments": ["1960-01-01 00:00:00", "2020-02-29T23:30:01.250000"],
    "instants": ["2020-01-01T01:00:00+01:00", "2020-07-01 14:30:00+02:00"],
}


@pytest.mark.parametrize("kind", LISTED)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@given(st.data(), st.integers(0, 1))
def test_listed_values(kind: str, depth: int, data: st.DataObject, nulls: int) -> None:
    rows = [[text] for text in SPELT[kind]]
    groups = len(rows)
    for level in range(depth):
        parents = data.draw(st.lists(st.integers(0, groups), min_size=groups + 1, max_size=groups + 1))
        for place, row in enumerate(rows):
            row.append(f"level {level} {parents[int(row[-1].rsplit(' ', 1)[1]) if level else place]}")
    listed = "\n".join(";".join(f'"{part}"' for part in row) for row in rows)
    with TemporaryDirectory() as folder:
        Path(folder, "x.csv").write_text(listed)
        agree({"csv": "x.csv"}, LISTED[kind], nulls, Path(folder))


def test_a_tree_and_values_it_lacks() -> None:
    tree = {"tree": {"lungs": ["flu", "cold"], "other": ["gout"]}}
    agree(tree, pa.array(["cold", "flu", "gout"]), 1)
    with pytest.raises(HierarchyError, match="1 of 2 values is not in its hierarchy"):
        group_levels("x", quasi_identifier(tree).hierarchy, pa.array(["flu", "measles"]), Path())


@pytest.mark.parametrize("spec", [{"widths": [1]}, {"date": ["year"]}])
def test_values_that_a_hierarchy_cannot_group_are_refused_without_being_told(spec: dict[str, Any]) -> None:
    with pytest.raises(HierarchyError, match="'x'") as refused:
        group_levels("x", quasi_identifier(spec).hierarchy, pa.array(["secret"]), Path())
    assert "secret" not in str(refused.value)


def test_a_step_of_a_day_is_no_level_of_midnights() -> None:
    nights = pa.array([datetime(2020, 1, 1) + timedelta(days=day) for day in range(3)], pa.timestamp("us"))
    assert len(group_levels("x", quasi_identifier({"date": ["day", "year"]}).hierarchy, nights, Path())) == 2


def test_an_empty_list_has_no_level_but_that_of_all(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("")
    [whole] = group_levels("x", quasi_identifier({"csv": "x.csv"}).hierarchy, pa.nulls(2, pa.string()), tmp_path)
    assert (whole.groups.tolist(), whole.labels) == ([0, 0], ["*"])


@pytest.mark.parametrize("listed", ["a;A;*\nb;*\n", "a;*\nb;B;*\n"])
def test_a_list_whose_lines_are_not_of_one_length_is_refused(tmp_path: Path, listed: str) -> None:
    (tmp_path / "x.csv").write_text(listed)
    with pytest.raises(HierarchyError, match="1 of 2"):
        group_levels("x", quasi_identifier({"csv": "x.csv"}).hierarchy, pa.array(["a", "b"]), tmp_path)


def test_a_null_is_in_the_groups_of_the_value_that_stands_for_it(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a;A;one;*\nb;B;two;*\nunknown;A;two;*\n")
    spec = quasi_identifier({"csv": "x.csv", "nulls": "unknown"}).hierarchy
    levels = group_levels("x", spec, pa.array(["a", "b", None]), tmp_path)
    assert [[level.labels[group] for group in level.groups] for level in levels] == [["A", "B", "A"], ["one", "two", "two"], ["*"] * 3]


@pytest.mark.parametrize("values", [["a", "b", "c", "y", "z"], ["z", "y", "c", "b", "a"], ["c", "z", "a", "b", "y"]])
def test_a_group_covers_all_of_its_values_in_whatever_order_these_come(values: list[str]) -> None:
    """In the order of groups a value of each comes first and one last, and others between them."""
    tree = {"tree": {"P": {"Q": ["b", "z"], "R": ["a"]}, "M": {"N": ["y", "c"]}}}
    held = {"P": {"a", "b", "z"}, "Q": {"b", "z"}, "R": {"a"}, "M": {"c", "y"}, "N": {"c", "y"}, "z": {"z"}}
    axis = label_axis(quasi_identifier(tree), pa.array(values), Path(), ranges=False, prefixes=False)
    spans, places = read_labels(axis, list(held)), dict(zip(axis.positions.tolist(), values, strict=True))
    assert {label: {places[place] for place in spans.covered(number).tolist()} for number, label in enumerate(held)} == held
