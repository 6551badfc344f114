"""What suppression costs at prices: of a node, and at least of every finer one.

A record that a node suppresses is suppressed at every finer node too, as far as that can be told by what is monotone. There it costs more
beside what it would be published as, because the finer a group, the lower its price. So to the cost that a finer node has without
suppression comes at least what these records cost more *at the levels of the finer node*: that is a sum over QIDs, each of which is known
as soon as the suppressed records are counted by their groups at every level.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import Cells
from core.lattice.objectives import LevelPrices

Levels = NDArray[np.float64]
"""Shape (QIDs, levels), up to the levels of a node: what suppressing some records adds to their price. An array, because many are kept."""


class SuppressionPenalties:
    """Prices of suppression.

    Args:
        prices: Of the objective.
        hierarchies: One per axis; those of sensitive columns, the last ones, have no prices.
        finer: Whether the levels below those of a node are looked at too. If not, it is told as low for them as at the node.
    """

    def __init__(self, prices: LevelPrices, hierarchies: Sequence[Hierarchy], *, finer: bool = False) -> None:
        self._extra, self._hierarchies, self._finer = prices.extra, hierarchies, finer
        self._coarser: dict[tuple[int, int], NDArray[np.uint32]] = {}

    def of(self, lost: Cells, node: Node) -> Levels:
        """Returns what suppressing cells adds to their price at each level up to those of a node.

        Below the levels of the cells it is told as low as it is there. The same in whatever order the cells come.

        Args:
            lost: The cells, at the node or finer.
            node: Level of each axis.
        """
        told = np.zeros((len(self._extra), max(node) + 1))
        for qid, (extra, codes) in enumerate(zip(self._extra, lost.codes.T, strict=False)):
            if len(extra[-1]):
                told[qid, : node[qid] + 1] = self._levels(qid, codes, lost, node[qid])
        return told

    def _levels(self, qid: int, codes: NDArray[np.unsignedinteger], lost: Cells, coarsest: int) -> list[float]:
        first, extra = lost.node[qid], self._extra[qid]
        # Whole numbers up to 2^53 add up exactly, so that no sum depends on the order of the cells.
        records = np.bincount(codes, weights=lost.counts, minlength=len(extra[first]))
        told = [float(np.dot(records, extra[first]))] * (first + 1)
        for level in range(first + 1, coarsest + 1):
            records = np.bincount(self._map(qid, level), weights=records, minlength=len(extra[level]))
            told.append(float(np.dot(records, extra[level])))
        return told if self._finer else [told[-1]] * len(told)

    def _map(self, qid: int, level: int) -> NDArray[np.uint32]:
        if (qid, level) not in self._coarser:
            self._coarser[qid, level] = self._hierarchies[qid].rolled(level - 1, level)
        return self._coarser[qid, level]


def suppression_penalty_at(node: Node, levels: Levels) -> float:
    """Returns what is added at a node that is nowhere coarser than what it was told of."""
    return float(sum((each[level] for each, level in zip(levels, node, strict=False)), start=0.0))
