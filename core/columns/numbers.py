"""Which columns are numbers, and what their values are as such."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.arrays import to_numpy
from core.columns.domains import Domain

WHOLE, DIGITS = 1 << 53, 15
"""Up to where all integers are floats, and digits of which any number has a float of its own."""


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


@dataclass(frozen=True)
class NumberLine:
    """Where the numbers of a domain stand, so that their differences are right however close to each other they are.

    Attributes:
        origin: What values are counted from, exactly, where floats do not tell all of them apart; None where they do.
    """

    origin: Fraction | None

    def of(self, values: pa.Array) -> NDArray[np.float64]:
        """Returns numbers, dates and times without null as floats of which only differences count, shape (m,)."""
        if self.origin is None:
            numbers = as_numbers(values)
            assert numbers is not None
            return numbers
        return np.array([float(number - self.origin) for number in _fractions(values)], np.float64)

    def at(self, values: pa.Array, places: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Returns the same of the values at some places, shape (places,); the fewer are read."""
        return self.of(values.take(pa.array(places))) if len(places) < len(values) else self.of(values)[places]


def number_line(domain: Domain) -> NumberLine | None:
    """Returns where the values of a QID stand; None for one that is not numerical.

    Floats hold 53 bits. Values of more, such as decimals of 26 digits or integers near 2^63, may be one float and yet differ. Only such
    domains are counted exactly from their least value: a difference of floats takes no time, and is right of all others.
    """
    if not is_numerical(domain):
        return None
    numbers = as_numbers(domain.values) if _may_be_alike(domain.values) else None
    alike = numbers is not None and bool(np.any(numbers[1:] == numbers[:-1]))
    return NumberLine(next(iter(_fractions(domain.values.slice(0, 1)))) if alike else None)


def _may_be_alike(values: pa.Array) -> bool:
    """Tells whether two of some values, ascending, may be one float; known from their type and their ends, for there may be millions."""
    if len(values) < 2 or pa.types.is_floating(values.type) or pa.types.is_date32(values.type):
        return False
    if pa.types.is_decimal(values.type):
        return bool(values.type.precision > DIGITS)
    return max(abs(end) for end in _fractions(pa.concat_arrays([values.slice(0, 1), values.slice(len(values) - 1)]))) > WHOLE


def _fractions(values: pa.Array) -> list[Fraction]:
    moments = pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type)
    return [Fraction(number) for number in (values.cast(pa.int64()) if moments else values).to_pylist()]
