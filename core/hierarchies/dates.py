"""Hierarchies of dates and timestamps by calendar unit, and of texts by prefix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.columns.domains import Domain
from core.hierarchies.levels import DraftLevels, Extent, Level, group_numbers, level_of_labels
from schemas.errors.hierarchies import HierarchyError
from schemas.registry.hierarchies import DateHierarchy, PrefixHierarchy

_EPOCH = 1970
DAYS_ALONE = {1, 86_400_000}
"""Numbers per day of the types that hold days and no time of day."""


def dates_levels(qid: str, domain: Domain, spec: DateHierarchy, _folder: Path | None = None) -> DraftLevels:
    """Build the levels of a date hierarchy, days to decades; raise HierarchyError unless dates or times.

    A timestamp with a time zone counts by the local calendar of that zone.

    ``day`` becomes level 0 where the column holds dates, or timestamps that are all at midnight, and there is neither top nor bottom: all
    days beyond these share a group.
    """
    moments = _local(qid, domain.values)
    days = moments.astype("datetime64[D]")
    daily = spec.date[0] == "day" and not spec.hides and bool(np.all(days == moments))
    scale = _numbers_per_day(domain.values.type)
    levels = tuple(_level(days, unit, spec, scale) for unit in spec.date[daily:])
    return DraftLevels(levels, len(moments))


def _local(qid: str, values: pa.Array) -> NDArray[np.datetime64]:
    """Convert dates and timestamps to NumPy datetimes in local time."""
    kind = values.type
    if pt.is_date(kind):
        return np.asarray(values.cast(pa.date32())).astype("datetime64[D]")
    if not pt.is_timestamp(kind):
        remedy = "give it the type date or timestamp in source.types (CSV), or use another hierarchy"
        raise HierarchyError.wrong_type(qid, "dates", "dates or timestamps", str(kind), remedy)
    if not kind.tz:
        return np.asarray(values)
    try:
        # Arrow knows the rules of zones until 2037 and has no summer time after it.
        return np.asarray(pc.local_timestamp(values))
    except pa.ArrowInvalid:
        raise HierarchyError.unknown_zone(qid, kind.tz) from None


def _numbers_per_day(kind: pa.DataType) -> int | None:
    """Return the number of units per day of a date or timestamp type; None with a time zone.

    Days in a time zone are not all equally long.
    """
    if pt.is_date32(kind):
        return 1
    if pt.is_date64(kind):
        return 86_400_000
    return None if kind.tz else 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]


def _level(days: NDArray[np.datetime64], unit: str, spec: DateHierarchy, scale: int | None) -> Level:
    """Build the level that groups days by a calendar unit."""
    months = days.astype("datetime64[M]").astype(np.int64)
    keys = {
        "day": days.astype(np.int64),
        "month": months,
        "quarter": months // 3,
        "year": months // 12,
        "decade": (months // 12 + _EPOCH) // 10,
    }[unit]
    below, above = _beyond(days, spec)
    if spec.hides and len(keys):
        keys = np.where(below, keys.min() - 1, np.where(above, keys.max() + 1, keys))
    groups, firsts = group_numbers(keys)
    labels = _labels(days[firsts], unit)
    for beyond, label in zip((below, above), spec.end_labels, strict=True):
        if label is not None:
            labels = pc.if_else(pa.array(beyond[firsts]), pa.scalar(label, labels.type), labels)
    extent = None if scale is None else _extent(days[firsts], unit, scale, spec)
    return Level(groups, labels, len(firsts), extent=extent)


def _extent(days: NDArray[np.datetime64], unit: str, scale: int, spec: DateHierarchy) -> Extent:
    """Return the first and last day of the calendar unit of each day, open beyond bottom and top.

    Both are in the unit of the column's numbers.
    """
    if unit == "day":
        first = last = days.astype(np.int64)
    else:
        months = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
        # Counted from the year 0, so that decades begin where their names say.
        begun = (days.astype("datetime64[M]").astype(np.int64) + _EPOCH * 12) // months * months - _EPOCH * 12
        first, after = (month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) for month in (begun, begun + months))
        last = after - 1
    below, above = _beyond(days, spec)
    # What an end cuts off a unit belongs to the group beyond it.
    if spec.last_below is not None:
        bottom = int(np.datetime64(spec.last_below, "D").astype(np.int64))
        first, last = np.where(below, first, np.maximum(first, bottom + 1)), np.where(below, bottom, last)
    if spec.first_above is not None:
        top = int(np.datetime64(spec.first_above, "D").astype(np.int64))
        first, last = np.where(above, top, first), np.where(above, last, np.minimum(last, top - 1))
    # A moment may be any of its last day: the unit ends where the next begins.
    ends = last * scale if scale in DAYS_ALONE else (last + 1) * scale
    return np.where(below, -np.inf, first * float(scale)), np.where(above, np.inf, ends.astype(np.float64))


def _beyond(days: NDArray[np.datetime64], spec: DateHierarchy) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the days in the group up to ``bottom`` and in the group from ``top`` on."""
    none = np.zeros(len(days), np.bool_)
    last, first = spec.last_below, spec.first_above
    below = none if last is None else days <= np.datetime64(last, "D")
    return below, none if first is None else days >= np.datetime64(first, "D")


def _labels(days: NDArray[np.datetime64], unit: str) -> pa.Array:
    """Write the labels of the calendar units of days, such as ``2024-Q1`` or ``1990s``."""
    months = days.astype("datetime64[M]")
    month = months.astype(np.int64)
    year = month // 12 + _EPOCH
    parts = {
        "day": (_year(year), "-", _padded(month % 12 + 1, 2), "-", _padded((days - months).astype(np.int64) + 1, 2)),
        "month": (_year(year), "-", _padded(month % 12 + 1, 2)),
        "quarter": (_year(year), "-Q", _padded(month % 12 // 3 + 1, 1)),
        "year": (_year(year),),
        "decade": (_year(year // 10 * 10), "s"),
    }[unit]
    return pc.binary_join_element_wise(*parts, "")


def _year(years: NDArray[np.int64]) -> pa.Array:
    """Write years with at least four digits and a sign where negative."""
    sign = pc.if_else(pa.array(years < 0), "-", "")
    return pc.binary_join_element_wise(sign, _padded(abs(years), 4), "")


def _padded(numbers: NDArray[np.int64], width: int) -> pa.Array:
    """Write numbers with leading zeros up to a width."""
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def prefix_levels(qid: str, domain: Domain, spec: PrefixHierarchy, _folder: Path | None = None) -> DraftLevels:
    """Build the levels of a prefix hierarchy over texts or integers; raise HierarchyError for others.

    Values share a group where prefix and length are equal, counted in Unicode code points.

    The first length becomes level 0 where no value is longer. Values with a sparse beginning share the group ``000``.
    """
    if spec.sparse_values and not is_text(domain.values.type):
        remedy = "give it the type text in source.types (CSV), or turn it into text with its leading zeros"
        raise HierarchyError.wrong_type(qid, "prefixes with sparse ones", "text", str(domain.values.type), remedy)
    text = _text(qid, domain.values)
    lengths = np.asarray(pc.utf8_length(text)).astype(np.int64)
    longest = int(lengths.max(initial=0))
    merged = spec.prefix[0] >= longest and not spec.hides
    levels = tuple(
        level_of_labels(_without_sparse(_masked(text, min(kept, longest), spec.mask), text, spec)) for kept in spec.prefix[merged:]
    )
    return DraftLevels(levels, len(text))


def _without_sparse(labels: pa.Array, text: pa.Array, spec: PrefixHierarchy) -> pa.Array:
    """Replace labels of values with a sparse beginning by ``000``."""
    if not spec.sparse_values:
        return labels
    length = len(spec.sparse_values[0])
    sparse = pc.is_in(pc.utf8_slice_codeunits(text, 0, length), pa.array([*spec.sparse_values, "0" * length], text.type))
    return pc.if_else(sparse, pa.scalar("0" * length, labels.type), labels)


def _text(qid: str, values: pa.Array) -> pa.Array:
    """Return the values as text; other types than text and non-negative integers are refused."""
    kind = values.type
    if pt.is_unsigned_integer(kind):
        return values.cast(pa.large_string())
    if pt.is_integer(kind):
        negative = int(pc.sum(pc.less(values, 0)).as_py() or 0)
        if negative:
            raise HierarchyError.negative(qid, negative)
    elif not is_text(kind):
        remedy = "give it the type text in source.types (CSV), or use a hierarchy of widths, dates, a CSV file or a tree"
        raise HierarchyError.wrong_type(qid, "prefixes", "text or integers", str(kind), remedy)
    return values.cast(pa.large_string())


def _masked(text: pa.Array, kept: int, mask: str) -> pa.Array:
    """Keep the first characters of each text and replace the others by the mask character."""
    lengths = np.asarray(pc.utf8_length(text)).astype(np.int64)
    masks = pc.binary_repeat(pa.scalar(mask, pa.large_string()), pa.array(np.maximum(lengths - kept, 0)))
    return pc.binary_join_element_wise(pc.utf8_slice_codeunits(text, 0, kept), masks, pa.scalar("", pa.large_string()))
