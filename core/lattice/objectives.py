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

from core.columns.domains import Domain
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.lattice.lattice import Lattice
from core.losses.losses import group_penalties

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


def prices_of(
    objective: str, hierarchies: Sequence[Hierarchy], domains: Sequence[Domain], others: int = 0, left: Histogram | None = None
) -> Prices | None:
    """Returns the prices of an objective, or None for one that needs counts.

    Args:
        objective: ``precision`` (Sweeney 2002, 1 − Prec), ``gcp`` (Xu et al. 2006: range over range, else values covered over values),
            ``gcp_covered`` (values covered over values for every type), ``entropy`` (non-uniform entropy, in bits: De Waal and
            Willenborg 1999; Gionis and Tassa 2009), or another.
        hierarchies: One per QID in job order.
        domains: One per QID, with the counts of all records.
        others: Axes of sensitive columns, which cost nothing.
        left: Cells of the records whose cost is asked for, all of them if left out. Nodes below theirs have no cost.
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
    for qid, (hierarchy, domain) in enumerate(zip(hierarchies, domains, strict=True)):
        first, records = _first_level(domain, qid, left)
        costs, more = [0.0] * first, [np.zeros(len(labels)) for labels in hierarchy.labels[:first]]
        for level in range(first, hierarchy.levels):
            if objective == "entropy":
                penalties, withheld = bits(hierarchy, domain, level), log2(domain.records)
            else:
                penalties = group_penalties(hierarchy, domain, level) if objective == "gcp" else covered(hierarchy, domain, level)
                withheld = 1.0
            costs.append(float(np.dot(penalties, np.bincount(hierarchy.rolled(first, level), weights=records, minlength=len(penalties)))))
            more.append(withheld - penalties)
        if objective == "entropy":
            # What the finest level cannot tell is lost already.
            costs = [cost - costs[first] for cost in costs]
        base.append(np.array(costs))
        extra.append(tuple(more))
    return Prices((*base, *(free,) * others), (*extra, *nothing))


def covered(hierarchy: Hierarchy, domain: Domain, level: int) -> Floats:
    """Returns the distinct values of each group over those of the domain, 0 for a single one: shape (groups,)."""
    sizes = np.bincount(hierarchy.groups[level])
    return np.where(sizes > 1, sizes / max(domain.size, 1), 0.0)


def bits(hierarchy: Hierarchy, domain: Domain, level: int) -> Floats:
    """Returns log2 of the records of each group in the whole source, shape (groups,): what a record loses against its value is the
    difference to that at level 0.
    """
    values = np.append(domain.counts, domain.nulls)[: domain.size]
    return np.log2(np.bincount(hierarchy.groups[level], weights=values))


def _first_level(domain: Domain, qid: int, left: Histogram | None) -> tuple[int, NDArray[np.int64]]:
    """Returns the finest level that records are counted at, and how many there are of each of its groups."""
    if left is None:
        return 0, np.append(domain.counts, domain.nulls)[: domain.size]
    return left.node[qid], np.bincount(left.codes[:, qid], weights=left.counts, minlength=left.packing.sizes[qid]).astype(np.int64)
