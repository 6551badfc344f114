"""The number of QID combinations by their number of records, from the cells of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import Packing
from core.columns.data_parallel import LEAST_ROWS, parts_in_parallel
from core.columns.kernels import Codes, number_cells
from core.histograms.kernels import tally_runs
from core.histograms.projections import Bundles, GroupWeights

BITS = 63
BYTES_PER_ROW = 10
"""A number, and room for a quarter of them while they are sorted."""
RUNS, AT_A_TIME = 4, 2
"""Runs that are sorted each by itself, and how many at a time: each takes room for half of its numbers meanwhile."""
PARTS = 16
"""Parts of the combinations that may be counted apart; as many as there are cores are counted at a time."""
SAMPLED = 1 << 10
"""Numbers of a run, about, by which it is told where parts end."""
SMALL = 1 << 16
"""Sums below this are counted in an array."""


class Combinations:
    """Counter of the records of each QID combination over the cells of all chunks.

    A row is one whole number, the combination before its count: sorted, equal combinations are neighbours, and hardly anything else is
    held than these numbers.

    Args:
        packing: Of the finest node.
        qids: How many of its axes make up a combination, the first ones.
        records: How many there are at most.
        rows: How many will be added.
    """

    def __init__(self, packing: Packing, qids: int, records: int, rows: int) -> None:
        weights = (*Packing(packing.sizes[:qids]).weights, *(0 for _ in packing.sizes[qids:]))
        self._worth = GroupWeights([np.arange(size, dtype=np.int64) * weight for size, weight in zip(packing.sizes, weights, strict=True)])
        self._bits, self._records = records.bit_length(), records
        self._rows: NDArray[np.int64] = np.empty(rows, np.int64)
        self._filled = 0

    @staticmethod
    def fit(packing: Packing, qids: int, records: int) -> bool:
        """Return whether a combination and its count fit in one 63-bit number together."""
        told_apart = Packing(packing.sizes[:qids])
        return len(told_apart.words) == 1 and told_apart.product.bit_length() + records.bit_length() <= BITS

    def add(self, bundles: Bundles, codes: Codes, counts: NDArray[np.int64]) -> None:
        """Add the codes, shape (cells, bundles), and record counts, shape (cells,), of some cells to the sums.

        Args:
            bundles: Makes the codes of a cell.
            codes: The cells by these codes, shape (cells, bundles).
            counts: Shape (cells,).
        """
        mine = self._rows[self._filled : self._filled + len(counts)]
        np.left_shift(number_cells(codes, *self._worth.tables(bundles)), self._bits, out=mine)
        mine += counts
        self._filled += len(counts)

    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distinct class sizes, ascending, and how many combinations of QID values have each size.

        No cell can be added after this call.
        """
        rows, self._rows = self._rows[: self._filled], np.empty(0, np.int64)
        ends = [len(rows) * number // RUNS for number in range(RUNS + 1)]

        def ordered(some: slice) -> None:
            for run in range(some.start, some.stop):
                # Chunks come in the order of their cells: to merge what is sorted takes a third of a sort that knows nothing of it.
                rows[ends[run] : ends[run + 1]].sort(kind="stable")

        parts_in_parallel(ordered, RUNS, AT_A_TIME, least=1)
        # Each part has all rows of its combinations, of every run.
        cuts = self._cuts([rows[first:last] for first, last in pairwise(ends)]) + np.array(ends[:-1])

        def tallied(part: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            tally, large = np.zeros(SMALL, np.int64), np.empty(self._records // SMALL + 1, np.int64)
            found = tally_runs(rows, cuts[part.start].copy(), cuts[part.stop], self._bits, tally, large)
            return tally, large[:found]

        tallies = parts_in_parallel(tallied, len(cuts) - 1, least=1)
        tally = np.sum([tally for tally, _ in tallies], axis=0)
        small = np.flatnonzero(tally)
        sizes, combinations = np.unique(np.concatenate([large for _, large in tallies]), return_counts=True)
        return np.append(small, sizes), np.append(tally[small], combinations)

    def _cuts(self, runs: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return positions that cut sorted runs into parts of about equal size, shape (parts + 1, runs).

        Cuts lie between combinations.
        """
        if self._filled < PARTS * LEAST_ROWS:
            return np.array([[0] * len(runs), [len(run) for run in runs]])
        # Runs are of chunks as they came, and need not be alike.
        some = np.sort(np.concatenate([run[:: max(len(run) // SAMPLED, 1)] for run in runs]))
        firsts = [some[len(some) * part // PARTS] >> self._bits << self._bits for part in range(1, PARTS)]
        inner = [[np.searchsorted(run, first) for run in runs] for first in firsts]
        return np.array([[0] * len(runs), *inner, [len(run) for run in runs]])

    @property
    def rows(self) -> int:
        """The number of rows that were added."""
        return self._filled
