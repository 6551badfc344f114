"""Conversions of number, date and time columns to NumPy arrays and sort keys; positions of values.

Arrow hashes the domain anew at each call. For a domain of a million values and a file of small row groups that is a million values for
every thousand records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.kernels import number_values

if TYPE_CHECKING:
    import polars as pl


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


def integers_without_nulls(column: pa.Array, null: int) -> NDArray[Any]:
    """Return integers as an array of shape (n,), with nulls replaced by the value ``null``.

    ``null`` must fit the column's type.
    """
    return to_numpy(pc.fill_null(column, null) if column.null_count else column)


def dictionary_positions(column: pa.DictionaryArray) -> NDArray[Any]:
    """Return the dictionary position of each value, shape (n,); for a null, the number of entries."""
    indices = column.indices
    return integers_without_nulls(indices.cast(pa.int64()) if indices.null_count else indices, len(column.dictionary))


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


SEARCHED = 1 << 12
"""More values than these are searched; to hash fewer costs less than to read the batch."""
FEW = 1 << 12
"""So many different numbers of a batch, at most, make a dictionary: their table stays near the processor."""
DENSE = 4
"""Numbers that lie so close that there are at most so many for each of them have a table of all; it takes sixteen bytes for each."""
FAR = 1 << 16
"""Numbers among which, and so many of which, are sought in their order."""
Positions = NDArray[np.integer]
Finder = Callable[[pa.Array], Positions]


def as_dictionary(column: pa.Array) -> pa.Array:
    """Return numbers, dates or times of few distinct values as a dictionary; other columns unchanged.

    Any other column stays as it is. To count, code and digest the few costs next to nothing, and each of these would else hash every
    value, or look it up.

    Args:
        column: Shape (n,), in its working type; floats have one zero.
    """
    if isinstance(column, pa.DictionaryArray) or not pt.is_primitive(column.type) or pt.is_boolean(column.type) or not len(column):
        return column
    numbers, known = number_values(_bits(column).astype(np.int64, copy=False), np.full(4 * FEW, -1, np.int32), FEW)
    if not len(known):
        return column
    word = WORDS[column.type.bit_width]
    entries = pa.array(known.astype(word.to_pandas_dtype()), word).view(column.type)
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=null_mask(column) if column.null_count else None), entries)


def position_finder(values: pa.Array, other: int) -> Finder:
    """Return a function that finds each value's position among a domain's values, or gives ``other``.

    The position is ``other`` for values that are not there, and for nulls.

    Args:
        values: Shape (m,), distinct, without null; floats have one zero and no NaN.
    """
    if len(values) <= SEARCHED or pt.is_boolean(values.type):
        return lambda column: integers_without_nulls(pc.index_in(column, value_set=values), other)
    if pt.is_primitive(values.type):
        return _among_numbers(values, other)
    return _among_texts(values, other)


def _among_numbers(values: pa.Array, other: int) -> Finder:
    known = _bits(values)
    low, high = int(known.min()), int(known.max())
    if high - low < DENSE * len(known):
        return _by_table(known, low, high, other)
    # Bits need not ascend with their values: those of floats below zero fall.
    order = None if np.all(known[1:] >= known[:-1]) else np.argsort(known, kind="stable")
    ascending = known if order is None else known[order]

    def find(column: pa.Array) -> Positions:
        wanted = _bits(column)
        places = np.minimum(_searched(ascending, wanted), len(ascending) - 1)
        return np.where((ascending[places] == wanted) & ~null_mask(column), places if order is None else order[places], other)

    return find


def _by_table(known: NDArray[np.integer], low: int, high: int, other: int) -> Finder:
    """Return a finder with a table of the position of every number from ``low`` to ``high``."""
    table = np.full(high - low + 1, other, np.int32)
    table[np.subtract(known, low, dtype=np.int64)] = np.arange(len(known), dtype=np.int32)

    def find(column: pa.Array) -> Positions:
        wanted = _bits(column)
        inside = (wanted >= low) & (wanted <= high)
        places = table[np.subtract(np.where(inside, wanted, known[0]), low, dtype=np.int64)]
        return np.where(inside & ~null_mask(column), places, np.int32(other))

    return find


def _searched(ascending: NDArray[np.integer], wanted: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the insertion position of each number in an ascending array."""
    if len(ascending) < FAR or len(wanted) < FAR:
        return np.searchsorted(ascending, wanted)
    # One after the other they are sought near one another: each for itself costs as many ways to the memory as there are digits.
    order = np.argsort(wanted)
    places = np.empty(len(wanted), np.intp)
    places[order] = np.searchsorted(ascending, wanted[order])
    return places


def _bits(column: pa.Array) -> NDArray[np.integer]:
    """Return the bits of numbers, dates or times as integers; a null becomes 0."""
    words = column.view(WORDS[column.type.bit_width])
    return integers_without_nulls(words, 0)


def _among_texts(values: pa.Array, other: int) -> Finder:
    known = _texts(values)
    order = None if known.is_sorted() else known.arg_sort()
    ascending = known if order is None else known.gather(order)
    places_of = np.arange(len(known)) if order is None else order.to_numpy()

    def find(column: pa.Array) -> Positions:
        wanted = _texts(column)
        places = np.minimum(to_numpy(ascending.search_sorted(wanted, "left").to_arrow()), len(ascending) - 1)
        found = (ascending.gather(places) == wanted).fill_null(False).to_numpy()
        return np.where(found, places_of[places], other)

    return find


def _texts(column: pa.Array) -> pl.Series:
    """Return values as a Polars series of text or bytes, equal where the values are.

    Other types, such as decimals, become text.
    """
    if pt.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    elif not (pt.is_string(column.type) or pt.is_large_string(column.type) or pt.is_binary(column.type) or pt.is_large_binary(column.type)):
        column = column.cast(pa.string())
    import polars as pl  # noqa: PLC0415 - a tenth of a second, and such domains are rare

    series = pl.from_arrow(column)
    assert isinstance(series, pl.Series)
    return series
