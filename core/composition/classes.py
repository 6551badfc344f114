"""The records at risk from several releases of one source together (a composition attack).

Each release keeps every class at k records or more. A person who is known to be in both is in one class of each, so in the records that
the two have in common. A class that grew between the two gained just the records that came. Both may be fewer than k (Ganta,
Kasiviswanathan and Smith, KDD 2008; Byun, Sohn, Bertino and Li, SDM 2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords, Packing, single_word
from core.columns.kernels import add_cells, number_cells, occupied
from core.histograms.histogram import COMPACT_KEYS, count_cells, merge_parts
from core.histograms.projections import Bundles, GroupWeights
from core.recoding.recoding import SUPPRESSED, Stage

Maps = Sequence[NDArray[np.integer[Any]]]


class JointCells:
    """Record counts of the joint cells of several recodings, summed over chunk histograms.

    Args:
        groups: Per stage of the recodings, one after the other, and QID, shape (codes,): the group of each code of the source by which
            the stage distinguishes cells.
        others: Axes after the QIDs, which distinguish nothing here, by their numbers of codes.
        most_cells: Most cells of an array with an entry per possible cell, and most occupied ones otherwise.
    """

    def __init__(self, groups: Sequence[Maps], others: Sequence[int], most_cells: int) -> None:
        self._of: list[NDArray[np.integer[Any]]] = []
        codes = []
        for maps in zip(*groups, strict=True):
            # Codes that fall into the same groups in all recodings are one: what no release tells apart need not be counted apart.
            distinct, inverse = np.unique(np.stack(maps, axis=1), axis=0, return_inverse=True)
            self._of.append(distinct)
            codes.append(inverse.astype(np.int64).ravel())
        self.packing = Packing(tuple(len(distinct) for distinct in self._of))
        self.fits = len(self.packing.words) == 1
        self._most = most_cells
        worth = [code * weight for code, weight in zip(codes, self.packing.weights, strict=True)]
        self._worth = GroupWeights([*worth, *(np.zeros(size, np.int64) for size in others)])
        dense = self.fits and self.packing.product <= most_cells
        self._dense = np.zeros(self.packing.product, np.int64) if dense else None
        self._parts: list[tuple[PackedWords, NDArray[np.int64]]] = []

    def add(self, bundles: Bundles, codes: NDArray[np.unsignedinteger[Any]], counts: NDArray[np.int64]) -> None:
        """Add cells, (cells, bundles), and their counts; with too many cells, clear ``fits`` and add no more."""
        if self._dense is not None:
            add_cells(codes, *self._worth.tables(bundles), counts, self._dense)
        elif self.fits:
            self._parts.append(count_cells((number_cells(codes, *self._worth.tables(bundles)),), self.packing.product, counts))
            if sum(len(part) for _, part in self._parts) > min(COMPACT_KEYS, self._most):
                self._parts = [merge_parts(self._parts, self.packing.product)]
                self.fits = len(self._parts[0][1]) <= self._most

    def classes(self, recodings: Sequence[Sequence[Stage]]) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
        """Return each joint cell's class in each recoding, and each cell's number of records.

        A class is that of the first stage that has one.

        Args:
            recodings: The stages of each, in the order of ``groups``.
        """
        words, counts = self._cells()
        codes = self.packing.unpack(words)
        found, number = [], 0
        for stages in recodings:
            classes = np.full(len(counts), SUPPRESSED)
            for stage in stages:
                groups = [distinct[codes[:, qid], number] for qid, distinct in enumerate(self._of)]
                classes = np.where(classes == SUPPRESSED, stage.assigner.assign(stage.packing.pack(groups)), classes)
                number += 1
            found.append(np.maximum(classes, SUPPRESSED))
        return found, counts

    def _cells(self) -> tuple[PackedWords, NDArray[np.int64]]:
        if self._dense is not None:
            cells, counts = occupied(self._dense)
            return (cells,), counts
        empty = ((np.empty(0, np.int64),), np.empty(0, np.int64))
        return merge_parts([*self._parts, empty], self.packing.product)


def count_records_at_risk(classes: Sequence[NDArray[np.int32]], counts: NDArray[np.int64], k: int) -> int:
    """Count records whose joint class has fewer than k, apart from those suppressed in all releases.

    Records that are suppressed everywhere are at no risk. A suppressed record is a class of its own: that a person is missing from a
    release discloses something too.

    Args:
        classes: One array of shape (cells,) per release, SUPPRESSED where the cell is not published.
        counts: Shape (cells,), records.
        k: Fewest records that are safe.
    """
    published = np.logical_or.reduce([mine != SUPPRESSED for mine in classes])
    key = single_word(tuple(mine[published].astype(np.int64) for mine in classes))
    _, summed = count_cells((key,), int(key.max(initial=0)) + 1, counts[published])
    return int(summed[summed < k].sum())
