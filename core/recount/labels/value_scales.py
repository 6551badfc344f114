"""Numbers, dates and times of a source as a scale, on which a label that names one or two ends covers neighbours."""

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


def written(values: pa.Array) -> list[tuple[str, ...]]:
    """Return the texts of each value, the one in which releases write it first.

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
    """Return one text of each value, of those that `written` has, and None for a null.

    Args:
        values: Shape (m,), of a type that a hierarchy can have.
        form: Which text: the one in which releases write it, or with -1 the shortest.
    """
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        found: list[str | None] = values.to_pylist()
        return found
    known = iter(written(values.drop_null()))
    return [next(known)[form] if there else None for there in values.is_valid().to_pylist()]


def _number_texts(text: str) -> tuple[str, ...]:
    """Return the text of a number, and the same without exponent and without zeros at the end of its fraction."""
    plain = format(Decimal(text), "f") if "e" in text else text
    shortened = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return tuple(dict.fromkeys((text, shortened)))


def local_moments(values: pa.Array) -> NDArray[np.datetime64]:
    """Return dates and timestamps as the calendar and the clock of their place show them, shape (m,)."""
    if pt.is_date(values.type):
        return np.asarray(values.cast(pa.date32()), "datetime64[D]")
    return np.asarray(pc.local_timestamp(values) if values.type.tz else values)


def _moment_parts(values: pa.Array) -> tuple[list[str], list[str]]:
    """Return date and time without fraction zeros, and the offset from UTC where there is a zone."""
    local = local_moments(values)
    texts = np.datetime_as_string(local).tolist() if len(local) else []
    if not values.type.tz:
        return texts, [""] * len(texts)
    offsets = (local - np.asarray(values.cast(pa.timestamp(values.type.unit)))).astype("timedelta64[m]").astype(np.int64)
    return texts, [f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" for minutes in offsets.tolist()]


def _moment_texts(moment: str, offset: str) -> tuple[str, ...]:
    """Return a moment with a fraction of as many digits as its unit has, or as say it all; without one where it is zero."""
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
    """The different values of a column, ascending.

    Attributes:
        positions: Shape (m,), int64: where each value, given in the ascending order of the source, stands on the scale.
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
        """Return where a value stands, or None for what is none."""
        if text.startswith(_NO_VALUE):
            return None
        if text == "nan" and len(self.keys) < len(self.positions):
            return len(self.keys), len(self.positions)
        # Asked for once: it would fill what is kept of ends.
        first, after = self._sought(text, "from", wide=False), self._sought(text, "to", wide=False)
        return None if first is None or after is None else (first, max(first, after))

    def between(self, low: str | None, high: str | None, *, closed: bool = True, wide: bool = False) -> Span | None:
        """Return what lies between two ends, None being open; None where an end is no value of this scale.

        Args:
            low: The low end, which belongs to the range.
            high: The high end.
            closed: Whether it belongs to the range too.
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
                return int(self.keys.searchsorted(self._moved(least, -1, wide=wide), "left"))
            if edge == "to":
                return int(self.keys.searchsorted(self._moved(most, 1, wide=wide), "right"))
            return int(self.keys.searchsorted(self._moved(before, 1, wide=wide), "left"))
        except (ValueError, InvalidOperation, OverflowError):
            return None

    def _moved(self, key: Any, sign: int, *, wide: bool) -> Any:
        return key + sign * _DAY if wide and self.days is not None else key

    def unit(self, label: str) -> Span | None:
        """Return what lies in a day, month, quarter, year or decade; None for what is none of these, or on a scale of numbers."""
        edges = calendar_days(label) if self.days is not None else None
        if edges is None or self.days is None:
            return None
        first, last = self.days.searchsorted(np.array(edges, "datetime64[D]"), "left").tolist()
        return int(first), int(last)


def value_scale(values: pa.Array) -> ValueScale | None:
    """Return the scale of values, shape (m,), distinct, ascending and without null; None for text and booleans."""
    kind, natural = values.type, np.arange(len(values))
    if pt.is_integer(kind):
        keys = np.asarray(values)
        limits = np.iinfo(keys.dtype)
        least, most = int(limits.min), int(limits.max)
        return ValueScale(natural, keys, lambda text: _whole(text, keys.dtype.type, least, most))
    if pt.is_floating(kind):
        floats = np.asarray(values)
        return ValueScale(natural, floats[~np.isnan(floats)], lambda text: _rounded(text, floats.dtype))
    if pt.is_decimal(kind):
        # As decimals: a float would take neighbours that differ in the 17th digit for one.
        exact = np.empty(len(values), object)
        exact[:] = [Decimal(texts[0]) for texts in written(values)]
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


def _whole(text: str, kind: type[np.integer[Any]], least: int, most: int) -> Ends:
    """Return the whole numbers beside an end, none beyond the least and the most that the column can hold."""
    number = int(text) if len(text) < SURE_DIGITS and text.isdecimal() else Decimal(text)
    if isinstance(number, Decimal) and number.is_finite() and number.adjusted() > FAR_OUT:
        # Written out it would have as many digits as whoever forged it likes, and no column holds it.
        number = Decimal(10**FAR_OUT).copy_sign(number)
    # An end of a bin may lie beyond what the column's type holds, where NumPy would raise or wrap.
    above, below = (kind(min(max(end, least), most)) for end in (ceil(number), floor(number)))
    return above, below, above


def _rounded(text: str, dtype: np.dtype[Any]) -> Ends:
    """Return the float that an end is rounded to; the ones beside it where the end is not that float's own text."""
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
    return exact, exact, exact


def calendar_days(label: str) -> tuple[np.datetime64, np.datetime64] | None:
    """Return where a calendar unit begins and where the next one does; None for what is none."""
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
