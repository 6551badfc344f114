"""The lattice of generalisation nodes and predictive tagging over it.

papers/skald.txt, II.B and III.B; El Emam et al. 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm, prod

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.hierarchies.hierarchy import Hierarchy

UNKNOWN, PASSES, FAILS, CUT = np.int8(0), np.int8(1), np.int8(-1), np.int8(2)
LARGEST = 1 << 18
"""Nodes of the largest lattice that is held as arrays with an entry per node; core/lattice/branch_and_bound.py searches larger ones."""


@dataclass(frozen=True)
class Lattice:
    """The lattice of all nodes at or above a root.

    Attributes:
        levels: Number of levels of each QID's hierarchy.
        root: The finest node; (0, …, 0) unless memory forces a coarser one.
        highest: The last level of each whole hierarchy, where the coarsest of them are left out; precision is a share of these.
    """

    levels: tuple[int, ...]
    root: Node
    highest: tuple[int, ...] = ()

    @classmethod
    def from_exact_values(cls, levels: Sequence[int]) -> Lattice:
        """Return the lattice whose root is the node of exact values (level 0 of every QID)."""
        return cls(tuple(levels), (0,) * len(levels))

    @classmethod
    def allowed(cls, hierarchies: Sequence[Hierarchy]) -> Lattice:
        """Return the lattice of the nodes that hierarchies permit to be published."""
        return cls.above_root(hierarchies, tuple(hierarchy.least for hierarchy in hierarchies))

    @classmethod
    def above_root(cls, hierarchies: Sequence[Hierarchy], root: Node) -> Lattice:
        """Return the lattice of the nodes at or above a root."""
        return cls(tuple(hierarchy.levels for hierarchy in hierarchies), root, tuple(hierarchy.steps for hierarchy in hierarchies))

    @cached_property
    def top(self) -> Node:
        """The coarsest node: the last level of every QID, one group each unless coarse levels are left out."""
        return tuple(level - 1 for level in self.levels)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels per QID from the root up."""
        return tuple(level - first for level, first in zip(self.levels, self.root, strict=True))

    @property
    def nodes(self) -> int:
        """Number of nodes of the lattice."""
        return prod(self.shape)

    @cached_property
    def heights(self) -> NDArray[np.int16]:
        """Height above the root of each node, in the lattice's shape."""
        return sum(np.ix_(*(np.arange(size, dtype=np.int16) for size in self.shape)), start=np.zeros((1,) * len(self.shape), np.int16))

    def position(self, node: Node) -> tuple[int, ...]:
        """Return the index of a node in arrays of the lattice's shape."""
        return tuple(level - first for level, first in zip(node, self.root, strict=True))

    def at(self, position: Sequence[int] | int) -> Node:
        """Return the node at an array index, given per axis or flat."""
        index = self.axes_of(position) if isinstance(position, int) else position
        return tuple(step + first for step, first in zip(index, self.root, strict=True))

    def axes_of(self, flat: int) -> tuple[int, ...]:
        """Convert the flat index of a node to its index on each axis."""
        return tuple(int(step) for step in np.unravel_index(flat, self.shape))

    def above(self, node: Node) -> tuple[slice, ...]:
        """Return the slices that select a node and all coarser nodes."""
        return tuple(slice(step, None) for step in self.position(node))

    def below(self, node: Node) -> tuple[slice, ...]:
        """Return the slices that select a node and all finer nodes."""
        return tuple(slice(None, step + 1) for step in self.position(node))

    def __iter__(self) -> Iterator[Node]:
        return (self.at(position) for position in np.ndindex(self.shape))

    @cached_property
    def imprecision(self) -> NDArray[np.int64]:
        """Σ level / highest level of each node, in units of 1 / ``unit`` and in the lattice's shape.

        As whole multiples of 1 / ``unit``, so that ties are exact.
        """
        total = np.zeros((1,) * len(self.shape), np.int64)
        for axis, (first, size) in enumerate(zip(self.root, self.shape, strict=True)):
            shape = [1] * len(self.shape)
            shape[axis] = size
            total = total + ((first + np.arange(size, dtype=np.int64)) * self.steps[axis]).reshape(shape)
        return total

    @cached_property
    def unit(self) -> int:
        """The least common multiple of the highest levels, the denominator of ``imprecision``."""
        return lcm(*(max(highest, 1) for highest in self.highest or self.top))

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The increase of ``imprecision`` by one level of each QID.

        Cached, because with hundreds of QIDs a node would take as many divisions.
        """
        return tuple(self.unit // max(highest, 1) for highest in self.highest or self.top)

    def precision(self, node: Node) -> Fraction:
        """Return Sweeney's Prec = 1 − mean(level / highest level) of a node as an exact fraction.

        A QID with one level counts as not generalised.
        """
        # In floats sums that are equal differ in the last bit (0.1 + 0.2 is not 0.3), and that would decide ties.
        return 1 - Fraction(self.imprecision_of(node), self.unit * len(self.levels))

    def imprecision_of(self, node: Node) -> int:
        """Return Σ level / highest level of one node, in units of 1 / ``unit``."""
        return sum(level * step for level, step in zip(node, self.steps, strict=True))


def join(first: Node, second: Node) -> Node:
    """Return the finest node that is at least as coarse as both nodes."""
    return tuple(map(max, first, second))


def middle_first(lattice: Lattice) -> NDArray[np.intp]:
    """Return the flat positions of all nodes, from the middle of the middle level outwards.

    A node in the middle decides most: it tags all nodes above it or all below it. The order is by the smaller of the two counts,
    largest first, ties by position, so that it depends on the lattice alone.

    Returns:
        Shape (nodes,), flat positions.
    """
    up, down = (np.ones((1,) * len(lattice.shape)) for _ in range(2))
    for axis, size in enumerate(lattice.shape):
        shape = [1] * len(lattice.shape)
        shape[axis] = size
        # As floats, because only the order matters and a product of many axes must not wrap round.
        down = down * np.arange(1, size + 1, dtype=float).reshape(shape)
        up = up * np.arange(size, 0, -1, dtype=float).reshape(shape)
    # Quicksort leaves equal keys in an order that differs between versions and processors.
    return np.argsort(-np.minimum(up, down).ravel(), kind="stable")


def tag(lattice: Lattice, passes: Callable[[Node], bool], tags: NDArray[np.int8] | None = None) -> NDArray[np.int8]:
    """Label every node as passing or failing by predictive tagging, in ``tags`` if given; return the tags.

    What is coarser than a passing node passes, what is finer than a failing one fails.

    From the middle of the middle level outwards, each node not yet labelled is taken with a chain of such nodes below and above it, and the
    chain is bisected: a chain of n nodes costs log2(n) answers (the idea of Flash; Kohlmayer et al. 2012).

    Args:
        lattice: The nodes.
        passes: A predicate that is monotone: true at a node, it is true at every coarser one.
        tags: Where to write the labels while they are found; what is labelled stays as it is. A new array if left out.

    Returns:
        PASSES or FAILS in the lattice's shape. ``passes`` is called only on nodes that no earlier answer decides.
    """
    tags = np.full(lattice.shape, UNKNOWN) if tags is None else tags
    flat = tags.reshape(-1)
    for position in middle_first(lattice):
        while flat[position] == UNKNOWN:
            middle = lattice.axes_of(int(position))
            chain = [*reversed(_unknown_path(tags, middle, -1)), middle, *_unknown_path(tags, middle, 1)]
            low, high = 0, len(chain)
            while low < high:
                centre = (low + high) // 2
                node = lattice.at(chain[centre])
                if passes(node):
                    _label(tags[lattice.above(node)], PASSES)
                    high = centre
                else:
                    _label(tags[lattice.below(node)], FAILS)
                    low = centre + 1
    return tags


def _label(tags: NDArray[np.int8], label: np.int8) -> None:
    tags[tags == UNKNOWN] = label


def _unknown_path(tags: NDArray[np.int8], start: tuple[int, ...], step: int) -> list[tuple[int, ...]]:
    """Return the longest path of unlabelled positions from a start, one level of one QID at a time."""
    path: list[tuple[int, ...]] = []
    current = start
    while True:
        for axis, size in enumerate(tags.shape):
            level = current[axis] + step
            neighbour = (*current[:axis], level, *current[axis + 1 :])
            if 0 <= level < size and tags[neighbour] == UNKNOWN:
                path.append(neighbour)
                current = neighbour
                break
        else:
            return path


def most_precise(lattice: Lattice, tags: NDArray[np.int8]) -> Node | None:
    """Return the passing node of best precision, or None if no node passes.

    Ties go to the node that is finest on the first, most important QID.
    """
    if not (tags == PASSES).any():
        return None
    # argmin takes the first of equals, and the first in C order is finest on the most important QID.
    return lattice.at(int(np.where(tags == PASSES, lattice.imprecision, np.iinfo(np.int64).max).argmin()))


BYTES_PER_BIN = 16
BYTES_PER_CELL = 64
BYTES_PER_CODE = 4


def bins(hierarchies: Sequence[Hierarchy], node: Node) -> int:
    """Return the number of bins of a dense histogram at a node (N_data of eq. 1).

    It is the product of the axes, and one bin for suppressed records.
    """
    return prod(hierarchy.axes[level] for hierarchy, level in zip(hierarchies, node, strict=True)) + 1


def most_cells(hierarchies: Sequence[Hierarchy], node: Node, record_count: int) -> int:
    """Return an upper bound on a node's occupied cells: its groups' product or the records, if fewer."""
    return min(record_count, prod(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True)))


def dense_root(hierarchies: Sequence[Hierarchy], memory: int) -> Node | None:
    """Return the most precise node (in huge lattices a fine one) whose dense histogram fits; or None.

    Its N_data is at most N_RAM (eq. 2). None if even the top is too large. In a lattice too large to hold it is the node of
    ``fitting_node``, which may be less precise.

    Args:
        hierarchies: One per QID in job order.
        memory: Bytes; N_RAM = memory / 16 (eq. 3).
    """
    lattice = Lattice.allowed(hierarchies)
    budget = memory // BYTES_PER_BIN
    if lattice.nodes > LARGEST:
        return fitting_node(lattice, lambda node: bins(hierarchies, node), budget)
    return most_precise(lattice, tag(lattice, lambda node: bins(hierarchies, node) <= budget))


def occupied_root(hierarchies: Sequence[Hierarchy], memory: int, record_count: int) -> Node | None:
    """Return the most precise node (in huge lattices a fine one) whose cells surely fit; or None.

    It is the root of ``root: occupied``. None if even the top is too large. In a lattice too large to hold it is the node of
    ``fitting_node``, which may be less precise.

    A cell costs up to 64 bytes while the lattice is searched: codes, count, packed key and the sort of a roll-up.

    Args:
        hierarchies: One per QID in job order.
        memory: Bytes.
        record_count: Number of records N.
    """
    lattice = Lattice.allowed(hierarchies)
    if lattice.nodes > LARGEST:
        # So many QIDs make the codes of a cell the larger part of it.
        wide = memory // (BYTES_PER_CELL + BYTES_PER_CODE * len(hierarchies))
        return fitting_node(lattice, lambda node: most_cells(hierarchies, node, record_count), wide)
    budget = memory // BYTES_PER_CELL
    return most_precise(lattice, tag(lattice, lambda node: most_cells(hierarchies, node, record_count) <= budget))


def fitting_node(lattice: Lattice, size: Callable[[Node], int], budget: int) -> Node | None:
    """Return a fine node whose size fits the budget, in a lattice too large to hold, or None.

    It is the finest node if that fits, else a node that has no finer neighbour which fits. From the top, one level at a time is made
    finer: the one that multiplies the size least for the precision that it gains, ties by the order of importance. The most precise of
    all nodes that fit may be another.

    Args:
        lattice: The nodes that may be published.
        size: What a node takes; no less for a finer one.
        budget: The largest size that fits.
    """
    finest = lattice.root
    if size(finest) <= budget:
        return finest
    node = lattice.top
    if size(node) > budget:
        return None
    while True:
        now = size(node)
        finer = [(*node[:axis], level - 1, *node[axis + 1 :]) for axis, level in enumerate(node) if level > finest[axis]]
        # A step gains 1/levels of precision, so its price is the factor to the power of levels; as a fraction, so that ties are ties.
        fitting = [(Fraction(size(next_), now) ** _levels_of_step(lattice, node, next_), place, next_) for place, next_ in enumerate(finer)]
        fitting = [step for step in fitting if size(step[2]) <= budget]
        if not fitting:
            return node
        node = min(fitting)[2]


def _levels_of_step(lattice: Lattice, node: Node, finer: Node) -> int:
    """Return the highest level of the axis on which two nodes differ.

    A step along it gains a precision of one over that.
    """
    return next(highest for highest, high, low in zip(lattice.highest or lattice.top, node, finer, strict=True) if high != low)
