"""Scores of QIDs, and the penalty that every possible cut of a node would save.

Compiled by numba.
"""

from __future__ import annotations

from math import log

import numpy as np

from core.mondrian.halves import is_allowed_cut
from core.mondrian.rows import (
    ALL_TIES,
    NO_CUT,
    Bounds,
    Cut,
    CutBuffers,
    CutPrices,
    CutScale,
    Floats,
    Numbers,
    PersonsByRow,
    Rows,
    order_of_rows,
    sum_records_by_rank,
    whole,
)
from core.privacy.kernels import Demands, kernel
from core.recoding.price_kernels import UNIT, column_price

REPRESENTATIVITY, ENTROPY, SPAN, NORMALISED_SPAN, NCP = range(5)


@kernel
def span_in_node(qid: int, scale: CutScale, room: CutBuffers) -> float:
    """Return a QID's span, by extents in ``room``: max - min of numbers, else the number of values.

    Numbers with a null have the span of all numbers, so that nulls are cut off first.
    """
    if scale.scale_totals[qid] < 0:
        return np.float64(room.distinct[qid])
    if room.highs[qid] == scale.nulls[qid]:
        return 0.0 if room.lows[qid] == scale.nulls[qid] else float(scale.scale_totals[qid])
    first = scale.starts[qid]
    return float(scale.positions[first + room.highs[qid]] - scale.positions[first + room.lows[qid]])


@kernel
def entropy(sums: Numbers, size: int, weight: int) -> float:
    """Return the Shannon entropy, in nats, of the first ``size`` sums of records, all above 0."""
    total = 0.0
    for index in range(size):
        share = sums[index] / weight
        total -= share * log(share)
    return total


@kernel
def score_of(score: int, qid: int, rows: Rows, bounds: Bounds, weight: int, scale: CutScale, room: CutBuffers) -> float:
    """Return a QID's score in a node, by extents in ``room``; the QID of the highest score is cut.

    REPRESENTATIVITY is eq. 1. The QID has two values or more.

    SPAN is eq. 1 without its denominator; NORMALISED_SPAN counts ranks, of whatever kind the QID is; ENTROPY is that of the records.
    """
    if score == ENTROPY:
        return entropy(room.sums, sum_records_by_rank(rows, bounds, qid, room.lows[qid], room.highs[qid], room), weight)
    if score == NORMALISED_SPAN:
        # Two values are in the node, so the domain has two and this is never a division by 0.
        return float((room.highs[qid] - room.lows[qid]) / (scale.domains[qid] - 1))
    if score == SPAN:
        return span_in_node(qid, scale, room)
    whole = scale.scale_totals[qid] if scale.scale_totals[qid] >= 0 else scale.domains[qid]
    return float(span_in_node(qid, scale, room) / whole) if whole > 0 else 1.0


@kernel
def sort_rows(rows: Rows, bounds: Bounds, qid: int, size: int, room: CutBuffers, prices: CutPrices) -> None:
    """Write the rows of a node, sorted by rank of a QID, and their number up to each rank into ``prices``.

    The rows go into ``prices.sorted``, the numbers into ``prices.ends``.

    Args:
        size: How many ranks ``room.values`` holds for it.
        prices: Written to.
    """
    first, end = bounds
    low, high = room.values[0], room.values[size - 1]
    if high - low > 4 * (end - first) + 64:
        index = whole(0)
        for at, offset in enumerate(order_of_rows(rows, bounds, qid)):
            prices.sorted[at] = first + offset
            if np.int64(rows.ranks[first + offset, qid]) != room.values[index]:
                index += 1
            prices.ends[index] = at + 1
        return
    after = np.zeros(high - low + 2, np.int32)
    for row in range(first, end):
        # A counting sort: ranks lie close together, and no comparison is made.
        after[np.int64(rows.ranks[row, qid]) - low + 1] += 1
    for offset in range(1, high - low + 2):
        after[offset] += after[offset - 1]
    for row in range(first, end):
        offset = np.int64(rows.ranks[row, qid]) - low
        prices.sorted[after[offset]] = row
        after[offset] += 1
    for index in range(size):
        prices.ends[index] = after[room.values[index] - low]


@kernel
def ncp_in_class(qid: int, low: int, high: int, null: bool, distinct_values: int, scale: CutScale) -> float:
    """Return the NCP of a QID in a class (eq. 3); 0 for a single value.

    It is range over range for numbers, else distinct values over domain size.

    Beside a null the label of numbers stands for one value more (`core.recoding.labels.penalties_with_null`).

    Args:
        low: The least rank of a value; above ``high`` where there is none.
        high: The greatest.
        null: Whether a null is among them; only asked of numbers.
        distinct_values: Different ranks, the null's too; only asked of what is no number.
        scale: What the penalty is relative to.
    """
    if scale.scale_totals[qid] < 0:
        return float(distinct_values / scale.domains[qid]) if distinct_values > 1 else 0.0
    if low > high or (low == high and not null):
        return 0.0
    first, found = scale.starts[qid], 0.0
    if scale.scale_totals[qid] > 0:
        found = (scale.positions[first + high] - scale.positions[first + low]) / scale.scale_totals[qid]
    one = 1.0 / scale.domains[qid]
    return min(max(found, one) + one, 1.0) if null else float(found)


@kernel
def cheapest_cut(
    rows: Rows,
    bounds: Bounds,
    weight: int,
    scale: CutScale,
    k: int,
    demands: Demands | None,
    people: PersonsByRow | None,
    room: CutBuffers,
    prices: CutPrices,
) -> Cut:
    """Return the allowed cut that lowers a node's NCP most, over all QIDs and values, or NO_CUT.

    Of equal cuts the first is taken; NO_CUT if no allowed cut lowers it.

    Args:
        weight: Records of the node.
        scale: What the penalty is relative to.
        k: Records that both halves must have.
        demands: What both halves must keep besides; None for nothing.
        room: With the extents of the node.
    """
    best, least = NO_CUT, -1.0
    qids = room.lows.shape[0]
    for qid in range(qids):
        if room.distinct[qid] < 2:
            continue
        size = sum_records_by_rank(rows, bounds, qid, room.lows[qid], room.highs[qid], room)
        sort_rows(rows, bounds, qid, size, room, prices)
        prices.left_costs[:size] = 0.0
        prices.right_costs[:size] = 0.0
        for other in range(qids):
            _add_costs(rows, other, size, whole(1), scale, prices.left_costs, room, prices)
            _add_costs(rows, other, size, whole(-1), scale, prices.right_costs, room, prices)
        if least < 0:
            # What is on the left of the last rank is the whole node.
            least = prices.left_costs[size - 1] * weight
        left = whole(0)
        # The last rank is no cut: nothing would be left on its right.
        for index in range(size - 1):
            left += room.sums[index]
            cost = left * prices.left_costs[index] + (weight - left) * prices.right_costs[index + 1]
            if cost < least:
                cut = (qid, room.values[index], ALL_TIES)
                if is_allowed_cut(rows, bounds, cut, left, weight, k, demands, people, room):
                    best, least = cut, cost
    return best


@kernel
def _add_costs(rows: Rows, qid: int, size: int, step: int, scale: CutScale, costs: Floats, room: CutBuffers, prices: CutPrices) -> None:
    """Add the penalty of one QID to the price of each cut between sorted rows, for one half.

    Args:
        size: How many ranks the sorted rows have.
        step: 1 for the halves up to each rank, -1 for those from it on.
        scale: What the penalty is relative to.
        costs: Penalty per record by rank, added to.
        room: With the extents of the node.
    """
    ranks, order, ends, stamps = rows.ranks, prices.sorted, prices.ends, room.stamps
    share, places, terms, numbers = (
        prices.label_prices.shares[qid],
        prices.label_prices.label_positions,
        prices.label_prices.terms,
        prices.label_prices.numbers,
    )
    column, every = prices.label_prices.columns[qid], room.distinct[qid]
    if every == 1:
        return
    stamps[-1] += 1
    mark, first, missing = stamps[-1], scale.starts[qid], scale.nulls[qid]
    low, high, null, distinct, cost = whole(1 << 40), whole(-1), False, whole(0), 0.0
    before, least, greatest = whole(1 << 40), whole(1 << 40), whole(-1)
    index = whole(0) if step > 0 else whole(size - 1)
    for _ in range(size):
        begin = ends[index - 1] if index > 0 else whole(0)
        met = distinct
        # Once all values of the node are in, nothing that follows can cost more.
        if distinct < every:
            for at in range(begin, ends[index]):
                rank = np.int64(ranks[order[at], qid])
                if stamps[first + rank] == mark:
                    continue
                stamps[first + rank] = mark
                distinct += 1
                if rank == missing:
                    null = True
                else:
                    low, high = min(low, rank), max(high, rank)
                before = min(before, places[first + rank, 0])
                least, greatest = min(least, places[first + rank, 1]), max(greatest, places[first + rank, 1])
        if distinct > met:
            cost = (1.0 - share) * ncp_in_class(qid, low, high, null, distinct, scale)
            if share > 0:
                cost += share * column_price(terms, numbers, column, least, greatest, distinct, before, distinct) / UNIT
        costs[index] += cost
        index += step
