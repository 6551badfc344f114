"""Ends of published ranges, shared by k persons so that no end discloses one person's value.

The values of a QID are cut into steps, each with the values of at least k people of the source, and every range is as long as the steps
that it touches. A cut is a line of a grid that depends on no record (`core.recoding.ends`). It is made only if k people are on
either side of it. See docs/decisions/shared-ends.md for what that promises and what it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.hierarchies.levels import ScaledIntegers, decimal_text, scaled_integers
from core.recoding.classes import cut_grid_lines
from schemas.registry.hierarchies import HierarchySpec, WidthsHierarchy

Lines = NDArray[np.int64]
Spelling = Callable[[ScaledIntegers, int], pa.Array]
ROOM = 10**17
"""Whole numbers on a grid are less than this; of values with more digits the last ones are cut off."""
MONTH, YEAR, DECADE = 32, 384, 3840
"""A calendar in which every month has 32 days, so that its units are multiples of each other; some of its days are no day."""
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000}
_CLOCK = (1, 60, 3_600)
_DAY = 86_400


@dataclass(frozen=True, eq=False)
class Grid:
    """Values of a domain as positions on a grid of lines that depends on no record.

    Attributes:
        grid_lines: Shape (m,), int64, ascending: where each value lies, cut down to the grid's finest width, 1.
        widths: Ascending, int64, from 1: how far apart lines are, each a multiple of the one before.
        spell: Returns the first value at or after each of some lines, or the last one before it where it is moved by -1.
    """

    grid_lines: Lines
    widths: Lines
    spell: Spelling


def grid_of(values: pa.Array, spec: HierarchySpec | None) -> Grid:
    """Return the grid of a domain's values, with the widths of their hierarchy.

    Args:
        values: Shape (m,), ascending, without null: finite numbers, dates or timestamps.
        spec: The hierarchy; None for a column that has none.
    """
    kind = values.type
    if pt.is_date(kind) or pt.is_timestamp(kind):
        return _calendar(values)
    whole, used = scaled_integers(values)
    origin, widths = _bins(spec, used)
    ends = [abs(int(end)) for end in (whole[:1].tolist() + whole[-1:].tolist())]
    # As Python integers only where NumPy's could overflow, because these are slow.
    moved = (whole.astype(object) if max(ends, default=0) + abs(origin) >= ROOM else whole) - origin
    ratio = _ratio(max(ends, default=0) + abs(origin))
    places = (moved // ratio).astype(np.int64)
    chain = [1, *(width // ratio for width in widths if width % ratio == 0 and ratio < width <= 10 * ROOM * ratio)]

    def spell(lines: ScaledIntegers, move: int) -> pa.Array:
        return _numbers(kind, lines.astype(object) * ratio + origin + move, used)

    return Grid(places, _widened(chain, places, 2 if len(chain) > 1 else 10), spell)


def _ratio(most: int) -> int:
    """Return the power of ten that numbers are divided by to fit a grid."""
    ratio = 1
    while most // ratio >= ROOM:
        ratio *= 10
    return ratio


def _bins(spec: HierarchySpec | None, used: int) -> tuple[int, list[int]]:
    """Return the origin and widths of a hierarchy's bins in units of the last decimal place used.

    Widths that are no whole numbers are left out; without a whole origin no width is returned.
    """
    if not isinstance(spec, WidthsHierarchy) or spec.encode:
        return 0, []
    origin, *widths = (Fraction(Decimal(number)) * 10**used for number in (spec.origin, *spec.widths))
    if origin.denominator != 1:
        return 0, []
    return int(origin), [int(width) for width in widths if width.denominator == 1]


def _widened(chain: list[int], places: Lines, factor: int) -> Lines:
    """Extend grid widths by a factor until the last width covers all positions."""
    most = max(int(-places[0]), int(places[-1]) + 1) if len(places) else 1
    while chain[-1] < most:
        chain.append(chain[-1] * factor)
    return np.array(chain, np.int64)


def _numbers(kind: pa.DataType, whole: ScaledIntegers, places: int) -> pa.Array:
    """Convert scaled integers to an Arrow array of a numeric type."""
    if pt.is_integer(kind):
        return pa.array(whole.tolist(), kind)
    texts = decimal_text(whole, places)
    return texts.cast(pa.float64()).cast(kind) if pt.is_floating(kind) else texts.cast(kind)


def _calendar(values: pa.Array) -> Grid:
    """Return the grid of dates or timestamps: days, months, quarters, years and decades.

    Timestamps have finer widths too.
    """
    kind = values.type
    unit = kind.unit if pt.is_timestamp(kind) else "s"
    ticks, finer = _TICKS[unit], 1_000 if unit == "ns" else 1
    if pt.is_date(kind):
        per_day, moments = 1, np.asarray(values.cast(pa.date32()).cast(pa.int32())).astype(np.int64)
    else:
        per_day, moments = _DAY * ticks, np.asarray(values.cast(pa.int64())) // finer
    days, rest = moments // per_day, moments % per_day
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    within = days - months.astype("datetime64[D]").astype(np.int64)
    places = (months.astype(np.int64) * MONTH + within) * per_day + rest
    clock = [] if pt.is_date(kind) else sorted({1, min(1_000, ticks), *(seconds * ticks for seconds in _CLOCK)})
    units = [days * per_day for days in (1, MONTH, 3 * MONTH, YEAR, DECADE)]

    def spell(lines: ScaledIntegers, move: int) -> pa.Array:
        return _moments(kind, lines.astype(np.int64), move, per_day, finer)

    return Grid(places, _widened([*clock, *units], places, 2), spell)


def _moments(kind: pa.DataType, lines: Lines, move: int, per_day: int, finer: int) -> pa.Array:
    """Convert grid positions to dates or timestamps.

    The grid's months have 32 days. A position that is no day becomes the first of the next month.
    """
    day, rest = lines // per_day, lines % per_day
    months, within = day // MONTH, day % MONTH
    first, following = (month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) for month in (months, months + 1))
    none = first + within >= following
    moments = (np.where(none, following, first + within) * per_day + np.where(none, 0, rest)) * finer + move
    if pt.is_date(kind):
        return pa.array(moments, pa.int64()).cast(pa.int32()).cast(pa.date32()).cast(kind)
    return pa.array(moments, pa.int64()).cast(kind)


CellPlaces = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ends:
    """Steps of a domain, with the published ends of ranges that begin or end in each step.

    Attributes:
        steps: Shape (m,), the step of each code; a null has none.
        firsts: Shape (steps,), the code of the first value of each.
        lasts: Shape (steps,), of its last one.
        low: Shape (steps,), of the type of the values: the low end of a range that begins in the step, null where it is open.
        high: Shape (steps,), the high end of a range that ends in it, null where it is open.
    """

    steps: CellPlaces
    firsts: CellPlaces
    lasts: CellPlaces
    low: pa.Array
    high: pa.Array


def observed_ends(domain: Domain) -> Ends:
    """Return range ends at observed values: each class's least and greatest value."""
    codes = np.arange(len(domain.values))
    return Ends(codes, codes, codes, domain.values, domain.values)


def shared_ends(domain: Domain, spec: HierarchySpec, k: int) -> Ends:
    """Cut a domain into steps of at least k persons and return the ends of ranges over them.

    With fewer persons there is one step, open at both ends.

    An end is the least or greatest value of its step where k persons have that value, else a line of the grid. Beyond the first and the
    last cut it is open.

    Args:
        domain: Of numbers, dates or timestamps.
        spec: The hierarchy, whose bins are the grid where it has widths.
        k: People.
    """
    grid, people = grid_of(domain.values, spec), domain.people
    before = np.append(0, np.cumsum(people))
    lines = np.zeros(len(people), np.int64)
    starts = cut_grid_lines(grid.grid_lines, before, grid.widths, k, lines)
    starts[:1] = True
    firsts = np.flatnonzero(starts)
    lasts = np.append(firsts[1:], len(people))[: len(firsts)] - 1
    cuts = lines[firsts[1:]]
    low = pa.concat_arrays([pa.nulls(min(len(firsts), 1), domain.values.type), grid.spell(cuts, 0)])
    high = pa.concat_arrays([grid.spell(cuts, -1), pa.nulls(min(len(firsts), 1), domain.values.type)])
    return Ends(np.cumsum(starts) - 1, firsts, lasts, _held_by_k(domain, firsts, k, low), _held_by_k(domain, lasts, k, high))


def _held_by_k(domain: Domain, codes: CellPlaces, k: int, ends: pa.Array) -> pa.Array:
    """Replace each end by the value of its code where at least k persons have that value."""
    return pc.if_else(pa.array(domain.people[codes] >= k), domain.values.take(pa.array(codes)), ends)
