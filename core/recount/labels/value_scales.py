"""Scales of numbers, dates and times, on which a label with one or two ends covers neighbours."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from math import ceil, floor
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

FRACTIONS = (3, 6, 9)
RANGE_FORM = re.compile(r"\[(.+?) - (.+)([\])])")
BEYOND_FORM = re.compile(r"(>=|<=|<) (.+)")
LAST_CHARACTER = chr(0x10FFFF)
"""The last code point there is: whatever begins with a stem stands before the stem with this behind it."""


def is_text_type(kind: pa.DataType) -> bool:
    """Return whether a data type is one of text: a source may have any of three."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_numeric_type(kind: pa.DataType) -> bool:
    """Return whether a data type is an integer, float or decimal type."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def is_scale_type(kind: pa.DataType) -> bool:
    """Return whether a data type is one of numbers, dates or times, which have a ``value_scale``."""
    return bool(is_numeric_type(kind) or pt.is_date(kind) or pt.is_timestamp(kind))


def value_texts(values: pa.Array) -> list[tuple[str, ...]]:
    """Return all texts by which a value may be written, first the one that releases use.

    Numbers are their shortest decimal text, with or without ``.0``; booleans ``true`` and ``false``; dates and timestamps ISO, with ``T``
    or a space between, and the fraction of a second where it is not zero.

    Args:
        values: Shape (m,), without nulls, of a type that a hierarchy can have.
    """
    kind = values.type
    if pt.is_timestamp(kind):
        return [_moment_texts(*parts) for parts in zip(*_moment_parts(values), strict=True)]
    if pt.is_floating(kind):
        # Zero has two signs and is one value.
        return [_number_texts(str(number)) for number in values.to_numpy() + 0]
    listed = values.to_pylist()
    if pt.is_boolean(kind):
        return [("true" if value else "false",) for value in listed]
    if pt.is_decimal(kind):
        return [_number_texts(format(value, "f")) for value in listed]
    if pt.is_date(kind):
        return [(str(day),) for day in values.cast(pa.date32()).to_numpy(zero_copy_only=False).astype("datetime64[D]")]
    return [(str(value),) for value in listed]


def texts_with_nulls(values: pa.Array, form: int = 0) -> list[str | None]:
    """Return one text of each value, and None for a null.

    Args:
        values: Shape (m,), of a type that a hierarchy can have.
        form: Which of the texts of `value_texts`: with 0 the one that releases use, with -1 the shortest.
    """
    if is_text_type(values.type):
        found: list[str | None] = values.to_pylist()
        return found
    known = iter(value_texts(values.drop_null()))
    return [next(known)[form] if there else None for there in values.is_valid().to_pylist()]


def _number_texts(text: str) -> tuple[str, ...]:
    """Return the text of a number, and the same without exponent and trailing zeros."""
    plain = format(Decimal(text), "f") if "e" in text else text
    shortened = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return tuple(dict.fromkeys((text, shortened)))


def local_moments(values: pa.Array) -> NDArray[np.datetime64]:
    """Return dates and timestamps in local time (calendar and clock of their zone), shape (m,)."""
    if pt.is_date(values.type):
        return np.asarray(values.cast(pa.date32()), "datetime64[D]")
    return np.asarray(pc.local_timestamp(values) if values.type.tz else values)


def _moment_parts(values: pa.Array) -> tuple[list[str], list[str]]:
    """Return each timestamp as text without fraction zeros, and its offset from UTC; empty without a zone."""
    local = local_moments(values)
    texts = np.datetime_as_string(local).tolist()
    if not values.type.tz:
        return texts, [""] * len(texts)
    offsets = (local - np.asarray(values.cast(pa.timestamp(values.type.unit)))).astype("timedelta64[m]").astype(np.int64)
    return texts, [f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" for minutes in offsets.tolist()]


def _moment_texts(moment: str, offset: str) -> tuple[str, ...]:
    """Return all texts of a timestamp: fractions in the unit's digits or fewer, with ``T`` or a space.

    A fraction of zero is left out.
    """
    whole, _, fraction = moment.partition(".")
    shorter = [fraction[:digits] for digits in FRACTIONS if not fraction[digits:].strip("0")]
    ends = [f".{digits}" for digits in dict.fromkeys((fraction, *shorter))] if fraction.strip("0") else [""]
    return tuple(f"{start}{end}{offset}" for end in ends for start in (whole, whole.replace("T", " ")))


Ends: TypeAlias = tuple[Any, Any, Any]
Span: TypeAlias = tuple[int, int]
"""Positions from the first one to before the second one."""
Edge: TypeAlias = Literal["from", "to", "before"]
"""Where a range begins with its end, ends with it, or ends before it."""

_OFFSET = re.compile(r"[+-][0-9]{2}:[0-9]{2}$")
_UTC = re.compile(r"(?<=[0-9])Z$")
# Beside these NumPy knows words such as ``now``, and other ways to name a zone, of which it warns.
_MOMENT = re.compile(r"[+-]?[0-9]+(-[0-9]+)*([T ][0-9:.]+)?")
_DAY = np.timedelta64(1, "D")
_NO_VALUE = ("[", "{", "<", ">")
"""With which no number, date or time begins, and most labels do."""
KEPT_ENDS = 1 << 16
"""Ends of ranges that are kept, of which most releases have fewer; each takes some hundred bytes."""
FAR_OUT = 30
"""Digits that no whole number of a column has."""
SURE_DIGITS = 4_000
"""Python refuses to read whole numbers of more, and its decimals do not."""


@dataclass(frozen=True, eq=False)
class ValueScale:
    """The distinct values of a column as an ascending scale.

    Attributes:
        positions: Shape (m,), int64: the position on the scale of each value, given in the ascending order of the source.
        keys: Shape (m,), or one fewer where the last value is NaN: what ends are compared with.
        ends: Returns for the text of an end the keys that a value is at least from it on, at most up to it, and less than before it.
        days: Shape (m,), the local days of dates and times; None for numbers.
    """

    positions: NDArray[np.int64]
    keys: NDArray[Any]
    ends: Callable[[str], Ends]
    days: NDArray[np.datetime64] | None = None
    # Labels are many, and their ends few.
    _edges: dict[tuple[str, Edge, bool], int | None] = field(default_factory=dict, init=False, repr=False)

    def exact(self, text: str) -> Span | None:
        """Return the span of a single value on the scale; None for a text that is no value."""
        if text.startswith(_NO_VALUE):
            return None
        if text == "nan" and len(self.keys) < len(self.positions):
            return len(self.keys), len(self.positions)
        # Asked for once: it would fill what is kept of ends.
        first, after = self._sought(text, "from", wide=False), self._sought(text, "to", wide=False)
        return None if first is None or after is None else (first, max(first, after))

    def between(self, low: str | None, high: str | None, *, closed: bool = True, wide: bool = False) -> Span | None:
        """Return the span from ``low`` to ``high``, None being open; None where an end is no value here.

        Args:
            closed: Whether the high end belongs to the range.
            wide: For times with a zone, whose clocks are put back once a year: whether a day more on both sides is taken in.
        """
        first = 0 if low is None else self._edge(low, "from", wide=wide)
        after = len(self.keys) if high is None else self._edge(high, "to" if closed else "before", wide=wide)
        return None if first is None or after is None else (first, max(first, after))

    def _edge(self, text: str, edge: Edge, *, wide: bool) -> int | None:
        key = text, edge, wide
        if key in self._edges:
            return self._edges[key]
        found = self._sought(text, edge, wide=wide)
        if len(self._edges) < KEPT_ENDS:
            self._edges[key] = found
        return found

    def _sought(self, text: str, edge: Edge, *, wide: bool) -> int | None:
        try:
            least, most, before = self.ends(text)
            if edge == "from":
                return self._place(self._moved(least, -1, wide=wide), "left")
            if edge == "to":
                return self._place(self._moved(most, 1, wide=wide), "right")
            return self._place(self._moved(before, 1, wide=wide), "left")
        except (ValueError, InvalidOperation, OverflowError):
            return None

    def _place(self, key: Any, side: Literal["left", "right"]) -> int:
        if isinstance(key, int):
            limits = np.iinfo(self.keys.dtype)
            # An end of a bin may lie beyond what the column's type holds, where NumPy would raise or wrap.
            if key < limits.min:
                return 0
            if key > limits.max:
                return len(self.keys)
            key = self.keys.dtype.type(key)
        return int(self.keys.searchsorted(key, side))

    def _moved(self, key: Any, sign: int, *, wide: bool) -> Any:
        return key + sign * _DAY if wide and self.days is not None else key

    def unit(self, label: str) -> Span | None:
        """Return the span of a day, month, quarter, year or decade; None for other labels and for numbers."""
        edges = calendar_days(label) if self.days is not None else None
        if edges is None or self.days is None:
            return None
        first, last = self.days.searchsorted(np.array(edges, "datetime64[D]"), "left").tolist()
        return int(first), int(last)


def value_scale(values: pa.Array) -> ValueScale | None:
    """Return the scale of a column's values; None for text and booleans.

    Args:
        values: Shape (m,), distinct, ascending and without null.
    """
    kind, natural = values.type, np.arange(len(values))
    if pt.is_integer(kind):
        return ValueScale(natural, np.asarray(values), _whole)
    if pt.is_floating(kind):
        floats = np.asarray(values)
        return ValueScale(natural, floats[~np.isnan(floats)], lambda text: _rounded(text, floats.dtype))
    if pt.is_decimal(kind):
        # As decimals: a float would take neighbours that differ in the 17th digit for one.
        exact = np.empty(len(values), object)
        exact[:] = [Decimal(texts[0]) for texts in value_texts(values)]
        return ValueScale(natural, exact, lambda text: (Decimal(text),) * 3)
    if not (pt.is_date(kind) or pt.is_timestamp(kind)):
        return None
    local = local_moments(values)
    order = np.argsort(local, kind="stable")
    positions = np.empty(len(order), np.int64)
    positions[order] = natural
    moments = local[order]
    # A clock that shows universal time is written with a Z by some.
    universal = bool(getattr(kind, "tz", None)) and np.array_equal(local, np.asarray(values.cast(pa.timestamp(kind.unit))))

    def ends(text: str) -> Ends:
        return _moment(_UTC.sub("", text) if universal else text, moments.dtype)

    return ValueScale(positions, moments, ends, moments.astype("datetime64[D]"))


def _whole(text: str) -> Ends:
    """Return the whole numbers next to an end, which may lie beyond what the column's type holds."""
    number = int(text) if len(text) < SURE_DIGITS and text.isdecimal() else Decimal(text)
    if isinstance(number, Decimal) and number.adjusted() > FAR_OUT:
        # Written out it would have as many digits as whoever forged it likes, and no column holds it.
        number = Decimal(10**FAR_OUT).copy_sign(number)
    above, below = ceil(number), floor(number)
    return above, below, above


def _rounded(text: str, dtype: np.dtype[Any]) -> Ends:
    """Return the float that an end is rounded to, or its neighbours if the end is not that float's text."""
    nearest = dtype.type(text)
    if not np.isfinite(nearest) or Decimal(str(nearest)) == Decimal(text):
        return nearest, nearest, nearest
    above = np.nextafter(nearest, dtype.type(np.inf))
    return np.nextafter(nearest, dtype.type(-np.inf)), above, above


def _moment(text: str, dtype: np.dtype[Any]) -> Ends:
    local = _OFFSET.sub("", text)
    if not _MOMENT.fullmatch(local):
        raise ValueError
    moment = np.datetime64(local.replace(" ", "T"))
    if np.datetime_data(moment.dtype)[0] in ("Y", "M"):
        raise ValueError
    exact = moment.astype(dtype)
    if exact.astype("M8[Y]") != moment.astype("M8[Y]"):
        # Beyond the years that a unit holds NumPy begins anew with the first of them.
        raise OverflowError
    return exact, exact, exact


def calendar_days(label: str) -> tuple[np.datetime64, np.datetime64] | None:
    """Return the first day of a calendar unit and the first day of the next one; None for other labels."""
    try:
        if found := re.fullmatch(r"(-?[0-9]{4,})-Q([1-4])", label):
            month = np.datetime64(found[1], "M") + 3 * (int(found[2]) - 1)
            return month, month + 3
        if found := re.fullmatch(r"(-?[0-9]{3,}0)s", label):
            year = np.datetime64(found[1], "Y")
            return year, year + 10
        if re.fullmatch(r"-?[0-9]{4,}(-[0-9]{2}){0,2}", label):
            unit = np.datetime64(label)
            return unit, unit + 1
    except (ValueError, OverflowError):
        return None
    return None
