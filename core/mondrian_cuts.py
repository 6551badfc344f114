"""Which cut Mondrian makes of a node, and all cuts of all nodes, compiled by numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.mondrian_kernels import (
    ALL_TIES, ENTROPY, NCP, NO_CUT, NORMALISED_SPAN, RELAXED, SPAN, STRICT, Floats, Numbers, Order, Ranks, Sensitive, entropy, extents,
    halves_keep, penalty, weigh, width,
)  # fmt: skip

Cut = tuple[int, int, int]


class Rows(NamedTuple):
    """The rows that are partitioned: cells with their records, or single records.

    Attributes:
        ranks: Shape (rows, QIDs), uint16 or uint32: position of the value in the order of its QID.
        weights: Shape (rows,), int64: records.
        sensitive: Shape (rows, sensitive columns), int32 codes; no columns where the privacy model needs none.
        order: Shape (rows,), int32: the number that a row was given; the order among equal ranks.
    """

    ranks: Ranks
    weights: Numbers
    sensitive: Sensitive
    order: Order


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
    """Scratch arrays, made once."""

    stamps: Numbers
    lows: Numbers
    highs: Numbers
    distinct: Numbers
    scores: Floats
    values: Numbers
    sums: Numbers
    counts: Numbers
    present: Numbers


@njit(cache=True, nogil=True)
def score_of(score: int, qid: int, weight: int, scale: Scale, room: Room, size: int) -> float:
    """Returns how much a QID of the node at hand asks to be cut."""
    low, high, distinct = room.lows[qid], room.highs[qid], room.distinct[qid]
    if score == ENTROPY:
        return entropy(room.sums, size, weight)
    if score == NORMALISED_SPAN:
        return (high - low) / (scale.domains[qid] - 1)
    reach = width(low, high, distinct, scale.starts[qid], scale.places, scale.nulls[qid], scale.wholes[qid])
    if score == SPAN:
        return reach
    whole = scale.wholes[qid] if scale.wholes[qid] >= 0 else scale.domains[qid]
    return reach / whole if whole > 0 else 1.0


@njit(cache=True, nogil=True)
def allowed(
    rows: Rows, bounds: tuple[int, int], cut: Cut, left: int, weight: int, rules: Numbers, room: Room
) -> bool:
    """Tells whether a cut may be made: k first, because it costs nothing."""
    if left < rules[0] or weight - left < rules[0]:
        return False
    return halves_keep(
        rows.ranks, rows.weights, rows.sensitive, rows.order, bounds, cut, left, weight, rules, room.counts, room.present
    )


@njit(cache=True, nogil=True)
def median_cut(rows: Rows, bounds: tuple[int, int], qid: int, size: int, weight: int, mode: int, rules: Numbers, room: Room) -> Cut:
    """Cuts a QID at its median by weight; where that may not be, just below the median value.

    Args:
        rows: All rows.
        bounds: First row of the node and one past its last.
        qid: The QID.
        size: How many ranks ``room.values`` and ``room.sums`` hold for it.
        weight: Records of the node.
        mode: STRICT, MEDIAN (never below the median value), or RELAXED (rows of the median value are shared out, so that halves are even).
        rules: What both halves must keep.
        room: Scratch.
    """
    left, at = room.sums[0], 0
    while 2 * left < weight:
        at += 1
        left += room.sums[at]
    value = room.values[at]
    if mode == RELAXED:
        half = (weight + 1) // 2
        tied = half - (left - room.sums[at])
        tie = ALL_TIES if tied == room.sums[at] else _tie(rows, bounds, qid, value, tied)
        cut = (qid, value, tie)
        return cut if allowed(rows, bounds, cut, half, weight, rules, room) else NO_CUT
    cut = (qid, value, ALL_TIES)
    if at < size - 1 and allowed(rows, bounds, cut, left, weight, rules, room):
        return cut
    if at > 0 and mode == STRICT:
        cut = (qid, room.values[at - 1], ALL_TIES)
        if allowed(rows, bounds, cut, left - room.sums[at], weight, rules, room):
            return cut
    return NO_CUT


@njit(cache=True, nogil=True)
def _tie(rows: Rows, bounds: tuple[int, int], qid: int, value: int, tied: int) -> int:
    """Returns the number of the last of the first ``tied`` rows of a value; every row is one record."""
    numbers = np.empty(bounds[1] - bounds[0], np.int64)
    size = 0
    for row in range(bounds[0], bounds[1]):
        if np.int64(rows.ranks[row, qid]) == value:
            numbers[size] = rows.order[row]
            size += 1
    return np.sort(numbers[:size])[tied - 1]


@njit(cache=True, nogil=True)
def node_penalty(scale: Scale, room: Room) -> float:
    total = 0.0
    for qid in range(room.lows.shape[0]):
        total += penalty(
            room.lows[qid], room.highs[qid], room.distinct[qid], scale.starts[qid], scale.domains[qid], scale.places, scale.nulls[qid], scale.wholes[qid]
        )
    return total

@njit(cache=True, nogil=True)
def grow(rows, row, scale, room, mark):
    for qid in range(rows.ranks.shape[1]):
        rank = np.int64(rows.ranks[row, qid])
        if rank < room.lows[qid]:
            room.lows[qid] = rank
        if rank > room.highs[qid]:
            room.highs[qid] = rank
        if room.stamps[scale.starts[qid] + rank] != mark:
            room.stamps[scale.starts[qid] + rank] = mark
            room.distinct[qid] += 1

@njit(cache=True, nogil=True)
def ncp_cut(rows, bounds, scale, weight, rules, room):
    first, end = bounds
    n = end - first
    qids = rows.ranks.shape[1]
    lows0 = room.lows.copy(); highs0 = room.highs.copy(); distinct0 = room.distinct.copy()
    whole = node_penalty(scale, room) * weight
    best = NO_CUT
    best_gain = 0.0
    for qid in range(qids):
        if distinct0[qid] < 2:
            continue
        room.lows[:] = lows0; room.highs[:] = highs0
        size = weigh(rows.ranks, rows.weights, first, end, qid, lows0[qid], highs0[qid], room.values, room.sums)
        order = first + np.argsort(rows.ranks[first:end, qid], kind="mergesort")
        left_cost = np.empty(size); left_weight = np.empty(size, np.int64)
        # forward
        room.stamps[-1] += 1
        mark = room.stamps[-1]
        room.lows[:] = 1 << 40; room.highs[:] = -1; room.distinct[:] = 0
        at = 0; w = 0
        for i in range(size):
            while at < n and np.int64(rows.ranks[order[at], qid]) == room.values[i]:
                grow(rows, order[at], scale, room, mark); at += 1
            w += room.sums[i]
            left_weight[i] = w
            left_cost[i] = node_penalty(scale, room) * w
        room.stamps[-1] += 1
        mark = room.stamps[-1]
        room.lows[:] = 1 << 40; room.highs[:] = -1; room.distinct[:] = 0
        at = n - 1; w = 0
        for i in range(size - 1, 0, -1):
            while at >= 0 and np.int64(rows.ranks[order[at], qid]) == room.values[i]:
                grow(rows, order[at], scale, room, mark); at -= 1
            w += room.sums[i]
            if w < rules[0] or weight - w < rules[0]:
                continue
            gain = whole - left_cost[i - 1] - node_penalty(scale, room) * w
            if gain > best_gain:
                cut = (qid, room.values[i - 1], ALL_TIES)
                if allowed(rows, bounds, cut, weight - w, weight, rules, room):
                    best = cut; best_gain = gain
    return best


@njit(cache=True, nogil=True)
def choose_cut(
    rows: Rows, bounds: tuple[int, int], scale: Scale, score: int, mode: int, rules: Numbers, room: Room
) -> Cut:
    """Returns the cut of a node: of the QID of highest score that has an allowed one (ties: most distinct values, then job order)."""
    first, end = bounds
    weight = rows.weights[first:end].sum()
    if weight < 2 * rules[0] or end - first < 2:
        return NO_CUT
    extents(rows.ranks, first, end, scale.starts, room.stamps, room.lows, room.highs, room.distinct)
    if score == NCP:
        return ncp_cut(rows, bounds, scale, weight, rules, room)
    qids = rows.ranks.shape[1]
    for qid in range(qids):
        room.scores[qid] = -1.0
        if room.distinct[qid] > 1:
            size = 0
            if score == ENTROPY:
                size = weigh(rows.ranks, rows.weights, first, end, qid, room.lows[qid], room.highs[qid], room.values, room.sums)
            room.scores[qid] = score_of(score, qid, weight, scale, room, size)
    for _ in range(qids):
        best = 0
        for qid in range(1, qids):
            more = room.scores[qid] == room.scores[best] and room.distinct[qid] > room.distinct[best]
            if room.scores[qid] > room.scores[best] or more:
                best = qid
        if room.scores[best] < 0:
            break
        size = weigh(rows.ranks, rows.weights, first, end, best, room.lows[best], room.highs[best], room.values, room.sums)
        cut = median_cut(rows, bounds, best, size, weight, mode, rules, room)
        if cut[0] >= 0:
            return cut
        room.scores[best] = -1.0
    return NO_CUT


@njit(cache=True, nogil=True)
def split(rows: Rows, bounds: tuple[int, int], cut: Cut) -> int:
    """Moves the rows of the left half to the front of a node, in place; returns where the right half starts."""
    qid, value, tie = cut
    first, last = bounds[0], bounds[1] - 1
    while True:
        while first <= last and _goes_left(rows, first, qid, value, tie):
            first += 1
        while first <= last and not _goes_left(rows, last, qid, value, tie):
            last -= 1
        if first >= last:
            return first
        for column in range(rows.ranks.shape[1]):
            rows.ranks[first, column], rows.ranks[last, column] = rows.ranks[last, column], rows.ranks[first, column]
        for column in range(rows.sensitive.shape[1]):
            held = rows.sensitive[first, column]
            rows.sensitive[first, column] = rows.sensitive[last, column]
            rows.sensitive[last, column] = held
        rows.weights[first], rows.weights[last] = rows.weights[last], rows.weights[first]
        rows.order[first], rows.order[last] = rows.order[last], rows.order[first]
        first += 1
        last -= 1


@njit(cache=True, nogil=True)
def _goes_left(rows: Rows, row: int, qid: int, value: int, tie: int) -> bool:
    rank = np.int64(rows.ranks[row, qid])
    return rank < value or (rank == value and rows.order[row] <= tie)


@njit(cache=True, nogil=True)
def cut_all(rows: Rows, scale: Scale, score: int, mode: int, rules: Numbers, room: Room) -> Numbers:
    """Cuts until no cut is allowed; rows are put in the order of their classes.

    Returns:
        Shape (classes + 1,): where each class starts, and the number of rows.
    """
    starts = np.empty(1024, np.int64)
    stack = np.empty((1024, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, rows.ranks.shape[0]
    depth, classes = 1, 0
    while depth:
        depth -= 1
        first, end = stack[depth, 0], stack[depth, 1]
        cut = choose_cut(rows, (first, end), scale, score, mode, rules, room)
        if cut[0] < 0:
            if classes + 1 == starts.shape[0]:
                starts = np.concatenate((starts, np.empty_like(starts)))
            starts[classes] = first
            classes += 1
            continue
        middle = split(rows, (first, end), cut)
        if depth + 2 > stack.shape[0]:
            stack = np.concatenate((stack, np.empty_like(stack)))
        stack[depth, 0], stack[depth, 1] = middle, end
        stack[depth + 1, 0], stack[depth + 1, 1] = first, middle
        depth += 2
    starts[classes] = rows.ranks.shape[0]
    return starts[: classes + 1].copy()
