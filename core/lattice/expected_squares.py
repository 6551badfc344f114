"""The expected sum of squared class sizes of a node, estimated before the node is counted.

It is a guess of which nodes to count, never a bound. Were QIDs independent, two records would share a cell as often as they share the
groups of all QIDs, which follows from the marginal counts: N² · Π Σ p². Real QIDs are not independent; the ratio of the true to the
expected sum is known for counted nodes. Between a finer and a coarser counted node its logarithm is interpolated by that of the product.
A wrong guess costs one more roll-up, or one more split of a region; the node that is found, and the proof, are the same
(core/lattice/branch_and_bound.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, frexp, ldexp

import numpy as np

from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.losses.losses import sum_of_squares


class ExpectedSquareSums:
    """Estimates of Σ over all cells |E|² for the nodes above a root.

    Args:
        root: The root histogram.
        hierarchies: One per QID; further axes of the root are left out of account.
        levels: The level of each step, one list per QID or more.
    """

    def __init__(self, root: Histogram, hierarchies: Sequence[Hierarchy], levels: Sequence[Sequence[int]]) -> None:
        self._records = root.records
        whole = 2 * _logarithm(self._records)
        self._shared = [
            [_logarithm(sum_of_squares(_records(root, qid, hierarchy, level))) - whole for level in levels[qid]]
            for qid, hierarchy in enumerate(hierarchies)
        ]

    def rise(self, qid: int, low: int, high: int) -> float:
        """Return the rise in log2 of the estimate where one QID goes from a step to a coarser one."""
        return self._shared[qid][high] - self._shared[qid][low]

    def between(self, steps: Sequence[int], fine: tuple[Sequence[int], int], coarse: tuple[Sequence[int], int]) -> float:
        """Estimate Σ over all cells |E|² of a node between two counted nodes.

        Args:
            steps: The node.
            fine: The steps of a node that is nowhere coarser, and its Σ |E|².
            coarse: The same of one that is nowhere finer.
        """
        low, here, high = self._apart(fine[0]), self._apart(steps), self._apart(coarse[0])
        below, above = self._ratio(low, fine[1]), self._ratio(high, coarse[1])
        way = (here - low) / (high - low) if high > low else 1.0
        return _power(here + below + (above - below) * way) + self._records

    def _apart(self, steps: Sequence[int]) -> float:
        """Return log2 of the ordered pairs of records that would share a cell if QIDs were independent."""
        return sum((shared[step] for shared, step in zip(self._shared, steps, strict=False)), start=2 * _logarithm(self._records))

    def _ratio(self, apart: float, squares: int) -> float:
        # One more of each: where cells hold one record each there are no pairs, and a handful of them says little.
        return _logarithm(squares - self._records + 1) - _logarithm(_power(apart) + 1)


def _records(root: Histogram, qid: int, hierarchy: Hierarchy, level: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    groups = hierarchy.rolled(root.node[qid], level)[root.codes[:, qid]]
    return np.bincount(groups, weights=root.counts).astype(np.int64)


def _logarithm(number: float) -> float:
    """Return a binary logarithm, interpolated linearly between powers of two.

    Logarithms of C libraries differ in the last bit, and the course of a search must not.
    """
    mantissa, exponent = frexp(number)
    return exponent - 2 + 2 * mantissa


def _power(logarithm: float) -> float:
    """Return the number with the given ``_logarithm``."""
    whole = floor(logarithm)
    return ldexp(1 + logarithm - whole, whole)
