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
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.value_texts import local_moments, written

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
class Scale:
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
        """Returns where a value stands, or None for what is none."""
        if text.startswith(_NO_VALUE):
            return None
        if text == "nan" and len(self.keys) < len(self.positions):
            return len(self.keys), len(self.positions)
        # Asked for once: it would fill what is kept of ends.
        first, after = self._sought(text, "from", wide=False), self._sought(text, "to", wide=False)
        return None if first is None or after is None else (first, max(first, after))

    def between(self, low: str | None, high: str | None, *, closed: bool = True, wide: bool = False) -> Span | None:
        """Returns what lies between two ends, None being open; None where an end is no value of this scale.

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
        """Returns what lies in a day, month, quarter, year or decade; None for what is none of these, or on a scale of numbers."""
        edges = calendar_days(label) if self.days is not None else None
        if edges is None or self.days is None:
            return None
        first, last = self.days.searchsorted(np.array(edges, "datetime64[D]"), "left").tolist()
        return int(first), int(last)


def value_scale(values: pa.Array) -> Scale | None:
    """Returns the scale of values, shape (m,), distinct, ascending and without null; None for text and booleans."""
    kind, natural = values.type, np.arange(len(values))
    if pt.is_integer(kind):
        keys = np.asarray(values)
        limits = np.iinfo(keys.dtype)
        least, most = int(limits.min), int(limits.max)
        return Scale(natural, keys, lambda text: _whole(text, keys.dtype.type, least, most))
    if pt.is_floating(kind):
        floats = np.asarray(values)
        return Scale(natural, floats[~np.isnan(floats)], lambda text: _rounded(text, floats.dtype))
    if pt.is_decimal(kind):
        # As decimals: a float would take neighbours that differ in the 17th digit for one.
        exact = np.empty(len(values), object)
        exact[:] = [Decimal(texts[0]) for texts in written(values)]
        return Scale(natural, exact, lambda text: (Decimal(text),) * 3)
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

    return Scale(positions, moments, ends, moments.astype("datetime64[D]"))


def _whole(text: str, kind: type[np.integer[Any]], least: int, most: int) -> Ends:
    """Returns the whole numbers beside an end, none beyond the least and the most that the column can hold."""
    number = int(text) if len(text) < SURE_DIGITS and text.isdecimal() else Decimal(text)
    if isinstance(number, Decimal) and number.is_finite() and number.adjusted() > FAR_OUT:
        # Written out it would have as many digits as whoever forged it likes, and no column holds it.
        number = Decimal(10**FAR_OUT).copy_sign(number)
    # An end of a bin may lie beyond what the column's type holds, where NumPy would raise or wrap.
    above, below = (kind(min(max(end, least), most)) for end in (ceil(number), floor(number)))
    return above, below, above


def _rounded(text: str, dtype: np.dtype[Any]) -> Ends:
    """Returns the float that an end is rounded to; the ones beside it where the end is not that float's own text."""
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
    """Returns where a calendar unit begins and where the next one does; None for what is none."""
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
