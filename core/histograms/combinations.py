"""How many combinations of values there are of each number of records, beside whatever else the cells of chunks are added up to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import Packing
from core.columns.kernels import Codes, number_cells
from core.histograms.kernels import sum_runs
from core.histograms.projections import Bundles, Worth

BITS = 63
BYTES_PER_ROW = 8


class Combinations:
    """Adds up cells of chunks that differ in sensitive values alone, or lie in different chunks.

    A row is one whole number, the combination before its count: sorted in place, equal combinations stand side by side, and nothing else is
    held than these numbers.

    Args:
        packing: Of the finest node.
        qids: How many of its axes tell combinations apart, the first ones.
        records: How many there are at most.
        rows: How many will be added.
    """

    def __init__(self, packing: Packing, qids: int, records: int, rows: int) -> None:
        weights = (*Packing(packing.sizes[:qids]).weights, *(0 for _ in packing.sizes[qids:]))
        self._worth = Worth([np.arange(size, dtype=np.int64) * weight for size, weight in zip(packing.sizes, weights, strict=True)])
        self._bits = records.bit_length()
        self._rows: NDArray[np.int64] = np.empty(rows, np.int64)
        self._filled = 0

    @staticmethod
    def fit(packing: Packing, qids: int, records: int) -> bool:
        """Tells whether a combination and its count are one number together."""
        told_apart = Packing(packing.sizes[:qids])
        return len(told_apart.words) == 1 and told_apart.product.bit_length() + records.bit_length() <= BITS

    def add(self, bundles: Bundles, codes: Codes, counts: NDArray[np.int64]) -> None:
        """Adds cells given by the codes that ``bundles`` made of them, and counts, shape (cells,)."""
        mine = self._rows[self._filled : self._filled + len(counts)]
        np.left_shift(number_cells(codes, *self._worth.tables(bundles)), self._bits, out=mine)
        mine += counts
        self._filled += len(counts)

    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns which numbers of records there are, ascending, and how many combinations have each; nothing can be added afterwards."""
        rows, self._rows = self._rows[: self._filled], np.empty(0, np.int64)
        rows.sort()
        summed = rows[: sum_runs(rows, self._bits)]
        if int(summed.max(initial=0)) >= len(rows):
            return np.unique(summed, return_counts=True)
        combinations = np.bincount(summed)
        there = np.flatnonzero(combinations)
        return there, combinations[there]

    @property
    def rows(self) -> int:
        """How many rows were added."""
        return self._filled
