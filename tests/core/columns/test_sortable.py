"""Numbers, dates and times are whole numbers in the same order, and come back from these as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.numbers import is_sortable, keys_of, values_of_keys
from tests.laws import tried
from tests.oracles.columns import TYPES, values_of

SORTABLE = [dtype for dtype in TYPES if is_sortable(dtype)]


def test_numbers_dates_and_times_of_up_to_64_bits_are_sortable_and_nothing_else() -> None:
    others = {dtype for dtype in TYPES if pa.types.is_decimal(dtype) or pa.types.is_boolean(dtype) or not pa.types.is_primitive(dtype)}
    assert set(SORTABLE) == set(TYPES) - others
    assert not is_sortable(pa.float16())


@pytest.mark.parametrize("dtype", SORTABLE, ids=str)
@given(st.data())
@tried(25)
def test_keys_ascend_with_values_and_are_theirs_alone(dtype: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(dtype), max_size=12))
    column = pa.concat_arrays([pa.nulls(1, dtype), pa.array(values, dtype)]).slice(1)
    keys = keys_of(column).tolist()
    by_keys = [value for _, value in sorted(zip(keys, values, strict=True), key=lambda pair: pair[0])]
    assert by_keys == sorted(values)
    assert len(set(keys)) == len(set(values))
    assert values_of_keys(keys_of(column), dtype).equals(pa.array(values, dtype))


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()], ids=str)
def test_zeros_and_what_is_no_number_keep_their_bits(dtype: pa.DataType) -> None:
    values = pa.array([-float("inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), float("nan")], dtype)
    keys = keys_of(values)
    assert keys.tolist() == sorted(set(keys.tolist()))
    assert list(map(str, values_of_keys(keys, dtype).to_pylist())) == ["-inf", "-1.5", "-0.0", "0.0", "1.5", "inf", "nan"]
