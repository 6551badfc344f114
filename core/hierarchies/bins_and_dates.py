"""Hierarchies by rule: bins of growing width, calendar units of dates, and prefixes of texts.

Bins are of values or of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import is_text
from core.columns.domains import Domain
from core.hierarchies.levels import (
    Bounds,
    DraftLevels,
    Extent,
    Level,
    ScaledIntegers,
    decimal_text,
    group_numbers,
    level_of_labels,
    multiplied_without_overflow,
    plain_decimals,
    scaled_integer,
    scaled_integers,
)
from schemas.errors.hierarchies import HierarchyError
from schemas.registry.hierarchies import DateHierarchy, PrefixHierarchy, WidthsHierarchy, decimals

Flags = NDArray[np.bool_]
# Characters of a number that surely fits decimal128.
_DIGITS = 38


@dataclass(frozen=True)
class _Grid:
    """Bins of one width, in units of ``10**-places``, with a bin each beyond ``bottom`` and ``top``.

    Edges have ``shown`` decimal places.
    """

    origin: int
    size: int
    places: int
    shown: int
    bottom: int | None = None
    top: int | None = None


def widths_levels(qid: str, domain: Domain, spec: WidthsHierarchy, _folder: Path | None = None) -> DraftLevels:
    """Build levels of bins of each width, aligned to an origin; raise HierarchyError unless numbers.

    The first width becomes level 0 where it can merge no two values of the domain's resolution and there is neither top nor bottom. The
    resolution is 1 for integers and ranks, else the last decimal place in use. Bins are not clipped to the domain. They are clipped to top
    and bottom, beyond which all values share a group.
    """
    values = _numbers(qid, domain)
    whole, used = (np.arange(len(values)), 0) if spec.encode else scaled_integers(values)
    ends = (spec.bottom, spec.top)
    places = max(used, *(decimals(number) for number in (*spec.widths, spec.origin, *ends) if number is not None))
    bottom, top = (None if end is None else scaled_integer(end, places) for end in ends)
    origin, sizes = scaled_integer(spec.origin, places), [scaled_integer(width, places) for width in spec.widths]
    step = 10 ** (places - used)
    whole = multiplied_without_overflow(whole, step, abs(origin) + abs(bottom or 0) + abs(top or 0) + 2 * sizes[-1])
    merged = sizes[0] <= step and not spec.hides
    levels = []
    for width, size in list(zip(spec.widths, sizes, strict=True))[merged:]:
        if spec.encode:
            levels.append(_ranked(values, (whole - origin) // size))
        else:
            shown = max(decimals(number) for number in (width, spec.origin, *ends) if number is not None)
            levels.append(_binned(values.type, whole, _Grid(origin, size, places, shown, bottom, top)))
    axis = len(values) if spec.encode else _axis((whole - origin) // (sizes[0] if merged else step))
    return DraftLevels(tuple(levels), axis, numeric=True)


def _numbers(qid: str, domain: Domain) -> pa.Array:
    """Return the values of a numerical domain; other types and infinite values are refused."""
    kind = domain.values.type
    if not (pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)):
        fitting = "prefix, " if is_text(kind) else "date, " if pt.is_date(kind) or pt.is_timestamp(kind) else ""
        other = f"{fitting}CSV file or tree"
        remedy = f"give it a numerical type in source.types where the source is CSV, or use a hierarchy of another kind ({other})"
        raise HierarchyError.wrong_type(qid, "widths", "integers, floats or decimals", str(kind), remedy)
    if pt.is_floating(kind):
        finite = np.isfinite(domain.values.to_numpy(zero_copy_only=False))
        if not finite.all():
            raise HierarchyError.not_finite(qid, int(domain.counts[~finite].sum()))
    # A zero is written without a sign, whichever it has.
    return pc.add(domain.values, pa.scalar(0.0, kind)) if pt.is_floating(kind) and not pt.is_float16(kind) else domain.values


def _axis(bins: ScaledIntegers) -> int:
    """Return the number of bins from the first to the last, empty bins included."""
    return int(bins[-1]) - int(bins[0]) + 1 if len(bins) else 0


def _binned(kind: pa.DataType, whole: ScaledIntegers, grid: _Grid) -> Level:
    """Build the level that groups scaled integers by bins."""
    bins = (whole - grid.origin) // grid.size
    below, above = _beyond_ends(whole, grid)
    # The domain ascends, so that the values beyond an end are neighbours.
    groups, firsts = group_numbers(np.where(below, bins[:1] - 1, np.where(above, bins[-1:] + 1, bins)))
    under, over = below[firsts], above[firsts]
    low = bins[firsts] * grid.size + grid.origin
    high = low + grid.size
    if grid.bottom is not None:
        low, high = np.maximum(low, grid.bottom), np.where(under, grid.bottom, high)
    if grid.top is not None:
        low, high = np.where(over, grid.top, low), np.minimum(high, grid.top)
    whole_only = pt.is_integer(kind)
    if whole_only:
        unit = 10**grid.places
        # The first and the last integer inside, rounded up without a float.
        low, high = -(-low // unit), -(-high // unit) - 1
        shown, close = 0, "]"
    else:
        spare = 10 ** (grid.places - grid.shown)
        low, high = low // spare, high // spare
        shown, close = grid.shown, ")"
    texts = decimal_text(low, shown), decimal_text(high, shown)
    bounds = (pa.array(low), pa.array(high)) if whole_only and low.dtype != object else _parsed(kind, texts, shown)
    labels, axis = _interval(*texts, close), _axis(bins[~(below | above)]) + int(below.any()) + int(above.any())
    if grid.bottom is None and grid.top is None:
        return Level(groups, labels, axis, bounds)
    return Level(groups, _open_ended(labels, texts, under, over, close), axis, _without_ends(bounds, under, over))


def _beyond_ends(whole: ScaledIntegers, grid: _Grid) -> tuple[Flags, Flags]:
    """Return masks of the values below ``bottom`` and from ``top`` on."""
    nowhere = np.zeros(len(whole), np.bool_)
    below = nowhere if grid.bottom is None else np.asarray(whole < grid.bottom, np.bool_)
    above = nowhere if grid.top is None else np.asarray(whole >= grid.top, np.bool_)
    return below, above


def _open_ended(labels: pa.Array, texts: Bounds, under: Flags, over: Flags, close: str) -> pa.Array:
    """Write the labels of groups beyond the ends, such as ``<= 17``, and of single-integer bins."""
    low, high = texts
    if close == "]":
        labels = pc.if_else(pc.equal(low, high), low, labels)
    labels = pc.if_else(pa.array(over), pc.binary_join_element_wise(">=", low, " "), labels)
    return pc.if_else(pa.array(under), pc.binary_join_element_wise("<=" if close == "]" else "<", high, " "), labels)


def _without_ends(bounds: Bounds, under: Flags, over: Flags) -> Bounds:
    """Set the low bound below ``bottom`` and the high bound from ``top`` on to null."""
    low, high = bounds
    return pc.if_else(pa.array(under), pa.scalar(None, low.type), low), pc.if_else(pa.array(over), pa.scalar(None, high.type), high)


def _ranked(values: pa.Array, bins: NDArray[np.int64]) -> Level:
    """Build the level that groups values by bins of their ranks."""
    groups, firsts = group_numbers(bins)
    # Observed values, not the edges of bins of ranks: a rank means nothing to who reads the release.
    lasts = np.append(firsts[1:], len(bins))[: len(firsts)] - 1
    bounds = values.take(pa.array(firsts)), values.take(pa.array(lasts))
    texts = [bound.cast(pa.string()) if pt.is_integer(bound.type) else plain_decimals(bound) for bound in bounds]
    return Level(groups, _interval(texts[0], texts[1], "]"), len(firsts), bounds)


def _interval(low: pa.Array, high: pa.Array, close: str) -> pa.Array:
    """Write intervals as ``[low - high]`` or ``[low - high)``."""
    return pc.binary_join_element_wise("[", low, " - ", high, close, "")


def _parsed(kind: pa.DataType, texts: Bounds, places: int) -> Bounds:
    """Parse the texts of bounds as floats or exact decimals."""
    if pt.is_floating(kind):
        return texts[0].cast(pa.float64()), texts[1].cast(pa.float64())
    digits = max(pc.max(pc.binary_length(text)).as_py() or 0 for text in texts)
    exact = pa.decimal128(38, places) if digits <= _DIGITS else pa.decimal256(76, places)
    return texts[0].cast(exact), texts[1].cast(exact)


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
