"""Between Arrow columns and NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

WORDS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
"""The whole numbers as which numbers, dates and times of so many bits can be read."""


def to_numpy(column: pa.Array) -> NDArray[Any]:
    """Returns a column without nulls as an array of shape (n,), without a copy where Arrow's layout allows it."""
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array


def is_null(column: pa.Array) -> NDArray[np.bool_]:
    """Returns which values are null, shape (n,)."""
    # A dictionary may hold a null of which it knows nothing.
    there = not column.null_count and not isinstance(column, pa.DictionaryArray)
    return np.zeros(len(column), np.bool_) if there else to_numpy(pc.is_null(column))


def filled(column: pa.Array, null: int) -> NDArray[Any]:
    """Returns whole numbers as an array of shape (n,), with ``null`` in the place of nulls; ``null`` must fit the column's type."""
    return to_numpy(pc.fill_null(column, null) if column.null_count else column)


def positions(column: pa.DictionaryArray) -> NDArray[Any]:
    """Returns the dictionary position of each value, shape (n,); a null gets the number of entries."""
    indices = column.indices
    return filled(indices.cast(pa.int64()) if indices.null_count else indices, len(column.dictionary))


def offsets(whole: NDArray[np.integer[Any]], origin: int) -> NDArray[np.intp]:
    """Returns whole numbers less an origin that none of them is below, of shape (n,)."""
    # Narrow types overflow when subtracted as they are, uint64 when cast first.
    if whole.dtype == np.uint64:
        return (whole - np.uint64(origin)).astype(np.intp)
    found: NDArray[np.intp] = np.subtract(whole, origin, dtype=np.int64).astype(np.intp, copy=False)
    return found
