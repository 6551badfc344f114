"""Finders of value positions in a large domain; the lookup table is built once for all batches.

Arrow hashes the domain anew at each call. For a domain of a million values and a file of small row groups that is a million values for
every thousand records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.kernels import number_values
from core.columns.numbers import WORDS, filled, null_mask, to_numpy

if TYPE_CHECKING:
    import polars as pl

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
        other: The position of all other values.
    """
    if len(values) <= SEARCHED or pt.is_boolean(values.type):
        return lambda column: filled(pc.index_in(column, value_set=values), other)
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
    return filled(words, 0)


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
