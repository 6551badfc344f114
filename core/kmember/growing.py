"""Greedy k-member clustering (Byun and others 2007), compiled by numba.

Efficient k-anonymization using clustering techniques, DASFAA 2007.
"""

from __future__ import annotations

import numpy as np

from core.kmember.set_labels import (
    NEVER,
    CodedRecords,
    SetLabels,
    copy_set_label,
    extend_set_label,
    kernel,
    price_with,
    set_label_arrays,
    set_label_price,
    start_set_label,
)
from core.kmember.tables import price_values
from core.recoding.price_kernels import Numbers, Prices, RankPositions, whole


@kernel
def grow_classes(
    records: CodedRecords, rows: RankPositions, k: int, prices: Prices, owners: RankPositions, numbers: Numbers, word_count: int
) -> int:
    """Grow classes from seeds by the record that costs least, written to ``owners``; return their number.

    The last record not yet in a class is the next seed. Records too few for a class join the classes whose price they raise least.

    Args:
        records: Of the block.
        rows: The records, at least k, of k persons; in the order that decides ties.
        k: Persons or records of a class.
        prices: What labels cost.
        owners: Shape (n,), int32: gets the class of each of the records.
        numbers: What classes are called, in the order in which they are made; as many as there may be.
        word_count: For the bits of values.

    Returns:
        How many classes there are.
    """
    left, size = rows.copy(), rows.shape[0]
    most = size // k
    set_labels, sizes = set_label_arrays(most + 1, records.positions.shape[1], word_count), np.zeros(most, np.int64)
    made, costs = whole(0), np.zeros((records.firsts.shape[0], 1), np.int32)
    while size >= k:
        filled, size = _grow_one(records, left, size, k, prices, set_labels, made, costs)
        if filled == 0:
            break
        for at in range(size, size + filled):
            owners[left[at]] = numbers[made]
        sizes[made] = filled
        made += 1
    for at in range(size):
        nearest = _cheapest(records, whole(left[at]), prices, set_labels, sizes, made)
        owners[left[at]] = numbers[nearest]
        extend_set_label(set_labels, nearest, records, whole(left[at]))
        sizes[nearest] += 1
    return int(made)


@kernel
def _grow_one(
    records: CodedRecords, left: RankPositions, size: int, k: int, prices: Prices, set_labels: SetLabels, made: int, costs: RankPositions
) -> tuple[int, int]:
    """Grow one class and move its records behind the ungrouped ones.

    Returns:
        How many it has, and how many are left; where it has no k persons, none, and all are.
    """
    end = size
    size = _seed(records, left, size)
    if size == end:
        return 0, end
    start_set_label(set_labels, made, records, whole(left[size]))
    # The last set label is what the class was before; none has a count below 0.
    price, before = whole(0), whole(set_labels.low.shape[0] - 1)
    set_labels.counts[before] = -1
    while end - size < k:
        price_values(set_labels, made, before, records, prices, costs, whole(0))
        best, price = _nearest(records.values, records.people, left, size, end, costs, price)
        if best < 0:
            return 0, end
        size -= 1
        left[best], left[size] = left[size], left[best]
        copy_set_label(set_labels, made, set_labels, before)
        extend_set_label(set_labels, made, records, whole(left[size]))
    return end - size, size


@kernel
def _nearest(
    values: RankPositions, people: RankPositions, left: RankPositions, size: int, end: int, costs: RankPositions, price: int
) -> tuple[int, int]:
    """Return the ungrouped record that makes a class cost least, and that price; -1 if there is none.

    The record is given by its position in ``left``.

    Args:
        values: Of the block.
        people: Of the block.
        left: The records that are left, and behind them those of the class.
        size: How many are left.
        end: Where the class ends.
        costs: Shape (values, 1): what the class costs with each value.
        price: What the class costs now; nothing is less.
    """
    least, best = whole(NEVER), whole(-1)
    for at in range(size):
        row = left[at]
        if _is_in(people, left, size, end, row):
            continue
        found = whole(0)
        for column in range(values.shape[1]):
            found += costs[values[row, column], 0]
        if found < least:
            least, best = found, whole(at)
            if least <= price:
                break
    return int(best), int(least)


@kernel
def _seed(records: CodedRecords, left: RankPositions, size: int) -> int:
    """Move the last record that has a person to the end of the ungrouped ones as the seed of a class.

    Return the number of the others.
    """
    if records.people.shape[0] == 0:
        return size - 1
    for at in range(size - 1, -1, -1):
        if records.people[left[at]] >= 0:
            left[at], left[size - 1] = left[size - 1], left[at]
            return size - 1
    return size


@kernel
def _is_in(people: RankPositions, left: RankPositions, first: int, end: int, row: int) -> bool:
    """Return whether a record has no person, or one who is in the class already.

    It is never so without a person column.
    """
    if people.shape[0] == 0:
        return False
    person = people[row]
    if person < 0:
        return True
    at = first
    while at < end and people[left[at]] != person:
        at += 1
    return at < end


@kernel
def _cheapest(records: CodedRecords, row: int, prices: Prices, set_labels: SetLabels, sizes: Numbers, made: int) -> int:
    """Return the class whose total price a record raises least, the first of equals."""
    least, best = whole(NEVER), whole(0)
    for number in range(made):
        before = set_label_price(set_labels, number, prices) * sizes[number]
        after = price_with(set_labels, number, records, row, prices) * (sizes[number] + 1)
        if after - before < least:
            least, best = after - before, whole(number)
    return int(best)
