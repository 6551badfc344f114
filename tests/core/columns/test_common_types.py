"""A common type holds the values of both types, whichever comes first, or there is none."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations

import pyarrow as pa
import pyarrow.types as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.column_types import common_type, merge_schemas, plain_type, type_differences

TYPES = [
    pa.null(), pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(),
    pa.decimal128(4, 1), pa.decimal128(20, 18), pa.decimal128(38, 0), pa.string(), pa.large_string(), pa.bool_(), pa.date32(), pa.date64(),
    pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Kolkata"),
    pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int8()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.uint8(), pa.uint32(), pa.uint32()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.uint32(), pa.int8(), pa.int64()),
        (pa.uint64(), pa.int64(), None),
        (pa.int64(), pa.decimal128(4, 1), pa.decimal128(21, 1)),
        (pa.int64(), pa.decimal128(38, 30), None),
        (pa.decimal128(4, 1), pa.decimal128(20, 18), pa.decimal128(21, 18)),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.decimal128(4, 1), pa.float64(), pa.float64()),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us", "UTC"), None),
        (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
        (pa.null(), pa.date32(), pa.date32()),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
        (pa.string(), pa.int8(), None),
        (pa.bool_(), pa.int8(), None),
        (pa.list_(pa.int8()), pa.list_(pa.int16()), None),
    ],
)
def test_the_common_type_is_that_of_the_table(one: pa.DataType, other: pa.DataType, common: pa.DataType | None) -> None:
    assert common_type(one, other) == common_type(other, one) == common


@given(st.sampled_from(TYPES), st.sampled_from(TYPES))
def test_a_common_type_is_one_for_both_and_takes_part_in_no_further_change(one: pa.DataType, other: pa.DataType) -> None:
    common = common_type(one, other)
    assert common == common_type(other, one)
    assert common_type(one, one) == plain_type(one)
    if common is not None:
        assert common_type(common, one) == common_type(other, common) == common


@given(st.sampled_from([dtype for dtype in TYPES if pt.is_integer(dtype)]), st.sampled_from(TYPES), st.booleans())
def test_the_extreme_integers_of_a_type_survive_in_the_common_one(one: pa.DataType, other: pa.DataType, least: bool) -> None:
    common = common_type(one, other)
    if common is None or pt.is_floating(common):
        return
    bits = one.bit_width - pt.is_signed_integer(one)
    value = (-(2**bits) if pt.is_signed_integer(one) else 0) if least else 2**bits - 1
    assert Decimal(pa.array([value], one).cast(common)[0].as_py()) == value


def test_columns_come_in_the_order_in_which_files_first_have_them_and_what_was_made_of_them_is_told() -> None:
    schemas = [pa.schema({"a": pa.int8(), "b": pa.string()}), pa.schema({"c": pa.date32(), "a": pa.int64()}), pa.schema({"b": pa.string()})]
    columns, unlike = merge_schemas(schemas)
    assert columns == pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.date32()})
    assert not unlike
    assert type_differences(columns, schemas) == {
        "a": "null in 1 of 3 files, which lack it; int64 and int8 read as int64",
        "b": "null in 1 of 3 files, which lack it",
        "c": "null in 2 of 3 files, which lack it",
    }


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_files_without_a_common_type_are_named(order: tuple[int, ...]) -> None:
    schemas = [pa.schema({"a": dtype}) for dtype in (pa.int8(), pa.int16(), pa.string())]
    _, unlike = merge_schemas([schemas[place] for place in order])
    [(one, other)] = unlike.values()
    assert common_type(schemas[order[one]].field("a").type, schemas[order[other]].field("a").type) is None
