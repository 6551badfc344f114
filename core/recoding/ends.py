"""Where ranges of values may end, so that no end tells the value of one person.

The values of a QID are cut into steps, each with the values of at least k people of the source, and every range is as long as the steps
that it touches. A cut is a line of a grid that depends on no record (`core.recoding.grids`), and it is made only if k people are on
either side of it: see docs/decisions/shared-ends.md for what that promises and what it does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.recoding.grids import grid_of
from core.recoding.kernels import cut_places
from schemas.hierarchies.hierarchy import HierarchySpec

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ends:
    """The steps of a domain, ascending, and how ranges that begin or end in them are written.

    Attributes:
        steps: Shape (m,), the step of each code; a null has none.
        firsts: Shape (steps,), the code of the first value of each.
        lasts: Shape (steps,), of its last one.
        low: Shape (steps,), of the type of the values: the low end of a range that begins in the step, null where it is open.
        high: Shape (steps,), the high end of a range that ends in it, null where it is open.
    """

    steps: Places
    firsts: Places
    lasts: Places
    low: pa.Array
    high: pa.Array


def observed_ends(domain: Domain) -> Ends:
    """Returns the ends at which ranges have the least and the greatest value that they hold."""
    codes = np.arange(len(domain.values))
    return Ends(codes, codes, codes, domain.values, domain.values)


def shared_ends(domain: Domain, spec: HierarchySpec, k: int) -> Ends:
    """Cuts a domain into steps of at least k people; one step, open at both ends, where there are fewer.

    An end is the least or greatest value of its step where k people have that value, else a line of the grid, and beyond the first and
    the last cut it is open.

    Args:
        domain: Of numbers, dates or timestamps.
        spec: The hierarchy, whose bins are the grid where it has widths.
        k: People.
    """
    grid, people = grid_of(domain.values, spec), domain.people
    before = np.append(0, np.cumsum(people))
    lines = np.zeros(len(people), np.int64)
    starts = cut_places(grid.places, before, grid.widths, k, lines)
    starts[:1] = True
    firsts = np.flatnonzero(starts)
    lasts = np.append(firsts[1:], len(people))[: len(firsts)] - 1
    cuts = lines[firsts[1:]]
    low = pa.concat_arrays([pa.nulls(min(len(firsts), 1), domain.values.type), grid.spell(cuts, 0)])
    high = pa.concat_arrays([grid.spell(cuts, -1), pa.nulls(min(len(firsts), 1), domain.values.type)])
    return Ends(np.cumsum(starts) - 1, firsts, lasts, _held(domain, firsts, k, low), _held(domain, lasts, k, high))


def _held(domain: Domain, codes: Places, k: int, ends: pa.Array) -> pa.Array:
    """Puts the value of a code in the place of an end where k people have it."""
    return pc.if_else(pa.array(domain.people[codes] >= k), domain.values.take(pa.array(codes)), ends)
