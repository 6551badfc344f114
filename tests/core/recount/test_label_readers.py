"""Whatever a level or a class publishes, the recount reads it as exactly the values that the writer had put under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.column_types import to_working_type
from core.recoding.classes import QidLabels, Sets
from core.recoding.prices import generalise
from core.recoding.recoding import Intervals
from core.recount.labels import label_spans
from core.recount.labels.group_levels import group_levels
from core.recount.labels.label_readers import label_axis, label_axis_by_levels
from core.recount.labels.label_spans import Spans, is_closed, pair_labels, read_labels
from core.recount.labels.value_scales import value_scale, value_texts
from schemas.job.record_methods import Generalisation
from schemas.registry.hierarchies import WidthsHierarchy
from tests.core.recount.test_group_levels import DATE_ENDS, DAYS, ENDS, LISTED, MOMENTS, NUMBERS, SPELT, TEXTS, UNITS, WIDTHS
from tests.house.replaced import VALUE_SCALES_KEPT_ENDS
from tests.oracles.hierarchies import built, domain_of, quasi_identifier

ODD = st.text("ab,{}[] -*", max_size=7)


def distinct(values: Sequence[Any], dtype: pa.DataType | None = None) -> pa.Array:
    known = pc.unique(to_working_type(pa.array(values, dtype)))
    return known.take(pc.array_sort_indices(known))


def as_text(labels: pa.Array) -> list[str | None]:
    known = iter(value_texts(labels.drop_null()))
    return [next(known)[0] if there else None for there in labels.is_valid().to_pylist()]


def covered(spans: Spans, label: int) -> list[int]:
    return spans.covered(label).tolist()


def same(one: Spans, other: Spans) -> bool:
    sets = [{label: places.tolist() for label, places in spans.sets.items()} for spans in (one, other)]
    parts = [[spans.low.tolist(), spans.high.tolist(), spans.nulls.tolist(), spans.null] for spans in (one, other)]
    return sets[0] == sets[1] and parts[0] == parts[1]


def reading(
    spec: Mapping[str, Any], values: pa.Array, labels: Sequence[str | None], folder: Path = Path(), *, prefix: bool = False
) -> Spans:
    ranges = any(label is not None and label.startswith(("[", "{[")) for label in labels)
    axis = label_axis(quasi_identifier(spec), values, folder, ranges=ranges, prefixes=prefix)
    assert sorted(axis.positions.tolist()) == list(range(len(values)))
    spans = read_labels(axis, labels)
    with patch.object(label_spans, "FEW", 0):
        assert same(read_labels(axis, labels), spans)
    places = {position: place for place, position in enumerate(axis.positions.tolist())} | {len(values): len(values)}
    sets = {label: np.array(sorted(places[position] for position in covered(spans, label))) for label in range(len(labels))}
    return Spans(spans.low, spans.high, sets)


def every_level_is_read(spec: Mapping[str, Any], values: pa.Array, folder: Path = Path(), *, bounds: bool = False) -> None:
    """Each label of each level stands for its own group, the star for all, a null for nulls alone."""
    hierarchy = built(spec, domain_of(values, nulls=1), folder)
    for level, groups in enumerate(hierarchy.groups[:-1]):
        labels = as_text(hierarchy.labels[level])
        rounded = False
        if bounds and (ends := hierarchy.bounds[level]):
            widths = quasi_identifier(spec).hierarchy
            assert isinstance(widths, WidthsHierarchy)
            closed = is_closed(widths, values.type, ends)
            rounded = closed and not pa.types.is_integer(values.type)
            labels = pair_labels(list(zip(*map(as_text, ends), strict=True)), includes_high=closed, is_one_level=True)
        spans = reading(spec, values, labels, folder)
        for label in range(len(labels)):
            held = set(np.flatnonzero(groups == label).tolist())
            assert held <= set(covered(spans, label)) if rounded else held == set(covered(spans, label))
    assert covered(reading(spec, values, ["*"], folder), 0) == list(range(len(values) + 1))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("bounds", [False, True])
@given(st.data(), WIDTHS, ENDS)
def test_bins(dtype: pa.DataType, bounds: bool, data: st.DataObject, widths: list[Any], ends: dict[str, int]) -> None:
    values = data.draw(st.lists(NUMBERS[dtype], min_size=1, max_size=12))
    every_level_is_read({"widths": widths} | ends, distinct(values, dtype), bounds=bounds)


FRACTIONS: list[tuple[dict[str, Any], int]] = [
    ({"widths": [1, 10]}, 0), ({"widths": [0.5, 10]}, 1), ({"widths": [0.25, 0.5]}, 2), ({"widths": [1], "origin": 0.125}, 3),
    ({"widths": [1], "bottom": 0.5, "top": 9}, 1), ({"widths": [1], "bottom": 0, "top": 9.25}, 2),
]  # fmt: skip
"""Settings of bins, and the decimal places that the most precise of their numbers has."""


@pytest.mark.parametrize(("said", "places"), FRACTIONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_high_bound_of_a_bin_of_fractions_belongs_to_it_only_where_floats_cannot_tell_it_from_the_values_below(
    said: dict[str, Any], places: int, sign: int
) -> None:
    """A float keeps fifteen digits, so that with as many places as the bins have it is exact below a power of ten."""
    spec, most = quasi_identifier({**said}).hierarchy, 10.0 ** (15 - places)
    assert isinstance(spec, WidthsHierarchy)
    low, inexact = pa.array([0.0, sign * most / 2, None]), pa.array([0.0, None, sign * most])
    below = pa.array([sign * np.nextafter(most, 0), 1.0])
    exact = pa.array([Decimal(10**15) * sign]).cast(pa.decimal128(38, 3))
    nothing = pa.nulls(2, pa.float64())
    are_exact = [(low, low), (low, below), (exact, exact), (nothing, low)]
    assert not any(is_closed(spec, pa.float64(), columns) for columns in are_exact)
    assert all(is_closed(spec, pa.float64(), columns) for columns in [(low, inexact), (inexact, low), (exact, inexact)])
    # Of whole numbers it always does.
    assert is_closed(spec, pa.int16(), (low, low))


def test_the_high_bound_of_a_bin_of_ranks_belongs_to_it() -> None:
    spec = quasi_identifier({"widths": [2], "encode": True}).hierarchy
    assert isinstance(spec, WidthsHierarchy)
    assert is_closed(spec, pa.float64(), [pa.array([0.5, 1.5])])


@pytest.mark.parametrize("dtype", [pa.int64(), pa.float64(), pa.float32(), pa.decimal128(9, 3)], ids=str)
@given(st.data(), st.sampled_from([[1], [2, 4], [3]]), st.integers(0, 2))
def test_bins_of_ranks(dtype: pa.DataType, data: st.DataObject, widths: list[int], origin: int) -> None:
    values = data.draw(st.lists(NUMBERS[dtype], min_size=1, max_size=12))
    every_level_is_read({"widths": widths, "encode": True, "origin": origin}, distinct(values, dtype))


@given(st.lists(st.text("012", max_size=5), min_size=1, max_size=12), st.sampled_from([[4, 2], [3], [5, 1]]), st.sampled_from("*#"))
def test_beginnings(values: list[str], kept: list[int], mask: str) -> None:
    every_level_is_read({"prefix": kept, "mask": mask}, distinct(values))


@given(
    st.lists(st.text("012", max_size=5), min_size=1, max_size=12), st.lists(st.text("01", min_size=2, max_size=2), min_size=1, max_size=3)
)
def test_sparse_beginnings(values: list[str], sparse: list[str]) -> None:
    spec = {"prefix": [3, 1], "sparse": sparse}
    known = distinct(values)
    hierarchy = built(spec, domain_of(known, nulls=1))
    for level in range(1, hierarchy.top):
        spans = reading(spec, known, as_text(hierarchy.labels[level]))
        for label in range(len(hierarchy.labels[level])):
            # A short value may bear the name of the group of the sparse ones, 00.
            assert set(np.flatnonzero(hierarchy.groups[level] == label)) <= set(covered(spans, label))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_beginnings_of_numbers(values: list[int]) -> None:
    every_level_is_read({"prefix": [4, 2]}, distinct(values))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["", "1", "1*", "12", "120", "13", "2", "21", "a, b", "a, c", "b"]), pa.array([1, 9, 10, 11, 101, 110, 2000]),
        pa.array([date(1999, 12, 31), date(2020, 1, 1), date(2020, 1, 2), date(2020, 10, 1), date(2021, 1, 1)]),
        pa.array([datetime(2020, 1, day, hour) for day in (1, 2, 12) for hour in (0, 9)], pa.timestamp("s")),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_a_common_beginning_covers_all_that_begins_with_it_and_a_value_itself_alone(values: pa.Array) -> None:
    """However many stars are behind it; moments as texts have a space between date and time."""
    texts = [str(value) for value in values.to_pylist()]
    stems = sorted({text[:length] for text in texts for length in range(len(text))} | {"3", "20 ", "~"})
    labels = [stem + stars for stem in stems for stars in ("*", "****") if stem + stars not in (*texts, "*")]
    spans = reading({"prefix": [1]}, values, [*labels, *texts], prefix=True)
    for label, read in enumerate(labels):
        assert covered(spans, label) == [place for place, text in enumerate(texts) if text.startswith(read.rstrip("*"))]
    for place, text in enumerate(texts):
        assert covered(spans, len(labels) + place) == [place] or text == "1*"


@given(st.lists(DAYS, min_size=1, max_size=12), UNITS)
def test_units_of_dates(values: list[date], units: list[str]) -> None:
    every_level_is_read({"date": units}, distinct(values))


@given(st.lists(DAYS, min_size=1, max_size=12), UNITS, DATE_ENDS)
def test_what_lies_beyond_an_end_is_read_as_that(values: list[date], units: list[str], ends: dict[str, Any]) -> None:
    """A unit that an end cuts in two is read as all of it: more than it stands for, never less."""
    spec, known = {"date": units} | ends, distinct(values)
    hierarchy = built(spec, domain_of(known, nulls=0))
    for groups, labels in zip(hierarchy.groups, hierarchy.labels, strict=True):
        texts = as_text(labels)
        spans = reading(spec, known, texts)
        for label, text in enumerate(texts):
            held, read = set(np.flatnonzero(groups == label)), set(covered(spans, label))
            assert held <= read
            assert held == read or not (text or "").startswith(("<=", ">="))


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Zurich", "-03:30"])
@given(st.lists(MOMENTS, min_size=1, max_size=12), UNITS)
def test_units_of_moments(zone: str | None, values: list[datetime], units: list[str]) -> None:
    spec, known = {"date": units}, pa.array(values, pa.timestamp("us")).cast(pa.timestamp("us", zone))
    known = distinct(known)
    hierarchy = built(spec, domain_of(known, nulls=1))
    for level, groups in enumerate(hierarchy.groups[:-1]):
        spans = reading(spec, known, as_text(hierarchy.labels[level]))
        for label in range(len(hierarchy.labels[level])):
            held = set(np.flatnonzero(groups == label))
            # Where clocks are put back, two instants have one time of day.
            assert held <= set(covered(spans, label)) if zone else held == set(covered(spans, label))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("zone", "place"), [(None, None), ("UTC", (1, 2)), ("Europe/Zurich", None)])
def test_a_moment_is_read_in_the_forms_that_releases_have_and_no_word_is_one(zone: str | None, place: tuple[int, int] | None) -> None:
    hours = [datetime(2020, 1, 1, hour) for hour in (1, 2, 3)]
    scale = value_scale(pa.array(hours, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone)))
    assert scale is not None
    two = "03:00:00+01:00" if zone == "Europe/Zurich" else "02:00:00+00:00" if zone else "02:00:00"
    assert scale.exact(f"2020-01-01 {two}") == (1, 2)
    # Only where clocks show universal time can what is so called be told.
    assert scale.exact("2020-01-01 02:00:00.000Z") == place
    for word in ("now", "today", "NaT", "2020-01-01T02:00Z+1", "2020-01-01 02:00:00 UTC", "Z", ""):
        assert scale.exact(word) is None


@pytest.mark.parametrize("kind", LISTED)
@given(data=st.data())
def test_listed_groups(kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    coarse = data.draw(st.lists(st.sampled_from(["x", "y"]), min_size=4, max_size=4))
    rows = [f'"{text}";"{place % 3} of {coarse[place % 3]}";"{coarse[place % 3]}"' for place, text in enumerate(SPELT[kind])]
    folder = tmp_path_factory.getbasetemp()
    (folder / f"{kind}.csv").write_text("\n".join(rows))
    values = LISTED[kind]
    every_level_is_read({"csv": f"{kind}.csv"}, values.take(pc.array_sort_indices(values)), folder)


WAYS: list[Generalisation | None] = [None, "hierarchy", "prefix", "set", "interval"]
LOCAL: dict[str, tuple[dict[str, Any], st.SearchStrategy[Any], pa.DataType]] = {
    "integers": ({"widths": [5, 10]}, NUMBERS[pa.int16()], pa.int16()),
    "floats": ({"widths": [0.5, 10]}, NUMBERS[pa.float64()], pa.float64()),
    "short floats": ({"widths": [0.5, 10]}, NUMBERS[pa.float32()], pa.float32()),
    "decimals": ({"widths": [0.5, 10]}, NUMBERS[pa.decimal128(9, 3)], pa.decimal128(9, 3)),
    "codes": ({"prefix": [3, 1]}, TEXTS, pa.string()),
    "numbers with a prefix": ({"prefix": [3, 1]}, st.integers(0, 99999), pa.int64()),
    "days": ({"date": ["month", "year"]}, DAYS, pa.date32()),
    "moments": ({"date": ["day", "year"]}, MOMENTS, pa.timestamp("us")),
    "instants": ({"date": ["day", "year"]}, MOMENTS, pa.timestamp("us", "Europe/Zurich")),
    "words that look like nulls": (
        {"tree": {"A": {"a": ["a", "null"], "d": ['"null"', "b, null"]}, "B": {"e": ['"b, null"', "null, null"], "f": ["b", 'x"null"']}}},
        st.sampled_from(["a", "null", '"null"', "b, null", '"b, null"', "null, null", 'x"null"', "b"]), pa.string(),
    ),
    "words": ({"tree": {"A": {"a": ["a", "b, c"], "d": ["{d}", "[1 - 2]"]}, "*": {"e": ["b", "c", "a, b", "*"]}}}, st.sampled_from(
        ["a", "b, c", "{d}", "[1 - 2]", "b", "c", "a, b", "*"]), pa.string()),
}  # fmt: skip


@pytest.mark.few(20)
@pytest.mark.parametrize("kind", LOCAL)
@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
def test_whatever_a_class_publishes_covers_all_values_that_it_holds(kind: str, way: Generalisation | None, data: st.DataObject) -> None:
    spec, drawn, dtype = LOCAL[kind]
    values = distinct(data.draw(st.lists(drawn, min_size=1, max_size=8)), dtype)
    domain = domain_of(values, nulls=1)
    codes = np.array(data.draw(st.lists(st.integers(0, len(values)), min_size=1, max_size=12)))
    classes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(codes), max_size=len(codes))), np.int32)
    _, classes = np.unique(classes, return_inverse=True)
    intervals: Intervals = data.draw(st.sampled_from(["text", "bounds"])) if "widths" in spec and way != "prefix" else "text"
    try:
        found = generalise(way, codes, Sets.of(classes.astype(np.int32)), domain, built(spec, domain), intervals)
    except ValueError:
        assert way == "interval"
        return
    spans = reading(spec, values, published(found), prefix=way == "prefix")
    for label in range(len(spans.low)):
        assert set(codes[classes == label]) <= set(covered(spans, label))


@pytest.mark.few(20)
@pytest.mark.parametrize("kind", LOCAL)
@given(data=st.data())
def test_no_two_sets_are_written_alike(kind: str, data: st.DataObject) -> None:
    """Whatever values look like: two classes of other values, or one with nulls and one without, never publish the same set."""
    spec, drawn, dtype = LOCAL[kind]
    values = distinct(data.draw(st.lists(drawn, min_size=2, max_size=4)), dtype)
    domain, null = domain_of(values, nulls=1), len(values)
    held = [picked for size in range(1, null + 2) for picked in combinations(range(null + 1), size)]
    codes = np.array([code for picked in held for code in picked])
    classes = np.repeat(np.arange(len(held)), [len(picked) for picked in held]).astype(np.int32)
    found = generalise("set", codes, Sets.of(classes), domain, built(spec, domain), "text")
    told = [text for text, picked in zip(found.columns["x"].to_pylist(), held, strict=True) if text is None or not text.startswith("*")]
    commas = any(", " in text for text, *_ in value_texts(values) if not text.endswith(", null"))
    assert commas or len(set(told)) == len(told)


def published(found: QidLabels) -> list[str | None]:
    columns = [as_text(column) for column in found.columns.values()]
    return columns[0] if len(columns) == 1 else pair_labels(list(zip(*columns, strict=True)), includes_high=True, is_one_level=False)


@given(st.lists(ODD, min_size=1, max_size=6, unique=True), st.data())
def test_a_set_of_values_with_commas_and_braces_covers_each_of_them(values: list[str], data: st.DataObject) -> None:
    known = sorted(values)
    picked = data.draw(st.sets(st.sampled_from(known), min_size=2) if len(known) > 1 else st.just(set(known)))
    label = "{" + ", ".join(sorted(picked)) + "}"
    tree = {"tree": {"all": known}}
    assert {known.index(value) for value in picked} <= set(covered(reading(tree, pa.array(known), [label]), 0))


@pytest.mark.parametrize(
    ("spec", "values", "label", "places"),
    [
        ({"widths": [5]}, [1, 5, 9, 10], "[5 - 9]", [1, 2]),
        ({"widths": [5]}, [1, 5, 9, 10], "[5 - 10)", [1, 2]),
        ({"widths": [5]}, [1, 5, 9, 10], "[2 - 4]", []),
        ({"widths": [5]}, [1, 2, 3, 4], "[1.5 - 3.5)", [1, 2]),
        ({"widths": [5]}, [1, 2, 3, 4], "[1.5 - 3.5]", [1, 2]),
        ({"widths": [5]}, [1, 5, 9, 10], "[9 - 5]", []),
        ({"widths": [5]}, [1, 5, 9, 10], ">= 9", [2, 3]),
        ({"widths": [5]}, [1, 5, 9, 10], "<= 5", [0, 1]),
        ({"widths": [5]}, [1, 5, 9, 10], "< 5", [0]),
        ({"widths": [5]}, [1, 5, 9, 10], "5.5", []),
        ({"widths": [5]}, [1, 5, 9, 10], "nothing", []),
        ({"widths": [5]}, [1, 5, 9, 10], "{5, 10}", [1, 3]),
        ({"widths": [5]}, [1, 5, 9, 10], "{5, 11}", []),
        ({"widths": [0.5]}, [0.1, 0.3, 0.5], "[0.1 - 0.3)", [0]),
        ({"widths": [0.5]}, [0.1, 0.3, 0.5], "[0.1 - 0.3]", [0, 1]),
        ({"date": ["year"]}, [date(2019, 12, 31), date(2020, 1, 1), date(2020, 12, 31), date(2021, 1, 1)], "2020", [1, 2]),
        ({"date": ["year"]}, [date(2019, 12, 31), date(2020, 1, 1), date(2020, 12, 31), date(2021, 1, 1)], "2010s", [0]),
        ({"date": ["year"]}, [date(2019, 12, 31), date(2020, 1, 1), date(2020, 12, 31), date(2021, 1, 1)], "2020-Q4", [2]),
        ({"date": ["year"]}, [date(2019, 12, 31), date(2020, 1, 1)], "2020-13", []),
        ({"date": ["year"], "top": 2020}, [date(2019, 12, 31), date(2020, 1, 1), date(2021, 1, 1)], ">= 2020", [1, 2]),
        ({"date": ["year"], "bottom": 2020}, [date(2019, 12, 31), date(2020, 12, 31), date(2021, 1, 1)], "<= 2020", [0, 1]),
        ({"date": ["year"], "top": "2020-05-01"}, [date(2020, 4, 30), date(2020, 5, 1), date(2020, 5, 2)], ">= 2020-05-01", [1, 2]),
        ({"date": ["year"], "bottom": "2020-05-01"}, [date(2020, 4, 30), date(2020, 5, 1), date(2020, 5, 2)], "<= 2020-05-01", [0, 1]),
        ({"prefix": [2]}, ["10", "110", "120", "1200"], "12*", [2]),
        ({"prefix": [2]}, ["10", "110", "120", "1200"], "1**", []),
        ({"prefix": [2]}, ["10", "12*", "120", "1200"], "12*", [1, 2]),
        ({"tree": {"A": ["a", "b"], "B": ["c"]}}, ["a", "b", "c"], "B", [2]),
        ({"tree": {"A": ["a", "b"], "B": ["c"]}}, ["a", "b", "c"], "C", []),
        ({"tree": {"A": ["a", "b"], "B": ["c"]}}, ["a", "b", "c"], "{a, c}", [0, 2]),
        ({"tree": {"A": ["a", "b"], "B": ["c"]}}, ["a", "b", "c"], "(a, c)", []),
    ],
)  # fmt: skip
def test_a_label_stands_for_what_it_says_and_no_more(spec: dict[str, Any], values: list[Any], label: str, places: list[int]) -> None:
    assert covered(reading(spec, pa.array(values), [label]), 0) == places


def test_a_number_that_no_bin_can_hold_is_read_all_the_same() -> None:
    values = distinct([0.5, float("nan"), float("inf")])
    spec = {"tree": {"A": ["nan", "inf"], "B": ["0.5"]}}
    assert covered(reading(spec, values, ["A"]), 0) == [1, 2]
    axis = label_axis(quasi_identifier(spec), values, Path(), ranges=True, prefixes=False)
    assert axis.exact("nan") == (2, 3)
    assert axis.exact("inf") == (1, 2)
    assert covered(read_labels(axis, ["[0.5 - inf]"]), 0) == [0, 1]


WHOLE = {dtype: dtype.to_pandas_dtype() for dtype in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64())}
END = st.one_of(
    st.integers(-150, 300).map(str),
    st.integers(-(2**65), 2**65).map(str),
    st.sampled_from(["-0", "007", "+5", "1_000", " 4", "4 ", "5.5", "1e2", "nan", "inf", "", "٣", "5\n", "999999999999999999", "-9" * 9]),
)
FORMS = ["[{0} - {1}]", "[{0} - {1})", "{0}", "{{{0}, {1}}}", "{{[{0} - {1}], null}}", ">= {0}", "< {1}", "[{0} - {1}]\n", "[{0}-{1}]", "*"]


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
@given(data=st.data())
def test_labels_of_whole_numbers_are_read_at_once_as_they_are_one_by_one(dtype: pa.DataType, data: st.DataObject) -> None:
    limits = np.iinfo(WHOLE[dtype])
    values = st.integers(max(int(limits.min), -150), min(int(limits.max), 300)) | st.integers(int(limits.min), int(limits.max))
    known = distinct(data.draw(st.lists(values, min_size=1, max_size=12)), dtype)
    axis = label_axis(quasi_identifier({"widths": [5]}), known, Path(), ranges=True, prefixes=False)
    labels = data.draw(st.lists(st.none() | st.builds(str.format, st.sampled_from(FORMS), END, END), max_size=12))
    with patch.multiple(label_spans, FEW=0, AT_ONCE=data.draw(st.integers(1, 13))):
        assert same(read_labels(axis, labels), read_labels(replace(axis, integer_keys=None), labels))


def test_large_decimals_are_compared_exactly() -> None:
    values = distinct([Decimal("99999999999999999999.1"), Decimal("99999999999999999999.2")], pa.decimal128(30, 1))
    assert covered(reading({"widths": [1]}, values, ["[99999999999999999999.2 - 99999999999999999999.2]"]), 0) == [1]


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=12, unique=True).map(sorted), st.integers(0, 3), st.data())
def test_few_ends_are_kept_and_all_are_read_alike(numbers: list[int], kept: int, data: st.DataObject) -> None:
    values = pa.array(numbers)
    edges = st.integers(-25, 25)
    labels = data.draw(st.lists(st.tuples(edges, edges).map(lambda ends: f"[{min(ends)} - {max(ends)}]") | edges.map(str), max_size=20))
    with patch(VALUE_SCALES_KEPT_ENDS, kept):
        scale = value_scale(values)
        assert scale is not None
        for label in labels:
            ends = label.strip("[]").split(" - ")
            inside = [place for place, number in enumerate(numbers) if int(ends[0]) <= number <= int(ends[-1])]
            found = scale.between(*ends, closed=True) if len(ends) == 2 else scale.exact(label)
            assert found is not None
            assert list(range(*found)) == inside
        assert len(scale._edges) <= kept


def test_a_label_of_more_digits_than_python_reads_is_a_number_all_the_same() -> None:
    scale = value_scale(pa.array([1, 2, 3]))
    assert scale is not None
    assert scale.between("2", "9" * 5_000, closed=True) == (1, 3)


@pytest.mark.parametrize("text", ["nan", "sNaN", "inf", "-inf", "1e999999999", "-1e999999999"])
@pytest.mark.parametrize("kind", [pa.int16(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)], ids=str)
def test_what_is_no_number_of_a_column_is_no_value_of_it(kind: pa.DataType, text: str) -> None:
    scale = value_scale(pa.array([Decimal(1), Decimal(2)]).cast(kind))
    assert scale is not None
    low, high = scale.exact(text) or (0, 0)
    assert low == high


def test_a_group_of_the_null_covers_it_and_one_of_the_null_alone_nothing_else() -> None:
    spec = {"tree": {"A": ["a", "?"], "N": ["-"], "B": ["b"]}}
    values = pa.array(["-", "a", "b"])
    assert covered(reading(spec | {"nulls": "?"}, values, ["A"]), 0) == [1, 3]
    assert covered(reading({"tree": {"N": ["?"], "B": ["a", "b"]}, "nulls": "?"}, pa.array(["a", "b"]), ["N"]), 0) == [2]
    # What is not listed stands before all that is, so that it is in no group.
    spec = {"tree": {"N": ["?", "-"], "B": ["b", "c"]}, "nulls": "?"}
    assert [covered(reading(spec, pa.array(["-", "b", "c", "u"]), [label]), 0) for label in ("N", "B", "u")] == [[0, 4], [1, 2], [3]]


@pytest.mark.parametrize(
    "spec", [{"prefix": [2, 1]}, {"tree": {"A": {"AA": ["00", "01"]}, "B": {"BB": ["10"], "BC": ["11", "20"]}}}], ids=str
)
def test_of_a_hierarchy_without_a_reader_of_its_own_labels_are_those_of_its_levels(spec: dict[str, Any]) -> None:
    values = pa.array(["00", "01", "10", "11", "20"])
    definition = quasi_identifier(spec).hierarchy
    axis = label_axis_by_levels("x", definition, values, Path())
    for level in group_levels("x", definition, values, Path())[:-1]:
        spans = read_labels(axis, level.labels)
        for group in range(len(level.labels)):
            places = set(axis.positions[level.groups == group].tolist())
            assert set(covered(spans, group)) == places
    assert [axis.exact(value) for value in values.to_pylist()] == [(place, place + 1) for place in axis.positions.tolist()]


@pytest.mark.parametrize(
    "tree", [{"B": {"A": ["00"]}, "A": {"C": ["01"]}, "D": {"E": ["02"]}}, {"A": {"C": ["00"]}, "B": {"A": ["01"]}, "D": {"E": ["02"]}}]
)
def test_a_label_of_groups_at_several_levels_covers_all_of_them(tree: dict[str, Any]) -> None:
    axis = label_axis_by_levels("x", quasi_identifier({"tree": tree}).hierarchy, pa.array(["00", "01", "02"]), Path())
    [read] = axis.others
    assert [read(label) for label in "AEF"] == [(0, 2), (2, 3), None]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_ends_of_ranges_beyond_the_type_of_a_column_are_beyond_all_of_its_values(bits: int, signed: bool) -> None:
    """Labels are read one by one and at once, with the same answers."""
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = [least, least + 1, 7, 100, most - 1, most]
    ends = [least - 9, least - 1, *values, most + 1, most + 9]
    held = {f"[{low} - {high}]": (low, high) for low in ends for high in ends} | {str(end): (end, end) for end in ends}
    held |= {f"[{low} - {high})": (low, high - 1) for low in ends for high in ends}
    held |= {f">= {end}": (end, most) for end in ends} | {f"<= {end}": (least, end) for end in ends}
    spans = reading({"widths": [10]}, pa.array(values, f"{'' if signed else 'u'}int{bits}"), list(held))
    for label, (low, high) in enumerate(held.values()):
        assert covered(spans, label) == [place for place, value in enumerate(values) if low <= value <= high]


@pytest.mark.parametrize(("unit", "last"), [("ns", 2262), ("us", 9999), ("ms", 9999), ("s", 9999)])
def test_a_moment_beyond_the_years_that_a_unit_holds_is_none_of_its_values(unit: str, last: int) -> None:
    values = pa.array(
        [datetime(1680, 1, 1), datetime(1715, 6, 1), datetime(1969, 12, 31, 23, 59, 59), datetime(2261, 12, 31)], "timestamp[us]"
    )
    scale = value_scale(values.cast(pa.timestamp(unit)))
    assert scale is not None
    for year in (1300, 1700, 1969, 1970, 2000, 2262, 2263, 2300, 9999):
        end, there = f"{year:04d}-01-01 00:00:00", last - 585 < year <= last or last == 9999
        place = sum(value < datetime(year, 1, 1) for value in values.to_pylist())
        assert scale.between(end, None) == ((place, 4) if there else None)
        assert scale.between(None, end, closed=False) == ((0, place) if there else None)


def test_of_times_with_a_zone_a_day_more_on_both_sides_is_covered() -> None:
    days = [datetime(2020, 1, day) for day in range(1, 6)]
    scale = value_scale(pa.array(days, pa.timestamp("us", "UTC")))
    assert scale is not None
    third = "2020-01-03 00:00:00+00:00"
    assert (scale.between(third, third), scale.between(third, third, wide=True)) == ((2, 3), (1, 4))
    assert scale.between(third, third, closed=False, wide=True) == (1, 3)


def test_of_a_list_no_value_is_covered_after_which_the_rest_is_none() -> None:
    values = pa.array(["a", "a, b", "c", "c, d"])
    spans = reading({"prefix": [1]}, values, ["{a, b, c}", "{a, b, c, d}"])
    assert [covered(spans, label) for label in range(2)] == [[1, 2], [1, 3]]
    # Nor one before which it is.
    assert covered(reading({"prefix": [1]}, pa.array(["a, b", "b", "c"]), ["{a, b, c}"]), 0) == [0, 2]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_an_end_between_two_floats_parts_them_there(kind: pa.DataType) -> None:
    scale = value_scale(pa.array([0.125, 0.25, 0.5, 1.0], kind))
    assert scale is not None
    # Each is nearest to the float of its first digits, and is not that float.
    above, below = "0.25" + "0" * 30 + "1", "0.24" + "9" * 30
    assert (scale.between(above, None), scale.between(None, above)) == ((1, 4), (0, 2))
    assert (scale.between(below, "0.5"), scale.between(None, below)) == ((1, 3), (0, 2))
    assert scale.between("0.25", "0.5", closed=False) == (1, 2)


@pytest.mark.parametrize(
    ("nanoseconds", "fractions"),
    [(123_456_789, ["123456789"]), (123_456_000, ["123456000", "123456"]), (120_000_000, ["120000000", "120", "120000"]), (0, [""])],
)
def test_a_fraction_of_a_second_is_written_in_as_few_digits_as_leave_nothing_out(nanoseconds: int, fractions: list[str]) -> None:
    [texts] = value_texts(pa.array([nanoseconds], pa.timestamp("ns")))
    ends = [f".{digits}" if digits else "" for digits in fractions]
    assert sorted(texts) == sorted(f"1970-01-01{between}00:00:00{end}" for end in ends for between in "T ")


def test_a_year_or_a_month_is_no_moment() -> None:
    for values in (pa.array([date(2020, 1, 1), date(2021, 1, 1)]), pa.array([datetime(2020, 1, 1), datetime(2021, 1, 1)])):
        scale = value_scale(values)
        assert scale is not None
        assert [scale.exact(text) for text in ("2020", "2020-01", "2020-01-01")] == [None, None, (0, 1)]


def test_a_set_reaches_from_its_first_value_to_its_last_and_one_with_a_null_to_the_end() -> None:
    values, labels = pa.array(["a", "b", "c", "d"]), ["{a, c}", "{b, c}", "{d, null}", "{a, b, null}", "b", "none", None, "*"]
    axis = label_axis(quasi_identifier({"tree": {"A": ["a", "b"], "B": ["c", "d"]}}), values, Path(), ranges=False, prefixes=False)
    spans = read_labels(axis, labels)
    assert (spans.low.tolist(), spans.high.tolist()) == ([0, 1, 3, 0, 1, 0, 4, 0], [3, 3, 4, 5, 2, 0, 5, 5])
    assert spans.ends.tolist() == [3, 3, 5, 5, 2, 0, 5, 5]
    assert {label: places.tolist() for label, places in spans.sets.items()} == {0: [0, 2], 1: [1, 2], 3: [0, 1, 4]}
    assert (spans.nulls.tolist(), spans.null, sum(map(len, spans.sets.values()))) == ([2], 4, 2 + 2 + 3)
