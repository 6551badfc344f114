"""The objectives of the lattice search: computed from a node's class counts, or from prices.

The cost without suppression by prices is a sum over QIDs, known for every node before a cell is counted. Precision, both certainty
penalties and non-uniform entropy charge a record for each QID by the group that it is published with. So Σ over QIDs and groups of
price times marginal count needs the domains alone. It is monotone: a coarser group is never cheaper. A suppressed record costs no less
than a published one, so the sum is a lower bound of the cost with suppression too. A node whose bound is above the best cost is cut
with everything coarser, uncounted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.lattice.lattice import Lattice
from core.units.losses import Loss, group_penalties
from schemas.job.method import OBJECTIVES

Floats = NDArray[np.float64]
# Wider than the error of any sum of so few terms, narrower than any difference that matters: bounds err downwards.
ROUNDING = 1 - 1e-12


class NodeRegion(NamedTuple):
    """The figures of all nodes between two nodes, from which a lower bound is computed.

    The finer of the two was rolled up.

    Attributes:
        records: N, or the number of persons where the objective is of units and these are persons.
        most_suppressed: How many of them may be suppressed.
        k: Fewest records that the model lets a class have.
        alone: Whether the model is k-anonymity and nothing else.
        floor: Σ over all cells |E|² at the finest node, with |E|·k for cells of fewer than k.
        spared: By how much suppressing can lower ``floor`` at most.
        cells: At the finest node.
        least: Records that must be suppressed at the coarsest node, and ``least_fine`` at the finest.
        least_fine: See ``least``.
    """

    records: int
    most_suppressed: int
    k: int
    alone: bool
    floor: int
    spared: int
    cells: int
    least: int
    least_fine: int


@dataclass(frozen=True)
class Counting:
    """An objective computed from the class counts of a node; lower is better, and no value is negative.

    Attributes:
        value: Of a node: ``(loss, released, published classes)``.
        floor: What neither a node nor a coarser one is below: ``(loss, all, cells, most suppressed)``.
        growth: What grows from finer to coarser nodes as the value does, suppression apart: ``(loss, cells)``.
        region: A lower bound of all passing nodes of a region; ``floor`` of its finest node serves where there is none.
        sums_squares: Whether these bounds are made of Σ over all cells |E|².
        of_units: Whether what is released, and all there is, are in the unit of k: persons where they are named, each counted once in a
            class. Else they are records.
    """

    value: Callable[[Loss, int, int], int | float]
    floor: Callable[[Loss, int, int, int], int | float]
    growth: Callable[[Loss, int], float] = lambda loss, cells: float(loss.dm_all)
    region: Callable[[NodeRegion], int | float] | None = None
    sums_squares: bool = False
    of_units: bool = False


@dataclass(frozen=True)
class Pricing:
    """An objective that charges each record for its published group in each QID; lower is better.

    No price is negative.

    Attributes:
        groups: The price of each group of a level, shape (groups,): ``(hierarchy, domain, level)``. Never lower at a coarser level. Left
            out where ``levels`` says it of all groups alike and a suppressed record costs no more than a published one.
        levels: The cost of each level of all hierarchies, shapes (levels,), without regard to counts.
        withheld: The price of a suppressed value.
        relative: Whether what the values themselves cost is taken off.
        is_reported: Whether the value is published under the objective's own name, because no loss of every release says it. Only one that
            follows from labels may be: two sources with the same labels publish the same.
    """

    groups: Callable[[Hierarchy, Domain, int], Floats] | None = None
    levels: Callable[[Sequence[Hierarchy]], list[Floats]] | None = None
    withheld: Callable[[Domain], float] = lambda domain: 1.0
    relative: bool = False
    is_reported: bool = False


def _squares(region: NodeRegion) -> int | float:
    """Return a lower bound of DM* in a region; s is the number of suppressed records.

    s² is as large as the records that must be suppressed at the coarsest node make it (core/lattice/branch_and_bound.py).
    """
    most = min(region.most_suppressed, region.least_fine) if region.alone else region.most_suppressed
    # s · (s − k) is a parabola with its least at k/2; for odd k both whole neighbours give the same.
    suppressed = min(max(region.k // 2, region.least), most)
    more = suppressed * (suppressed - region.k)
    return max(_all_cells(region), region.floor + (more if region.alone else min(more, 0)))


def _all_cells(region: NodeRegion) -> int:
    return region.floor - region.spared


def _class_size(region: NodeRegion) -> float:
    return max(float(np.nextafter((region.records - region.most_suppressed) / region.cells, 0)), float(region.k))


DM_STAR = Counting(
    lambda loss, released, classes: loss.dm_star, lambda loss, records, cells, most: loss.dm_all, region=_squares, sums_squares=True
)
"""Σ over published classes |E|² + s² (papers/skald.txt, eq. 4)."""
DM_ALL = Counting(
    lambda loss, released, classes: loss.dm_all, lambda loss, records, cells, most: loss.dm_all, region=_all_cells, sums_squares=True
)
"""Σ over all cells |E|² (El Emam et al. 2009; ARX)."""
C_AVG = Counting(
    # Without the constant 1/k; coarser nodes have no more cells. A suppressed record takes no more than one person away, and who is left is
    # in one class at least.
    value=lambda loss, released, classes: released / classes if classes else np.inf,
    floor=lambda loss, units, cells, most: (units - most) / cells,
    growth=lambda loss, cells: 1 / cells,
    region=_class_size,
    of_units=True,
)
"""Mean class size, in the unit of k."""


def _steps(hierarchies: Sequence[Hierarchy]) -> list[Floats]:
    steps = Lattice.allowed(hierarchies).steps
    return [np.arange(hierarchy.levels, dtype=np.float64) * step for hierarchy, step in zip(hierarchies, steps, strict=True)]


@dataclass(frozen=True, eq=False)
class LevelPrices:
    """The cost of each level on each axis of the lattice; lower is better.

    Attributes:
        base: Per axis, shape (levels,): the cost of all records if none is suppressed.
        extra: Per axis and level, shape (groups,): what suppressing a record of the group adds; empty if nothing.
        weights: Of each QID; empty if they all count alike.
    """

    base: tuple[Floats, ...]
    extra: tuple[tuple[Floats, ...], ...] = ()
    weights: tuple[float, ...] = ()

    def floor(self, lattice: Lattice) -> Floats:
        """Return the lower bound of every node's cost, in the lattice's shape.

        It is rounded down a little, so that a node that could win is never cut.
        """
        total = np.zeros((1,) * len(self.base))
        spans = zip(self.base, lattice.root, lattice.levels, strict=True)
        for costs in np.ix_(*(cost[first:levels] for cost, first, levels in spans)):
            total = total + costs
        # A factor below 1 would lift what is negative.
        return np.where(total > 0, total * ROUNDING, total)

    def weighted(self, weights: Sequence[float]) -> LevelPrices:
        """Return level prices in which each QID's prices are multiplied by its weight.

        Args:
            weights: Shape (QIDs,); further axes cost nothing anyway.
        """
        if not weights:
            return self
        each = (*weights, *(1.0,) * (len(self.base) - len(weights)))
        base = tuple(cost * weight for cost, weight in zip(self.base, each, strict=True))
        extra = tuple(tuple(more * weight for more in levels) for levels, weight in zip(self.extra, each, strict=False))
        return LevelPrices(base, extra, tuple(weights))

    def cost(self, node: Node) -> float:
        """Return the cost of a node if no record is suppressed.

        The penalty of suppression is in ``core.lattice.node_classes``.
        """
        total = 0.0
        for cost, level in zip(self.base, node, strict=True):
            total += float(cost[level])
        return total


def prices_of(
    objective: str, hierarchies: Sequence[Hierarchy], domains: Sequence[Domain], sensitive_axis_count: int = 0,
    left: Histogram | None = None, weights: Sequence[float] = (),
) -> LevelPrices | None:  # fmt: skip
    """Return the level prices of an objective, or None for an objective of class counts.

    Args:
        objective: Its name in a job.
        hierarchies: One per QID in job order.
        domains: One per QID, with the counts of all records.
        sensitive_axis_count: How many axes are of sensitive columns, which cost nothing.
        left: Cells of the records whose cost is asked for, all of them if left out. Nodes below theirs have no cost.
        weights: What a QID's cost is multiplied by, one per QID; empty if they all count alike.
    """
    priced = objective_of(objective)
    if not isinstance(priced, Pricing):
        return None
    free, nothing = np.zeros(1), tuple((np.zeros(0),) for _ in range(sensitive_axis_count))
    if priced.levels is not None:
        return LevelPrices((*priced.levels(hierarchies), *(free,) * sensitive_axis_count)).weighted(weights)
    assert priced.groups is not None
    base: list[Floats] = []
    extra: list[tuple[Floats, ...]] = []
    for qid, (hierarchy, domain) in enumerate(zip(hierarchies, domains, strict=True)):
        first, records = _first_level(domain, qid, left)
        costs, more = [0.0] * first, [np.zeros(len(labels)) for labels in hierarchy.labels[:first]]
        for level in range(first, hierarchy.levels):
            penalties = priced.groups(hierarchy, domain, level)
            costs.append(float(np.dot(penalties, np.bincount(hierarchy.rolled(first, level), weights=records, minlength=len(penalties)))))
            more.append(priced.withheld(domain) - penalties)
        if priced.relative:
            # What the finest level cannot tell is lost already.
            costs = [cost - costs[first] for cost in costs]
        base.append(np.array(costs))
        extra.append(tuple(more))
    return LevelPrices((*base, *(free,) * sensitive_axis_count), (*extra, *nothing)).weighted(weights)


def value_shares(hierarchy: Hierarchy, domain: Domain, level: int) -> Floats:
    """Return each group's number of values divided by the domain's, 0 for groups of one value."""
    sizes = np.bincount(hierarchy.groups[level])
    return np.where(sizes > 1, sizes / max(domain.size, 1), 0.0)


def bits(hierarchy: Hierarchy, domain: Domain, level: int) -> Floats:
    """Return log2 of the number of source records in each group, shape (groups,).

    The loss of a record against its value is the difference from this figure at level 0.
    """
    values = np.append(domain.counts, domain.nulls)[: domain.size]
    return np.log2(np.bincount(hierarchy.groups[level], weights=values))


def _first_level(domain: Domain, qid: int, left: Histogram | None) -> tuple[int, NDArray[np.int64]]:
    """Return the finest level at which records are counted, and the records of each of its groups."""
    if left is None:
        return 0, np.append(domain.counts, domain.nulls)[: domain.size]
    return left.node[qid], np.bincount(left.codes[:, qid], weights=left.counts, minlength=left.packing.sizes[qid]).astype(np.int64)


PRECISION = Pricing(levels=_steps)
"""1 − Prec (Sweeney 2002)."""
GCP = Pricing(groups=group_penalties)
"""Certainty penalty, range over range (Xu et al. 2006)."""
GCP_COVERED = Pricing(groups=value_shares)
"""Certainty penalty, distinct values covered over those of the domain, for every type."""
ENTROPY = Pricing(groups=bits, withheld=lambda domain: log2(domain.records), relative=True)
"""Non-uniform entropy, in bits (De Waal and Willenborg 1999; Gionis and Tassa 2009)."""


def objective_of(name: str) -> Counting | Pricing:
    """Return the objective that has the given name in a job."""
    found: Counting | Pricing = OBJECTIVES[name].code.load()
    return found


WEIGHTED = "weighted"
"""Under which a release tells what was minimised where QIDs have weights."""


def named_objective_value(name: str, value: float, value_count: int, prices: LevelPrices | None) -> dict[str, float]:
    """Return ``{objective: a node's cost per record and QID}``; empty if every release reports it.

    Args:
        value_count: Records times QIDs.
        prices: Of the objective, if it has any; with weights their mean is returned, under a name of its own.
    """
    objective = objective_of(name)
    if not isinstance(objective, Pricing) or objective.groups is None:
        return {}
    if prices and prices.weights:
        return {WEIGHTED: value * len(prices.weights) / (value_count * sum(prices.weights))}
    return {name: value / value_count} if objective.is_reported else {}
