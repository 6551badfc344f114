"""Phase 1's second half: the finest node whose histogram the job's memory can hold (papers/skald.txt, III.A and III.B.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod

from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.lattice.lattice import LARGEST, Lattice, most_precise, tag

BYTES_PER_BIN = 16
BYTES_PER_CELL = 64
BYTES_PER_CODE = 4


def bins(hierarchies: Sequence[Hierarchy], node: Node) -> int:
    """Returns N_data of eq. 1: the product of the axes at a node, and one bin for suppressed records."""
    return prod(hierarchy.axes[level] for hierarchy, level in zip(hierarchies, node, strict=True)) + 1


def most_cells(hierarchies: Sequence[Hierarchy], node: Node, records: int) -> int:
    """Returns an upper bound on the occupied cells of a node: no more than its groups combine to, no more than there are records."""
    return min(records, prod(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True)))


def dense_root(hierarchies: Sequence[Hierarchy], memory: int) -> Node | None:
    """Returns the root of ``root: dense``: the most precise node with N_data ≤ N_RAM (eq. 2), or None if even the top is too large.

    Args:
        hierarchies: One per QID in job order.
        memory: Bytes; N_RAM = memory / 16 (eq. 3).
    """
    lattice = Lattice.allowed(hierarchies)
    budget = memory // BYTES_PER_BIN
    if lattice.nodes > LARGEST:
        return extended(lattice, lambda node: bins(hierarchies, node), budget)
    return most_precise(lattice, tag(lattice, lambda node: bins(hierarchies, node) <= budget))


def occupied_root(hierarchies: Sequence[Hierarchy], memory: int, records: int) -> Node | None:
    """Returns the root of ``root: occupied``: the most precise node whose occupied cells surely fit.

    A cell costs up to 64 bytes while the lattice is searched: codes, count, packed key and the sort of a roll-up.

    Args:
        hierarchies: One per QID in job order.
        memory: Bytes.
        records: Number of records N.
    """
    lattice = Lattice.allowed(hierarchies)
    if lattice.nodes > LARGEST:
        # So many QIDs make the codes of a cell the larger part of it.
        wide = memory // (BYTES_PER_CELL + BYTES_PER_CODE * len(hierarchies))
        return extended(lattice, lambda node: most_cells(hierarchies, node, records), wide)
    budget = memory // BYTES_PER_CELL
    return most_precise(lattice, tag(lattice, lambda node: most_cells(hierarchies, node, records) <= budget))


def extended(lattice: Lattice, size: Callable[[Node], int], budget: int) -> Node | None:
    """Returns a fine node that fits, of a lattice too large to hold: the finest if it does, else one that no finer neighbour of fits.

    From the top, one level at a time is made finer: that which multiplies the size least for the precision that it gains, ties by the order
    of importance. The most precise of all nodes that fit may be another.

    Args:
        lattice: The nodes that may be published.
        size: What a node takes; no less for a finer one.
        budget: What there is.
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
        fitting = [(Fraction(size(next_), now) ** _levels(lattice, node, next_), place, next_) for place, next_ in enumerate(finer)]
        fitting = [step for step in fitting if size(step[2]) <= budget]
        if not fitting:
            return node
        node = min(fitting)[2]


def _levels(lattice: Lattice, node: Node, finer: Node) -> int:
    """Returns the levels of the axis on which two nodes differ: a step along it gains a precision of one over that."""
    return next(highest for highest, high, low in zip(lattice.highest or lattice.top, node, finer, strict=True) if high != low)
