"""Mondrian's cuts, compiled by numba: rows are partitioned in place, a node is a range of rows, and a stack takes the place of recursion."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ranks = NDArray[np.unsignedinteger[Any]]
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Order = NDArray[np.int32]
Sensitive = NDArray[np.int32]

REPRESENTATIVITY, ENTROPY, SPAN, NORMALISED_SPAN, NCP = range(5)
STRICT, MEDIAN, RELAXED = range(3)
NO_CUT = (-1, -1, -1)
ALL_TIES = np.int64(1) << 40


@njit(cache=True, nogil=True)
def keeps(weight: int, counts: Numbers, present: Numbers, size: int, rules: Numbers) -> bool:
    """Tells whether a class keeps the privacy model; called once per sensitive column, or once without any.

    This is the one place that a further model has to be written into.

    Args:
        weight: Records of the class.
        counts: Records by sensitive code; 0 but for ``present``.
        present: The codes that occur, in its first ``size`` entries.
        size: How many there are.
        rules: k, and the l of distinct l-diversity.
    """
    return weight >= rules[0] and (rules[1] <= 1 or size >= rules[1])


@njit(cache=True, nogil=True)
def extents(ranks: Ranks, first: int, end: int, starts: Numbers, stamps: Numbers, lows: Numbers, highs: Numbers, distinct: Numbers) -> None:
    """Finds the least and greatest rank of each QID among the rows ``first`` to ``end``, and how many distinct ones there are.

    Args:
        ranks: Shape (rows, QIDs).
        first: The first row.
        end: One past the last row.
        starts: Shape (QIDs + 1,), where each QID's part of ``stamps`` starts.
        stamps: One entry per rank of all QIDs and a counter, the last one; written to.
        lows: Shape (QIDs,), written to.
        highs: Shape (QIDs,), written to.
        distinct: Shape (QIDs,), written to.
    """
    stamps[-1] += 1
    mark = stamps[-1]
    qids = ranks.shape[1]
    for qid in range(qids):
        lows[qid] = highs[qid] = np.int64(ranks[first, qid])
        distinct[qid] = 0
    for row in range(first, end):
        for qid in range(qids):
            rank = np.int64(ranks[row, qid])
            lows[qid] = min(lows[qid], rank)
            highs[qid] = max(highs[qid], rank)
            if stamps[starts[qid] + rank] != mark:
                stamps[starts[qid] + rank] = mark
                distinct[qid] += 1


@njit(cache=True, nogil=True)
def width(low: int, high: int, distinct: int, first: int, places: Floats, null: int, whole: float) -> float:
    """Returns how far the values of a QID reach: max - min of numbers, the number of distinct values of others.

    Numbers beside a null reach as far as all numbers do, because ``*`` is all that could be published for them.
    """
    if whole < 0:
        return np.float64(distinct)
    if high == null:
        return 0.0 if low == null else whole
    return places[first + high] - places[first + low]


@njit(cache=True, nogil=True)
def penalty(low: int, high: int, distinct: int, first: int, size: int, places: Floats, null: int, whole: float) -> float:
    """Returns the NCP of a QID in a class (eq. 3): range over range of numbers, else distinct values over domain; 0 for one value."""
    if low == high:
        return 0.0
    if whole < 0:
        return distinct / size
    if high == null or whole == 0:
        return 1.0
    return (places[first + high] - places[first + low]) / whole


@njit(cache=True, nogil=True)
def weigh(ranks: Ranks, weights: Numbers, first: int, end: int, qid: int, low: int, high: int, values: Numbers, sums: Numbers) -> int:
    """Adds up the records of each rank of a QID; returns how many ranks occur, and writes them, ascending, with their records.

    Args:
        ranks: Shape (rows, QIDs).
        weights: Shape (rows,), records per row.
        first: The first row.
        end: One past the last row.
        qid: The column.
        low: Its least rank in these rows.
        high: Its greatest.
        values: Room for as many ranks as a QID has, written to.
        sums: The same, written to.
    """
    size = 0
    if high - low <= 4 * (end - first) + 64:
        sums[: high - low + 1] = 0
        for row in range(first, end):
            sums[np.int64(ranks[row, qid]) - low] += weights[row]
        for offset in range(high - low + 1):
            if sums[offset] > 0:
                values[size] = low + offset
                sums[size] = sums[offset]
                size += 1
        return size
    # Few rows over a wide domain: sorting them costs less than walking through it.
    for row in first + np.argsort(ranks[first:end, qid]):
        rank = np.int64(ranks[row, qid])
        if size == 0 or values[size - 1] != rank:
            values[size] = rank
            sums[size] = 0
            size += 1
        sums[size - 1] += weights[row]
    return size


@njit(cache=True, nogil=True)
def entropy(sums: Numbers, size: int, weight: int) -> float:
    """Returns the Shannon entropy, in nats, of the distribution of the records over ranks."""
    total = 0.0
    for index in range(size):
        share = sums[index] / weight
        total -= share * log(share)
    return total


@njit(cache=True, nogil=True)
def halves_keep(
    ranks: Ranks, weights: Numbers, sensitive: Sensitive, order: Order, bounds: tuple[int, int], cut: tuple[int, int, int], left: int,
    weight: int, rules: Numbers, counts: Numbers, present: Numbers,
) -> bool:  # fmt: skip
    """Tells whether both halves of a cut keep the privacy model.

    Args:
        ranks: Shape (rows, QIDs).
        weights: Shape (rows,).
        sensitive: Shape (rows, sensitive columns), codes.
        order: Shape (rows,), the number that a row was given.
        bounds: First row and one past the last.
        cut: QID, greatest rank of the left half, and up to which row's number rows of that rank go left.
        left: Records of the left half.
        weight: Records of both.
        rules: As for ``keeps``.
        counts: Shape (2, codes), all 0, left as it was.
        present: Shape (2, codes).
    """
    if sensitive.shape[1] == 0:
        return keeps(left, counts[0], present[0], 0, rules) and keeps(weight - left, counts[1], present[1], 0, rules)
    kept = True
    for column in range(sensitive.shape[1]):
        left_size = right_size = 0
        for row in range(bounds[0], bounds[1]):
            code = sensitive[row, column]
            rank = np.int64(ranks[row, cut[0]])
            if rank < cut[1] or (rank == cut[1] and order[row] <= cut[2]):
                if counts[0, code] == 0:
                    present[0, left_size] = code
                    left_size += 1
                counts[0, code] += weights[row]
            else:
                if counts[1, code] == 0:
                    present[1, right_size] = code
                    right_size += 1
                counts[1, code] += weights[row]
        kept = keeps(left, counts[0], present[0], left_size, rules) and keeps(weight - left, counts[1], present[1], right_size, rules)
        for index in range(left_size):
            counts[0, present[0, index]] = 0
        for index in range(right_size):
            counts[1, present[1, index]] = 0
        if not kept:
            break
    return kept
