"""What each level of bins publishes for numbers, worked out with whole numbers and fractions: a second reading for the recount."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil, lcm
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.group_levels import GroupLevel, Levels
from core.recount.labels.value_scales import written
from schemas.hierarchies.hierarchy import WidthsHierarchy, decimals

LARGEST_INT64_NUMBER = 1 << 62
"""From here on whole numbers are reckoned with as Python has them."""
BLOCK = 1 << 16
"""Numbers that are text at a time."""
_BELOW, _ABOVE = -1, 1


def levels_of_bins(name: str, spec: WidthsHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Bins by each width; the first one is no level of its own where no two values that the column can hold share a bin."""
    if spec.encode:
        return [partial(_bins_of_ranks, values, int(spec.origin), int(width)) for width in _wider(spec, 0)]
    integers = pt.is_integer(values.type)
    places = 0 if integers else _places(values)
    ends = [Fraction(end) for end in (spec.origin, *spec.widths, spec.bottom, spec.top) if end is not None]
    scale = lcm(10**places, *(end.denominator for end in ends))
    numbers = np.asarray(values) if integers else _without_point(values, places)
    whole = _scaled(numbers, scale // 10**places, int(max(map(abs, ends)) * scale))
    return [partial(_bins, spec, whole, scale, width, integers=integers) for width in _wider(spec, places)]


def _wider(spec: WidthsHierarchy, places: int) -> Sequence[Decimal]:
    """Returns the widths that are levels: the first is none where it is no more than one in the last decimal place that is in use."""
    return spec.widths if spec.hides or Fraction(spec.widths[0]) > Fraction(1, 10**places) else spec.widths[1:]


def _texts(values: pa.Array) -> Iterator[list[str]]:
    """Yields numbers as text without exponent and without zeros at the end, some at a time: text takes much more room than numbers."""
    for first in range(0, len(values), BLOCK):
        yield [texts[-1] for texts in written(values.slice(first, BLOCK))]


def _places(values: pa.Array) -> int:
    """Returns how many decimal places are in use."""
    return max((len(text.partition(".")[2]) for texts in _texts(values) for text in texts), default=0)


def _without_point(values: pa.Array, places: int) -> NDArray[Any]:
    """Returns numbers times ``10**places``, as whole ones."""
    parts = [np.zeros(0, np.int64)]
    for texts in _texts(values):
        split = (text.partition(".") for text in texts)
        digits = [int(whole + fraction.ljust(places, "0")) for whole, _, fraction in split]
        parts.append(np.array(digits, np.int64 if max(map(abs, digits)) < LARGEST_INT64_NUMBER else object))
    return np.concatenate(parts)


def _scaled(numbers: NDArray[Any], factor: int, most: int) -> NDArray[Any]:
    """Returns whole numbers times ``factor``, in 64 bits where these and every edge of a bin surely fit."""
    greatest = max(map(abs, (int(numbers.min()), int(numbers.max())))) if len(numbers) else 0
    return numbers.astype(np.int64 if greatest * factor + 2 * most < LARGEST_INT64_NUMBER else object) * factor


def _bins(spec: WidthsHierarchy, whole: NDArray[Any], scale: int, width: Decimal, *, integers: bool) -> GroupLevel:
    """Bins ascending numbers, given as so many times ``1 / scale``; what lies beyond an end is a group."""
    side, bins = np.zeros(len(whole), np.int8), (whole - int(Fraction(spec.origin) * scale)) // int(Fraction(width) * scale)
    if spec.bottom is not None:
        side[np.asarray(whole < int(Fraction(spec.bottom) * scale), np.bool_)] = _BELOW
    if spec.top is not None:
        side[np.asarray(whole >= int(Fraction(spec.top) * scale), np.bool_)] = _ABOVE
    # Of ascending values those of a group are neighbours.
    begins = np.ones(len(whole), np.bool_)
    begins[1:] = (side[1:] != side[:-1]) | ((side[1:] == 0) & np.asarray(bins[1:] != bins[:-1], np.bool_))
    label = _integer_label if integers else _decimal_label
    labels = [label(spec, int(side[first]), int(bins[first]), width) for first in np.flatnonzero(begins).tolist()]
    return GroupLevel((np.cumsum(begins) - 1).astype(np.int64), labels)


def _edges(spec: WidthsHierarchy, number: int, width: Decimal) -> tuple[Fraction, Fraction]:
    """Returns where a bin begins and where the next one does, as far as these lie between the ends."""
    low = Fraction(spec.origin) + number * Fraction(width)
    high = low + Fraction(width)
    low = low if spec.bottom is None else max(low, Fraction(spec.bottom))
    return low, high if spec.top is None else min(high, Fraction(spec.top))


def _integer_label(spec: WidthsHierarchy, side: int, number: int, width: Decimal) -> str:
    """Writes the first and the last integer of a bin; where there are ends, a bin of one is that integer."""
    if side == _BELOW and spec.bottom is not None:
        return f"<= {ceil(spec.bottom) - 1}"
    if side == _ABOVE and spec.top is not None:
        return f">= {ceil(spec.top)}"
    low, high = map(ceil, _edges(spec, number, width))
    return f"{low}" if spec.hides and low == high - 1 else f"[{low} - {high - 1}]"


def _decimal_label(spec: WidthsHierarchy, side: int, number: int, width: Decimal) -> str:
    """Writes where a bin begins and the next one does, with the decimal places of what the job says of it."""
    places = max(decimals(end) for end in (width, spec.origin, spec.bottom, spec.top) if end is not None)
    if side == _BELOW and spec.bottom is not None:
        return f"< {_digits(Fraction(spec.bottom), places)}"
    if side == _ABOVE and spec.top is not None:
        return f">= {_digits(Fraction(spec.top), places)}"
    low, high = _edges(spec, number, width)
    return f"[{_digits(low, places)} - {_digits(high, places)})"


def _digits(number: Fraction, places: int) -> str:
    """Writes a number that has no more decimal places than these."""
    digits = str(abs(int(number * 10**places))).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if number < 0 else text


def _bins_of_ranks(values: pa.Array, origin: int, width: int) -> GroupLevel:
    """Bins values by how many are before them, and names bins by their first and last value."""
    bins = (np.arange(len(values)) - origin) // width
    firsts = np.flatnonzero(np.diff(bins, prepend=bins[:1] - 1))
    lasts = np.append(firsts[1:], len(values))[: len(firsts)] - 1
    # A float has no zeros at its end, and a decimal as many as its type.
    form = -1 if pt.is_floating(values.type) else 0
    low, high = ([texts[form] for texts in written(values.take(pa.array(places)))] for places in (firsts, lasts))
    labels = [f"[{first} - {last}]" for first, last in zip(low, high, strict=True)]
    return GroupLevel(np.repeat(np.arange(len(firsts)), lasts - firsts + 1).astype(np.int64), labels)
