"""Conversions of number, date and time columns to NumPy numbers and to sortable integer keys."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.domains import Domain

WORDS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
"""The whole numbers as which numbers, dates and times of so many bits can be read."""


def to_numpy(column: pa.Array) -> NDArray[Any]:
    """Return a column without nulls as an array of shape (n,), without a copy where Arrow allows it."""
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array


def null_mask(column: pa.Array) -> NDArray[np.bool_]:
    """Return a mask of the null values, shape (n,)."""
    # A dictionary may hold a null of which it knows nothing.
    there = not column.null_count and not isinstance(column, pa.DictionaryArray)
    return np.zeros(len(column), np.bool_) if there else to_numpy(pc.is_null(column))


def filled(column: pa.Array, null: int) -> NDArray[Any]:
    """Return integers as an array of shape (n,), with nulls replaced by the value ``null``.

    ``null`` must fit the column's type.
    """
    return to_numpy(pc.fill_null(column, null) if column.null_count else column)


def positions(column: pa.DictionaryArray) -> NDArray[Any]:
    """Return the dictionary position of each value, shape (n,); for a null, the number of entries."""
    indices = column.indices
    return filled(indices.cast(pa.int64()) if indices.null_count else indices, len(column.dictionary))


def offsets(integers: NDArray[np.integer[Any]], origin: int) -> NDArray[np.intp]:
    """Return integers minus their least possible value ``origin``, shape (n,), without overflow."""
    # Narrow types overflow when subtracted as they are, uint64 when cast first.
    if integers.dtype == np.uint64:
        return (integers - np.uint64(origin)).astype(np.intp)
    found: NDArray[np.intp] = np.subtract(integers, origin, dtype=np.int64).astype(np.intp, copy=False)
    return found


WHOLE, DIGITS = 1 << 53, 15
"""Up to where all integers are floats, and digits of which any number has a float of its own."""


def as_numbers(values: pa.Array) -> NDArray[np.float64] | None:
    """Return numbers, dates and times as floats of shape (m,), or None for values of any other type."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return to_numpy(values.cast(pa.float64(), safe=False))
    if pa.types.is_date32(kind):
        return to_numpy(values.cast(pa.int32())).astype(np.float64)
    if pa.types.is_date64(kind) or pa.types.is_timestamp(kind):
        return to_numpy(values.cast(pa.int64())).astype(np.float64)
    return None


def is_numerical(domain: Domain) -> bool:
    """Return whether a QID has numbers, dates or times, whose distances can be measured.

    Other values are equal or not.
    """
    # Of none, because a domain may hold millions.
    return as_numbers(domain.values[:0]) is not None


@dataclass(frozen=True)
class NumberLine:
    """The positions of a domain's numbers on a line, with right differences even of close numbers.

    Attributes:
        origin: The exact origin of the line, where some different values are equal as floats; None where none are.
    """

    origin: Fraction | None

    def of(self, values: pa.Array) -> NDArray[np.float64]:
        """Return numbers, dates and times as floats on the line, shape (m,).

        There is no null among them. Only differences of the floats have a meaning; they are right even of close numbers.
        """
        if self.origin is None:
            numbers = as_numbers(values)
            assert numbers is not None
            return numbers
        return np.array([float(number - self.origin) for number in _fractions(values)], np.float64)

    def at(self, values: pa.Array, positions: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the line positions of the values at some places of an array, shape (places,)."""
        return self.of(values.take(pa.array(positions))) if len(positions) < len(values) else self.of(values)[positions]


def number_line(domain: Domain) -> NumberLine | None:
    """Return the number line of a QID; None for a QID that is not numerical.

    Floats hold 53 bits. Values of more, such as decimals of 26 digits or integers near 2^63, may be one float and yet differ. Only such
    domains are counted exactly from their least value: a difference of floats takes no time, and is right of all others.
    """
    if not is_numerical(domain):
        return None
    numbers = as_numbers(domain.values) if _may_be_alike(domain.values) else None
    alike = numbers is not None and bool(np.any(numbers[1:] == numbers[:-1]))
    return NumberLine(next(iter(_fractions(domain.values.slice(0, 1)))) if alike else None)


def _may_be_alike(values: pa.Array) -> bool:
    """Return whether two values may be equal as floats, judged by their type and their ends.

    Values ascend; there may be millions.
    """
    if len(values) < 2 or pa.types.is_floating(values.type) or pa.types.is_date32(values.type):
        return False
    if pa.types.is_decimal(values.type):
        return bool(values.type.precision > DIGITS)
    return max(abs(end) for end in _fractions(pa.concat_arrays([values.slice(0, 1), values.slice(len(values) - 1)]))) > WHOLE


def _fractions(values: pa.Array) -> list[Fraction]:
    moments = pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type)
    return [Fraction(number) for number in (values.cast(pa.int64()) if moments else values).to_pylist()]


_SIGN = np.int64(-(2**63))
Keys = NDArray[np.int64]


def is_sortable(dtype: pa.DataType) -> bool:
    """Return whether values of a type can be mapped to sortable integers: numbers, dates and times.

    Booleans cannot.
    """
    return bool(pt.is_primitive(dtype) and not pt.is_boolean(dtype) and not pt.is_float16(dtype) and dtype.bit_width in WORDS)


def keys_of(values: pa.Array) -> Keys:
    """Return an integer key for each value, less where the value is less.

    Keys are equal where the bits of the values are.

    Args:
        values: Shape (m,), of a type that ``is_sortable``, without nulls.

    Returns:
        Shape (m,), int64: of whole numbers, dates and times these themselves, but for those of 64 bits without a sign.
    """
    if pt.is_unsigned_integer(values.type):
        whole: NDArray[Any] = to_numpy(values)
        return whole.view(np.int64) ^ _SIGN if pt.is_uint64(values.type) else whole.astype(np.int64)
    word = WORDS[values.type.bit_width]
    keys = to_numpy(values if values.type == word else values.view(word)).astype(np.int64)
    return _turned(keys, values.type.bit_width) if pt.is_floating(values.type) else keys


def values_of_keys(keys: Keys, dtype: pa.DataType) -> pa.Array:
    """Return the values of integer keys, in the given type; the inverse of ``keys_of``."""
    if pt.is_unsigned_integer(dtype):
        return pa.array((keys ^ _SIGN).view(np.uint64) if pt.is_uint64(dtype) else keys.astype(dtype.to_pandas_dtype()), dtype)
    word = WORDS[dtype.bit_width]
    whole = _turned(keys, dtype.bit_width) if pt.is_floating(dtype) else keys
    words = pa.array(whole.astype(word.to_pandas_dtype(), copy=False), word)
    return words if dtype == word else words.view(dtype)


def _turned(words: Keys, bits: int) -> Keys:
    """Map the bits of floats to integers of the same order, and back.

    Those below zero are in reverse order.
    """
    below: Keys = np.where(words < 0, words ^ np.int64(2 ** (bits - 1) - 1), words)
    return below
