"""Exact search of one lattice over the quasi-identifiers of all tables (DESIGN.md, section 13).

It proves that its result is the optimum.

A coarser node makes coarser histories, so that failing persons never become more: predictive tagging holds (papers/skald.txt, III.B). The
cost of a node with no person left out is known from the values alone. It is no less at a coarser node, and it is a lower bound of the
node's cost. So a node whose bound is above the best cost is cut, and all others are decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.lattice.lattice import CUT, FAILS, PASSES, UNKNOWN, Lattice, tag

Bounds = NDArray[np.float64]


@dataclass(frozen=True)
class NodeCost:
    """Cost of a node: failing persons, persons left out, and loss.

    Attributes:
        failing: Persons who break what coarser nodes never break more of; decides what passes.
        suppressed: Persons who would be left out, as many or more.
        loss: The cost with them left out; only of nodes that may be chosen.
    """

    failing: int
    suppressed: int
    loss: float


@dataclass(frozen=True)
class BestNode:
    """Best node over all tables, with its cost and the numbers of nodes.

    Attributes:
        node: A level for each quasi-identifier of each table.
        cost: What it costs.
        evaluated: How many nodes had their histories counted.
    """

    node: Node
    cost: NodeCost
    evaluated: int
    nodes: int


def best_node(
    lattice: Lattice, floor: Bounds, parts: Sequence[Sequence[int]], most_left_out: int, cost_of_node: Callable[[Node], NodeCost]
) -> BestNode | None:
    """Return the node of least cost among those that pass, or None if none passes.

    Ties go to fewer persons left out, then to better precision, then to the order of the job.

    Args:
        floor: In the lattice's shape, what no node and nothing coarser is below.
        parts: The axes of each part of the tables that is tagged alone first.
        most_left_out: Persons who may be left out.
        cost_of_node: Counts the histories of a node.
    """
    search = _Search(lattice, floor, most_left_out, cost_of_node)
    if not search.passes(lattice.top):
        return None
    for axes in parts:
        search.tag_alone(axes)
    while (start := search.cheapest(search.tags == UNKNOWN)) is not None:
        search.bisect(start)
    while (start := search.cheapest(search.tags == PASSES)) is not None:
        search.passes(lattice.at(start))
        search.tags[start] = CUT
    if search.best is None:
        return None
    return BestNode(search.best, search.known[search.best], len(search.known), lattice.nodes)


class _Search:
    """State of a lattice search: tags, costs of evaluated nodes, and the best node.

    Attributes:
        known: What each node costs whose histories were counted.
        tags: In the lattice's shape; CUT of nodes that pass and were counted.
        best: The best node so far; None before there is one.
    """

    def __init__(self, lattice: Lattice, floor: Bounds, most: int, look: Callable[[Node], NodeCost]) -> None:
        """Start a search with all nodes untagged."""
        self.known: dict[Node, NodeCost] = {}
        self.tags = np.full(lattice.shape, UNKNOWN)
        self.best: Node | None = None
        self._lattice, self._floor, self._most, self._look = lattice, floor, most, look

    def passes(self, node: Node) -> bool:
        """Return whether a node passes, and tag the coarser or finer nodes with the same result."""
        if node not in self.known:
            self.known[node] = self._look(node)
        if self.known[node].failing > self._most:
            self._label(self._lattice.below(node), FAILS)
            return False
        self._label(self._lattice.above(node), PASSES)
        self.tags[self._lattice.position(node)] = CUT
        if self.known[node].suppressed <= self._most:
            self.best = node if self.best is None else min(self.best, node, key=self._rank)
        return True

    def _label(self, slices: tuple[slice, ...], label: np.int8) -> None:
        """Tag the nodes of a part of the lattice that are not tagged yet."""
        part = self.tags[slices]
        part[part == UNKNOWN] = label

    def _rank(self, node: Node) -> tuple[float, int, int, Node]:
        """Return the sort key of a node: loss, persons left out, imprecision, and the node itself."""
        cost = self.known[node]
        return cost.loss, cost.suppressed, self._lattice.imprecision_of(node), node

    def tag_alone(self, axes: Sequence[int]) -> None:
        """Tag the nodes that fail by one part alone, with all other axes at their top.

        Such nodes fail whatever the levels of the other axes are.
        """
        lattice = self._lattice
        if not axes or len(axes) == len(lattice.levels):
            return
        part = Lattice(tuple(lattice.levels[axis] for axis in axes), tuple(lattice.root[axis] for axis in axes))

        def with_others_at_top(node: Node) -> Node:
            level = dict(zip(axes, node, strict=True))
            return tuple(level.get(axis, top) for axis, top in enumerate(lattice.top))

        tag(part, lambda node: self.passes(with_others_at_top(node)))

    def cheapest(self, wanted: NDArray[np.bool_]) -> tuple[int, ...] | None:
        """Return the position of the wanted node with the lowest bound; None if it exceeds the best cost."""
        bounds = np.where(wanted, self._floor, np.inf).reshape(-1)
        flat = int(bounds.argmin())
        loss = np.inf if self.best is None else self.known[self.best].loss
        # Where nothing is wanted all bounds are infinite.
        return self._lattice.axes_of(flat) if np.isfinite(bounds[flat]) and bounds[flat] <= loss else None

    def bisect(self, start: tuple[int, ...]) -> None:
        """Decide a chain of ever coarser nodes by bisection, from a position along the lowest bounds."""
        chain = [start]
        while step := self._next_above(chain[-1]):
            chain.append(step)
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            if self.passes(self._lattice.at(chain[middle])):
                high = middle
            else:
                low = middle + 1

    def _next_above(self, position: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the untagged node one level coarser with the lowest bound; None if there is none."""
        above = [(*position[:axis], position[axis] + 1, *position[axis + 1 :]) for axis in range(len(position))]
        unknown = [one for axis, one in enumerate(above) if one[axis] < self.tags.shape[axis] and self.tags[one] == UNKNOWN]
        return min(unknown, key=lambda one: float(self._floor[one]), default=None)
