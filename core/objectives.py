"""Objectives whose cost without suppression is a sum over QIDs, known for every node before a cell is counted.

Precision, both certainty penalties and non-uniform entropy charge a record for each QID by the group that it is published with, so that Σ
over QIDs and groups of price times marginal count needs the domains alone. It is monotone: a coarser group is never cheaper. A suppressed
record costs no less than a published one, so the sum is a lower bound of the cost with suppression too, and a node whose bound is above the
best cost is cut with everything coarser, uncounted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from core.domains import Domain
from core.hierarchy import Hierarchy
from core.lattice import Lattice, Node
from core.losses import group_penalties

Floats = NDArray[np.float64]
ROUNDING = 1 - 1e-12
PRICED = ("precision", "gcp", "gcp_covered", "entropy")


@dataclass(frozen=True, eq=False)
class Prices:
    """What the levels of each axis cost; lower is better.

    Attributes:
        base: Per axis, shape (levels,): the cost of all records if none is suppressed.
        extra: Per axis and level, shape (groups,): what suppressing a record of the group adds; empty if nothing.
    """

    base: tuple[Floats, ...]
    extra: tuple[tuple[Floats, ...], ...] = ()

    def floor(self, lattice: Lattice) -> Floats:
        """Returns the lower bound of every node, in the lattice's shape, rounded down a little: a node that could win is never cut."""
        total = np.zeros((1,) * len(self.base))
        for costs in np.ix_(*(cost[first:] for cost, first in zip(self.base, lattice.root, strict=True))):
            total = total + costs
        return np.where(total > 0, total * ROUNDING, total)

    def cost(self, node: Node, codes: NDArray[np.unsignedinteger], lost: NDArray[np.int64]) -> float:
        """Returns the cost of a node.

        Args:
            node: Level of each axis.
            codes: Shape (classes, QIDs or more): the groups of the suppressed classes.
            lost: Shape (classes,), their records.
        """
        total = 0.0
        for cost, level in zip(self.base, node, strict=True):
            total += float(cost[level])
        if self.extra and len(lost):
            columns = zip(self.extra, node, codes.T, strict=False)
            total += float(np.dot(lost, sum((extra[level][column] for extra, level, column in columns), start=np.zeros(len(lost)))))
        return total


def prices_of(objective: str, hierarchies: Sequence[Hierarchy], domains: Sequence[Domain], others: int = 0) -> Prices | None:
    """Returns the prices of an objective, or None for one that needs counts.

    Args:
        objective: ``precision`` (Sweeney 2002, 1 − Prec), ``gcp`` (Xu et al. 2006: range over range, else values covered over values),
            ``gcp_covered`` (values covered over values for every type), ``entropy`` (non-uniform entropy, in bits: De Waal and
            Willenborg 1999; Gionis and Tassa 2009), or another.
        hierarchies: One per QID in job order.
        domains: One per QID, with the counts of all records.
        others: Axes of sensitive columns, which cost nothing.
    """
    if objective not in PRICED:
        return None
    free, nothing = np.zeros(1), tuple((np.zeros(0),) for _ in range(others))
    if objective == "precision":
        unit = Lattice.whole([hierarchy.levels for hierarchy in hierarchies]).unit
        steps = [np.arange(hierarchy.levels, dtype=np.float64) * (unit // max(hierarchy.top, 1)) for hierarchy in hierarchies]
        return Prices((*steps, *(free,) * others))
    base: list[Floats] = []
    extra: list[tuple[Floats, ...]] = []
    for hierarchy, domain in zip(hierarchies, domains, strict=True):
        values = np.append(domain.counts, domain.nulls)[: domain.size]
        costs, more = [], []
        for level in range(hierarchy.levels):
            counts = np.bincount(hierarchy.groups[level], weights=values)
            if objective == "entropy":
                costs.append(_bits(counts) - _bits(values))
                more.append(log2(domain.records) - np.log2(counts))
            else:
                penalties = group_penalties(hierarchy, domain, level) if objective == "gcp" else covered(hierarchy, domain, level)
                costs.append(float(np.dot(penalties, counts)))
                more.append(1 - penalties)
        base.append(np.array(costs))
        extra.append(tuple(more))
    return Prices((*base, *(free,) * others), (*extra, *nothing))


def covered(hierarchy: Hierarchy, domain: Domain, level: int) -> Floats:
    """Returns the distinct values of each group over those of the domain, 0 for a single one: shape (groups,)."""
    sizes = np.bincount(hierarchy.groups[level])
    return np.where(sizes > 1, sizes / max(domain.size, 1), 0.0)


def _bits(counts: NDArray[np.int64] | Floats) -> float:
    """Returns Σ n log2 n."""
    return float(np.dot(counts, np.log2(counts)))
