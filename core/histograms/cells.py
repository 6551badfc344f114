"""Roll-up arithmetic: the occupied cells of a node are merged into the cells of a coarser node.

papers/skald.txt, III.B.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords, Packing, positions_among
from core.columns.data_parallel import parts_in_parallel
from core.columns.domains import Node
from core.columns.kernels import add_cells, number_cells, number_distinct, occupied, sum_equal_cells
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram, count_cells
from core.histograms.kernels import add_three_code_cells, add_two_code_cells

OF_FEW: dict[int, Callable[..., None]] = {2: add_two_code_cells, 3: add_three_code_cells}
"""Loops for cells of so few codes: half the cost of the one for any number."""
DENSE_PER_CELL = 8
SMALL_DENSE = 1 << 22


def packing_of(node: Node, hierarchies: Sequence[Hierarchy]) -> Packing:
    """Return the packing of a node's groups into integer cell numbers."""
    return Packing(tuple(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True)))


class Cells(NamedTuple):
    """The occupied cells of a node as arrays of group codes and record counts.

    Counts are as narrow as the records allow.

    Attributes:
        node: Level of each QID.
        codes: Shape (cells, QIDs), unsigned.
        counts: Shape (cells,), int32, or int64 from 2^31 records on.
    """

    node: Node
    codes: NDArray[np.unsignedinteger[Any]]
    counts: NDArray[np.signedinteger[Any]]


def narrow_counts(root: Histogram) -> NDArray[np.signedinteger[Any]]:
    """Return the counts of a histogram as int32, or as int64 from 2^31 records on.

    All sums of them fit the type too.
    """
    return root.counts.astype(np.int32 if root.records < 1 << 31 else np.int64, copy=False)


def roll_up(histogram: Histogram, node: Node, hierarchies: Sequence[Hierarchy]) -> Histogram:
    """Return the histogram of a coarser node, merged from the cells of a finer one.

    Args:
        histogram: Cells of a node that is nowhere coarser than ``node``.
        node: Level of each QID.
        hierarchies: One per QID in job order.
    """
    packing = packing_of(node, hierarchies)
    return Histogram(node, packing, *merged_cells(Cells(histogram.node, histogram.codes, histogram.counts), node, packing, hierarchies))


def positions_of_finer_cells(
    coarse: Histogram, fine: Node, codes: NDArray[np.unsignedinteger[Any]], hierarchies: Sequence[Hierarchy]
) -> NDArray[Any]:
    """Return the position of the histogram cell that contains each finer cell, shape (cells,).

    Every finer cell falls into one of the histogram's cells.

    Args:
        coarse: The histogram, of some axes, the first ones.
        fine: Node of the finer cells; nowhere coarser.
        codes: Shape (cells, axes or more), the group of each axis.
        hierarchies: One per axis.
    """
    codes, packing = codes[:, : len(coarse.node)], coarse.packing
    if len(packing.words) == 1:
        words: PackedWords = (number_cells(codes, *radix_weights(fine[: len(coarse.node)], coarse.node, packing, hierarchies)),)
    else:
        maps = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(hierarchies, fine, coarse.node, strict=False)]
        words = packing.pack_mapped(tuple(codes.T), maps)
    return positions_among(coarse.words, words, packing.product)


def group_weights(fine: Node, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> list[NDArray[np.int64]]:
    """Return what each finer group adds to a coarser cell's mixed-radix number: an array per QID.

    Args:
        fine: The finer node, which may have further axes.
        node: The coarser one.
        packing: Of its cells, to a word of which a QID adds.
        hierarchies: One per QID.
    """
    maps = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(hierarchies, fine, node, strict=False)]
    return [groups.astype(np.int64) * weight for groups, weight in zip(maps, packing.weights, strict=True)]


def radix_weights(
    fine: Node, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each QID's weights start, and each finer group's radix weight in coarser cell numbers.

    The first array has the start of each QID in the second one, which has the weights of all QIDs in a row. Arguments are those of
    ``group_weights``.
    """
    each = group_weights(fine, node, packing, hierarchies)
    return np.cumsum([0, *map(len, each[:-1])], dtype=np.int64), np.concatenate(each)


def merged_cells(cells: Cells, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> tuple[PackedWords, NDArray[np.int64]]:
    """Merge cells into the cells of a coarser node; return these, ascending, and their counts.

    Args:
        cells: Cells of a node that is nowhere coarser than ``node``.
        node: Level of each QID.
        packing: Of the node.
        hierarchies: One per QID.
    """
    if len(packing.words) > 1:
        maps = [hierarchy.rolled(fine, level) for hierarchy, fine, level in zip(hierarchies, cells.node, node, strict=True)]
        return count_cells(packing.pack_mapped(tuple(cells.codes.T), maps), packing.product, cells.counts.astype(np.int64))
    starts, worth = radix_weights(cells.node, node, packing, hierarchies)
    if fits_array(packing, len(cells.counts)):
        numbers, counts = occupied(dense_cell_sums(cells.codes, cells.counts, starts, worth, packing.product))
        return (numbers,), counts
    return count_cells((number_cells(cells.codes, starts, worth),), packing.product, cells.counts.astype(np.int64))


def dense_cell_sums(
    codes: NDArray[np.unsignedinteger[Any]],
    counts: NDArray[np.signedinteger[Any]],
    starts: NDArray[np.int64],
    weights: NDArray[np.int64],
    product: int,
) -> NDArray[np.signedinteger[Any]]:
    """Return the summed counts of all possible coarser cells, a dense array of shape (product,).

    Args:
        codes: Shape (cells, codes).
        counts: Shape (cells,).
        starts: Where the entries of each code begin in ``weights``.
        weights: What each code adds to the number of a cell.
        product: How many cells there could be.
    """
    tables = np.split(weights.astype(np.int32), starts[1:]) if len(starts) in OF_FEW and product < 1 << 31 else None

    def added(rows: slice) -> NDArray[np.signedinteger[Any]]:
        dense = np.zeros(product, counts.dtype)
        if tables:
            OF_FEW[len(tables)](codes[rows], *tables, counts[rows], dense)
        else:
            add_cells(codes[rows], starts, weights, counts[rows], dense)
        return dense

    # An array for each part: no more of them than take about as much as the cells themselves.
    dense, *others = parts_in_parallel(added, len(counts), max(len(counts) // product, 1))

    def put_together(entries: slice) -> None:
        for other in others:
            dense[entries] += other[entries]

    if others:
        parts_in_parallel(put_together, product)
    return dense


def fits_array(packing: Packing, cell_count: int) -> bool:
    """Return whether summing this number of cells in a dense array is worth its size."""
    return len(packing.words) == 1 and packing.product <= max(2 * cell_count, min(DENSE_PER_CELL * cell_count, SMALL_DENSE), 1024)


def number_coarser(cells: Cells, node: Node, hierarchies: Sequence[Hierarchy]) -> tuple[NDArray[np.int64], int]:
    """Return the number of each cell's coarser cell, by first occurrence, and how many coarser cells.

    Args:
        cells: Cells of a node that is nowhere coarser than ``node``, which may have further axes.
        node: Level of each axis.
        hierarchies: One per axis.

    Returns:
        The number of each cell's coarser cell, shape (cells,), and how many coarser cells there are.
    """
    key = _keys_of(_words_of(cells, node, packing_of(node, hierarchies), hierarchies))
    return key, number_distinct(key, hash_table(len(cells.counts)))


def hash_table(size: int) -> NDArray[np.signedinteger[Any]]:
    """Return a hash table with room for ``size`` cells: an array of -1 as long as a power of two."""
    return np.full(1 << (2 * size).bit_length(), -1, np.int32 if size < 1 << 31 else np.int64)


def summed_cells(
    cells: Cells, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]
) -> tuple[PackedWords, NDArray[np.signedinteger[Any]]]:
    """Merge cells into the cells of a coarser node with a hash table; return these, unordered, and counts."""
    words = _words_of(cells, node, packing, hierarchies)
    rows, sums = sum_equal_cells(_keys_of(words), cells.counts, hash_table(len(cells.counts)))
    return tuple(word[rows] for word in words), sums


def _words_of(cells: Cells, node: Node, packing: Packing, hierarchies: Sequence[Hierarchy]) -> PackedWords:
    """Return the packed coarser cell of each cell: arrays of shape (cells,)."""
    starts, worth = radix_weights(cells.node, node, packing, hierarchies)
    within = (slice(word[0], word[-1] + 1) for word in packing.words)
    return tuple(number_cells(cells.codes[:, mine], starts[mine], worth) for mine in within)


def _keys_of(words: PackedWords) -> NDArray[np.int64]:
    """Return one number for each cell of several words, equal for equal cells only, shape (cells,).

    Of one word, that is the word itself.
    """
    if len(words) == 1:
        return words[0]
    size, key = len(words[0]), words[0].copy()
    for word in words[1:]:
        # Numbered anew, two words are no more than their distinct values combine to, and these are no more than the cells each.
        more = word.copy()
        number_distinct(key, hash_table(size))
        key *= number_distinct(more, hash_table(size))
        key += more
    return key
