"""Phase 2's search: the best of all nodes that pass, without rolling up most of them (papers/skald.txt, III.B.2).

Predictive tagging finds which nodes pass. Among them the objective is minimised exactly: Σ over all cells |E|² is monotone and never above
DM* (eq. 4), so a node where it exceeds the best value found is cut, and everything coarser with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.coding import Packing
from core.hierarchy import Hierarchy
from core.histogram import Histogram, count_cells
from core.lattice import PASSES, Lattice, Node, tag
from core.losses import Loss, loss_of
from core.privacy import PrivacyModel

Objective = Literal["dm_star", "dm_all"]
LARGE = 20_000
KEPT_CELLS = 4_000_000


def roll_up(histogram: Histogram, node: Node, hierarchies: Sequence[Hierarchy]) -> Histogram:
    """Merges the cells of a histogram into those of a coarser node.

    Args:
        histogram: Cells of a node that is nowhere coarser than ``node``.
        node: Level of each QID.
        hierarchies: One per QID in job order.
    """
    packing = packing_of(node, hierarchies)
    maps = [hierarchy.rolled(fine, level) for hierarchy, fine, level in zip(hierarchies, histogram.node, node, strict=True)]
    words, counts = count_cells(packing.pack_mapped(histogram.groups, maps), packing.product, histogram.counts)
    return Histogram(node, packing, words, counts)


def packing_of(node: Node, hierarchies: Sequence[Hierarchy]) -> Packing:
    """Returns how the groups at a node are packed into cells."""
    return Packing(tuple(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True)))


class RollUps:
    """Histograms of nodes, each rolled up from the smallest finer one at hand.

    From a small histogram this is cheap; from a large one it is not. So a large one is first rolled up to a node between that many others
    share, and that is kept.

    Args:
        root: The root histogram.
        hierarchies: One per QID in job order.
        capacity: Cells that may be kept besides the root's.

    Attributes:
        made: How many histograms were rolled up.
    """

    def __init__(self, root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int) -> None:
        self._hierarchies = hierarchies
        self._kept = [root]
        self._nodes = np.array([root.node])
        self._capacity = capacity
        self.made = 0

    def at(self, node: Node) -> Histogram:
        """Returns the histogram of a node at or above the root's."""
        finer = np.flatnonzero((self._nodes <= np.array(node)).all(axis=1))
        base = min((self._kept[index] for index in finer), key=lambda kept: kept.cells)
        while base.cells > LARGE and base.node != node:
            base = self._rolled(base, self._between(base, node))
        return base if base.node == node else self._rolled(base, node)

    def _between(self, base: Histogram, node: Node) -> Node:
        """Returns a node on the way that surely has a quarter of the cells, coarsening the QIDs that shrink most first."""
        sizes = [[len(one.labels[level]) for level in pair] for one, *pair in zip(self._hierarchies, base.node, node, strict=True)]
        step = list(base.node)
        product = prod(fine for fine, _ in sizes)
        for qid in sorted(range(len(node)), key=lambda qid: sizes[qid][1] / sizes[qid][0]):
            step[qid] = node[qid]
            product = product // sizes[qid][0] * sizes[qid][1]
            if product * 4 <= base.cells:
                break
        return tuple(step)

    def _rolled(self, base: Histogram, node: Node) -> Histogram:
        made = roll_up(base, node, self._hierarchies)
        self.made += 1
        self._kept.append(made)
        while sum(kept.cells for kept in self._kept[1:]) > self._capacity:
            # The root stays; the oldest goes.
            del self._kept[1]
        self._nodes = np.array([kept.node for kept in self._kept])
        return made


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    Attributes:
        node: The best passing node.
        loss: Its losses.
        passing: How many nodes of the lattice pass.
        nodes: How many there are.
        evaluated: How many were rolled up.
        unexamined: Nodes not above the root that could still pass, and so could be better; 0 proves the node optimal.
    """

    node: Node
    loss: Loss
    passing: int
    nodes: int
    evaluated: int
    unexamined: int


@dataclass
class Search:
    """Searches the lattice above a root histogram.

    Attributes:
        root: The root histogram.
        hierarchies: One per QID in job order.
        model: What a class must satisfy.
        most_suppressed: How many records of the whole dataset may be suppressed.
        objective: ``dm_star`` (eq. 4) or ``dm_all`` (El Emam, ARX).
        kept_cells: Cells of rolled-up histograms that may be kept for further roll-ups, about 24 bytes each.
        losses: What was evaluated.
    """

    root: Histogram
    hierarchies: Sequence[Hierarchy]
    model: PrivacyModel
    most_suppressed: int
    objective: Objective = "dm_star"
    kept_cells: int = KEPT_CELLS
    losses: dict[Node, Loss] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lattice = Lattice(tuple(hierarchy.levels for hierarchy in self.hierarchies), self.root.node)
        self._roll_ups = RollUps(self.root, self.hierarchies, self.kept_cells)

    def run(self) -> Found | None:
        """Returns the best node, or None if not even the top passes.

        The best has the lowest objective; ties go to fewer suppressed records, then to better precision, then to the finest on the
        most important QID, so that the outcome does not depend on the order of the search.
        """
        tags = tag(self.lattice, self.passes)
        if not (tags == PASSES).any():
            return None
        best = self._minimise(tags == PASSES)
        passing = int((tags == PASSES).sum())
        return Found(best, self.losses[best], passing, self.lattice.nodes, self._roll_ups.made, self._unexamined(tags == PASSES))

    def passes(self, node: Node) -> bool:
        """Tells whether no more records than allowed are in classes that fail."""
        return self.evaluate(node).suppressed <= self.most_suppressed

    def evaluate(self, node: Node) -> Loss:
        """Returns the losses of a node, rolled up once."""
        if node not in self.losses:
            counts = self._roll_ups.at(node).counts
            self.losses[node] = loss_of(counts, self.model.fails(counts))
        return self.losses[node]

    def _rank(self, node: Node) -> tuple[int, int, int, Node]:
        loss = self.losses[node]
        value = loss.dm_star if self.objective == "dm_star" else loss.dm_all
        return value, loss.suppressed, int(self.lattice.imprecision[self.lattice.position(node)]), node

    def _minimise(self, passing: NDArray[np.bool_]) -> Node:
        open_nodes = passing.copy()
        bounds = np.zeros(self.lattice.shape)
        for node, loss in self.losses.items():
            self._bound(bounds, node, loss)
            open_nodes[self.lattice.position(node)] = False
        known = [node for node in self.losses if passing[self.lattice.position(node)]]
        best = min(map(self._rank, known))
        while True:
            # Equal bounds stay open: a tie may be better on suppression or precision.
            open_nodes &= bounds <= float(best[0])
            if not open_nodes.any():
                return best[3]
            # The lowest bound first; among equals argmin takes the finest in C order.
            node = self.lattice.at(int(np.where(open_nodes, bounds, np.inf).argmin()))
            self._bound(bounds, node, self.evaluate(node))
            open_nodes[self.lattice.position(node)] = False
            best = min(best, self._rank(node))

    def _bound(self, bounds: NDArray[np.float64], node: Node, loss: Loss) -> None:
        # One step down makes the float no larger than the integer, so that rounding never cuts a node that could win.
        above = bounds[self.lattice.above(node)]
        np.maximum(above, np.nextafter(float(loss.dm_all), 0), out=above)

    def _unexamined(self, passing: NDArray[np.bool_]) -> int:
        """Counts the nodes not above the root whose join with it passes: where the join fails, the finer node fails too."""
        if not any(self.lattice.root):
            return 0
        steps = [np.maximum(np.arange(levels) - first, 0) for levels, first in zip(self.lattice.levels, self.lattice.root, strict=True)]
        return int(passing[np.ix_(*steps)].sum()) - int(passing.sum())
