"""Histograms: the records in each occupied cell of a node, and the cache of rolled-up ones.

They add up, so that chunks can be counted apart (papers/skald.txt, III.B.2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from math import log, prod
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import Codes, PackedWords, Packing, single_word
from core.columns.domains import Node
from core.columns.kernels import add_numbers, occupied
from core.columns.sorting import ascending, order_of
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.domain_counts import Ascending, sum_ascending

LARGE = 20_000
SHRINK = 8
MOST_CACHED = 256


class NodeCounts(Protocol):
    """The record counts of a node, in any form that can be rolled up."""

    @property
    def node(self) -> Node:
        """Level of each QID."""
        ...

    @property
    def counts(self) -> NDArray[np.signedinteger[Any]]:
        """The number of records in each cell, one-dimensional."""
        ...


CachedCounts = TypeVar("CachedCounts", bound=NodeCounts)
Decided = NDArray[np.int8] | None


class RollUps(ABC, Generic[CachedCounts]):
    """Histograms of nodes, each rolled up from the cheapest finer histogram in a cache.

    From a small histogram this is cheap; from a large one it is not. So a large one is first rolled up to a node between that many others
    share, and that is kept while there is room.

    Args:
        first: The root's histogram, as it is rolled up.
        hierarchies: One per QID in job order.
        capacity: Cells that may be kept besides the root's, about 16 bytes each.
        decided: One entry per node above the root, in the lattice's shape, 0 where it may yet be asked for; read, never written. None for
            a lattice too large for that, any node of which may be asked for.

    Attributes:
        made: How many histograms were rolled up.
    """

    def __init__(self, first: CachedCounts, hierarchies: Sequence[Hierarchy], capacity: int, decided: Decided) -> None:
        self._hierarchies = hierarchies
        self._sizes = [[len(labels) for labels in hierarchy.labels] for hierarchy in hierarchies]
        self._logarithms = [[log(fine / coarse) for fine, coarse in pairwise(sizes)] for sizes in self._sizes]
        self._kept = [first]
        # Of each kept histogram: its node, and what rolling it up costs, as arrays, since each roll-up looks at all of them.
        self._nodes = np.array([first.node]).T
        self._works = np.array([self._work(first)])
        # What it takes of the capacity; nothing for the root's.
        self._rooms = [0]
        self._capacity = capacity
        # Of each kept histogram: what making it anew would cost for the room that it takes, and that on top of what was let go when it was
        # last of use. The least of these goes first (Cao and Irani 1997, GreedyDual-Size); the root's is never asked for.
        self._prices, self._standing, self._gone = [0.0], [0.0], 0.0
        self._decided = decided
        self.made = 0

    def _base(self, node: Node) -> CachedCounts:
        """Return the cheapest cached histogram for a node, after caching useful intermediate ones."""
        finer = np.flatnonzero((self._nodes <= np.array(node)[:, None]).all(axis=0))
        index = int(finer[self._works[finer].argmin()])
        base = self._kept[index]
        self._standing[index] = self._gone + self._prices[index]
        while self._work(base) > LARGE:
            between = self._between(base, node)
            if between == node:
                break
            base = self._keep(base, between)
        return base

    def _between(self, base: CachedCounts, node: Node) -> Node:
        """Return an intermediate node with few cells, below as many undecided nodes as possible."""
        step = list(base.node)
        sizes, most = [self._sizes[qid][level] for qid, level in enumerate(step)], self._most_between(base)
        product = prod(sizes)
        promising = self._promising(step, node)
        while product > most and step != list(node):
            qid = promising()
            step[qid] += 1
            size = self._sizes[qid][step[qid]]
            product = product // sizes[qid] * size
            sizes[qid] = size
        return tuple(step)

    def _promising(self, step: list[int], node: Node) -> Callable[[], int]:
        """Return a function that chooses the best QID to take one level up.

        The best saves most cells per share of nodes that could no longer be rolled up from there.

        Args:
            step: Level of each QID, changed between calls: the chosen QID goes one level up.
            node: How far each may go.
        """
        if self._decided is not None:
            return lambda: max((qid for qid in range(len(step)) if step[qid] < node[qid]), key=self._gains(step))
        # What a QID promises hangs on its own level alone.
        waiting = [(-self._gain(qid, level), qid) for qid, level in enumerate(step) if level < node[qid]]
        heapify(waiting)

        def first() -> int:
            qid = waiting[0][1]
            heapreplace(waiting, (-self._gain(qid, step[qid] + 1), qid)) if step[qid] + 1 < node[qid] else heappop(waiting)
            return qid

        return first

    def _gain(self, qid: int, level: int) -> float:
        return self._logarithms[qid][level] * (len(self._sizes[qid]) - level)

    def _gains(self, step: list[int]) -> Callable[[int], float]:
        assert self._decided is not None
        first = self._kept[0].node
        # Looked at anew each time: tags are written while the search goes on.
        above = self._decided[tuple(slice(level - start, None) for level, start in zip(step, first, strict=True))] == 0
        open_ = max(int(np.count_nonzero(above)), 1)

        def gain(qid: int) -> float:
            still = int(np.count_nonzero(above[(slice(None),) * qid + (slice(1, None),)]))
            # 1.01, because a step may lose none.
            return self._logarithms[qid][step[qid]] / (1.01 - still / open_)

        return gain

    @abstractmethod
    def _keep(self, base: CachedCounts, node: Node) -> CachedCounts:
        """Roll up an intermediate node and cache its histogram."""

    def _put(self, made: CachedCounts, base: CachedCounts) -> None:
        """Cache a histogram that was rolled up from another one."""
        room = self._room(made)
        price = self._work(base) / max(room, 1)
        self._kept.append(made)
        self._rooms.append(room)
        self._prices.append(price)
        self._standing.append(self._gone + price)
        self._nodes = np.concatenate([self._nodes, np.array(made.node)[:, None]], axis=1)
        self._works = np.append(self._works, self._work(made))
        self._let_go(self._capacity)

    def _let_go(self, capacity: float) -> None:
        """Remove histograms from the cache until it takes at most ``capacity``; the root stays."""
        while len(self._kept) > MOST_CACHED or sum(self._rooms) > capacity:
            least = min(range(1, len(self._kept)), key=self._standing.__getitem__)
            self._gone = self._standing[least]
            for each in (self._kept, self._rooms, self._prices, self._standing):
                del each[least]
            self._nodes, self._works = np.delete(self._nodes, least, axis=1), np.delete(self._works, least)

    def _most_between(self, base: CachedCounts) -> int:
        """Return the most cells that an intermediate node may have."""
        return len(base.counts) // SHRINK

    def _work(self, kept: CachedCounts) -> int:
        """Return the cost of rolling up a histogram, in cells."""
        return len(kept.counts)

    def _room(self, kept: CachedCounts) -> int:
        """Return the part of the capacity that a cached histogram takes."""
        return len(kept.counts)


def pays_to_cache(base: int, made: int) -> bool:
    """Return whether a rolled-up histogram is small enough, against its base, to be worth caching."""
    return base > LARGE and 2 * made <= base


DENSE_PER_CELL = 8
COMPACT_KEYS = 4_000_000
# The sum, and where all are occupied the cells and counts taken out of it: three times eight bytes.
DENSE_BYTES = 24
# A row that waits, its place in the sum, and in the copy of a sum that is much shorter: a cell and a count each.
MERGE_BYTES = 48

MergeWay = Literal["dense", "merge", "spill"]


@dataclass(frozen=True)
class Histogram:
    """The occupied cells of one node, ascending by cell.

    Attributes:
        node: Level of each QID.
        packing: How the groups at that node make up a cell.
        words: One or more arrays of shape (cells,), int64.
        counts: Shape (cells,), int64, all positive.
    """

    node: tuple[int, ...]
    packing: Packing
    words: PackedWords
    counts: NDArray[np.int64]

    @property
    def cells(self) -> int:
        """Number of occupied cells."""
        return len(self.counts)

    @property
    def records(self) -> int:
        """Number of records counted."""
        return int(self.counts.sum())

    @cached_property
    def codes(self) -> NDArray[np.unsignedinteger[Any]]:
        """Group of each QID in each cell, shape (cells, QIDs); unpacked once.

        The type is uint16, or uint32 where a QID has more groups.
        """
        return self.packing.unpack(self.words)

    @property
    def groups(self) -> tuple[Codes, ...]:
        """Group of each QID in each cell: one array of shape (cells,) per QID."""
        return tuple(self.codes.T)


def count_cells(words: PackedWords, product: int, counts: NDArray[np.int64] | None = None) -> tuple[PackedWords, NDArray[np.int64]]:
    """Sum the counts of equal cells; return the distinct cells and their counts.

    Args:
        words: Arrays of shape (n,), int64.
        product: Number of cells that there could be; small products are added into one array, larger ones sorted.
        counts: Shape (n,), int64; one per row if left out.

    Returns:
        The distinct cells, ascending, and their counts.
    """
    if len(words) == 1 and product <= DENSE_PER_CELL * len(words[0]) + 1024:
        return _count_dense(words[0], product, counts)
    key = single_word(words)
    if counts is None and len(words) == 1:
        key = ascending(key, product)
        starts = _starts(key)
        return (key[starts],), np.diff(np.append(starts, len(key)))
    # Equal keys have equal words, and whole numbers add up alike in any order.
    order = order_of(key, int(key.max(initial=0)))
    starts = _starts(key[order])
    first = order[starts]
    summed = np.diff(np.append(starts, len(key))) if counts is None else np.add.reduceat(counts[order], starts) if len(key) else counts
    return tuple(word[first] for word in words), summed.astype(np.int64)


def _count_dense(key: NDArray[np.int64], product: int, counts: NDArray[np.int64] | None) -> tuple[PackedWords, NDArray[np.int64]]:
    # bincount adds weights as float64, which is exact below 2^53 records.
    summed = np.bincount(key, weights=counts, minlength=product)
    occupied = np.flatnonzero(summed)
    return (occupied.astype(np.int64),), summed[occupied].astype(np.int64)


def _starts(ordered: NDArray[np.int64]) -> NDArray[np.intp]:
    if not len(ordered):
        return np.empty(0, np.intp)
    return np.concatenate([np.zeros(1, np.intp), np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])


class HistogramCounter:
    """Counter of packed records, batch by batch, with bounded memory.

    It holds the distinct cells and a few million keys at most.
    """

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._pending: list[PackedWords] = []
        self._rows = 0
        self._counted: tuple[PackedWords, NDArray[np.int64]] | None = None

    def add(self, words: PackedWords) -> None:
        """Count one batch of packed records."""
        self._pending.append(words)
        self._rows += len(words[0])
        if self._rows >= COMPACT_KEYS:
            self._compact()

    def result(self) -> tuple[PackedWords, NDArray[np.int64]]:
        """Return the distinct cells so far, ascending, with their counts."""
        self._compact()
        assert self._counted is not None
        return self._counted

    def _compact(self) -> None:
        width = len(self._packing.words)
        empty = tuple(np.empty(0, np.int64) for _ in range(width))
        batches = self._pending or [empty]
        words = tuple(np.concatenate([batch[word] for batch in batches]) for word in range(width))
        counted = count_cells(words, self._packing.product)
        if self._counted is not None:
            merged = tuple(np.concatenate(pair) for pair in zip(self._counted[0], counted[0], strict=True))
            counted = count_cells(merged, self._packing.product, np.concatenate([self._counted[1], counted[1]]))
        self._pending, self._rows, self._counted = [], 0, counted


def merge_way(product: int, row_count: int, memory: int) -> MergeWay:
    """Return the fastest way to sum chunk histograms in half the memory: dense, merge or spill.

    Args:
        product: Number of cells that there could be.
        row_count: Rows of all parts together.
        memory: Bytes.

    Returns:
        ``dense`` adds into one array with an entry per possible cell (about 0.01 CPU s per million rows), ``merge`` holds all rows at once
        (0.05), ``spill`` leaves both hash table and sort to DuckDB, out of core (0.3).
    """
    if product * DENSE_BYTES <= memory // 2:
        return "dense"
    return "merge" if row_count * MERGE_BYTES <= memory // 2 else "spill"


def add_parts(parts: Iterable[tuple[PackedWords, NDArray[np.int64]]], product: int) -> tuple[PackedWords, NDArray[np.int64]]:
    """Sum histograms of one-word cells in a dense array; return the distinct cells and their counts."""
    dense = np.zeros(product, np.int64)
    for (cells,), counts in parts:
        add_numbers(cells, counts, dense)
    found, summed = occupied(dense)
    return (found,), summed


def merge_parts(parts: Iterable[tuple[PackedWords, NDArray[np.int64]]], product: int) -> tuple[PackedWords, NDArray[np.int64]]:
    """Merge one or more sorted histograms in memory; return the distinct cells and their summed counts.

    The arrays of a single one are returned as they are.
    """
    waiting = list(parts)
    if len(waiting[0][0]) == 1:
        cells, counts = sum_ascending([Ascending(words[0], counts) for words, counts in waiting])
        return (cells,), counts
    while len(waiting) > 1:
        # The smallest two first: to merge a long part into short ones again and again would copy it as often.
        waiting.sort(key=lambda part: -len(part[1]))
        (words, counts), (other_words, other_counts) = waiting.pop(), waiting.pop()
        joined = tuple(np.concatenate(pair) for pair in zip(words, other_words, strict=True))
        waiting.append(count_cells(joined, product, np.concatenate([counts, other_counts])))
    return waiting[0]


def merge_sql(files: Sequence[str], word_count: int) -> str:
    """Return SQL that sums the histograms of chunks into one, ascending by cell.

    It is right because counts of disjoint chunks add up, and DuckDB spills both the hash table and the sort.

    Args:
        files: Placeholders or quoted paths of Parquet files with ``cell_0 … cell_<words-1>`` and ``count``.
    """
    cells = ", ".join(f"cell_{word}" for word in range(word_count))
    return f"SELECT {cells}, sum(count)::BIGINT AS count FROM read_parquet([{', '.join(files)}]) GROUP BY {cells} ORDER BY {cells}"
