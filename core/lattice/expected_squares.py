"""What Σ over all cells |E|² of a node is likely to be before it is counted: a guess of what is worth counting, never a bound.

Were QIDs independent, two records would share a cell as often as they share the groups of all QIDs, which the marginal counts tell:
N² · Π Σ p². Real QIDs are not, and by how much is known wherever a node was counted. Between a finer and a coarser such node the ratio of
what is to what would be is interpolated, its logarithm by that of the product. A guess that is wrong costs a roll-up more, or a region that
is split once more; what is found and what is proved are the same (core/lattice/branch_and_bound.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, frexp, ldexp

import numpy as np

from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.losses.losses import sum_of_squares


class ExpectedSquareSums:
    """Guesses for the nodes above a root.

    Args:
        root: The root histogram.
        hierarchies: One per QID; further axes of the root are left out of account.
        levels: The levels of each QID that a step stands for, one list per QID or more.
    """

    def __init__(self, root: Histogram, hierarchies: Sequence[Hierarchy], levels: Sequence[Sequence[int]]) -> None:
        self._records = root.records
        whole = 2 * _logarithm(self._records)
        self._shared = [
            [_logarithm(sum_of_squares(_records(root, qid, hierarchy, level))) - whole for level in levels[qid]]
            for qid, hierarchy in enumerate(hierarchies)
        ]

    def rise(self, qid: int, low: int, high: int) -> float:
        """Return by how many powers of two the guess rises where a QID goes from one step to a coarser one."""
        return self._shared[qid][high] - self._shared[qid][low]

    def between(self, steps: Sequence[int], fine: tuple[Sequence[int], int], coarse: tuple[Sequence[int], int]) -> float:
        """Guess Σ over all cells |E|² of a node between two that were counted.

        Args:
            steps: The node.
            fine: The steps of a node that is nowhere coarser, and what its cells come to.
            coarse: The same of one that is nowhere finer.
        """
        low, here, high = self._apart(fine[0]), self._apart(steps), self._apart(coarse[0])
        below, above = self._ratio(low, fine[1]), self._ratio(high, coarse[1])
        way = (here - low) / (high - low) if high > low else 1.0
        return _power(here + below + (above - below) * way) + self._records

    def _apart(self, steps: Sequence[int]) -> float:
        """Return the logarithm of the pairs of records that would share a cell, each pair twice, if QIDs were independent."""
        return sum((shared[step] for shared, step in zip(self._shared, steps, strict=False)), start=2 * _logarithm(self._records))

    def _ratio(self, apart: float, squares: int) -> float:
        # One more of each: where cells hold one record each there are no pairs, and a handful of them says little.
        return _logarithm(squares - self._records + 1) - _logarithm(_power(apart) + 1)


def _records(root: Histogram, qid: int, hierarchy: Hierarchy, level: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    groups = hierarchy.rolled(root.node[qid], level)[root.codes[:, qid]]
    return np.bincount(groups, weights=root.counts).astype(np.int64)


def _logarithm(number: float) -> float:
    """Return a binary logarithm, straight between powers of two: what C libraries make of logarithms differs in the last bit, and the way
    that a search takes must not.
    """
    mantissa, exponent = frexp(number)
    return exponent - 2 + 2 * mantissa


def _power(logarithm: float) -> float:
    """Return the number that has a ``_logarithm``."""
    whole = floor(logarithm)
    return ldexp(1 + logarithm - whole, whole)
