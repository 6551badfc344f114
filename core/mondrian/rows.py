"""Rows, scales and scratch arrays of Mondrian's kernels, and passes over the rows of a node.

Compiled by numba.

A node is a range of rows. Rows are partitioned in place, so that a class is a range in the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.columns.sorting import ascending_order
from core.privacy.kernels import kernel
from core.recoding.price_kernels import RankPositions

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Number = int | np.integer[Any]
Bounds = tuple[int, int]
"""The first row of a node, and one past its last."""
Cut = tuple[int, int, int]

# A constant is a type of its own to numba, for which it compiles whatever is called with it once more; a whole number is just one.
whole: Any = np.int64
NO_CUT: Cut = (whole(-1), whole(-1), whole(-1))
# Above any row's number, which is an int32.
ALL_TIES: int = whole(1 << 40)
BLOCK = 128
"""Rows of which it is listed at a time which ones stand on the wrong side."""


class PersonsByRow(NamedTuple):
    """Persons of each row, by the number that the row was first given.

    So the arrays stay in place while the rows move.

    Attributes:
        starts: Shape (rows + 1,), int64: where the persons of each row start.
        persons: Shape (pairs,), int32, from 0; a row may name a person twice.
        values: Shape (sensitive columns, pairs), int32: a number for each pair of a person and a value of the column.
        person_marks: Shape (persons,), int64, scratch: by which pass a person was seen last, and in which half.
        value_marks: As many entries as a column has pairs, scratch likewise.
        passes: Shape (1,), how many there were.
    """

    starts: Numbers
    persons: NDArray[np.int32]
    values: NDArray[np.int32]
    person_marks: Numbers
    value_marks: Numbers
    passes: Numbers


class Rows(NamedTuple):
    """Rows that Mondrian partitions: cells with their record counts, or single records.

    Attributes:
        ranks: Shape (rows, QIDs), uint16 or uint32: position of the value in the order of its QID.
        weights: Shape (rows,), int64: records.
        sensitive: Shape (rows, sensitive columns), int32 codes; no columns where the privacy model needs none.
        order: Shape (rows,), int32: the number that a row was given; the order among equal ranks.
    """

    ranks: NDArray[np.unsignedinteger[Any]]
    weights: Numbers
    sensitive: NDArray[np.int32]
    order: NDArray[np.int32]


class CutScale(NamedTuple):
    """Scale of the QIDs: positions and ranges of numbers, and domain sizes.

    Attributes:
        starts: Shape (QIDs + 1,), where each QID's ranks start in ``positions``.
        positions: The number of each rank of numerical QIDs; 0 for others.
        nulls: Shape (QIDs,), rank of the null, or the number of ranks where there is none.
        scale_totals: Shape (QIDs,), max - min of a numerical QID's values; -1 for others.
        domains: Shape (QIDs,), float64, distinct values of each QID.
    """

    starts: Numbers
    positions: Floats
    nulls: Numbers
    scale_totals: Floats
    domains: Floats


class CutBuffers(NamedTuple):
    """Scratch arrays of Mondrian's kernels, allocated once.

    Attributes:
        stamps: One entry per rank of all QIDs, and a counter.
        lows: Shape (QIDs,), least rank of each QID in the rows at hand; ``highs`` the greatest, ``distinct`` how many there are.
        most: Shape (QIDs,), how many there are at most: those of the rows that these were cut from.
        scores: Shape (QIDs,).
        values: As many entries as the largest domain has: ranks; ``sums`` the records that go with them.
        counts: Shape (2, sensitive codes), all 0; ``present`` which codes are not.
        strays: Shape (2, BLOCK): rows on the wrong side of a cut.
    """

    stamps: Numbers
    lows: Numbers
    highs: Numbers
    distinct: Numbers
    most: Numbers
    scores: Floats
    values: Numbers
    sums: Numbers
    counts: Numbers
    present: Numbers
    strays: Numbers


class CutLabelPrices(NamedTuple):
    """Prices of class labels, as parts of the price of a cut.

    Attributes:
        shares: Shape (QIDs,): how much of a price is that of the label; the rest is that of the values held. 0 where the two are the same.
        label_positions: Shape (ranks of all QIDs, 2), int32: the places of each rank, the same twice where labels name no null.
        columns: Shape (QIDs,): the column of ``terms`` that bears the price.
        terms: As `core.recoding.price_kernels.Prices` has them.
        numbers: The same.
    """

    shares: Floats
    label_positions: RankPositions
    columns: Numbers
    terms: Numbers
    numbers: RankPositions


class CutPrices(NamedTuple):
    """Scratch arrays and label prices for the score that prices every possible cut.

    Attributes:
        sorted: Shape (rows,), rows by the rank of a QID.
        ends: As many entries as the largest domain has: how many rows up to each rank; ``left_costs`` and ``right_costs``: penalty of the
            rows up to each rank and from it on.
        label_prices: What labels cost.
    """

    sorted: NDArray[np.int32]
    ends: Numbers
    left_costs: Floats
    right_costs: Floats
    label_prices: CutLabelPrices


@njit(inline="always")
def is_left_of_cut(rank: Number, number: Number, greatest_rank: int, last_number: int) -> bool:
    """Return whether a row belongs to the left half of a cut.

    A cut is a QID, the greatest rank of the left half, and the last row of that rank that goes left.
    """
    return bool(rank < greatest_rank or (rank == greatest_rank and number <= last_number))


@kernel
def find_extents(rows: Rows, bounds: Bounds, scale: CutScale, room: CutBuffers) -> None:
    """Write the least and greatest rank and the distinct count of each QID in a node into ``room``."""
    # Arrays by names of their own: for each use of a tuple's numba would count references, which costs more than the loop.
    ranks, starts, stamps = rows.ranks, scale.starts, room.stamps
    # A new stamp in the place of clearing: the array is as long as all domains together, and nodes are many and small.
    stamps[-1] += 1
    mark = stamps[-1]
    for qid in range(ranks.shape[1]):
        start, distinct, low, high, most = starts[qid], whole(0), whole(1 << 40), whole(-1), room.most[qid]
        for row in range(bounds[0], bounds[1]):
            rank = np.int64(ranks[row, qid])
            if stamps[start + rank] != mark:
                stamps[start + rank] = mark
                distinct += 1
                low, high = min(low, rank), max(high, rank)
                # Large nodes have met all values long before their end.
                if distinct == most:
                    break
        room.distinct[qid], room.lows[qid], room.highs[qid] = distinct, low, high


@kernel
def with_doubled_rows(table: Numbers) -> Numbers:
    """Return a copy of a table with twice as many rows, the new ones empty.

    NumPy's own functions for it take long to compile.

    Args:
        table: Shape (rows, columns), int64.
    """
    longer = np.empty((2 * table.shape[0], table.shape[1]), np.int64)
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            longer[row, column] = table[row, column]
    return longer


@kernel
def order_of_rows(rows: Rows, bounds: Bounds, qid: int) -> Numbers:
    """Return the order of a node's rows by rank of a QID, as offsets from its first row."""
    first, end = bounds
    numbers = np.empty(end - first, np.int64)
    for row in range(first, end):
        numbers[row - first] = rows.ranks[row, qid]
    return ascending_order(numbers)


@kernel
def sum_records_by_rank(rows: Rows, bounds: Bounds, qid: int, low: int, high: int, room: CutBuffers) -> int:
    """Sum the records of each rank of a QID in a node into ``room``; return the number of ranks.

    Args:
        qid: The column.
        low: Its least rank there.
        high: Its greatest.
        room: ``values`` gets the ranks that occur, ascending, ``sums`` their records.

    Returns:
        How many ranks occur.
    """
    first, end = bounds
    values, sums, ranks, weights = room.values, room.sums, rows.ranks, rows.weights
    size: int = whole(0)
    if high - low <= 4 * (end - first) + 64:
        for offset in range(high - low + 1):
            sums[offset] = 0
        for row in range(first, end):
            sums[np.int64(ranks[row, qid]) - low] += weights[row]
        for offset in range(high - low + 1):
            if sums[offset] > 0:
                values[size], sums[size] = low + offset, sums[offset]
                size += 1
        return size
    # Few rows over a wide domain: sorting them costs less than walking through it.
    for offset in order_of_rows(rows, bounds, qid):
        rank = np.int64(ranks[first + offset, qid])
        if size == 0 or values[size - 1] != rank:
            values[size], sums[size] = rank, 0
            size += 1
        sums[size - 1] += weights[first + offset]
    return size


@kernel
def split(rows: Rows, bounds: Bounds, cut: Cut, room: CutBuffers) -> int:
    """Move the rows of a cut's left half to the front of a node and return the start of the right half.

    It is done in place, block by block from both ends (Edelkamp and Weiss 2016). Rows on the wrong side are listed without a branch,
    because a branch would often be mispredicted. They are swapped with those of the other end.
    """
    ranks, weights, sensitive, order, strays = rows.ranks, rows.weights, rows.sensitive, rows.order, room.strays
    qid, most, tied = cut
    first, end = whole(bounds[0]), whole(bounds[1])
    lefts = rights = left_at = right_at = whole(0)
    while end - first >= 2 * BLOCK:
        if lefts == left_at:
            lefts = left_at = whole(0)
            for offset in range(BLOCK):
                strays[0, lefts] = first + offset
                lefts += whole(not is_left_of_cut(np.int64(ranks[first + offset, qid]), order[first + offset], most, tied))
        if rights == right_at:
            rights = right_at = whole(0)
            for offset in range(BLOCK):
                strays[1, rights] = end - 1 - offset
                rights += whole(is_left_of_cut(np.int64(ranks[end - 1 - offset, qid]), order[end - 1 - offset], most, tied))
        while left_at < lefts and right_at < rights:
            swap(ranks, weights, sensitive, order, strays[0, left_at], strays[1, right_at])
            left_at += 1
            right_at += 1
        # A block whose strays are all gone is done; of the other one what is listed stays listed.
        first += BLOCK * whole(left_at == lefts)
        end -= BLOCK * whole(right_at == rights)
    last = end - 1
    while True:
        while first <= last and is_left_of_cut(np.int64(ranks[first, qid]), order[first], most, tied):
            first += 1
        while first <= last and not is_left_of_cut(np.int64(ranks[last, qid]), order[last], most, tied):
            last -= 1
        if first >= last:
            return int(first)
        swap(ranks, weights, sensitive, order, first, last)
        first += 1
        last -= 1


@njit(inline="always")
def swap(
    ranks: NDArray[np.unsignedinteger[Any]], weights: Numbers, sensitive: NDArray[np.int32], order: NDArray[np.int32], one: int, other: int
) -> None:
    """Swap two rows in all arrays of a node.

    Swaps mix up the rows of a half, so that ties are ordered by the rows' numbers, not by their positions.
    """
    for column in range(ranks.shape[1]):
        ranks[one, column], ranks[other, column] = ranks[other, column], ranks[one, column]
    for column in range(sensitive.shape[1]):
        sensitive[one, column], sensitive[other, column] = sensitive[other, column], sensitive[one, column]
    weights[one], weights[other] = weights[other], weights[one]
    order[one], order[other] = order[other], order[one]
