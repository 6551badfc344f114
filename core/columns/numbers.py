"""Which columns are numbers, and what their values are as such."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.arrays import to_numpy
from core.columns.domains import Domain


def as_numbers(values: pa.Array) -> NDArray[np.float64] | None:
    """Returns numbers, dates and times as floats of shape (m,), or None for values of any other type."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return to_numpy(values.cast(pa.float64(), safe=False))
    if pa.types.is_date32(kind):
        return to_numpy(values.cast(pa.int32())).astype(np.float64)
    if pa.types.is_date64(kind) or pa.types.is_timestamp(kind):
        return to_numpy(values.cast(pa.int64())).astype(np.float64)
    return None


def numbers_at(values: pa.Array, places: NDArray[np.integer[Any]]) -> NDArray[np.float64] | None:
    """Returns the values at some places as floats, shape (places,), or None for values that are no numbers; the fewer are read."""
    if len(places) < len(values):
        return as_numbers(values.take(pa.array(places)))
    numbers = as_numbers(values)
    return None if numbers is None else numbers[places]


def is_numerical(domain: Domain) -> bool:
    """Tells whether a QID is compared by the distance of its values: numbers, dates and times are, all else is equal or not."""
    # Of none, because a domain may hold millions.
    return as_numbers(domain.values[:0]) is not None
