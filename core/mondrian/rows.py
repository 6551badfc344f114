"""What Mondrian's kernels share: rows, measures and scratch arrays, and the passes over the rows of a node; compiled by numba.

A node is a range of rows. Rows are partitioned in place, so that a class is a range in the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.privacy.kernels import kernel

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bounds = tuple[int, int]
Cut = tuple[int, int, int]

# A constant is a type of its own to numba, for which it compiles whatever is called with it once more; a whole number is just one.
whole: Any = np.int64
NO_CUT: Cut = (whole(-1), whole(-1), whole(-1))
# Above any row's number, which is an int32.
ALL_TIES: int = whole(1 << 40)


class People(NamedTuple):
    """Whose the records of the rows are, told by the numbers that the rows were given, so that it stays where it is while they move.

    Attributes:
        starts: Shape (rows + 1,), int64: where the persons of each row start.
        persons: Shape (visits,), int32, from 0; a row may name a person twice.
        values: Shape (sensitive columns, visits), int32: a number for each pair of a person and a value of the column.
        seen: Shape (persons,), int64, scratch: by which pass a person was seen last, and in which half.
        seen_values: As many entries as a column has pairs, scratch likewise.
        passes: Shape (1,), how many there were.
    """

    starts: Numbers
    persons: NDArray[np.int32]
    values: NDArray[np.int32]
    seen: Numbers
    seen_values: Numbers
    passes: Numbers


class Rows(NamedTuple):
    """The rows that are partitioned: cells with their records, or single records.

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


class Scale(NamedTuple):
    """What the QIDs are measured by.

    Attributes:
        starts: Shape (QIDs + 1,), where each QID's ranks start in ``places``.
        places: The number of each rank of numerical QIDs; 0 for others.
        nulls: Shape (QIDs,), rank of the null, or the number of ranks where there is none.
        wholes: Shape (QIDs,), max - min of a numerical QID's values; -1 for others.
        domains: Shape (QIDs,), float64, distinct values of each QID.
    """

    starts: Numbers
    places: Floats
    nulls: Numbers
    wholes: Floats
    domains: Floats


class Room(NamedTuple):
    """Scratch arrays, made once.

    Attributes:
        stamps: One entry per rank of all QIDs, and a counter.
        lows: Shape (QIDs,), least rank of each QID in the rows at hand; ``highs`` the greatest, ``distinct`` how many there are.
        scores: Shape (QIDs,).
        values: As many entries as the largest domain has: ranks; ``sums`` the records that go with them.
        counts: Shape (2, sensitive codes), all 0; ``present`` which codes are not.
    """

    stamps: Numbers
    lows: Numbers
    highs: Numbers
    distinct: Numbers
    scores: Floats
    values: Numbers
    sums: Numbers
    counts: Numbers
    present: Numbers


class Prices(NamedTuple):
    """Scratch arrays of the score that prices every possible cut.

    Attributes:
        sorted: Shape (rows,), rows by the rank of a QID.
        ends: As many entries as the largest domain has: how many rows up to each rank; ``left_costs`` and ``right_costs``: penalty of the
            rows up to each rank and from it on.
    """

    sorted: NDArray[np.int32]
    ends: Numbers
    left_costs: Floats
    right_costs: Floats


@njit(inline="always")
def goes_left(rows: Rows, row: int, cut: Cut) -> bool:
    """Tells the side of a row. A cut is a QID, the greatest rank of the left half, and the last row of that rank that goes left."""
    rank = np.int64(rows.ranks[row, cut[0]])
    return bool(rank < cut[1] or (rank == cut[1] and rows.order[row] <= cut[2]))


@kernel
def forget(room: Room) -> None:
    """Empties lows, highs and distinct, to be filled row by row."""
    # A new stamp in the place of clearing: the array is as long as all domains together, and nodes are many and small.
    room.stamps[-1] += 1
    room.lows[:] = 1 << 40
    room.highs[:] = -1
    room.distinct[:] = 0


@njit(inline="always")
def take_in(rows: Rows, row: int, scale: Scale, room: Room) -> None:
    """Adds a row to lows, highs and distinct."""
    mark = room.stamps[-1]
    for qid in range(rows.ranks.shape[1]):
        rank = np.int64(rows.ranks[row, qid])
        if room.stamps[scale.starts[qid] + rank] != mark:
            room.stamps[scale.starts[qid] + rank] = mark
            room.distinct[qid] += 1
            room.lows[qid] = min(room.lows[qid], rank)
            room.highs[qid] = max(room.highs[qid], rank)


@kernel
def weigh(rows: Rows, bounds: Bounds, qid: int, low: int, high: int, room: Room) -> int:
    """Adds up the records of each rank of a QID in a node.

    Args:
        rows: All rows.
        bounds: First row of the node and one past its last.
        qid: The column.
        low: Its least rank there.
        high: Its greatest.
        room: ``values`` gets the ranks that occur, ascending, ``sums`` their records.

    Returns:
        How many ranks occur.
    """
    first, end = bounds
    values, sums = room.values, room.sums
    size: int = whole(0)
    if high - low <= 4 * (end - first) + 64:
        sums[: high - low + 1] = 0
        for row in range(first, end):
            sums[np.int64(rows.ranks[row, qid]) - low] += rows.weights[row]
        for offset in range(high - low + 1):
            if sums[offset] > 0:
                values[size], sums[size] = low + offset, sums[offset]
                size += 1
        return size
    # Few rows over a wide domain: sorting them costs less than walking through it.
    for offset in np.argsort(rows.ranks[first:end, qid].astype(np.int64)):
        rank = np.int64(rows.ranks[first + offset, qid])
        if size == 0 or values[size - 1] != rank:
            values[size], sums[size] = rank, 0
            size += 1
        sums[size - 1] += rows.weights[first + offset]
    return size


@kernel
def split(rows: Rows, bounds: Bounds, cut: Cut) -> int:
    """Moves the rows of the left half to the front of a node, in place; returns where the right half starts."""
    first, last = bounds[0], bounds[1] - 1
    while True:
        while first <= last and goes_left(rows, first, cut):
            first += 1
        while first <= last and not goes_left(rows, last, cut):
            last -= 1
        if first >= last:
            return first
        for qid in range(rows.ranks.shape[1]):
            # Swaps mix up the rows of a half, which is why ties are told by rows.order and nothing by place.
            rows.ranks[first, qid], rows.ranks[last, qid] = rows.ranks[last, qid], rows.ranks[first, qid]
        for column in range(rows.sensitive.shape[1]):
            rows.sensitive[first, column], rows.sensitive[last, column] = rows.sensitive[last, column], rows.sensitive[first, column]
        rows.weights[first], rows.weights[last] = rows.weights[last], rows.weights[first]
        rows.order[first], rows.order[last] = rows.order[last], rows.order[first]
        first += 1
        last -= 1
