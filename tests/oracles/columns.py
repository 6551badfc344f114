"""Values of every type that a quasi-identifier may have, and columns that hold them in every way in which Arrow can."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [pa.string(), pa.large_string()]
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))
OTHERS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float32(): st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False).filter(bool),
    pa.decimal128(9, 2): st.decimals(-9_999_999, 9_999_999, places=2).map(lambda number: number + Decimal("0.00")),
    pa.decimal256(50, 3): st.decimals(-(10**40), 10**40, places=3).map(lambda number: number + Decimal("0.000")),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    pa.date64(): st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    pa.timestamp("us"): MOMENTS.map(lambda moment: moment.replace(tzinfo=None)),
    pa.timestamp("us", "UTC"): MOMENTS,
}
TYPES = [*INTEGERS, *TEXTS, *OTHERS]
INDICES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def ends(dtype: pa.DataType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    bits = dtype.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(dtype) else (0, 2**bits - 1)


def values_of(dtype: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, its extremes among them."""
    if pa.types.is_integer(dtype):
        low, high = ends(dtype)
        return st.sampled_from([low, low + 1, high - 1, high]) | st.integers(max(low, -50), min(high, 50)) | st.integers(low, high)
    return st.text(max_size=4) if dtype in TEXTS else OTHERS[dtype]


@st.composite
def encodings(draw: st.DrawFn, values: Sequence[Any], dtype: pa.DataType, spare: Sequence[Any] = ()) -> pa.Array:
    """A column of the given values: plain, or a dictionary in any order with entries unused, repeated or null."""
    if draw(st.booleans()):
        plain = pa.array(values, dtype)
        before = draw(st.integers(0, 2))
        return pa.concat_arrays([pa.nulls(before, dtype), plain]).slice(before)
    entries = draw(st.permutations([*dict.fromkeys(values), *spare, *list(values)[:2], None]))
    places: dict[Any, list[int]] = {}
    for place, entry in enumerate(entries):
        places.setdefault(entry, []).append(place)
    indices = [None if value is None and draw(st.booleans()) else draw(st.sampled_from(places[value])) for value in values]
    index_type = draw(st.sampled_from(INDICES))
    return pa.DictionaryArray.from_arrays(pa.array(indices, index_type), pa.array(entries, dtype))
