"""Histograms of chunks summed in memory: pair by pair, from one array to another and back, in ranges of cells on several cores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.abreast import LEAST_ROWS, parts_abreast
from core.columns.thread_share import threads_here
from core.histograms.kernels import merge_ascending

UNUSED = 8
"""Which part of an array may be held for nothing by a sum that is shorter."""


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


NOTHING = Ascending(np.empty(0, np.int64), np.empty(0, np.int64))


class _Range(NamedTuple):
    """A range of cells of two histograms, and where their sum goes."""

    one: Ascending
    other: Ascending
    start: int


def sum_ascending(parts: Sequence[Ascending]) -> Ascending:
    """Sums histograms, at least one.

    Each round halves their number, and reads and writes every row once. Two arrays serve all rounds: to be given new ones takes longer than
    to merge.
    """
    rows = sum(len(part.cells) for part in parts)
    last: Ascending | None = None
    spare: Ascending | None = None
    while len(parts) > 1:
        into, spare = spare or Ascending(np.empty(rows, np.int64), np.empty(rows, np.int64)), last
        parts, last = _paired(parts, into), into
    [found] = parts
    # A slice would keep room for all.
    return Ascending(found.cells.copy(), found.counts.copy()) if len(found.cells) < rows - rows // UNUSED else found


def _paired(parts: Sequence[Ascending], into: Ascending) -> list[Ascending]:
    """Sums neighbours two by two, one pair after the other into the same arrays."""
    pairs = list(zip_longest(parts[::2], parts[1::2], fillvalue=NOTHING))
    # Pairs are shared out among threads; where there are fewer, ranges of each pair are.
    shares = -(-threads_here() // len(pairs)) if len(into.cells) >= 2 * LEAST_ROWS else 1
    ranges, start = list[list[_Range]](), 0
    for one, other in pairs:
        ranges.append(_cut(one, other, start, shares))
        start += len(one.cells) + len(other.cells)
    flat = list(chain.from_iterable(ranges))

    def merged(some: slice) -> list[int]:
        return [_merge(each, into) for each in flat[some]]

    ends = chain.from_iterable(parts_abreast(merged, len(flat), least=1 if len(into.cells) >= 2 * LEAST_ROWS else len(flat)))
    return [_closed(into, [(each.start, each.start + next(ends)) for each in mine]) for mine in ranges]


def _cut(one: Ascending, other: Ascending, start: int, shares: int) -> list[_Range]:
    """Cuts two histograms at the same cells into so many ranges, as long as there are so many rows."""
    cuts = [len(one.cells) * number // shares for number in range(1, shares)] if len(one.cells) >= shares else []
    mine, theirs = [0, *cuts, len(one.cells)], [0, *np.searchsorted(other.cells, one.cells[cuts]).tolist(), len(other.cells)]
    bounds = zip(pairwise(mine), pairwise(theirs), strict=True)
    return [_Range(one.part(*rows), other.part(*others), start + rows[0] + others[0]) for rows, others in bounds]


def _merge(each: _Range, into: Ascending) -> int:
    one, other, start = each.one.only_read(), each.other.only_read(), each.start
    room = into.part(start, start + len(one.cells) + len(other.cells))
    return int(merge_ascending(*one, *other, *room))


def _closed(into: Ascending, bounds: Sequence[tuple[int, int]]) -> Ascending:
    """Moves what was merged in ranges together, which leave room where both histograms have a cell, and returns it."""
    begin, end = bounds[0]
    for first, last in bounds[1:]:
        for array in into:
            array[end : end + last - first] = array[first:last]
        end += last - first
    return into.part(begin, end)
