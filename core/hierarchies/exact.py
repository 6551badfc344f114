"""Numbers as whole multiples of a power of ten, so that bins never see a floating-point division."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.hierarchies.spelling import plain

# int64, or Python integers where a number needs more bits.
Whole = NDArray[np.int64]

_ROOM = 2**62
# Any number of 18 characters fits int64; of 19 some do not.
_DIGITS = 18


def whole_numbers(values: pa.Array) -> tuple[Whole, int]:
    """Scales numbers to integers: ``value = whole / 10**places``, exactly; a float stands for its shortest decimal text.

    Args:
        values: Shape ``(m,)``, integer, finite float or decimal, without null.

    Returns:
        The integers, shape ``(m,)``, and the number of decimal places that the values use (0 for integers).
    """
    if pt.is_integer(values.type):
        fits = not pt.is_uint64(values.type) or (pc.max(values).as_py() or 0) < _ROOM
        return np.asarray(values).astype(np.int64 if fits else object), 0
    text = plain(values)
    head = pc.replace_substring_regex(text, r"\..*$", "")
    tail = pc.utf8_rtrim(pc.replace_substring_regex(text, r"^[^.]*\.?", ""), "0")
    places = pc.max(pc.binary_length(tail)).as_py() or 0
    digits = pc.binary_join_element_wise(head, pc.utf8_rpad(tail, places, "0"), "")
    if (pc.max(pc.binary_length(digits)).as_py() or 0) <= _DIGITS:
        return np.asarray(digits.cast(pa.int64())).astype(np.int64), places
    return _objects(int(text) for text in digits.to_pylist()), places


def scaled(number: Decimal, places: int) -> int:
    """Returns ``number * 10**places`` as an integer.

    Raises:
        ValueError: ``number`` uses more than ``places`` decimal places.
    """
    whole = Fraction(number) * 10**places
    if whole.denominator != 1:
        msg = f"a number with more than {places} decimal places"
        raise ValueError(msg)
    return int(whole)


def widened(whole: Whole, factor: int, reach: int) -> Whole:
    """Multiplies ascending integers by ``factor``, as Python integers where the results, moved by ``reach``, could overflow."""
    ends = [abs(int(end)) for end in (whole[:1].tolist() + whole[-1:].tolist())]
    if whole.dtype != object and factor < _ROOM and max(ends, default=0) * factor + reach < _ROOM:
        return whole * factor
    return whole.astype(object) * factor


def decimal_text(whole: Whole, places: int) -> pa.Array:
    """Writes ``whole / 10**places`` with exactly ``places`` decimal places.

    Args:
        whole: Shape ``(g,)``.
        places: Digits after the point; no point for 0.

    Returns:
        Shape ``(g,)``, strings such as ``23``, ``22.5`` and ``-0.5``.
    """
    if not places:
        return _digits(whole)
    unit = 10**places
    size = abs(whole)
    sign = pc.if_else(pa.array((whole < 0).astype(bool)), "-", "")
    tail = pc.utf8_lpad(_digits(size % unit), places, "0")
    return pc.binary_join_element_wise(sign, _digits(size // unit), pa.scalar("."), tail, "")


def _digits(whole: Whole) -> pa.Array:
    if whole.dtype == object:
        return pa.array([str(number) for number in whole], pa.string())
    return pa.array(whole).cast(pa.string())


def _objects(numbers: Iterable[int]) -> Whole:
    listed = list(numbers)
    # NumPy left to choose makes floats of integers of which one needs 64 unsigned bits and another is negative.
    whole = np.empty(len(listed), object)
    whole[:] = listed
    return whole
