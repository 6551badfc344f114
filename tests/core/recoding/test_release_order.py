"""A release is ordered by class and content; how the records came tells nothing."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.column_types import is_unpublishable, to_working_type
from core.recoding.release_order import (
    assign_files,
    canonical_order,
    entry_ranks,
    first_files,
    in_canonical_order,
    ranks_with_null,
    record_hashes,
)
from tests.corpus.columns_of_types import FAMILIES
from tests.laws import tried
from tests.oracles.columns import TYPES, encodings, values_of

PLAIN = [dtype for dtype in TYPES if not pa.types.is_floating(dtype)]
FLOATS = [pa.float32(), pa.float64()]
HASHED = [dtype for dtype in PLAIN if not pa.types.is_decimal256(dtype)]  # Polars has no decimal of more than 38 digits
Row = tuple[Any, ...]


@st.composite
def as_read(draw: st.DrawFn, values: list[Any], dtype: pa.DataType) -> pa.Array:
    """A column in any encoding in which Parquet gives it: a null is no record's dictionary entry."""
    column = draw(encodings(values, dtype))
    if not isinstance(column, pa.DictionaryArray):
        return column
    entries = column.dictionary.to_pylist()
    used = [None if place is None or entries[place] is None else place for place in column.indices.to_pylist()]
    return pa.DictionaryArray.from_arrays(pa.array(used, column.indices.type), column.dictionary)


def last(value: Any) -> tuple[bool, Any]:
    """Sort nulls last."""
    return value is None, 0 if value is None else value


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
@given(st.data())
@tried(25)
def test_ranks_are_those_of_the_sorted_values_with_nulls_last(dtype: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(dtype) | st.none(), max_size=12))
    ranks, size = ranks_with_null(data.draw(as_read(values, dtype)))
    assert len(ranks) == len(values)
    assert all(0 <= rank < size for rank in ranks)
    for rank, value in zip(ranks, values, strict=True):
        for other_rank, other in zip(ranks, values, strict=True):
            assert (rank < other_rank, rank == other_rank) == (last(value) < last(other), value == other)


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("<d", value)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(st.data())
def test_floats_rank_alike_if_and_only_if_their_bits_are_alike(dtype: pa.DataType, data: st.DataObject) -> None:
    odd = st.sampled_from([0.0, -0.0, float("nan"), float("inf"), -1.5])
    values = data.draw(st.lists(odd | st.none() | values_of(dtype), max_size=10))
    column = pa.array(values, dtype, from_pandas=False)
    ranks, _ = ranks_with_null(column)
    for rank, value in zip(ranks, column.to_pylist(), strict=True):
        for other_rank, other in zip(ranks, column.to_pylist(), strict=True):
            assert (rank == other_rank) == (bits(value) == bits(other))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], list[pa.DataType], list[Row]]:
    types = draw(st.lists(st.sampled_from(HASHED), max_size=4))
    columns = [st.sampled_from(draw(st.lists(values_of(dtype) | st.none(), min_size=1, max_size=3))) for dtype in types]
    rows = draw(st.lists(st.tuples(st.integers(0, 3), *columns), max_size=15))
    return [row[0] for row in rows], types, [row[1:] for row in rows]


def columns_of(draw: Any, rows: list[Row], types: list[pa.DataType]) -> list[pa.Array]:
    return [draw(as_read([row[number] for row in rows], dtype)) for number, dtype in enumerate(types)]


@given(tables(), st.data())
@tried(150)
def test_records_are_sorted_by_class_and_then_by_every_column(table: tuple[list[int], list[pa.DataType], list[Row]], data) -> None:
    classes, types, rows = table
    order = canonical_order(np.array(classes, np.int32), columns_of(data.draw, rows, types))
    assert sorted(order.tolist()) == list(range(len(rows)))
    expected = sorted(zip(classes, rows, strict=True), key=lambda record: (record[0], *map(last, record[1])))
    assert [(classes[place], rows[place]) for place in order] == expected


@given(tables(), st.data())
@tried(150)
def test_records_are_put_in_the_order_that_is_found(table: tuple[list[int], list[pa.DataType], list[Row]], data: st.DataObject) -> None:
    classes, types, rows = table
    numbers, columns = np.array(classes, np.int32), columns_of(data.draw, rows, types)
    # With texts alone, which are dictionaries, records are sorted as numbers.
    if data.draw(st.booleans()):
        texts = [[None if value is None else repr(value) for value in column.to_pylist()] for column in columns]
        columns = [pa.array(column, pa.string()).dictionary_encode() for column in texts]
    order = canonical_order(numbers, columns)
    found, ordered = in_canonical_order(numbers, columns)
    assert found.tolist() == numbers[order].tolist()
    for mine, column in zip(ordered, columns, strict=True):
        assert mine.type == column.type
        assert list(map(repr, mine.to_pylist())) == list(map(repr, column.take(pa.array(order)).to_pylist()))
        assert not isinstance(mine, pa.DictionaryArray) or mine.dictionary.equals(column.dictionary)


@given(st.data())
@tried(40)
def test_many_wide_columns_are_sorted_though_their_ranks_do_not_fit_one_number(data: st.DataObject) -> None:
    # 14 columns of up to 40 values make 40 ** 14 > 2 ** 62 combinations.
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 39)] * 14), min_size=30, max_size=45))
    filler = [tuple((number + shift) % 40 for shift in range(14)) for number in range(40)]
    rows = [*rows, *filler]
    classes = np.zeros(len(rows), np.int32)
    order = canonical_order(classes, [pa.array([row[number] for row in rows]) for number in range(14)])
    assert [rows[place] for place in order] == sorted(rows)


@given(st.lists(st.integers(1, 40), max_size=12), st.integers(1, 25))
def test_classes_are_laid_out_in_order_over_files_of_about_the_asked_length(sizes: list[int], rows_per_file: int) -> None:
    first, spread = first_files(np.array(sizes, np.int64), rows_per_file)
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    assert first.tolist() == [start // rows_per_file for start in starts]
    ends = (first + spread).tolist()
    for number in range(1, len(sizes)):
        assert first[number] >= ends[number - 1] - 1, "a class begins before the one in front of it ends"
    for size, parts in zip(sizes, spread, strict=True):
        assert (parts - 1) * rows_per_file < size <= parts * rows_per_file


@given(tables(), st.integers(1, 6), st.data())
@tried(100)
def test_a_record_lies_in_a_file_of_its_class_with_all_that_equal_it(
    table: tuple[list[int], list[pa.DataType], list[Row]], rows_per_file: int, data: st.DataObject
) -> None:
    classes, types, rows = table
    first, spread = first_files(np.bincount(classes, minlength=4).astype(np.int64), rows_per_file)
    files = assign_files(np.array(classes, np.int32), first, spread, columns_of(data.draw, rows, types))
    assert all(first[one] <= file <= max(first[one], first[one] + spread[one] - 1) for one, file in zip(classes, files, strict=True))
    found: dict[Any, int] = {}
    for one, row, file in zip(classes, rows, files.tolist(), strict=True):
        assert found.setdefault((one, row), file) == file
    order = data.draw(st.permutations(range(len(rows))))
    moved = [rows[place] for place in order]
    again = assign_files(np.array([classes[place] for place in order], np.int32), first, spread, columns_of(data.draw, moved, types))
    assert again.tolist() == [files[place] for place in order]


def test_a_class_without_other_columns_stays_in_one_file() -> None:
    first, spread = first_files(np.array([10]), 3)
    assert assign_files(np.zeros(10, np.int32), first, spread, []).tolist() == [0] * 10


@pytest.mark.parametrize("parts", [1, 2, 10])
def test_a_large_class_of_different_records_fills_all_of_its_files(parts: int) -> None:
    first, spread = first_files(np.array([1000]), 1000 // parts)
    files = assign_files(np.zeros(1000, np.int32), first, spread, [pa.array(range(1000))])
    assert sorted(set(files.tolist())) == list(range(parts))


def test_equal_values_of_any_type_have_equal_hashes_in_a_dictionary_or_not() -> None:
    for kind in (kind for kinds in FAMILIES.values() for kind in kinds.values()):
        column = to_working_type(kind.column())
        if is_unpublishable(column.type):
            continue
        found = record_hashes([column], len(column)).tolist()
        assert len(set(found)) == len(set(map(repr, column.to_pylist()))), kind.dtype
        if not pa.types.is_float16(column.type):
            assert record_hashes([column.dictionary_encode()], len(column)).tolist() == found, kind.dtype


def test_many_numbers_rank_by_their_size() -> None:
    ranks, size = ranks_with_null(pa.array([*range(2_000, 0, -1), None, 1]))
    assert (ranks.tolist(), size) == ([*range(1_999, -1, -1), 2_000, 0], 2_001)


def test_short_floats_are_told_apart_by_their_bits_as_others_are() -> None:
    values = [np.float16(value) for value in (0.0, -0.0, 1.5, 0.0, "nan")]
    column = pa.array([*values, None], pa.float16())
    ranks, size = ranks_with_null(column)
    hashes = record_hashes([column], len(column))
    for found in (ranks.tolist(), hashes.tolist()):
        assert found[0] == found[3]
        assert len(set(found)) == size == 5


@pytest.mark.parametrize(
    "entries",
    [["b", "a", "c"], ["b", None, "a"], ["b", "a", "b"], [3, 1, 2], [3, None, 1], [0.5, -0.0, 0.0], [None], []],
    ids=str,
)
def test_entries_rank_as_values_do(entries: list[Any]) -> None:
    column = pa.array(entries, pa.string() if not entries else None)
    (ranks, size), (expected, several) = entry_ranks(column), ranks_with_null(column)
    assert (ranks.tolist(), size) == (expected.tolist(), several)


def test_a_null_among_alike_entries_of_a_dictionary_stays_a_null() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 0, 2], pa.int8()), pa.array(["a", "a", "b"]))
    classes, [found] = in_canonical_order(np.array([1, 0, 0, 0, 0], np.int32), [column])
    assert classes.tolist() == [0, 0, 0, 0, 1]
    assert found.to_pylist() == ["a", "a", "b", None, "b"]


def test_many_records_that_columns_tell_apart_one_after_the_other_are_sorted_by_all_of_them() -> None:
    drawn = np.random.default_rng(2)
    classes = drawn.integers(0, 3, 4_000).astype(np.int32)
    columns = [drawn.integers(0, most, 4_000) for most in (40, 40, 3, 40, 1_000)]
    order = canonical_order(classes, [pa.array(column) for column in columns])
    found, expected = (np.stack([classes, *columns], axis=1)[rows] for rows in (order, np.lexsort([*columns[::-1], classes])))
    assert found.tolist() == expected.tolist()


def test_records_that_are_alike_in_long_runs_are_sorted_by_what_comes_after() -> None:
    """More of them than are sorted by comparing, in two groups, and a null is the last of all."""
    drawn = np.random.default_rng(5)
    classes = np.where(drawn.integers(0, 2, 40_000), 50_000, 7).astype(np.int32)
    first, second = drawn.integers(0, 14, 40_000), drawn.integers(0, 127, 40_000)
    order = canonical_order(classes, [pa.array(np.zeros(40_000)), pa.array(first), pa.array(second, mask=second == 40)])
    second[second == 40] = 127
    found, expected = (np.stack([classes, first, second])[:, rows] for rows in (order, np.lexsort([second, first, classes])))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("most", [2**16, 2**30 - 1, 2**31 - 1])
def test_classes_of_large_numbers_are_sorted_with_their_texts(most: int) -> None:
    """Their number and the texts together are more than 32 bits hold, or just as many."""
    classes = np.array([most, 0, most - 1, 0, most, 1], np.int32)
    column = pa.array(["b", "c", "a", "a", "a", "c"]).dictionary_encode()
    found, [ordered] = in_canonical_order(classes, [column])
    assert list(zip(found.tolist(), ordered.to_pylist(), strict=True)) == sorted(zip(classes.tolist(), column.to_pylist(), strict=True))


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 5])
def test_texts_of_several_columns_stay_in_their_columns_and_with_their_records(columns: int) -> None:
    """Each column has texts of its own, more in one than in another, and each but the first has a null."""
    drawn = np.random.default_rng(columns)
    classes = drawn.integers(4, 7, 50).astype(np.int32)
    texts = [
        [f"{column}{number}" if number or not column else None for number in drawn.integers(0, 2 + column, 50)] for column in range(columns)
    ]
    found, ordered = in_canonical_order(classes, [pa.array(column).dictionary_encode() for column in texts])
    records = zip(classes.tolist(), *texts, strict=True)
    expected = sorted(records, key=lambda record: (record[0], *map(last, record[1:])))
    assert list(zip(found.tolist(), *(column.to_pylist() for column in ordered), strict=True)) == expected


@pytest.mark.parametrize(("entries", "columns"), [(1_500, 1), (60, 11)])
def test_many_records_are_sorted_whether_or_not_they_fit_into_numbers(entries: int, columns: int) -> None:
    """More than are sorted by comparing. Of one column two classes take a bit more than one, and of eleven no number holds a record."""
    drawn = np.random.default_rng(entries)
    classes = drawn.integers(0, 2, 33_000).astype(np.int32)
    places = [drawn.integers(0, entries if not column else 3, 33_000).astype(np.int32) for column in range(columns)]
    texts = pa.array([f"{number:04d}" for number in range(entries)])
    found, ordered = in_canonical_order(classes, [pa.DictionaryArray.from_arrays(one, texts) for one in places])
    rows = np.lexsort([*places[::-1], classes])
    assert np.array_equal(found, classes[rows])
    for column, one in zip(ordered, places, strict=True):
        assert np.array_equal(column.indices, one[rows])
