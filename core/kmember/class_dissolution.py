"""Kernels that change the number of classes: greedy clustering, class dissolution and splits.

The clustering is that of Byun and others, Efficient k-anonymization using clustering techniques, DASFAA 2007.
"""

from __future__ import annotations

import numpy as np

from core.columns.sorting import ascending_order
from core.kmember.classes import Classes, add_to_class, costs_with, remove_from_class, reprice_class
from core.kmember.set_labels import (
    NEVER,
    CodedRecords,
    SetLabels,
    bitset_words_for,
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


@kernel
def dissolve_classes(records: CodedRecords, prices: Prices, classes: Classes) -> int:
    """Dissolve in place each class whose records cost less in others; return the number dissolved.

    Where labels are groups, records often fit under labels that others publish already.
    """
    count = classes.sizes.shape[0]
    grown, sizes = set_label_arrays(count, records.positions.shape[1], bitset_words_for(records)), np.zeros(count, np.int64)
    costs, given, passes = np.zeros(count, np.int64), np.zeros(count, np.int64), whole(0)
    targets, gone = np.zeros(classes.members.shape[1], np.int64), whole(0)
    for number in range(count):
        if classes.sizes[number] == 0 or classes.prices[number] == 0:
            continue
        passes += 1
        if not _placed(records, prices, classes, whole(number), grown, sizes, costs, given, passes, targets):
            continue
        gone += 1
        size, members = classes.sizes[number], classes.members[number].copy()
        for seat in range(size):
            remove_from_class(classes, whole(members[seat]))
            add_to_class(classes, whole(members[seat]), targets[seat])
        classes.prices[number] = 0
        for other in range(count):
            if given[other] == passes:
                reprice_class(records, prices, classes, whole(other))
    return int(gone)


@kernel
def _placed(
    records: CodedRecords,
    prices: Prices,
    classes: Classes,
    number: int,
    grown: SetLabels,
    sizes: Numbers,
    costs: Numbers,
    given: Numbers,
    passes: int,
    targets: Numbers,
) -> bool:
    """Find a class for each record of a class to dissolve; return whether the total price falls.

    Args:
        prices: What labels cost.
        number: The class.
        grown: Scratch: the set labels of classes that were given a record.
        sizes: Their records.
        costs: Their prices.
        given: Which they are: those with ``passes``.
        passes: A number that no earlier class had.
        targets: Gets the class for each record, by seat.
    """
    left = classes.sizes[number] * classes.prices[number]
    for seat in range(classes.sizes[number]):
        row = whole(classes.members[number, seat])
        least, best = left, whole(-1)
        costs_with(classes.set_labels, classes.costs, records, row, prices, classes.totals)
        for other in range(classes.sizes.shape[0]):
            new = given[other] != passes
            size = classes.sizes[other] if new else sizes[other]
            if other == number or size == 0 or size >= classes.most[0]:
                continue
            cost = classes.prices[other] if new else costs[other]
            found = classes.totals[other] if new else price_with(grown, other, records, row, prices)
            if (size + 1) * found - size * cost < least:
                least, best = (size + 1) * found - size * cost, whole(other)
        if best < 0:
            return False
        left -= least
        targets[seat] = best
        if given[best] != passes:
            given[best], sizes[best] = passes, classes.sizes[best]
            copy_set_label(classes.set_labels, best, grown, best)
        extend_set_label(grown, best, records, row)
        sizes[best] += 1
        costs[best] = set_label_price(grown, best, prices)
    return bool(left > 0)


@kernel
def split_grown(records: CodedRecords, prices: Prices, classes: Classes, k: int) -> int:
    """Split in place each class of 2k records or more into as many as it can give; return how many split.

    It never costs more.
    """
    words, split = bitset_words_for(records), whole(0)
    scratch: RankPositions = np.zeros(classes.owners.shape[0], np.int32)
    for number in range(classes.sizes.shape[0]):
        size = classes.sizes[number]
        if size < 2 * k:
            continue
        seated = np.empty(size, np.int64)
        for at in range(size):
            seated[at] = classes.members[number, at]
        rows = np.empty(size, np.int32)
        for at, place in enumerate(ascending_order(seated)):
            rows[at] = seated[place]
        numbers, free = np.full(size // k, number), whole(0)
        for at in range(1, numbers.shape[0]):
            while classes.sizes[free] > 0:
                free += 1
            numbers[at] = free
            free += 1
        made = grow_classes(records, rows, k, prices, scratch, numbers, words)
        if made < 2:
            continue
        for row in rows:
            remove_from_class(classes, whole(row))
        for row in rows:
            add_to_class(classes, whole(row), whole(scratch[row]))
        for at in range(made):
            reprice_class(records, prices, classes, numbers[at])
        split += 1
    return int(split)
