"""Kernels that choose Mondrian's cut of a node and cut all nodes, compiled by numba.

A stack takes the place of recursion.
"""

from __future__ import annotations

import numpy as np

from core.columns.sorting import ascending_order
from core.mondrian.halves import is_allowed_cut, keeps_without_disclosure
from core.mondrian.rows import (  # fmt: skip
    ALL_TIES,
    NO_CUT,
    Bounds,
    Cut,
    CutBuffers,
    CutPrices,
    CutScale,
    Numbers,
    PersonsByRow,
    Rows,
    find_extents,
    split,
    sum_records_by_rank,
    whole,
    with_doubled_rows,
)
from core.mondrian.scores import cheapest_cut, score_of
from core.privacy.kernels import Demands, kernel

STRICT, MEDIAN, RELAXED = range(3)


@kernel
def median_cut(
    rows: Rows,
    bounds: Bounds,
    qid: int,
    size: int,
    weight: int,
    mode: int,
    k: int,
    demands: Demands | None,
    people: PersonsByRow | None,
    room: CutBuffers,
) -> Cut:
    """Return a QID's allowed median cut; STRICT may cut below the median value, RELAXED within its ties.

    In mode STRICT, where the cut at the median is not allowed, the cut just below the median value is tried.

    Args:
        size: How many ranks ``room.values`` and ``room.sums`` hold for it.
        weight: Records of the node.
        mode: STRICT, MEDIAN (never below the median value) or RELAXED (rows of the median value are shared out, so that halves are even).
        k: Records that both halves must have.
        demands: What both halves must keep besides; None for nothing.
    """
    left, at = room.sums[0], whole(0)
    # In whole numbers, because half of an odd weight is none.
    while 2 * left < weight:
        at += 1
        left += room.sums[at]
    value = room.values[at]
    if mode == RELAXED:
        half = (weight + 1) // 2
        tied = half - (left - room.sums[at])
        cut = (qid, value, ALL_TIES if tied == room.sums[at] else _last_tied(rows, bounds, qid, value, tied))
        return cut if is_allowed_cut(rows, bounds, cut, half, weight, k, demands, people, room) else NO_CUT
    if at < size - 1:
        cut = (qid, value, ALL_TIES)
        if is_allowed_cut(rows, bounds, cut, left, weight, k, demands, people, room):
            return cut
    # Where the median value is so frequent that nothing safe is left on its right, all of it may go there.
    if at > 0 and mode == STRICT:
        cut = (qid, room.values[at - 1], ALL_TIES)
        if is_allowed_cut(rows, bounds, cut, left - room.sums[at], weight, k, demands, people, room):
            return cut
    return NO_CUT


@kernel
def _last_tied(rows: Rows, bounds: Bounds, qid: int, value: int, tied: int) -> int:
    """Return the number of the last of the first ``tied`` rows that have a given rank.

    Every row is one record.
    """
    # Earlier cuts have moved the rows: their numbers decide which come first, not their positions.
    ranks, order = rows.ranks, rows.order
    numbers = np.empty(bounds[1] - bounds[0], np.int64)
    size = whole(0)
    for row in range(bounds[0], bounds[1]):
        if np.int64(ranks[row, qid]) == value:
            numbers[size] = order[row]
            size += 1
    return int(numbers[ascending_order(numbers[:size])[tied - 1]])


@kernel
def choose_cut(
    rows: Rows,
    bounds: Bounds,
    scale: CutScale,
    score: int,
    mode: int,
    k: int,
    demands: Demands | None,
    people: PersonsByRow | None,
    room: CutBuffers,
    prices: CutPrices | None,
) -> Cut:
    """Return the cut of a node at the QID of the highest score that has an allowed one, or NO_CUT.

    Ties go to the QID with more distinct values, then to the first in job order.

    Where ``prices`` is given, every possible cut is priced instead. numba leaves out what None excludes, so that only what a job asks for
    is compiled.
    """
    weight = whole(0)
    for row in range(bounds[0], bounds[1]):
        weight += rows.weights[row]
    # Most nodes are leaves: they are settled before anything is measured.
    if weight < 2 * k or bounds[1] - bounds[0] < 2:
        return NO_CUT
    find_extents(rows, bounds, scale, room)
    if prices is not None:
        return cheapest_cut(rows, bounds, weight, scale, k, demands, people, room, prices)
    qids = rows.ranks.shape[1]
    for qid in range(qids):
        room.scores[qid] = score_of(score, qid, rows, bounds, weight, scale, room) if room.distinct[qid] > 1 else -1.0
    for _ in range(qids):
        best = whole(0)
        for qid in range(1, qids):
            more = room.scores[qid] == room.scores[best] and room.distinct[qid] > room.distinct[best]
            if more or room.scores[qid] > room.scores[best]:
                best = qid
        if room.scores[best] < 0:
            break
        size = sum_records_by_rank(rows, bounds, best, room.lows[best], room.highs[best], room)
        cut = median_cut(rows, bounds, best, size, weight, mode, k, demands, people, room)
        if cut[0] >= 0:
            return cut
        room.scores[best] = -1.0
    return NO_CUT


@kernel
def cut_of(
    rows: Rows,
    bounds: Bounds,
    scale: CutScale,
    score: int,
    mode: int,
    k: int,
    demands: Demands | None,
    stop_demands: Demands | None,
    people: PersonsByRow | None,
    room: CutBuffers,
    prices: CutPrices | None,
) -> Cut:
    """Return the cut of a node, or NO_CUT where none is allowed or a refused cut ends it.

    Args:
        scale: What spans are relative to.
        score: What chooses the QID.
        mode: STRICT, MEDIAN or RELAXED.
        k: Persons or records that both halves must have.
        demands: What they must keep besides, where a refused cut is followed by the next best; None for nothing.
        stop_demands: The same where the best cut that k allows is the only one, and a refusal ends it; None for nothing.
        people: Whose the records are.
        room: Scratch.
        prices: Of the score that prices every cut.
    """
    cut = choose_cut(rows, bounds, scale, score, mode, k, demands, people, room, prices)
    if stop_demands is not None and cut[0] >= 0 and not keeps_without_disclosure(rows, bounds, cut, stop_demands, people, room):
        return NO_CUT
    return cut


@kernel
def cut_all(
    rows: Rows,
    small: int,
    scale: CutScale,
    score: int,
    mode: int,
    k: int,
    demands: Demands | None,
    stop_demands: Demands | None,
    people: PersonsByRow | None,
    room: CutBuffers,
    prices: CutPrices | None,
) -> Numbers:
    """Cut nodes until no cut is allowed or a refusal ends it, reordering ``rows``; return class starts.

    Args:
        small: Nodes of at most so many rows are not cut, for another thread to cut; 0 for none.
        scale: As of ``cut_of``, like all that follows.

    Returns:
        Shape (classes + 1,): where each class, or node that was left, starts, and the number of rows.
    """
    starts = np.empty(1024, np.int64)
    # Cuts that take one class off at a time nest as deep as there are classes; a stack of its own can grow.
    qids = rows.ranks.shape[1]
    stack = np.empty((1024, 2 + qids), np.int64)
    stack[0, 0], stack[0, 1] = 0, rows.ranks.shape[0]
    for qid in range(qids):
        stack[0, 2 + qid] = room.most[qid]
    depth, classes = whole(1), whole(0)
    while depth:
        depth -= 1
        first, end = stack[depth, 0], stack[depth, 1]
        for qid in range(qids):
            room.most[qid] = stack[depth, 2 + qid]
        cut = NO_CUT
        if end - first > small:
            cut = cut_of(rows, (first, end), scale, score, mode, k, demands, stop_demands, people, room, prices)
        if cut[0] < 0:
            if classes + 1 == starts.shape[0]:
                longer = np.empty(2 * classes + 2, np.int64)
                for at in range(classes):
                    longer[at] = starts[at]
                starts = longer
            starts[classes] = first
            classes += 1
            continue
        middle = split(rows, (first, end), cut, room)
        if depth + 2 > stack.shape[0]:
            stack = with_doubled_rows(stack)
        # The left half is taken next, so that classes come in the order of their rows and starts ascend.
        stack[depth, 0], stack[depth, 1] = middle, end
        stack[depth + 1, 0], stack[depth + 1, 1] = first, middle
        for qid in range(qids):
            stack[depth, 2 + qid] = stack[depth + 1, 2 + qid] = room.distinct[qid]
        depth += 2
    starts[classes] = rows.ranks.shape[0]
    return starts[: classes + 1].copy()
