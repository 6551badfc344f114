"""The group and label of each value at each level of a hierarchy, computed from the job's definition.

Labels of a release are compared with these, and the hierarchical distance of t-closeness is measured over them. Nothing here is used by
the writer of a release: numbers are fractions or whole numbers, text is sliced, dates are taken apart.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil, lcm
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.labels.value_scales import local_moments, value_texts
from schemas.errors.hierarchies import HierarchyError
from schemas.registry.hierarchies import CsvHierarchy, DateHierarchy, HierarchySpec, PrefixHierarchy, WidthsHierarchy, decimals
from schemas.registry.hierarchy_kinds import TreeHierarchy, hierarchy_kind
from schemas.release.manifest import MASK

Row = tuple[str, ...]
"""A value as text, then its groups from the finest to the coarsest."""


def rows_of_lists(name: str, spec: CsvHierarchy | TreeHierarchy, folder: Path) -> list[Row]:
    """Return a listed hierarchy's rows, value then coarser groups; raise HierarchyError if unreadable.

    All rows have the same length.

    Args:
        name: Of the column, for a message.
        folder: Where the job file lies; a CSV file is looked for from there.
    """
    if isinstance(spec, TreeHierarchy):
        return [tuple(route) for route in spec.routes]
    path = str(spec.csv)
    try:
        with spec.text(folder) as file:
            # Without strict, a quote that is never closed swallows the lines after it and no error is raised.
            rows = [tuple(row) for row in csv.reader(file, delimiter=spec.delimiter, strict=True) if row]
    except (OSError, ValueError, csv.Error):
        raise HierarchyError.unreadable(name, path, "cannot be read as CSV in UTF-8; put it back as it was") from None
    ragged = sum(len(row) != len(rows[0]) for row in rows)
    if ragged:
        raise HierarchyError.ragged(name, f"the file '{path}'", ragged, len(rows), len(rows[0]))
    return rows


_EPOCH = 1970
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


class GroupLevel(NamedTuple):
    """The groups and labels of one level of a hierarchy.

    Attributes:
        groups: Shape (values,), int64: the group of each value, a number of ``labels``.
        labels: What is published for each group, no text twice; None for a null.
    """

    groups: NDArray[np.int64]
    labels: Sequence[str | None]


Maker: TypeAlias = Callable[[], GroupLevel]
Levels: TypeAlias = Sequence[GroupLevel | Maker]
"""Per level above the values themselves, finest first; or what makes it when it is asked for, where that takes much."""


def level_of(published: Iterable[str | None]) -> GroupLevel:
    """Build a level from the label of each value; values with equal labels share a group."""
    numbers: dict[str | None, int] = {}
    groups = [numbers.setdefault(label, len(numbers)) for label in published]
    return GroupLevel(np.array(groups, np.int64), list(numbers))


def group_levels(name: str, spec: HierarchySpec, values: pa.Array, folder: Path) -> list[GroupLevel]:
    """Return the levels of a hierarchy above the single values; the last one is a single group.

    Args:
        name: Of the column, for a message.
        values: Shape (m,), distinct and ascending. A null is a group of its own, up to the last level.
        folder: Where the job file lies.
    """
    return [make() for make in level_makers(name, spec, values, folder)]


def level_makers(name: str, spec: HierarchySpec, values: pa.Array, folder: Path) -> list[Maker]:
    """Return a function for each level that computes it; raise HierarchyError for values of a wrong type."""
    levels_of = hierarchy_kind(spec).recount_levels
    if levels_of is None:
        raise HierarchyError.not_recounted(name, spec.kind)
    try:
        levels: Levels = levels_of(name, spec, values.drop_null(), folder)
    except (ValueError, AttributeError, pa.ArrowException):
        remedy = "give the job and the source that the release was made of"
        raise HierarchyError.wrong_type(name, spec.kind, f"values that {spec.kind} can group", str(values.type), remedy) from None
    own, present = _groups_of_null(name, spec, folder), np.asarray(values.is_valid())

    def made(number: int) -> GroupLevel:
        level = levels[number]
        known = level() if callable(level) else level
        return known if present.all() else _with_null(known, present, own[number] if own else None)

    whole = GroupLevel(np.zeros(len(values), np.int64), [MASK])
    return [*(partial(made, number) for number in range(len(levels))), lambda: whole]


def _groups_of_null(name: str, spec: HierarchySpec, folder: Path) -> Sequence[str]:
    """Return the groups of the listed value that represents nulls, finest first; empty without one."""
    if not isinstance(spec, CsvHierarchy | TreeHierarchy) or spec.nulls is None:
        return ()
    return next((row[1:] for row in rows_of_lists(name, spec, folder) if row[0] == spec.nulls), ())


def _with_null(level: GroupLevel, present: NDArray[np.bool_], own: str | None) -> GroupLevel:
    """Add the null to the group with label ``own``, or to a new group; None is a group of its own."""
    labels = list(level.labels) if own in level.labels else [*level.labels, own]
    groups = np.full(len(present), labels.index(own), np.int64)
    groups[present] = level.groups
    return GroupLevel(groups, labels)


def levels_of_prefixes(name: str, spec: PrefixHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Return the levels of a prefix hierarchy, which mask a text after its first characters.

    The first level is left out where no text is longer than its prefix.
    """
    texts = [texts[0] for texts in value_texts(values)]
    kept = list(spec.prefix)
    if not spec.hides and kept[0] >= max(map(len, texts), default=0):
        kept = kept[1:]
    group = "0" * len(spec.sparse_values[0]) if spec.sparse_values else ""
    sparse = (*spec.sparse_values, group) if group else ()

    def masked(count: int) -> GroupLevel:
        return level_of(group if text.startswith(sparse) else text[:count].ljust(len(text), spec.mask) for text in texts)

    return [partial(masked, count) for count in kept]


def levels_of_units(name: str, spec: DateHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Return the levels of a date hierarchy, which group by calendar unit or by lying beyond an end.

    Without ends, days are no level of their own where all times are midnight.
    """
    moments = local_moments(values)
    days = moments.astype("datetime64[D]")
    units = [unit for unit in spec.date if unit != "day" or spec.hides or bool(np.any(days != moments))]
    below, above = np.zeros((2, len(days)), np.bool_)
    if spec.last_below is not None:
        below = np.asarray(days <= np.datetime64(spec.last_below))
    if spec.first_above is not None:
        above = np.asarray(days >= np.datetime64(spec.first_above))
    return [partial(_units, spec, unit, days, below, above) for unit in units]


def _units(spec: DateHierarchy, unit: str, days: NDArray[np.datetime64], below: NDArray[np.bool_], above: NDArray[np.bool_]) -> GroupLevel:
    months = days.astype("datetime64[M]").astype(np.int64)
    # Counted from 1970, which a quarter, a year and a decade begin with: whole divisions fall on the calendar's.
    numbers = days.astype(np.int64) if unit == "day" else months // _MONTHS[unit]
    side = below * -1 + above * 1
    _, firsts, groups = np.unique(np.stack([side, numbers * (side == 0)]), axis=1, return_index=True, return_inverse=True)
    ends = {-1: spec.end_labels[0], 1: spec.end_labels[1]}
    labels = [ends.get(int(side[first]), _unit_text(unit, int(months[first]), days[first])) for first in firsts.tolist()]
    return GroupLevel(groups.reshape(-1).astype(np.int64), labels)


def _unit_text(unit: str, month: int, day: np.datetime64) -> str:
    """Return the label of the calendar unit that contains a day, given its month counted from 1970."""
    year, place = month // 12 + _EPOCH, month % 12
    if unit == "decade":
        return f"{_year(year // 10 * 10)}s"
    if unit == "quarter":
        return f"{_year(year)}-Q{place // 3 + 1}"
    of_month = (day - np.datetime64(month, "M").astype("datetime64[D]")).astype(np.int64) + 1
    ends = {"year": "", "month": f"-{place + 1:02}", "day": f"-{place + 1:02}-{of_month:02}"}
    return _year(year) + ends[unit]


def _year(year: int) -> str:
    return f"{'-' if year < 0 else ''}{abs(year):04}"


def levels_of_lists(name: str, spec: CsvHierarchy | TreeHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Return the levels of a listed hierarchy; raise HierarchyError for values that it does not list.

    A last column of one single label is the level of all, which is left out.
    """
    rows = rows_of_lists(name, spec, folder)
    groups = {row[0]: row[1:] for row in rows}
    found = [next((groups[text] for text in texts if text in groups), None) for texts in value_texts(values)]
    if lacking := found.count(None):
        raise HierarchyError.not_covered(name, "its hierarchy", lacking, len(values))
    depth = len(rows[0]) - 1 if rows else 0
    if depth and len({row[-1] for row in rows}) == 1:
        depth -= 1
    return [partial(_listed, found, level) for level in range(depth)]


def _listed(found: Sequence[Sequence[str] | None], level: int) -> GroupLevel:
    return level_of(groups[level] for groups in found if groups is not None)


LARGEST_INT64_NUMBER = 1 << 62
"""From here on whole numbers are reckoned with as Python has them."""
BLOCK = 1 << 16
"""Numbers that are text at a time."""
_BELOW, _ABOVE = -1, 1


def levels_of_bins(name: str, spec: WidthsHierarchy, values: pa.Array, folder: Path) -> Levels:
    """Return the levels of a hierarchy of bin widths, one for each width.

    The first width is no level of its own where no two values that the column can hold share a bin.
    """
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
    """Return the widths that are levels.

    The first is none where it is at most one unit of the last decimal place in use.
    """
    return spec.widths if spec.hides or Fraction(spec.widths[0]) > Fraction(1, 10**places) else spec.widths[1:]


def _texts(values: pa.Array) -> Iterator[list[str]]:
    """Yield blocks of numbers as text, which takes much memory, without exponent and trailing zeros."""
    for first in range(0, len(values), BLOCK):
        yield [texts[-1] for texts in value_texts(values.slice(first, BLOCK))]


def _places(values: pa.Array) -> int:
    """Return the number of decimal places in use."""
    return max((len(text.partition(".")[2]) for texts in _texts(values) for text in texts), default=0)


def _without_point(values: pa.Array, places: int) -> NDArray[Any]:
    """Return numbers times ``10**places`` as integers."""
    parts = [np.zeros(0, np.int64)]
    for texts in _texts(values):
        split = (text.partition(".") for text in texts)
        digits = [int(whole + fraction.ljust(places, "0")) for whole, _, fraction in split]
        parts.append(np.array(digits, np.int64 if max(map(abs, digits)) < LARGEST_INT64_NUMBER else object))
    return np.concatenate(parts)


def _scaled(numbers: NDArray[Any], factor: int, most: int) -> NDArray[Any]:
    """Return integers times ``factor``, in 64 bits if they and every bin edge surely fit."""
    greatest = max(map(abs, (int(numbers.min()), int(numbers.max())))) if len(numbers) else 0
    return numbers.astype(np.int64 if greatest * factor + 2 * most < LARGEST_INT64_NUMBER else object) * factor


def _bins(spec: WidthsHierarchy, whole: NDArray[Any], scale: int, width: Decimal, *, integers: bool) -> GroupLevel:
    """Group ascending numbers, multiples of ``1 / scale``, into bins; those beyond each end are one group."""
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
    """Return the begin of a bin and the begin of the next one, cut to the ends of the hierarchy."""
    low = Fraction(spec.origin) + number * Fraction(width)
    high = low + Fraction(width)
    low = low if spec.bottom is None else max(low, Fraction(spec.bottom))
    return low, high if spec.top is None else min(high, Fraction(spec.top))


def _integer_label(spec: WidthsHierarchy, side: int, number: int, width: Decimal) -> str:
    """Return the label of a bin of integers, or of what lies beyond an end.

    It has the first and the last integer of the bin; where there are ends, a bin of one integer is that integer.
    """
    if side == _BELOW and spec.bottom is not None:
        return f"<= {ceil(spec.bottom) - 1}"
    if side == _ABOVE and spec.top is not None:
        return f">= {ceil(spec.top)}"
    low, high = map(ceil, _edges(spec, number, width))
    return f"{low}" if spec.hides and low == high - 1 else f"[{low} - {high - 1}]"


def _decimal_label(spec: WidthsHierarchy, side: int, number: int, width: Decimal) -> str:
    """Return the label of a bin by its begin and the next one's, with the decimal places of the job."""
    places = max(decimals(end) for end in (width, spec.origin, spec.bottom, spec.top) if end is not None)
    if side == _BELOW and spec.bottom is not None:
        return f"< {_digits(Fraction(spec.bottom), places)}"
    if side == _ABOVE and spec.top is not None:
        return f">= {_digits(Fraction(spec.top), places)}"
    low, high = _edges(spec, number, width)
    return f"[{_digits(low, places)} - {_digits(high, places)})"


def _digits(number: Fraction, places: int) -> str:
    """Return a number as text with ``places`` decimal places; it must have no more."""
    digits = str(abs(int(number * 10**places))).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if number < 0 else text


def _bins_of_ranks(values: pa.Array, origin: int, width: int) -> GroupLevel:
    """Group values into bins by rank, with labels of the first and last value of each bin."""
    bins = (np.arange(len(values)) - origin) // width
    firsts = np.flatnonzero(np.diff(bins, prepend=bins[:1] - 1))
    lasts = np.append(firsts[1:], len(values))[: len(firsts)] - 1
    # A float has no zeros at its end, and a decimal as many as its type.
    form = -1 if pt.is_floating(values.type) else 0
    low, high = ([texts[form] for texts in value_texts(values.take(pa.array(places)))] for places in (firsts, lasts))
    labels = [f"[{first} - {last}]" for first, last in zip(low, high, strict=True)]
    return GroupLevel(np.repeat(np.arange(len(firsts)), lasts - firsts + 1).astype(np.int64), labels)
