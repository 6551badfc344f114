"""Kernels that change the number of classes: class dissolution and splits, compiled by numba."""

from __future__ import annotations

import numpy as np

from core.columns.order import ascending_order
from core.kmember.classes import Classes, add_to_class, costs_with, remove_from_class, reprice_class
from core.kmember.growing import grow_classes
from core.kmember.set_labels import (
    CodedRecords,
    SetLabels,
    bitset_words_for,
    copy_set_label,
    extend_set_label,
    kernel,
    price_with,
    set_label_arrays,
    set_label_price,
)
from core.recoding.price_kernels import Numbers, Prices, RankPositions, whole


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
        records: Of the block.
        prices: What labels cost.
        classes: Of the block.
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
