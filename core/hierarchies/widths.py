"""Numerical hierarchies: bins of growing width (papers/skald.txt, section III.B).

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
    Level,
    ScaledIntegers,
    decimal_text,
    group_numbers,
    multiplied_without_overflow,
    plain_decimals,
    scaled_integer,
    scaled_integers,
)
from schemas.errors.hierarchies import HierarchyError
from schemas.registry.hierarchies import WidthsHierarchy, decimals

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
    below, above = _beyond(whole, grid)
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


def _beyond(whole: ScaledIntegers, grid: _Grid) -> tuple[Flags, Flags]:
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
