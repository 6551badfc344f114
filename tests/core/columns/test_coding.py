"""A record's code is the position of its value in the domain, and cells are packed without loss."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.coding import WORD, Coder, Packing, single_word, smallest_type
from tests.laws import tried
from tests.oracles.columns import INTEGERS, TYPES, encodings, ends, values_of
from tests.oracles.tables import observed


def coded(column: pa.Array, values: list[Any], dtype: pa.DataType) -> list[int]:
    return Coder(observed("x", values, dtype)).code(column).tolist()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
@tried(25)
def test_a_code_is_the_position_in_the_domain_whatever_the_type_and_the_encoding(dtype: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(dtype) | st.none(), max_size=15))
    domain = observed("x", values, dtype)
    spare = data.draw(st.lists(values_of(dtype), max_size=2))
    codes = Coder(domain).code(data.draw(encodings(values, dtype, spare)))
    distinct = sorted({value for value in values if value is not None})
    assert codes.tolist() == [len(distinct) if value is None else distinct.index(value) for value in values]
    assert codes.dtype.kind == "u"


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(st.data())
@tried(25)
def test_a_value_or_null_that_was_not_counted_is_refused(dtype: pa.DataType, data: st.DataObject) -> None:
    known = data.draw(st.lists(values_of(dtype), max_size=6, unique=True))
    foreign = data.draw(st.none() | values_of(dtype).filter(lambda value: value not in known))
    column = data.draw(encodings([*known, foreign], dtype))
    with pytest.raises(LookupError) as refusal:
        coded(column, known, dtype)
    assert refusal.value.args == ("x",)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_the_ends_of_every_integer_type_are_coded_and_refused_right(dtype: pa.DataType) -> None:
    low, high = ends(dtype)
    assert coded(pa.array([high, None, low], dtype), [low, high, None], dtype) == [1, 2, 0]
    for near, foreign in ((low, high), (high, low), (low, low + 1), (high, high - 1), (0, high), (0, low or high)):
        with pytest.raises(LookupError):
            coded(pa.array([near, foreign], dtype), [near], dtype)


@pytest.mark.parametrize("span", [(1 << 22) - 1, 1 << 22, 1 << 40])
def test_integers_are_coded_alike_by_look_up_and_by_search(span: int) -> None:
    values = [-7, 0, 5, span - 7]
    assert coded(pa.array([5, span - 7, -7, 0, 5]), values, pa.int64()) == [2, 3, 0, 1, 2]
    with pytest.raises(LookupError):
        coded(pa.array([6]), values, pa.int64())


@pytest.mark.parametrize("entries", [126, 127, 128])
def test_a_full_dictionary_of_narrow_indices_tells_nulls_from_its_entries(entries: int) -> None:
    values = [f"{number:03}" for number in range(entries)]
    indices = [*range(entries), None, 0]
    column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(values))
    assert coded(column, [*values, None], pa.string()) == [*range(entries), entries, 0]


@given(st.data())
def test_groups_are_composed_with_codes(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(-5, 5) | st.none(), min_size=1, max_size=20))
    domain = observed("x", values, pa.int16())
    groups = np.array(data.draw(st.lists(st.integers(0, 300), min_size=domain.size, max_size=domain.size)), np.uint32)
    column = data.draw(encodings(values, pa.int16()))
    coder = Coder(domain, groups)
    assert coder.code(column).tolist() == groups[Coder(domain).code(column)].tolist()
    assert coder.size == groups.max() + 1


def test_a_column_without_values_or_records_is_coded() -> None:
    assert coded(pa.nulls(3, pa.string()), [None], pa.string()) == [0, 0, 0]
    assert coded(pa.array([], pa.int64()), [], pa.int64()) == []
    with pytest.raises(LookupError):
        coded(pa.array([1]), [None], pa.int64())


@given(st.integers(1, 2**33))
def test_the_smallest_type_holds_all_codes_and_no_smaller_one_does(size: int) -> None:
    dtype = smallest_type(size)
    assert np.iinfo(dtype).max >= size - 1
    assert dtype.itemsize == 1 or size - 1 > 2 ** (4 * dtype.itemsize) - 1


SIZES = st.lists(st.integers(1, 5) | st.sampled_from([2**20, 2**31, 2**40, 2**62]), min_size=1, max_size=9)


@st.composite
def cells(draw: st.DrawFn) -> tuple[Packing, list[tuple[int, ...]]]:
    sizes = draw(SIZES)
    row = st.tuples(*(st.integers(0, size - 1) | st.sampled_from([0, size - 1]) for size in sizes))
    return Packing(tuple(sizes)), draw(st.lists(row, max_size=12))


def arrays(rows: list[tuple[int, ...]], packing: Packing) -> list[np.ndarray]:
    return [np.array([row[qid] for row in rows], smallest_type(size)) for qid, size in enumerate(packing.sizes)]


def packed(packing: Packing, rows: list[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
    """Mixed-radix numbers by Python integers: a huge axis has no array of its groups."""
    words = [[0] * len(rows) for _ in packing.words]
    for word, qids in enumerate(packing.words):
        for qid in qids:
            words[word] = [number * packing.sizes[qid] + row[qid] for number, row in zip(words[word], rows, strict=True)]
    return tuple(np.array(word, np.int64) for word in words)


@given(cells())
def test_unpacking_gives_back_what_was_packed(case: tuple[Packing, list[tuple[int, ...]]]) -> None:
    packing, rows = case
    codes = packing.unpack(packed(packing, rows))
    assert list(map(tuple, codes.tolist())) == rows
    assert codes.dtype == max(np.dtype(np.uint16), smallest_type(max(packing.sizes)))


@given(cells())
def test_every_qid_is_in_one_word_and_no_word_overflows(case: tuple[Packing, list[tuple[int, ...]]]) -> None:
    packing, _ = case
    assert [qid for word in packing.words for qid in word] == list(range(len(packing.sizes)))
    assert all(prod(packing.sizes[qid] for qid in word) <= WORD for word in packing.words)
    assert packing.product == prod(packing.sizes)
    assert (len(packing.words) == 1) == (packing.product <= WORD)


@given(cells())
def test_a_single_word_orders_and_tells_apart_cells_as_tuples_do(case: tuple[Packing, list[tuple[int, ...]]]) -> None:
    packing, rows = case
    keys = single_word(packed(packing, rows)).tolist()
    for key, row in zip(keys, rows, strict=True):
        for other_key, other in zip(keys, rows, strict=True):
            assert (key < other_key, key == other_key) == (row < other, row == other)


@given(st.data())
def test_packing_is_mixed_radix_also_beyond_one_word(data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.lists(st.sampled_from([1, 3, 200, 70_000]), min_size=1, max_size=12)))
    packing = Packing(sizes)
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    rows = data.draw(st.lists(row, max_size=6))
    words = packing.pack(arrays(rows, packing))
    assert all(word.dtype == np.int64 for word in words)
    assert [word.tolist() for word in words] == [word.tolist() for word in packed(packing, rows)]


@given(st.data())
def test_packing_codes_by_maps_is_packing_their_groups(data: st.DataObject) -> None:
    codes, maps, sizes = [], [], []
    records = data.draw(st.integers(0, 8))
    for _ in range(data.draw(st.integers(1, 6))):
        map_ = np.array(data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=10)), np.uint32)
        codes.append(np.array(data.draw(st.lists(st.integers(0, len(map_) - 1), min_size=records, max_size=records)), np.uint8))
        maps.append(map_)
        sizes.append(int(map_.max()) + data.draw(st.sampled_from([1, 2**18])))
    packing = Packing(tuple(sizes))
    direct = packing.pack_mapped(codes, maps)
    grouped = packing.pack([map_[code] for map_, code in zip(maps, codes, strict=True)])
    assert [word.tolist() for word in direct] == [word.tolist() for word in grouped]
