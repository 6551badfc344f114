"""Histograms: the number of records in each occupied cell of a node.

They add up, so that chunks can be counted apart (papers/skald.txt, III.B.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import Codes, PackedWords, Packing, single_word
from core.columns.kernels import add_numbers, occupied
from core.columns.sorting import order_of, run_starts, sort_numbers
from core.histograms.domain_counts import Ascending, sum_ascending

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
        key = sort_numbers(key, product)
        starts = run_starts(key)
        return (key[starts],), np.diff(np.append(starts, len(key)))
    # Equal keys have equal words, and whole numbers add up alike in any order.
    order = order_of(key, int(key.max(initial=0)))
    starts = run_starts(key[order])
    first = order[starts]
    summed = np.diff(np.append(starts, len(key))) if counts is None else np.add.reduceat(counts[order], starts) if len(key) else counts
    return tuple(word[first] for word in words), summed.astype(np.int64)


def _count_dense(key: NDArray[np.int64], product: int, counts: NDArray[np.int64] | None) -> tuple[PackedWords, NDArray[np.int64]]:
    # bincount adds weights as float64, which is exact below 2^53 records.
    summed = np.bincount(key, weights=counts, minlength=product)
    occupied = np.flatnonzero(summed)
    return (occupied.astype(np.int64),), summed[occupied].astype(np.int64)


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


def merge_sql(histograms: str, word_count: int) -> str:
    """Return SQL that sums the histograms of chunks into one, ascending by cell.

    It is right because counts of disjoint chunks add up, and DuckDB spills both the hash table and the sort.

    Args:
        histograms: The SQL relation of the chunks' files, with ``cell_0 … cell_<words-1>`` and ``count``.
    """
    cells = ", ".join(f"cell_{word}" for word in range(word_count))
    return f"SELECT {cells}, sum(count)::BIGINT AS count FROM {histograms} GROUP BY {cells} ORDER BY {cells}"
