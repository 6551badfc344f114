"""Numerical hierarchies: bins of growing width, of values or of ranks (papers/skald.txt, section III.B)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.domains import Domain
from core.hierarchies.exact import Whole, decimal_text, scaled, whole_numbers, widened
from core.hierarchies.levels import Bounds, Ladder, Level, numbered
from core.hierarchies.spelling import is_text, plain
from schemas.hierarchy import WidthsHierarchy, decimals
from schemas.hierarchy_errors import HierarchyError

# Characters of a number that surely fits decimal128.
_DIGITS = 38


@dataclass(frozen=True)
class _Grid:
    """Bins of one width, in units of ``10**-places``; their edges have ``shown`` decimal places."""

    origin: int
    size: int
    places: int
    shown: int


def widths_ladder(qid: str, domain: Domain, spec: WidthsHierarchy) -> Ladder:
    """Bins a numerical domain by each width, aligned to multiples of it from the origin.

    The first width becomes level 0 where it can merge no two values of the domain's resolution (1 for integers and ranks, else the last
    decimal place in use). Bins are not clipped to the domain.

    Raises:
        HierarchyError: The column is not numerical or holds NaN or infinity.
    """
    values = _numbers(qid, domain)
    whole, used = (np.arange(len(values)), 0) if spec.encode else whole_numbers(values)
    places = max(used, *(decimals(number) for number in (*spec.widths, spec.origin)))
    origin, sizes = scaled(spec.origin, places), [scaled(width, places) for width in spec.widths]
    step = 10 ** (places - used)
    whole = widened(whole, step, abs(origin) + 2 * sizes[-1])
    merged = sizes[0] <= step
    levels = []
    for width, size in list(zip(spec.widths, sizes, strict=True))[merged:]:
        if spec.encode:
            levels.append(_ranked(values, (whole - origin) // size))
        else:
            levels.append(_binned(values.type, whole, _Grid(origin, size, places, max(decimals(width), decimals(spec.origin)))))
    axis = len(values) if spec.encode else _axis((whole - origin) // (sizes[0] if merged else step))
    return Ladder(tuple(levels), axis, numeric=True)


def _numbers(qid: str, domain: Domain) -> pa.Array:
    kind = domain.values.type
    if not (pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)):
        other = "prefix, CSV file or tree" if is_text(kind) else "CSV file or tree"
        remedy = f"give it a numerical type in source.types where the source is CSV, or use a hierarchy of another kind ({other})"
        raise HierarchyError.wrong_type(qid, "widths", "integers, floats or decimals", str(kind), remedy)
    if pt.is_floating(kind):
        finite = np.isfinite(domain.values.to_numpy(zero_copy_only=False))
        if not finite.all():
            raise HierarchyError.not_finite(qid, int(domain.counts[~finite].sum()))
    return domain.values


def _axis(bins: Whole) -> int:
    return int(bins[-1]) - int(bins[0]) + 1 if len(bins) else 0


def _binned(kind: pa.DataType, whole: Whole, grid: _Grid) -> Level:
    bins = (whole - grid.origin) // grid.size
    groups, firsts = numbered(bins)
    low = bins[firsts] * grid.size + grid.origin
    high = low + grid.size
    whole_only = pt.is_integer(kind)
    if whole_only:
        unit = 10**grid.places
        low, high = -(-low // unit), -(-high // unit) - 1
        shown, close = 0, "]"
    else:
        spare = 10 ** (grid.places - grid.shown)
        low, high = low // spare, high // spare
        shown, close = grid.shown, ")"
    texts = decimal_text(low, shown), decimal_text(high, shown)
    bounds = (pa.array(low), pa.array(high)) if whole_only and low.dtype != object else _parsed(kind, texts, shown)
    return Level(groups, _interval(*texts, close), _axis(bins), bounds)


def _ranked(values: pa.Array, bins: NDArray[np.int64]) -> Level:
    groups, firsts = numbered(bins)
    lasts = np.append(firsts[1:], len(bins))[: len(firsts)] - 1
    bounds = values.take(pa.array(firsts)), values.take(pa.array(lasts))
    texts = [bound.cast(pa.string()) if pt.is_integer(bound.type) else plain(bound) for bound in bounds]
    return Level(groups, _interval(texts[0], texts[1], "]"), len(firsts), bounds)


def _interval(low: pa.Array, high: pa.Array, close: str) -> pa.Array:
    return pc.binary_join_element_wise("[", low, " - ", high, close, "")


def _parsed(kind: pa.DataType, texts: Bounds, places: int) -> Bounds:
    if pt.is_floating(kind):
        return texts[0].cast(pa.float64()), texts[1].cast(pa.float64())
    digits = max(pc.max(pc.binary_length(text)).as_py() or 0 for text in texts)
    exact = pa.decimal128(38, places) if digits <= _DIGITS else pa.decimal256(76, places)
    return texts[0].cast(exact), texts[1].cast(exact)
