"""Histograms of chunks summed in memory: range by range of their cells, so few at a time that a processor has them at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.data_parallel import LEAST_ROWS, parts_in_parallel
from core.histograms.kernels import pack_counts, sum_packed
from core.order.sorting import ascending, order_of

RANGE = 1 << 18
"""Rows that are summed together, about."""
CELLS_PER_SAMPLE = 1 << 6
"""One cell of so many says where ranges end."""
UNUSED = 8
"""Which part of an array may be held for nothing by a sum that is shorter."""
BITS = 64


class Ascending(NamedTuple):
    """Cells that are one number each, ascending without repeats, and their counts; shape (cells,)."""

    cells: NDArray[np.int64]
    counts: NDArray[np.int64]

    def part(self, first: int, last: int) -> Ascending:
        """Returns some neighbours."""
        return Ascending(self.cells[first:last], self.counts[first:last])

    def only_read(self) -> Ascending:
        """Returns views that cannot be written, as those of files are: loops are compiled for the one kind and for the other."""
        views = Ascending(self.cells.view(), self.counts.view())
        for view in views:
            view.flags.writeable = False
        return views


def sum_ascending(parts: Sequence[Ascending]) -> Ascending:
    """Sums histograms, at least one.

    Each range of cells is brought together from all of them and sorted by its digits, on several cores; every row is moved a few times,
    however many histograms there are.
    """
    if len(parts) == 1:
        return parts[0]
    rows = sum(len(part.cells) for part in parts)
    bits = max((int(part.counts.max(initial=0)) for part in parts), default=0).bit_length()
    into = Ascending(np.empty(rows, np.int64), np.empty(rows, np.int64))
    places = _places(parts, -(-rows // RANGE))
    starts = places.sum(axis=1)

    def summed(some: slice) -> list[int]:
        ends = []
        for number in range(some.start, some.stop):
            mine = [part.part(*rows) for part, *rows in zip(parts, places[number], places[number + 1], strict=True)]
            ends.append(starts[number] + _sum_range(mine, into.part(*starts[number : number + 2]), bits))
        return ends

    ranges = len(starts) - 1
    ends = [end for some in parts_in_parallel(summed, ranges, least=1 if rows >= 2 * LEAST_ROWS else ranges) for end in some]
    found = _closed(into, list(zip(starts[:-1].tolist(), ends, strict=True)))
    # A slice would keep room for all.
    return Ascending(found.cells.copy(), found.counts.copy()) if len(found.cells) < rows - rows // UNUSED else found


def _places(parts: Sequence[Ascending], ranges: int) -> NDArray[np.int64]:
    """Returns where each range begins in each histogram, and where the last one ends, shape (ranges + 1, histograms)."""
    some = np.sort(np.concatenate([part.cells[::CELLS_PER_SAMPLE] for part in parts]))
    cuts = np.unique(some[[len(some) * number // ranges for number in range(1, ranges)]]) if len(some) else some
    # Equal cells are in one range, whichever histogram they are of.
    bounds = [np.concatenate([[0], np.searchsorted(part.cells, cuts), [len(part.cells)]]) for part in parts]
    return np.stack(bounds, axis=1).astype(np.int64)


def _sum_range(parts: Sequence[Ascending], into: Ascending, bits: int) -> int:
    """Sums some neighbouring cells of histograms whose counts have so many bits at most; returns how many different ones there are."""
    some = [part for part in parts if len(part.cells)]
    if not some:
        return 0
    low = min(int(part.cells[0]) for part in some)
    span = max(int(part.cells[-1]) for part in some) - low
    if span.bit_length() + bits > BITS - 1:
        return _sum_wide(some, into)
    rows, start = np.empty(len(into.cells), np.int64), 0
    for part in some:
        pack_counts(*part.only_read(), low, bits, rows[start:])
        start += len(part.cells)
    # Equal cells may stand in any order of their counts, which need not be looked at.
    return int(sum_packed(ascending(rows, (span << bits) | ((1 << bits) - 1), lowest=bits, kept=False), low, bits, *into))


def _sum_wide(parts: Sequence[Ascending], into: Ascending) -> int:
    """Sums neighbouring cells that are so far apart that a cell and its count are more than one number."""
    cells, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    low = int(cells.min())
    # The lesser of two numbers without a sign stays so, however far apart they are and wherever they begin.
    order = order_of(cells.view(np.uint64) - np.uint64(low % 2**BITS), int(cells.max()) - low)
    cells = cells[order]
    firsts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    into.cells[: len(firsts)], into.counts[: len(firsts)] = cells[firsts], np.add.reduceat(counts[order], firsts)
    return len(firsts)


def _closed(into: Ascending, bounds: Sequence[tuple[int, int]]) -> Ascending:
    """Moves the sums of ranges together, which leave room where several histograms have a cell, and returns them."""
    end = bounds[0][1]
    for first, last in bounds[1:]:
        if first > end:
            for array in into:
                array[end : end + last - first] = array[first:last]
        end += last - first
    return into.part(0, end)
