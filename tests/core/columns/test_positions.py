"""Values are found among many as among few, whatever their type, and what is not there is told as such."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns import numbers
from core.columns.numbers import as_dictionary, null_mask, position_finder
from tests.laws import tried
from tests.oracles.columns import OTHERS, TYPES, values_of

BYTES = [pa.binary(), pa.binary(3)]
KINDS = [*TYPES, *BYTES]
OTHER = 1_000


def values_of_kind(dtype: pa.DataType) -> st.SearchStrategy[Any]:
    if dtype in BYTES:
        return st.binary(min_size=3, max_size=3)
    # Neighbours of text, too: a search goes wrong where order and equality part.
    return st.text(st.sampled_from("ab\0\U0001f600\uffff"), max_size=3) if pa.types.is_string(dtype) else values_of(dtype)


@pytest.fixture
def searching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "SEARCHED", 0)


@pytest.mark.usefixtures("searching")
@pytest.mark.parametrize("dtype", KINDS, ids=str)
@given(st.data())
@tried(25)
def test_the_place_of_a_value_is_that_of_the_equal_one_whatever_the_type(dtype: pa.DataType, data: st.DataObject) -> None:
    known = data.draw(st.lists(values_of_kind(dtype), min_size=1, max_size=12, unique=True))
    values = pa.array(known, dtype)
    values = values.take(pa.compute.sort_indices(values)) if data.draw(st.booleans()) else values
    wanted = data.draw(st.lists(st.sampled_from(known) | values_of_kind(dtype) | st.none(), max_size=12))
    column = pa.array([None, *wanted], dtype).slice(1)
    held = values.to_pylist()
    expected = [held.index(value) if value is not None and value in held else OTHER for value in column.to_pylist()]
    with patch.multiple(numbers, DENSE=data.draw(st.sampled_from([0, 4, 300])), FAR=data.draw(st.sampled_from([0, 1 << 16]))):
        assert position_finder(values, OTHER)(column).tolist() == expected


def test_every_type_of_a_quasi_identifier_is_tried() -> None:
    assert set(OTHERS) <= set(KINDS)


@pytest.mark.parametrize("dtype", [pa.string(), pa.float64(), pa.decimal128(21, 2)], ids=str)
def test_many_values_are_not_hashed_for_every_batch(dtype: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    values = pa.array(np.arange(100_000, 110_000)).cast(pa.decimal128(21, 0)).cast(dtype)
    find = position_finder(values, OTHER)
    monkeypatch.delattr("pyarrow.compute.index_in")
    for first in range(0, len(values), 1_000):
        assert find(values.slice(first, 10)).tolist() == list(range(first, first + 10))


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@given(st.data())
@tried(25)
def test_a_column_of_few_numbers_is_a_dictionary_of_the_same_values(dtype: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of_kind(dtype) | st.none(), min_size=1, max_size=20))
    column = pa.array([None, *values], dtype).slice(1)
    coded = as_dictionary(column)
    if coded is not column:
        assert coded.type == pa.dictionary(pa.int32(), dtype)
        assert coded.dictionary.null_count == 0
        assert len(set(coded.dictionary.to_pylist())) == len(coded.dictionary)
    assert coded.to_pylist() == column.to_pylist()
    assert null_mask(coded).tolist() == null_mask(column).tolist()


def test_floats_whose_bits_end_in_zeros_and_more_values_than_few_are_told_apart() -> None:
    few = pa.array(np.arange(numbers.FEW, dtype=np.float64))
    assert as_dictionary(pa.concat_arrays([few, few])).to_pylist() == 2 * few.to_pylist()
    many = pa.array(np.arange(numbers.FEW + 1))
    assert as_dictionary(many) is many
