"""From where to where labels such as ``[20 - 29]``, ``>= 90`` or ``2020-Q1`` reach, as exact numbers, without a value of the source."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from core.recount.labels.value_scales import calendar_days

Number: TypeAlias = int | Fraction
Reach: TypeAlias = tuple[Number | None, Number | None]
"""The least and the greatest number of a label, None where it is open."""
Ends: TypeAlias = Callable[[str], tuple[Number, Number] | None]
"""Reads a value or a calendar unit; None for what is neither."""

_RANGE = re.compile(r"\[(.+?) - (.+)[\])]")
_BEYOND = re.compile(r"(>=|<=|<) (.+)")
_OFFSET = re.compile(r"([+-][0-9]{2}:[0-9]{2}|Z)$")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_DAY = re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})[T ]([0-9:.]+)")
MOST_DIGITS = 400
"""Characters that no number of a column has; Python refuses to read whole numbers of some thousand."""
NO_NUMBERS = ("nan", "inf", "-inf")
"""Values of floats that have no place on a grid."""


def number_reader(kind: pa.DataType) -> Ends:
    """Returns what reads the values of a type of numbers, dates or times, and the calendar units of the latter."""
    if pt.is_date(kind):
        return _day_ends
    if pt.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" else "us"
        return lambda text: _moment_ends(text, unit)
    return _number_ends


def range_of(label: str, ends: Ends) -> Reach | None:
    """Returns from where to where a label reaches; None for what is no value and no range, or is a value without a place."""
    if found := _RANGE.fullmatch(label):
        low, high = ends(found[1]), ends(found[2])
        return None if low is None or high is None else (low[0], high[1])
    if found := _BEYOND.fullmatch(label):
        at = ends(found[2])
        if at is None:
            return None
        # Up to a year or a day is to the end of it.
        return (at[0], None) if found[1] == ">=" else (None, at[1])
    return ends(label)


def _number_ends(text: str) -> tuple[Number, Number] | None:
    if len(text) > MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    number: Number = int(text) if text.lstrip("+-").isdigit() else Fraction(text)
    return number, number


def _day_ends(text: str) -> tuple[Number, Number] | None:
    unit = calendar_days(text)
    if unit is None:
        return None
    first, after = (int(day.astype("datetime64[D]").astype(np.int64)) for day in unit)
    return first, after - 1


def _moment_ends(text: str, unit: str) -> tuple[Number, Number] | None:
    found = _MOMENT.fullmatch(_OFFSET.sub("", text))
    try:
        if found:
            moment = int(np.datetime64(f"{found[1]}T{found[2]}").astype(f"datetime64[{unit}]").astype(np.int64))
            return moment, moment
    except (ValueError, OverflowError):
        return None
    days = calendar_days(text)
    if days is None:
        return None
    # A moment may be any of its last day: the unit ends where the next begins.
    first, after = (int(day.astype(f"datetime64[{unit}]").astype(np.int64)) for day in days)
    return first, after
