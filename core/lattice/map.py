"""The status of every lattice node after a search, and the part of it that a picture shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.lattice.lattice import FAILS, Lattice

STATUSES = ("fails", "passes", "cut", "unexamined")
FAILED, PASSED, BOUNDED, UNEXAMINED = (np.int8(number) for number in range(len(STATUSES)))
BARRED = np.int8(-1)
"""A node that the job does not allow, because it publishes values as they are; it is no part of a picture."""
MOST_IN_A_ROW, MOST_AWAY = 12, 3
Statuses = NDArray[np.int8]


@dataclass(frozen=True)
class DrawnNode:
    """A node of the lattice picture, with its levels and status.

    The status is ``fails``, ``passes``, ``cut`` or ``unexamined``.
    """

    node: Node
    status: str


@dataclass(frozen=True)
class LatticeMap:
    """The counts and nodes shown in a picture of the lattice; it contains no value of the data.

    Attributes:
        name: Of the job.
        qids: Names of the QIDs in job order.
        levels: Number of levels of each.
        node: The chosen node.
        heights: For each height from 0 up, how many nodes are of each status, by name.
        drawn: Nodes that are drawn one by one, by height.
        whole: Whether these are all nodes, and not the neighbourhood of the chosen one.
    """

    name: str
    qids: tuple[str, ...]
    levels: tuple[int, ...]
    node: Node
    heights: tuple[dict[str, int], ...]
    drawn: tuple[DrawnNode, ...]
    whole: bool


def statuses_of(tags: NDArray[np.int8], evaluated: Mapping[Node, bool], lattice: Lattice) -> Statuses:
    """Return the status of each node above a root: passed, failed or cut by the bound.

    A node that was rolled up passes or fails by its own count; of the others, tagging says which fail, and those that could not be better
    than the best were cut by the bound.

    Args:
        tags: In the lattice's shape, PASSES, FAILS, CUT or UNKNOWN.
        evaluated: Of each node that was rolled up, whether no more records than allowed are suppressed there.
        lattice: The nodes.
    """
    statuses = np.where(tags == FAILS, FAILED, BOUNDED)
    for node, admitted in evaluated.items():
        # Tags know the monotone part of a model only; a count knows all of it.
        statuses[lattice.position(node)] = PASSED if admitted else FAILED
    return statuses


def complete_lattice_statuses(statuses: Statuses, passing: NDArray[np.bool_], lattice: Lattice, allowed: Node) -> Statuses:
    """Extend statuses above a root to all nodes: failed if the join with the root fails, else unexamined.

    Where the join with the root fails, the finer node fails too; other nodes are unexamined. ``allowed`` is the finest node that may be
    published.
    """
    steps = [np.maximum(np.arange(levels) - first, 0) for levels, first in zip(lattice.levels, lattice.root, strict=True)]
    known = np.where(passing[np.ix_(*steps)], UNEXAMINED, FAILED)
    whole = np.full(known.shape, BARRED)
    part = tuple(slice(level, None) for level in allowed)
    whole[part] = known[part]
    whole[tuple(slice(first, None) for first in lattice.root)] = statuses
    return whole


def map_of(name: str, qids: Sequence[str], statuses: Statuses, node: Node) -> LatticeMap:
    """Build the map of a lattice picture from the statuses of all nodes.

    Args:
        name: Of the job.
        qids: Names of the QIDs.
        statuses: In the shape of the whole lattice of the QIDs.
        node: The chosen node.
    """
    lattice = Lattice.from_exact_values(statuses.shape)
    heights, allowed = lattice.heights.astype(np.int64), statuses != BARRED
    counts = np.bincount((heights * len(STATUSES) + statuses)[allowed], minlength=(int(heights.max()) + 1) * len(STATUSES))
    rows = tuple(dict(zip(STATUSES, row, strict=True)) for row in counts.reshape(-1, len(STATUSES)).tolist())
    whole = max(sum(row.values()) for row in rows) <= MOST_IN_A_ROW
    shown = allowed if whole else allowed & _neighbourhood(lattice, node)
    positions = sorted(np.argwhere(shown).tolist(), key=lambda position: (sum(position), [-step for step in position]))
    drawn = tuple(DrawnNode(tuple(position), STATUSES[statuses[tuple(position)]]) for position in positions)
    return LatticeMap(name, tuple(qids), statuses.shape, node, rows, drawn, whole)


def _neighbourhood(lattice: Lattice, node: Node) -> NDArray[np.bool_]:
    """Return a mask of the nodes above and below a node that fit in the picture.

    They are one to three levels away, as many as fit in a row.
    """
    shown = np.zeros(lattice.shape, np.bool_)
    for sign, side in ((1, lattice.above(node)), (-1, lattice.below(node))):
        comparable = np.zeros(lattice.shape, np.bool_)
        comparable[side] = True
        distance = sign * (lattice.heights.astype(np.int64) - sum(node))
        for radius in range(MOST_AWAY + 1):
            row = comparable & (distance == radius)
            if radius > 1 and int(row.sum()) > MOST_IN_A_ROW:
                break
            shown |= row
    return shown
