"""Numbers, dates and times as whole numbers in the same order, which are sorted by their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.arrays import WORDS, to_numpy

_SIGN = np.int64(-(2**63))
Keys = NDArray[np.int64]


def is_sortable(dtype: pa.DataType) -> bool:
    """Tells whether values of a type are whole numbers of at most 64 bits, or can be read as such."""
    return bool(pt.is_primitive(dtype) and not pt.is_boolean(dtype) and not pt.is_float16(dtype) and dtype.bit_width in WORDS)


def keys_of(values: pa.Array) -> Keys:
    """Returns a whole number for each value, less where it is less and equal where its bits are.

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
    """Inverse of ``keys_of``, for values of a type."""
    if pt.is_unsigned_integer(dtype):
        return pa.array((keys ^ _SIGN).view(np.uint64) if pt.is_uint64(dtype) else keys.astype(dtype.to_pandas_dtype()), dtype)
    word = WORDS[dtype.bit_width]
    whole = _turned(keys, dtype.bit_width) if pt.is_floating(dtype) else keys
    words = pa.array(whole.astype(word.to_pandas_dtype(), copy=False), word)
    return words if dtype == word else words.view(dtype)


def _turned(words: Keys, bits: int) -> Keys:
    """Returns the bits of floats in the order of these, and back: those below zero stand the other way round."""
    below: Keys = np.where(words < 0, words ^ np.int64(2 ** (bits - 1) - 1), words)
    return below
