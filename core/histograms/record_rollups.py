"""Roll-ups of record counts, in dense grids where these are small enough, else as sparse cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords, Packing
from core.columns.data_parallel import parts_in_parallel
from core.columns.domains import Node
from core.columns.kernels import Counts, add_numbers, number_cells, occupied, sum_equal_cells
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import (
    Cells,
    dense_cell_sums,
    fits_array,
    group_weights,
    hash_table,
    narrow_counts,
    number_coarser,
    packing_of,
    summed_cells,
)
from core.histograms.histogram import Histogram, count_cells
from core.histograms.kernels import fold_axis, fold_last, occupied_counts
from core.histograms.projections import Bundles
from core.histograms.rollups import Decided, RollUps, pays_to_cache

LAST_AXIS = 3
"""Times the cost of another axis: its entries are added one by one, where those of others are in whole rows."""
LEAST_ENTRIES = 1 << 20
"""Entries of a part for which a thread is worth its start."""


class CountGrid(NamedTuple):
    """The counts of all possible cells of a node, in a dense array.

    Attributes:
        node: Level of each QID.
        packing: How the groups at that node make up the number of a cell; of one word.
        counts: Shape (product of the groups,), by that number.
    """

    node: Node
    packing: Packing
    counts: NDArray[np.signedinteger[Any]]


def fold_grid(grid: CountGrid, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> CountGrid:
    """Roll a dense grid of counts up to a coarser node, axis by axis.

    Args:
        grid: Of a node that is nowhere coarser than ``node``.
        node: Level of each QID.
        packing: Of the node.
        hierarchies: One per QID.
    """
    sizes, counts = list(grid.packing.sizes), grid.counts
    for axis in _order(sizes, packing.sizes):
        to = hierarchies[axis].rolled(grid.node[axis], node[axis]).astype(np.int64)
        counts = _fold(counts.reshape(prod(sizes[:axis]), sizes[axis], prod(sizes[axis + 1 :])), to, packing.sizes[axis])
        sizes[axis] = packing.sizes[axis]
    return CountGrid(node, packing, counts)


def _order(fine: Sequence[int], coarse: Sequence[int]) -> list[int]:
    """Return the axes that become shorter, in the order of least cost.

    Each axis has to read what the one before it leaves.
    """
    costs = [LAST_AXIS if axis == len(fine) - 1 else 1 for axis in range(len(fine))]
    saved = [(1 - to / of) / cost for of, to, cost in zip(fine, coarse, costs, strict=True)]
    return sorted((axis for axis, share in enumerate(saved) if share), key=lambda axis: -saved[axis])


def _fold(counts: Counts, to: NDArray[np.int64], groups: int) -> Counts:
    """Sum the middle axis of a three-dimensional array by group; return it one-dimensional."""
    outer, _, inner = counts.shape
    if inner == 1:
        out: Counts = np.zeros((outer, groups), counts.dtype)
        table = counts.reshape(outer, len(to))

        def last(rows: slice) -> None:
            fold_last(table[rows], to, out[rows])

        parts_in_parallel(last, outer, least=-(-LEAST_ENTRIES // len(to)))
        return out.ravel()
    whole: Counts = np.zeros((outer, groups, inner), counts.dtype)

    # What is alone on the outer axis is shared out along the inner one.
    def wide(part: slice) -> None:
        fold_axis(counts, to, whole, 0, outer, part.start, part.stop)

    def deep(part: slice) -> None:
        fold_axis(counts, to, whole, part.start, part.stop, 0, inner)

    shared, fold = (outer, deep) if outer > 1 else (inner, wide)
    parts_in_parallel(fold, shared, least=-(-LEAST_ENTRIES * shared // counts.size))
    return whole.ravel()


FOLDED = 8
"""Entries of a grid that cost as much to roll up as an occupied cell does."""
PER_ROOM = 4
"""Entries of a grid that take as much memory as a cell that is kept."""
BYTES = 16
"""Bytes of a cell that is kept, as the capacity counts them."""
FIRST_SHARE = 32
"""Which part of the capacity the first grid on a way may take: the finer it is, the more nodes need no other, but several must fit."""
HASHED = 3
"""Cells that take as much memory as one while it is summed in a hash table."""
PER_ENTRY = 16
"""Cells for each entry of the table that takes a bundle of QIDs apart: the table is made anew for each roll-up."""
MOST_BUNDLE = 1 << 16
"""Groups of a bundle at most: its table stays in the cache of a core, and its codes are half as wide."""
LEAST_BUNDLE = 1 << 10
"""Entries of such a table that cost nothing beside the rest of a roll-up."""
AT_HAND = 1 << 14
"""Cells that are taken apart at a time."""
SHRINK = 4
"""How many times smaller than a grid another on the way from it is at least."""


BundledCodes = tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.int64], NDArray[np.int64]]
"""Codes of cells, shape (cells, bundles), where each bundle starts in the table of what they are worth, and the table."""


@dataclass(frozen=True)
class SparseCells:
    """The occupied cells of a node of which few are occupied, in any order.

    Attributes:
        node: Level of each QID.
        packing: How the groups at that node make up a cell.
        words: One or more arrays of shape (cells,).
        counts: Shape (cells,), as narrow as the records allow.
    """

    node: Node
    packing: Packing
    words: PackedWords
    counts: NDArray[np.signedinteger[Any]]

    @property
    def nbytes(self) -> int:
        """The bytes of the cells, packed and unpacked together."""
        a_cell = (
            self.counts.itemsize + sum(word.itemsize for word in self.words) + self.qid_bundles.dtype.itemsize * self.qid_bundles.number
        )
        return a_cell * len(self.counts)

    @cached_property
    def qid_bundles(self) -> Bundles:
        """Neighbouring QIDs that are unpacked as one code, to save look-ups; a word may hold several."""
        return Bundles(self.packing, most=min(max(len(self.counts) // PER_ENTRY, LEAST_BUNDLE), MOST_BUNDLE))

    @cached_property
    def bundled(self) -> NDArray[np.unsignedinteger[Any]]:
        """The bundle codes of the cells, shape (bundles, cells)."""
        codes = np.empty((self.qid_bundles.number, len(self.counts)), self.qid_bundles.dtype)

        def take_apart(some: slice) -> None:
            # A few at a time, so that what is put the other way round is at hand.
            for first in range(some.start, some.stop, AT_HAND):
                rows = slice(first, min(first + AT_HAND, some.stop))
                codes[:, rows] = self.qid_bundles.codes(tuple(word[rows] for word in self.words)).T

        parts_in_parallel(take_apart, len(self.counts))
        return codes

    def varying_codes(self, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> BundledCodes:
        """Return codes of the bundles that vary in a coarser node, where their weights start, and the weights.

        Bundles whose QIDs have one group there are left out.

        Args:
            node: Level of each QID; its cells are one word.
            packing: Of the node.
            hierarchies: One per QID.
        """
        places = self.qid_bundles.varying_bundles(packing.sizes)
        step = places[1] - places[0] if len(places) > 1 else 1
        evenly = range(places[0], places[-1] + 1, step)
        # Any two of three are evenly spaced, and nothing is copied.
        rows = self.bundled[places[0] : places[-1] + 1 : step] if list(evenly) == places else self.bundled[places]
        return rows.T, *self.qid_bundles.bundle_weights(group_weights(self.node, node, packing, hierarchies), places)


Form = CountGrid | SparseCells


class RecordRollUps(RollUps[Form]):
    """Cache of histograms from which the records of nodes are counted by roll-up.

    Arguments and attributes as for ``RollUps``.

    Args:
        root: The root histogram.
        hierarchies: See there.
        capacity: See there.
        decided: See there.
    """

    def __init__(self, root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int, decided: Decided) -> None:
        super().__init__(SparseCells(root.node, root.packing, root.words, narrow_counts(root)), hierarchies, capacity, decided)

    def counts(self, node: Node, *, keep: bool = False) -> NDArray[np.int64]:
        """Return each occupied cell's number of records at a node, in no fixed order; ``keep`` may cache them.

        The node is at or above the root's.

        Args:
            node: Level of each QID.
            keep: Whether the histogram is worth keeping, because coarser nodes will be asked for; it is kept if it is much smaller than
                what it was rolled up from.
        """
        return occupied_counts(self._at(node, keep=keep).counts)

    def cells(self, node: Node, *, keep: bool = False) -> Histogram:
        """Return the histogram of a node at or above the root's.

        Arguments as for ``counts``.
        """
        made, packing = self._at(node, keep=keep), packing_of(node, self._hierarchies)
        if isinstance(made, CountGrid):
            found, counts = occupied(made.counts)
            return Histogram(node, packing, (found,), counts)
        # What was summed in a hash table is in the order in which it was met.
        return Histogram(node, packing, *count_cells(made.words, packing.product, made.counts.astype(np.int64)))

    def count_cells(self, node: Node, *, keep: bool = False) -> tuple[NDArray[np.int64], Callable[[NDArray[np.bool_]], Cells]]:
        """Return each cell's number of records at a node, and a function that unpacks cells by a mask.

        Records are as in ``counts``; the mask has shape (cells,).
        """
        made = self._at(node, keep=keep)

        def chosen(which: NDArray[np.bool_]) -> Cells:
            rows = np.flatnonzero(made.counts)[which]
            words = (rows,) if isinstance(made, CountGrid) else tuple(word[rows] for word in made.words)
            return Cells(node, made.packing.unpack(words), made.counts[rows])

        return occupied_counts(made.counts), chosen

    def numbered(self, node: Node) -> tuple[Cells, NDArray[np.int64], NDArray[np.int64]]:
        """Return the root's cells, each one's class number at a node, and each class's number of records."""
        cells = self._root_cells
        self.made += cells.node != node
        numbers, size = number_coarser(cells, node, self._hierarchies)
        counts = np.zeros(size, np.int64)
        add_numbers(numbers, cells.counts.astype(np.int64), counts)
        return cells, numbers, counts

    @cached_property
    def _root_cells(self) -> Cells:
        return _taken_apart(self._kept[0])

    def _at(self, node: Node, *, keep: bool) -> Form:
        base = self._base(node)
        if base.node == node:
            return base
        self.made += 1
        made = self._rolled(base, node)
        if keep and pays_to_cache(self._work(base), self._work(made)):
            self._put(made, base)
        return made

    def _rolled(self, base: Form, node: Node) -> Form:
        packing = packing_of(node, self._hierarchies)
        if isinstance(base, CountGrid):
            return fold_grid(base, node, packing, self._hierarchies)
        if fits_array(packing, len(base.counts)):
            codes, starts, worth = base.varying_codes(node, packing, self._hierarchies)
            return CountGrid(node, packing, dense_cell_sums(codes, base.counts, starts, worth, packing.product))
        # What is kept makes room for the table.
        self._let_go(max(self._capacity - HASHED * len(base.counts), 0))
        if len(packing.words) == 1:
            keys = number_cells(*base.varying_codes(node, packing, self._hierarchies))
            rows, sums = sum_equal_cells(keys, base.counts, hash_table(len(keys)))
            return SparseCells(node, packing, (keys[rows],), sums)
        cells = self._root_cells if base is self._kept[0] else _taken_apart(base)
        return SparseCells(node, packing, *summed_cells(cells, node, packing, self._hierarchies))

    def _keep(self, base: Form, node: Node) -> Form:
        made = self._rolled(base, node)
        self.made += 1
        self._put(made, base)
        return made

    def _most_between(self, base: Form) -> int:
        if isinstance(base, CountGrid):
            return len(base.counts) // SHRINK
        return max(super()._most_between(base), min(len(base.counts), PER_ROOM * self._capacity // FIRST_SHARE))

    def _work(self, kept: Form) -> int:
        return len(kept.counts) // FOLDED if isinstance(kept, CountGrid) else len(kept.counts)

    def _room(self, kept: Form) -> int:
        return len(kept.counts) // PER_ROOM if isinstance(kept, CountGrid) else kept.nbytes // BYTES


def _taken_apart(form: Form) -> Cells:
    """Return the occupied cells of a grid or of packed cells by the groups of each QID."""
    if isinstance(form, CountGrid):
        number, counts = occupied(form.counts)
        return Cells(form.node, form.packing.unpack((number,)), counts)
    return Cells(form.node, form.packing.unpack(form.words), form.counts)
