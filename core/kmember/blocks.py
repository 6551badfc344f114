"""Kernels that improve the classes of each block of records by itself, compiled by numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.sorting import ascending_order
from core.kmember.class_dissolution import dissolve_classes, grow_classes, split_grown
from core.kmember.classes import Classes, add_to_class, build_classes, cost_with, costs_with, persons_in, remove_from_class, reprice_class
from core.kmember.set_labels import CodedRecords, bitset_words_for, block_of, kernel, price_with, set_label_price
from core.recoding.price_kernels import SIZE, Numbers, Prices, RankPositions, greatest, whole

Step = tuple[int, int, int]


@kernel
def make_best_steps(records: CodedRecords, prices: Prices, classes: Classes, k: int) -> int:
    """Make each record's best move or swap in ``classes`` once, if the price falls; return how many.

    Only steps that lower the price are made.
    """
    steps, nothing = whole(0), (whole(0), whole(-1), whole(-1))
    owners, sizes, before, spared = classes.owners, classes.sizes, classes.prices, classes.spared
    for row in range(owners.shape[0]):
        own = whole(owners[row])
        gain, number, other = _best_move(records, prices, classes, k, row) if sizes[own] > k else nothing
        if before[own] > spared[row]:
            gain, number, other = _best_swap(records, prices, classes, k, row, (gain, number, other))
        if gain <= 0:
            continue
        remove_from_class(classes, row)
        if other >= 0:
            remove_from_class(classes, other)
            add_to_class(classes, other, own)
        add_to_class(classes, row, number)
        reprice_class(records, prices, classes, own)
        reprice_class(records, prices, classes, number)
        steps += 1
    return int(steps)


@kernel
def _best_move(records: CodedRecords, prices: Prices, classes: Classes, k: int, row: int) -> Step:
    """Return the best move of a record to another class: its gain, that class, and -1.

    Only a class of more than k gives a record away.
    """
    own = whole(classes.owners[row])
    size, best = classes.sizes[own], (whole(0), whole(-1), whole(-1))
    if persons_in(records, classes, own, row, whole(-1)) < k:
        return best
    saved = size * classes.prices[own] - (size - 1) * classes.spared[row]
    costs_with(classes.set_labels, classes.costs, records, row, prices, classes.totals)
    sizes, before, after, most = classes.sizes, classes.prices, classes.totals, classes.most[0]
    for number in range(sizes.shape[0]):
        there = sizes[number]
        if number == own or there == 0 or there >= most:
            continue
        gain = saved + there * before[number] - (there + 1) * after[number]
        if gain > best[0]:
            best = (gain, whole(number), whole(-1))
    return best


@kernel
def _best_swap(records: CodedRecords, prices: Prices, classes: Classes, k: int, row: int, best: Step) -> Step:
    """Return the best swap of a record with another one: its gain, that class and that record.

    A better step that is given is returned instead. The record's class costs less without it.
    """
    own = whole(classes.owners[row])
    size = classes.sizes[own]
    saved = size * (classes.prices[own] - classes.spared[row])
    costs_with(classes.cores, classes.core_costs, records, row, prices, classes.totals)
    sizes, before, after, spared, members = classes.sizes, classes.prices, classes.totals, classes.spared, classes.members
    values, costs = records.values, classes.core_costs
    for number in range(sizes.shape[0]):
        there = sizes[number]
        # Whichever record leaves the class, its core stays and the price cannot be lower: most classes are settled by that.
        if number == own or there == 0 or saved + there * (before[number] - after[number]) <= best[0]:
            continue
        for seat in range(there):
            other = whole(members[number, seat])
            most = there * (before[number] - max(spared[other], after[number]))
            # The core of the record's own class stays, too, whichever comes for it.
            if saved + most <= best[0] or size * (before[own] - cost_with(values, costs, other, own)) + most <= best[0]:
                continue
            gain = _swapped(records, prices, classes, row, other, saved, best[0])
            if gain <= best[0]:
                continue
            if persons_in(records, classes, own, row, other) >= k and persons_in(records, classes, number, other, row) >= k:
                best = (gain, whole(number), other)
    return best


@kernel
def _swapped(records: CodedRecords, prices: Prices, classes: Classes, row: int, other: int, saved: int, least: int) -> int:
    """Return the gain of swapping two records; any number up to ``least`` if it is no greater.

    Args:
        prices: What labels cost.
        classes: Of the block.
        row: One record.
        saved: What the class of the first saves without it.
        least: What must be gained.
    """
    own, number = whole(classes.owners[row]), whole(classes.owners[other])
    size, there = classes.sizes[own], classes.sizes[number]
    found = there * (classes.prices[number] - price_with(classes.without, other, records, row, prices))
    if found + saved <= least:
        return least
    return int(found + size * (classes.prices[own] - price_with(classes.without, row, records, other, prices)))


@kernel
def improve_blocks(
    positions: RankPositions,
    owned: RankPositions,
    counts_values: NDArray[np.bool_],
    starts: Numbers,
    owners: RankPositions,
    k: int,
    prices: Prices,
    published_prices: Prices,
    passes: int,
    grows_classes: bool,
    figures: Numbers,
) -> RankPositions:
    """Return each record's class after improving blocks, unless published loss grows; add to ``figures``.

    Args:
        positions: Shape (n, columns), int32: the records, block by block.
        owned: Shape (n,), int32: the person of each record, -1 for none; no entry without a person column.
        counts_values: Shape (columns,): whose values are counted.
        starts: Shape (blocks + 1,): where each block starts.
        owners: Shape (n,), int32: the class of each record, ascending.
        k: Persons or records of a class.
        prices: What labels cost.
        published_prices: The same of the published labels alone.
        passes: How often all records are looked at for a step, at most.
        grows_classes: Whether classes are grown, too, and the better of both taken; what has 2k records or more is split before all else.
        figures: Shape (3,): added to are the steps, the classes that were dissolved, and those that were split.

    Returns:
        Shape (n,), int32: the class of each record, dense from 0.
    """
    found, classes = np.empty(positions.shape[0], np.int32), whole(0)
    # One more than places of values: that of a null.
    scratch = np.zeros(greatest(prices.terms[:, SIZE]) + 1, np.int32)
    for number in range(starts.shape[0] - 1):
        first, end = starts[number], starts[number + 1]
        people = owned[first:end] if owned.shape[0] else owned
        block = block_of(positions[first:end], people, counts_values, prices, scratch)
        mine = _best_of(block, _dense(owners[first:end]), k, prices, published_prices, passes, grows_classes, figures)
        for row in range(first, end):
            found[row] = classes + mine[row - first]
        classes += greatest(mine) + 1
    return found


@kernel
def _best_of(
    records: CodedRecords, given: RankPositions, k: int, prices: Prices, published_prices: Prices, passes: int, anew: bool, figures: Numbers
) -> RankPositions:
    """Return the better classes of a block: the given ones or newly grown ones, both improved.

    New ones are grown only if ``anew``.
    """
    steps, best = np.zeros((2, 3), np.int64), whole(0)
    if anew:
        given = _split(records, given, k, prices)
    mine, cost, most = _better(records, given, k, prices, published_prices, passes, steps[0])
    if anew:
        # As one class, of which others are made.
        grown = _split(records, np.zeros_like(given), k, prices)
        other, found, published = _better(records, grown, k, prices, published_prices, passes, steps[1])
        if published <= most and found < cost:
            mine, best = other, whole(1)
    for figure in range(3):
        figures[figure] += steps[best, figure]
    return _dense(mine)


@kernel
def _split(records: CodedRecords, owners: RankPositions, k: int, prices: Prices) -> RankPositions:
    """Split every class of 2k records or more by greedy growth; return the class of each record.

    It never costs more. Classes are dense from 0.
    """
    numbered, order, found = np.empty(owners.shape[0], np.int64), np.empty(owners.shape[0], np.int32), owners.copy()
    names, first = whole(0), whole(0)
    for row in range(owners.shape[0]):
        numbered[row] = owners[row]
        names = max(names, whole(owners[row] + 1))
    ascending = ascending_order(numbered)
    for row in range(owners.shape[0]):
        order[row] = ascending[row]
    words = bitset_words_for(records)
    for end in range(1, order.shape[0] + 1):
        if end < order.shape[0] and owners[order[end]] == owners[order[first]]:
            continue
        if end - first >= 2 * k:
            numbers = np.arange(names, names + (end - first) // k)
            names += grow_classes(records, order[first:end], k, prices, found, numbers, words)
        first = whole(end)
    return _dense(found)


@kernel
def _better(
    records: CodedRecords, owners: RankPositions, k: int, prices: Prices, published_prices: Prices, passes: int, figures: Numbers
) -> tuple[RankPositions, int, int]:
    """Improve classes by class dissolution and local search, unless the published labels cost more.

    Returns:
        The class of each record, shape (n,); what they cost; and what they publish.
    """
    before = owners.copy()
    classes = build_classes(records, prices, owners, k)
    cost, published = _total(classes, prices), _total(classes, published_prices)
    for _ in range(passes):
        gone = dissolve_classes(records, prices, classes)
        steps = make_best_steps(records, prices, classes, k)
        figures[0] += steps
        figures[1] += gone
        figures[2] += split_grown(records, prices, classes, k)
        if not steps and not gone:
            break
    # What is held weighs in, too: for that, steps may publish a little more.
    after = _total(classes, published_prices)
    if after > published:
        for figure in range(3):
            figures[figure] = 0
        return before, cost, published
    return owners, _total(classes, prices), after


@kernel
def _total(classes: Classes, prices: Prices) -> int:
    """Return the total price of all records of a block."""
    total = whole(0)
    for number in range(classes.sizes.shape[0]):
        if classes.sizes[number] > 0:
            total += classes.sizes[number] * set_label_price(classes.set_labels, number, prices)
    return int(total)


@kernel
def _dense(owners: RankPositions) -> RankPositions:
    """Return classes renumbered without gaps, in the same order."""
    low = high = owners[0]
    for owner in owners:
        low, high = min(low, owner), max(high, owner)
    places = np.zeros(high - low + 1, np.int32)
    for owner in owners:
        places[owner - low] = 1
    number = 0
    for at in range(places.shape[0]):
        number += places[at]
        places[at] = number - 1
    made = np.empty(owners.shape[0], np.int32)
    for row in range(owners.shape[0]):
        made[row] = places[owners[row] - low]
    return made
