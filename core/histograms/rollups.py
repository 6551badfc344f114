"""Roll-ups: from the histogram of a node to that of a coarser one (papers/skald.txt, III.B.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.abreast import parts_abreast
from core.columns.coding import Packing, Words, places_among
from core.columns.kernels import add_cells, number_cells, number_distinct, occupied, sum_equal
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram, count_cells

LARGE = 20_000
SHRINK = 8
DENSE_PER_CELL = 8
SMALL_DENSE = 1 << 22
MOST_KEPT = 256


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


def places_in(coarse: Histogram, fine: Node, codes: NDArray[np.unsignedinteger[Any]], hierarchies: Sequence[Hierarchy]) -> NDArray[Any]:
    """Returns where among the cells of a histogram finer cells fall, all of which fall into one of them, shape (cells,).

    Args:
        coarse: The histogram, of some axes, the first ones.
        fine: Node of the finer cells; nowhere coarser.
        codes: Shape (cells, axes or more), the group of each axis.
        hierarchies: One per axis.
    """
    maps = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(hierarchies, fine, coarse.node, strict=False)]
    words = coarse.packing.pack_mapped(tuple(codes[:, : len(maps)].T), maps)
    return places_among(coarse.words, words, coarse.packing.product)


def worth_of(fine: Node, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns what each group at a finer node adds to the number of a cell, of all QIDs in a row, and where each QID starts.

    Args:
        fine: The finer node, which may have further axes.
        node: Level of each QID.
        packing: Of the node.
        hierarchies: One per QID.
    """
    maps = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(hierarchies, fine, node, strict=False)]
    starts = np.cumsum([0, *map(len, maps[:-1])], dtype=np.int64)
    return starts, np.concatenate([groups.astype(np.int64) * weight for groups, weight in zip(maps, packing.weights, strict=True)])


def _merged(cells: Cells, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> tuple[Words, NDArray[np.int64]]:
    if len(packing.words) > 1:
        maps = [hierarchy.rolled(fine, level) for hierarchy, fine, level in zip(hierarchies, cells.node, node, strict=True)]
        return count_cells(packing.pack_mapped(tuple(cells.codes.T), maps), packing.product, cells.counts.astype(np.int64))
    starts, worth = worth_of(cells.node, node, packing, hierarchies)
    if fits_array(packing, len(cells.counts)):

        def added(rows: slice) -> NDArray[np.signedinteger[Any]]:
            dense = np.zeros(packing.product, cells.counts.dtype)
            add_cells(cells.codes[rows], starts, worth, cells.counts[rows], dense)
            return dense

        # An array for each part: no more of them than take about as much as the cells themselves.
        dense, *others = parts_abreast(added, len(cells.counts), max(len(cells.counts) // packing.product, 1))
        for other in others:
            dense += other
        numbers, counts = occupied(dense)
        return (numbers,), counts
    return count_cells((number_cells(cells.codes, starts, worth),), packing.product, cells.counts.astype(np.int64))


def fits_array(packing: Packing, cells: int) -> bool:
    """Tells whether so many cells are best added into an array with an entry for each that there could be."""
    return len(packing.words) == 1 and packing.product <= max(2 * cells, min(DENSE_PER_CELL * cells, SMALL_DENSE), 1024)


def number_coarser(cells: Cells, node: Node, hierarchies: Sequence[Hierarchy]) -> tuple[NDArray[np.int64], int]:
    """Numbers the cells of a coarser node that each cell falls into, as many as there are, in the order in which they come first.

    Args:
        cells: Cells of a node that is nowhere coarser than ``node``, which may have further axes.
        node: Level of each axis.
        hierarchies: One per axis.

    Returns:
        The number of each cell, shape (cells,), and how many there are.
    """
    key = _keys(cells, node, packing_of(node, hierarchies), hierarchies)
    return key, number_distinct(key, _places(len(cells.counts)))


def _places(size: int) -> NDArray[np.signedinteger[Any]]:
    """Makes a hash table for so many cells."""
    return np.full(1 << (2 * size).bit_length(), -1, np.int32 if size < 1 << 31 else np.int64)


def _keys(cells: Cells, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> NDArray[np.int64]:
    """Returns what tells the cells of a coarser node apart, shape (cells,)."""
    starts, worth = worth_of(cells.node, node, packing, hierarchies)
    size, first = len(cells.counts), packing.words[0]
    key = number_cells(cells.codes[:, : len(first)], starts[: len(first)], worth)
    for word in packing.words[1:]:
        # Numbered anew, two words are no more than their distinct values combine to, and these are no more than the cells each.
        more = number_cells(cells.codes[:, word[0] : word[-1] + 1], starts[word[0] : word[-1] + 1], worth)
        number_distinct(key, _places(size))
        key *= number_distinct(more, _places(size))
        key += more
    return key


def _summed(
    cells: Cells, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]
) -> tuple[NDArray[np.int64], NDArray[np.signedinteger[Any]]]:
    """Returns, of each cell of a node, a row of ``cells`` that falls into it, and its count: a hash table in place of the sort."""
    return sum_equal(_keys(cells, node, packing, hierarchies), cells.counts, _places(len(cells.counts)))


class RollUps:
    """Counts of nodes, each rolled up from the smallest finer histogram at hand.

    From a small histogram this is cheap; from a large one it is not. So a large one is first rolled up to a node between that many others
    share, and that is kept while there is room.

    Args:
        root: The root histogram.
        hierarchies: One per QID in job order.
        capacity: Cells that may be kept besides the root's, about 16 bytes each.
        decided: One entry per node above the root, in the lattice's shape, 0 where it may yet be asked for; read, never written. Or, for
            a lattice too large for that, what tells how many nodes from a given one on may yet be asked for, about.

    Attributes:
        made: How many histograms were rolled up.
    """

    def __init__(
        self, root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int, decided: NDArray[np.int8] | Callable[[Sequence[int]], float]
    ) -> None:
        self._hierarchies = hierarchies
        self._sizes = [[len(labels) for labels in hierarchy.labels] for hierarchy in hierarchies]
        self._dtype = np.int32 if root.records < 1 << 31 else np.int64
        self._kept = [Cells(root.node, root.codes, root.counts.astype(self._dtype, copy=False))]
        self._nodes = np.array([root.node])
        self._capacity = capacity
        self._undecided_above = decided if callable(decided) else self._undecided_of(decided)
        self.made = 0

    def counts(self, node: Node, *, keep: bool = False) -> NDArray[np.int64]:
        """Returns the records per occupied cell of a node at or above the root's, shape (cells,), in an order that depends on the way.

        Args:
            node: Level of each QID.
            keep: Whether the histogram is worth keeping, because coarser nodes will be asked for; it is kept if it is much smaller than
                what it was rolled up from.
        """
        base = self._base(node)
        if base.node == node:
            return base.counts.astype(np.int64)
        self.made += 1
        packing = packing_of(node, self._hierarchies)
        if fits_array(packing, len(base.counts)):
            words, summed = _merged(base, node, packing, self._hierarchies)
            if keep and worth_keeping(base, summed):
                self._put(Cells(node, packing.unpack(words), summed.astype(self._dtype)))
            return summed
        rows, sums = _summed(base, node, packing, self._hierarchies)
        if keep and worth_keeping(base, sums):
            maps = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(self._hierarchies, base.node, node, strict=True)]
            codes = np.stack([groups[base.codes[rows, qid]] for qid, groups in enumerate(maps)], axis=1)
            self._put(Cells(node, codes.astype(base.codes.dtype), sums))
        return sums.astype(np.int64)

    def cells(self, node: Node, *, keep: bool = False) -> Histogram:
        """Returns the histogram of a node at or above the root's; arguments as for ``counts``."""
        base, packing = self._base(node), packing_of(node, self._hierarchies)
        if base.node == node:
            # Kept histograms are in any order.
            return Histogram(node, packing, *count_cells(packing.pack(tuple(base.codes.T)), packing.product, base.counts.astype(np.int64)))
        self.made += 1
        rolled = Histogram(node, packing, *_merged(base, node, packing, self._hierarchies))
        if keep and worth_keeping(base, rolled.counts):
            self._put(Cells(node, rolled.codes, rolled.counts.astype(self._dtype)))
        return rolled

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
        """Returns a node on the way with surely a small part of the cells, below as many undecided nodes as can be."""
        step = list(base.node)
        sizes = [self._sizes[qid][level] for qid, level in enumerate(step)]
        while prod(sizes) * self._shrink > len(base.counts) and step != list(node):
            served = self._undecided_above(step)
            best, most = -1, -1.0
            for qid, level in enumerate(step):
                if level < node[qid]:
                    still = self._undecided_above([*step[:qid], level + 1, *step[qid + 1 :]])
                    # Cells saved per share of nodes that could no longer be made from here; 1.01, because a step may lose none.
                    gain = log(sizes[qid] / self._sizes[qid][level + 1]) / (1.01 - still / max(served, 1))
                    if gain > most:
                        best, most = qid, gain
            step[best] += 1
            sizes[best] = self._sizes[best][step[best]]
        return tuple(step)

    def _undecided_of(self, decided: NDArray[np.int8]) -> Callable[[Sequence[int]], float]:
        first = self._kept[0].node

        def undecided_above(node: Sequence[int]) -> float:
            # Looked at anew each time: tags are written while the search goes on.
            above = decided[tuple(slice(level - start, None) for level, start in zip(node, first, strict=True))]
            return above.size - int(np.count_nonzero(above))

        return undecided_above

    def _keep(self, base: Cells, node: Node) -> Cells:
        packing = packing_of(node, self._hierarchies)
        words, counts = _merged(base, node, packing, self._hierarchies)
        made = Cells(node, packing.unpack(words), counts.astype(self._dtype))
        self.made += 1
        self._put(made)
        return made

    def _put(self, made: Cells) -> None:
        self._kept.append(made)
        while len(self._kept) > MOST_KEPT or sum(map(self._room, self._kept[1:])) > self._capacity:
            # The root stays.
            del self._kept[1]
        self._nodes = np.array([kept.node for kept in self._kept])

    @property
    def _shrink(self) -> int:
        """How many times fewer cells than its base a node on the way has at least."""
        return SHRINK

    def _room(self, kept: Cells) -> int:
        """Returns how much of the capacity a kept histogram takes."""
        return len(kept.counts)


def worth_keeping(base: Cells, counts: NDArray[np.signedinteger[Any]]) -> bool:
    """Tells whether a histogram is so much smaller than what it was rolled up from that keeping it pays."""
    return len(base.counts) > LARGE and 2 * len(counts) <= len(base.counts)
