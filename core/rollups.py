"""Roll-ups: from the histogram of a node to that of a coarser one (papers/skald.txt, III.B.2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.coding import Packing, Words
from core.hierarchy import Hierarchy
from core.histogram import Histogram, count_cells
from core.kernels import add_cells, mark_cells, number_cells, occupied
from core.lattice import Node

LARGE = 20_000
SHRINK = 8
DENSE_PER_CELL = 8
SMALL_DENSE = 1 << 22


def packing_of(node: Node, hierarchies: Sequence[Hierarchy]) -> Packing:
    """Returns how the groups at a node are packed into cells."""
    return Packing(tuple(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True)))


class Cells(NamedTuple):
    """The occupied cells of a node as roll-ups read them: the groups taken apart, counts as narrow as the records allow.

    Attributes:
        node: Level of each QID.
        codes: Shape (cells, QIDs), unsigned.
        counts: Shape (cells,), int32, or int64 from 2^31 records on.
    """

    node: Node
    codes: NDArray[np.unsignedinteger[Any]]
    counts: NDArray[np.signedinteger[Any]]


def roll_up(histogram: Histogram, node: Node, hierarchies: Sequence[Hierarchy]) -> Histogram:
    """Merges the cells of a histogram into those of a coarser node.

    Args:
        histogram: Cells of a node that is nowhere coarser than ``node``.
        node: Level of each QID.
        hierarchies: One per QID in job order.
    """
    packing = packing_of(node, hierarchies)
    return Histogram(node, packing, *_merged(Cells(histogram.node, histogram.codes, histogram.counts), node, packing, hierarchies))


def _worth(fine: Node, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns what each group at a finer node adds to the number of a cell, of all QIDs in a row, and where each QID starts."""
    maps = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(hierarchies, fine, node, strict=True)]
    starts = np.cumsum([0, *map(len, maps[:-1])], dtype=np.int64)
    return starts, np.concatenate([groups.astype(np.int64) * weight for groups, weight in zip(maps, packing.weights, strict=True)])


def _merged(cells: Cells, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> tuple[Words, NDArray[np.int64]]:
    if len(packing.words) > 1:
        maps = [hierarchy.rolled(fine, level) for hierarchy, fine, level in zip(hierarchies, cells.node, node, strict=True)]
        return count_cells(packing.pack_mapped(tuple(cells.codes.T), maps), packing.product, cells.counts.astype(np.int64))
    starts, worth = _worth(cells.node, node, packing, hierarchies)
    size = len(cells.counts)
    if packing.product <= max(2 * size, min(DENSE_PER_CELL * size, SMALL_DENSE), 1024):
        dense = np.zeros(packing.product, cells.counts.dtype)
        add_cells(cells.codes, starts, worth, cells.counts, dense)
        numbers, counts = occupied(dense)
        return (numbers,), counts
    return count_cells((number_cells(cells.codes, starts, worth),), packing.product, cells.counts.astype(np.int64))


class Projection:
    """Adds histograms of chunks at one node up to the histogram of a coarser one, in an array with an entry per possible cell.

    Args:
        fine: Node of what is added.
        node: Node of what comes out; its groups must combine to no more than one word.
        hierarchies: One per QID in job order.
        records: How many records there are at most.
    """

    def __init__(self, fine: Node, node: Node, hierarchies: Sequence[Hierarchy], records: int) -> None:
        self._node = node
        self._packing = packing_of(node, hierarchies)
        self._starts, self._worth = _worth(fine, node, self._packing, hierarchies)
        self._dense = np.zeros(self._packing.product, np.int32 if records < 1 << 31 else np.int64)

    def add(self, codes: NDArray[np.unsignedinteger[Any]], counts: NDArray[np.int64]) -> None:
        """Adds cells given by their groups, shape (cells, QIDs), and counts, shape (cells,)."""
        add_cells(codes, self._starts, self._worth, counts.astype(self._dense.dtype), self._dense)

    def result(self) -> Histogram:
        """Returns the sum; nothing can be added afterwards."""
        cells, counts = occupied(self._dense)
        self._dense = self._dense[:0]
        return Histogram(self._node, self._packing, (cells,), counts)


class Crowd:
    """Counts the distinct cells of a node, never too many: cells that share a mark count once (Whang et al. 1990, without the correction).

    Args:
        fine: Node of what is added.
        node: The node.
        hierarchies: One per QID in job order.
        most: How many distinct cells are asked about; eight marks are kept for each.
    """

    def __init__(self, fine: Node, node: Node, hierarchies: Sequence[Hierarchy], most: int) -> None:
        self._packing = packing_of(node, hierarchies)
        self._maps = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(hierarchies, fine, node, strict=True)]
        self._marks = np.zeros(1 << max(most * 8 - 1, 1).bit_length(), np.uint8)
        self.at_least = 0

    def add(self, codes: NDArray[np.unsignedinteger[Any]]) -> None:
        """Marks cells given by their groups, shape (cells, QIDs)."""
        words = self._packing.pack_mapped(tuple(codes.T), self._maps)
        cells = words[0]
        for word in words[1:]:
            # Wraps around, which loses nothing that a hash would keep.
            cells = cells * np.int64(0x5851F42D4C957F2D) + word
        self.at_least += mark_cells(cells, self._marks)


class RollUps:
    """Counts of nodes, each rolled up from the smallest finer histogram at hand.

    From a small histogram this is cheap; from a large one it is not. So a large one is first rolled up to a node between that many others
    share, and that is kept while there is room.

    Args:
        root: The root histogram.
        hierarchies: One per QID in job order.
        capacity: Cells that may be kept besides the root's, about 16 bytes each.
        decided: One entry per node above the root, in the lattice's shape, 0 where it may yet be asked for; read, never written.

    Attributes:
        made: How many histograms were rolled up.
    """

    def __init__(self, root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int, decided: NDArray[np.int8]) -> None:
        self._hierarchies = hierarchies
        self._sizes = [[len(labels) for labels in hierarchy.labels] for hierarchy in hierarchies]
        self._dtype = np.int32 if root.records < 1 << 31 else np.int64
        self._kept = [Cells(root.node, root.codes, root.counts.astype(self._dtype, copy=False))]
        self._nodes = np.array([root.node])
        self._capacity = capacity
        self._decided = decided
        self.made = 0

    def counts(self, node: Node) -> NDArray[np.int64]:
        """Returns the records per occupied cell of a node at or above the root's, shape (cells,)."""
        base = self._base(node)
        if base.node == node:
            return base.counts.astype(np.int64)
        self.made += 1
        return _merged(base, node, packing_of(node, self._hierarchies), self._hierarchies)[1]

    def _base(self, node: Node) -> Cells:
        """Returns a histogram from which the node is cheap, making those between that are worth it."""
        finer = np.flatnonzero((self._nodes <= np.array(node)).all(axis=1))
        index = min(finer, key=lambda index: len(self._kept[index].counts))
        base = self._kept[index]
        if index:
            # What is used goes to the end; what was not used for longest is dropped first.
            self._kept.append(self._kept.pop(index))
            self._nodes = np.array([kept.node for kept in self._kept])
        while len(base.counts) > LARGE:
            between = self._between(base, node)
            if between == node:
                break
            base = self._keep(base, between)
        return base

    def _between(self, base: Cells, node: Node) -> Node:
        """Returns a node on the way with surely an eighth of the cells, below as many undecided nodes as can be."""
        step = list(base.node)
        sizes = [self._sizes[qid][level] for qid, level in enumerate(step)]
        while prod(sizes) * SHRINK > len(base.counts) and step != list(node):
            served = self._undecided_above(step)
            best, most = -1, -1.0
            for qid, level in enumerate(step):
                if level < node[qid]:
                    still = self._undecided_above([*step[:qid], level + 1, *step[qid + 1 :]])
                    gain = log(sizes[qid] / self._sizes[qid][level + 1]) / (1.01 - still / max(served, 1))
                    if gain > most:
                        best, most = qid, gain
            step[best] += 1
            sizes[best] = self._sizes[best][step[best]]
        return tuple(step)

    def _undecided_above(self, node: Sequence[int]) -> int:
        above = self._decided[tuple(slice(level - first, None) for level, first in zip(node, self._kept[0].node, strict=True))]
        return above.size - int(np.count_nonzero(above))

    def _keep(self, base: Cells, node: Node) -> Cells:
        packing = packing_of(node, self._hierarchies)
        words, counts = _merged(base, node, packing, self._hierarchies)
        made = Cells(node, packing.unpack(words), counts.astype(self._dtype))
        self.made += 1
        self._kept.append(made)
        while sum(len(kept.counts) for kept in self._kept[1:]) > self._capacity:
            # The root stays.
            del self._kept[1]
        self._nodes = np.array([kept.node for kept in self._kept])
        return made
