"""Projection of chunk histograms at the finest node onto a coarser root; sizes of combinations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords, Packing, finder_of_known_cells
from core.columns.data_parallel import LEAST_ROWS, parts_in_parallel
from core.columns.domains import Node
from core.columns.kernels import Codes, add_cells, mark_cells, number_cells, occupied, unpack_cells
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import group_weights, packing_of
from core.histograms.histogram import COMPACT_KEYS, Histogram, count_cells, merge_parts
from core.histograms.kernels import tally_runs

BUNDLE = 1 << 19


class Bundles:
    """Groups of neighbouring QIDs whose codes are combined to one number, to save digits and look-ups.

    Args:
        packing: How cells are packed.
        maps: Per QID, what each of its codes is in the coding of what comes out; the code itself if left out.
        most: How many groups a bundle combines to at most. Its table is made anew for each node that comes out, which must cost less than
            reading the cells.
    """

    def __init__(self, packing: Packing, maps: Sequence[NDArray[np.integer[Any]]] | None = None, most: int = BUNDLE) -> None:
        self._packing = packing
        self._maps = maps
        self._bundles: list[list[list[int]]] = []
        for word in packing.words:
            bundles: list[list[int]] = [[]]
            for qid in word:
                if bundles[-1] and prod(packing.sizes[other] for other in [*bundles[-1], qid]) > most:
                    bundles.append([])
                bundles[-1].append(qid)
            self._bundles.append(bundles)

    @property
    def number(self) -> int:
        """How many look-ups a cell needs: one per bundle of neighbouring QIDs."""
        return sum(map(len, self._bundles))

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The type of codes: uint16, or uint32 where a bundle has more than 2^16 codes."""
        return np.dtype(np.uint16 if all(size <= 1 << 16 for sizes in self._sizes for size in sizes) else np.uint32)

    @property
    def _sizes(self) -> list[list[int]]:
        return [[prod(self._packing.sizes[qid] for qid in bundle) for bundle in bundles] for bundles in self._bundles]

    def codes(self, words: PackedWords) -> NDArray[np.unsignedinteger[Any]]:
        """Unpack cells into the codes of their bundles, shape (cells, bundles)."""
        codes = np.empty((len(words[0]), self.number), self.dtype)
        first = 0
        for word, sizes in zip(words, self._sizes, strict=True):
            unpack_cells(word, np.array(sizes, np.int64), first, codes)
            first += len(sizes)
        return codes

    def varying_bundles(self, sizes: Sequence[int]) -> list[int]:
        """Return the positions of bundles whose code can differ between cells of a node; at least one.

        Args:
            sizes: Groups of each QID.
        """
        flat = [bundle for bundles in self._bundles for bundle in bundles]
        return [place for place, bundle in enumerate(flat) if any(sizes[qid] > 1 for qid in bundle)] or [0]

    def bundle_weights(
        self, of_qids: Sequence[NDArray[np.int64]], chosen_bundles: Sequence[int] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each bundle's weights start, and the radix weights of all its codes, for some bundles.

        The weight of a code is the sum of the weights of its QIDs' groups.

        Args:
            of_qids: Per QID, shape (groups,).
            chosen_bundles: Of the bundles that are asked about; all if left out.
        """
        tables = []
        flat = [bundle for bundles in self._bundles for bundle in bundles]
        for bundle in flat if chosen_bundles is None else [flat[place] for place in chosen_bundles]:
            table = np.zeros(1, np.int64)
            for qid in bundle:
                of_codes = of_qids[qid] if self._maps is None else of_qids[qid][self._maps[qid]]
                table = np.add.outer(table, of_codes).ravel()
            tables.append(table)
        return np.cumsum([0, *map(len, tables[:-1])], dtype=np.int64), np.concatenate(tables)


class GroupWeights:
    """The radix weights of groups, as tables for bundles of QIDs.

    Args:
        of_qids: Per QID, shape (groups,).
    """

    def __init__(self, of_qids: Sequence[NDArray[np.int64]]) -> None:
        self._of_qids = of_qids
        self._of: tuple[Bundles, tuple[NDArray[np.int64], NDArray[np.int64]]] | None = None

    def tables(self, bundles: Bundles) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each bundle's weights start, and the radix weights of all bundle codes in one array."""
        # Chunks that are coded alike come with the same bundles.
        if self._of is None or self._of[0] is not bundles:
            self._of = bundles, bundles.bundle_weights(self._of_qids)
        return self._of[1]


class Projection:
    """Sum of chunk histograms as the histogram of a coarser node, in a dense array.

    Args:
        fine: Node of what is added.
        node: Node of what comes out; its groups must combine to no more than one word.
        hierarchies: One per QID in job order.
        records: How many records there are at most.
    """

    def __init__(self, fine: Node, node: Node, hierarchies: Sequence[Hierarchy], records: int) -> None:
        self._node, self._packing = node, packing_of(node, hierarchies)
        self._worth = GroupWeights(group_weights(fine, node, self._packing, hierarchies))
        # No cell holds more than all records: half the width is half the memory of what is largest here.
        self._dense: NDArray[np.signedinteger[Any]] = np.zeros(self._packing.product, np.int32 if records < 1 << 31 else np.int64)

    def add(self, bundles: Bundles, codes: NDArray[np.unsignedinteger[Any]], counts: NDArray[np.int64]) -> None:
        """Add finer cells, as codes of shape (cells, bundles), with their counts to the coarser histogram."""
        add_cells(codes, *self._worth.tables(bundles), counts.astype(self._dense.dtype), self._dense)

    @property
    def cells(self) -> int:
        """The number of occupied cells of the sum."""
        return int(np.count_nonzero(self._dense))

    def result(self) -> Histogram:
        """Return the summed histogram and give up the array: a later ``add`` raises ``AttributeError``."""
        cells, counts = occupied(self._dense)
        # The array is the largest here. Kernels do not check bounds, so that no emptied one takes its place.
        del self._dense
        return Histogram(self._node, self._packing, (cells,), counts)


class SparseProjection:
    """Sum of chunk histograms as the histogram of a coarser node with few occupied cells.

    It is for nodes with more possible cells than fit the memory; see ``Projection``.

    Args:
        fine: Node of what is added.
        node: Node of what comes out.
        hierarchies: One per QID in job order.
    """

    def __init__(self, fine: Node, node: Node, hierarchies: Sequence[Hierarchy]) -> None:
        self._node, self._packing = node, packing_of(node, hierarchies)
        worth = group_weights(fine, node, self._packing, hierarchies)
        self._worths = [GroupWeights([each if qid in word else 0 * each for qid, each in enumerate(worth)]) for word in self._packing.words]
        self._parts: list[tuple[PackedWords, NDArray[np.int64]]] = []

    def add(self, bundles: Bundles, codes: NDArray[np.unsignedinteger[Any]], counts: NDArray[np.int64]) -> None:
        """Add finer cells, as codes of shape (cells, bundles), with their counts to the coarser histogram."""
        words = tuple(number_cells(codes, *worth.tables(bundles)) for worth in self._worths)
        self._parts.append(count_cells(words, self._packing.product, counts))
        # Chunks share cells: merged now and then, what waits takes no more room than the sum and a few million rows.
        if sum(len(part) for _, part in self._parts) > COMPACT_KEYS and len(self._parts) > 1:
            self._parts = [merge_parts(self._parts, self._packing.product)]

    @property
    def cells(self) -> int:
        """An upper bound of the cells of the sum."""
        return sum(len(counts) for _, counts in self._parts)

    def result(self) -> Histogram:
        """Return the sum of all added cells as the coarser node's histogram."""
        # A source without chunks has a histogram too.
        empty = (tuple(np.empty(0, np.int64) for _ in self._packing.words), np.empty(0, np.int64))
        return Histogram(self._node, self._packing, *merge_parts([*self._parts, empty], self._packing.product))


class ProjectedCells:
    """Positions of chunk cells among the cells of a coarser node's histogram.

    Args:
        fine: Node of the chunks' cells.
        coarse: The histogram, whose cells are one word; every cell of a chunk falls into one of them.
        hierarchies: One per axis.
    """

    def __init__(self, fine: Node, coarse: Histogram, hierarchies: Sequence[Hierarchy]) -> None:
        self._worth = GroupWeights(group_weights(fine, coarse.node, coarse.packing, hierarchies))
        self._find = finder_of_known_cells(coarse.words[0], coarse.packing.product)

    def of(self, bundles: Bundles, codes: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int32]:
        """Return each chunk cell's position in the coarser histogram, shape (cells,), by its bundled codes."""
        return self._find(number_cells(codes, *self._worth.tables(bundles)))


class LinearCounting:
    """Lower bound of a node's distinct cells by linear counting (a bitmap of hashed cells).

    Cells that share a mark count once (Whang et al. 1990, without the correction), so that there are never too many.

    A cell is marked by a sum of random numbers, one per QID and group, so that nodes of any width fit a word.

    Args:
        fine: Node of what is added.
        hierarchies: One per axis; those after the node's are left out of account.
        most: How many distinct cells are asked about; eight marks, a byte, are kept for each.
        shares: Into how many shares the marks are divided, a power of two. One of them is held at a time, and each takes a reading of its
            own; what comes out is the same for any number of them.

    Attributes:
        at_least: Distinct cells so far, or fewer.
    """

    def __init__(self, fine: Node, node: Node, hierarchies: Sequence[Hierarchy], most: int, shares: int = 1) -> None:
        # A fixed seed: what is excluded, and so the certificate, must be the same in every run.
        random = np.random.default_rng(0)
        worth = []
        for axis, (hierarchy, low) in enumerate(zip(hierarchies, fine, strict=True)):
            level = node[axis] if axis < len(node) else low
            # Sums of them wrap round, which harms nothing: equal cells still share a mark, and unequal ones that do are counted too low.
            numbers = random.integers(-(1 << 62), 1 << 62, len(hierarchy.labels[level]))
            worth.append(numbers[hierarchy.rolled(low, level)] * (axis < len(node)))
        self._worth = GroupWeights(worth)
        self._marks = np.zeros(max(self.bytes_for(most) // shares, 1), np.uint8)
        self._share, self._shares = 0, shares
        self.at_least = 0

    @staticmethod
    def bytes_for(cell_count: int) -> int:
        """Return the bytes of all marks for ``cell_count`` distinct cells, a power of two."""
        return 1 << max(cell_count - 1, 0).bit_length()

    def add(self, bundles: Bundles, codes: NDArray[np.unsignedinteger[Any]]) -> None:
        """Mark hashed cells, codes of shape (cells, bundles); count new marks in ``at_least``."""
        self.at_least += mark_cells(number_cells(codes, *self._worth.tables(bundles)), self._marks, self._share, self._shares)

    def start_next_share(self) -> None:
        """Go on to the next share of the marks; all cells have to be added once more."""
        self._share += 1
        self._marks.fill(0)


BITS = 63
BYTES_PER_ROW = 10
"""A number, and room for a quarter of them while they are sorted."""
RUNS, AT_A_TIME = 4, 2
"""Runs that are sorted each by itself, and how many at a time: each takes room for half of its numbers meanwhile."""
PARTS = 16
"""Parts of the combinations that may be counted apart; as many as there are cores are counted at a time."""
SAMPLED = 1 << 10
"""Numbers of a run, about, by which it is told where parts end."""
SMALL = 1 << 16
"""Sums below this are counted in an array."""


class Combinations:
    """Counter of the records of each QID combination over the cells of all chunks.

    A row is one whole number, the combination before its count: sorted, equal combinations are neighbours, and hardly anything else is
    held than these numbers.

    Args:
        packing: Of the finest node.
        qids: How many of its axes make up a combination, the first ones.
        records: How many there are at most.
        rows: How many will be added.
    """

    def __init__(self, packing: Packing, qids: int, records: int, rows: int) -> None:
        weights = (*Packing(packing.sizes[:qids]).weights, *(0 for _ in packing.sizes[qids:]))
        self._worth = GroupWeights([np.arange(size, dtype=np.int64) * weight for size, weight in zip(packing.sizes, weights, strict=True)])
        self._bits, self._records = records.bit_length(), records
        self._rows: NDArray[np.int64] = np.empty(rows, np.int64)
        self._filled = 0

    @staticmethod
    def fit(packing: Packing, qid_count: int, record_count: int) -> bool:
        """Return whether a combination and its count fit in one 63-bit number together."""
        told_apart = Packing(packing.sizes[:qid_count])
        return len(told_apart.words) == 1 and told_apart.product.bit_length() + record_count.bit_length() <= BITS

    def add(self, bundles: Bundles, codes: Codes, counts: NDArray[np.int64]) -> None:
        """Append cells, codes (cells, bundles), with their record counts, as rows that ``sizes`` sums.

        Args:
            bundles: Makes the codes of a cell.
            codes: The cells by these codes, shape (cells, bundles).
            counts: Shape (cells,).
        """
        mine = self._rows[self._filled : self._filled + len(counts)]
        np.left_shift(number_cells(codes, *self._worth.tables(bundles)), self._bits, out=mine)
        mine += counts
        self._filled += len(counts)

    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distinct record counts, ascending, and the combinations with each; call it only once.

        The rows are given up: a second call, or a later ``add``, raises ``AttributeError``.
        """
        rows = self._rows[: self._filled]
        del self._rows
        ends = [len(rows) * number // RUNS for number in range(RUNS + 1)]

        def ordered(some: slice) -> None:
            for run in range(some.start, some.stop):
                # Chunks come in the order of their cells: to merge what is sorted takes a third of a sort that knows nothing of it.
                rows[ends[run] : ends[run + 1]].sort(kind="stable")

        parts_in_parallel(ordered, RUNS, AT_A_TIME, least=1)
        # Each part has all rows of its combinations, of every run.
        cuts = self._cuts([rows[first:last] for first, last in pairwise(ends)]) + np.array(ends[:-1])

        def tallied(part: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            tally, large = np.zeros(SMALL, np.int64), np.empty(self._records // SMALL + 1, np.int64)
            found = tally_runs(rows, cuts[part.start].copy(), cuts[part.stop], self._bits, tally, large)
            return tally, large[:found]

        tallies = parts_in_parallel(tallied, len(cuts) - 1, least=1)
        tally = np.sum([tally for tally, _ in tallies], axis=0)
        small = np.flatnonzero(tally)
        sizes, combinations = np.unique(np.concatenate([large for _, large in tallies]), return_counts=True)
        return np.append(small, sizes), np.append(tally[small], combinations)

    def _cuts(self, runs: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return positions that cut sorted runs into parts of about equal size, shape (parts + 1, runs).

        Cuts lie between combinations.
        """
        if self._filled < PARTS * LEAST_ROWS:
            return np.array([[0] * len(runs), [len(run) for run in runs]])
        # Runs are of chunks as they came, and need not be alike.
        some = np.sort(np.concatenate([run[:: max(len(run) // SAMPLED, 1)] for run in runs]))
        firsts = [some[len(some) * part // PARTS] >> self._bits << self._bits for part in range(1, PARTS)]
        inner = [[np.searchsorted(run, first) for run in runs] for first in firsts]
        return np.array([[0] * len(runs), *inner, [len(run) for run in runs]])

    @property
    def rows(self) -> int:
        """The number of rows that were added."""
        return self._filled
