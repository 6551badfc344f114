"""Phase 1's second half: the finest node whose histogram the job's memory can hold (papers/skald.txt, III.A and III.B.1)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from core.hierarchy import Hierarchy
from core.lattice import Lattice, Node, most_precise, tag

BYTES_PER_BIN = 16
BYTES_PER_CELL = 64


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
    lattice = Lattice.whole([hierarchy.levels for hierarchy in hierarchies])
    budget = memory // BYTES_PER_BIN
    return most_precise(lattice, tag(lattice, lambda node: bins(hierarchies, node) <= budget))


def occupied_root(hierarchies: Sequence[Hierarchy], memory: int, records: int) -> Node | None:
    """Returns the root of ``root: occupied``: the most precise node whose occupied cells surely fit.

    A cell costs up to 64 bytes while the lattice is searched: codes, count, packed key and the sort of a roll-up.

    Args:
        hierarchies: One per QID in job order.
        memory: Bytes.
        records: Number of records N.
    """
    lattice = Lattice.whole([hierarchy.levels for hierarchy in hierarchies])
    budget = memory // BYTES_PER_CELL
    return most_precise(lattice, tag(lattice, lambda node: most_cells(hierarchies, node, records) <= budget))
