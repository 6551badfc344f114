"""Local exchange: records that move to another class or change places with a record of one, where all then cost less; by numba."""

from __future__ import annotations

from core.kmember.classes import Classes, cost_with, costs_with, measure, persons_in, sit_down, stand_up
from core.kmember.set_labels import Records, kernel, price_with
from core.recoding.price_kernels import Prices, whole

Step = tuple[int, int, int]


@kernel
def exchange(records: Records, prices: Prices, classes: Classes, k: int) -> int:
    """Looks at each record once and takes the best of all its steps, if any lowers the price; returns how many did."""
    steps, nothing = whole(0), (whole(0), whole(-1), whole(-1))
    owners, sizes, before, spared = classes.owners, classes.sizes, classes.prices, classes.spared
    for row in range(owners.shape[0]):
        own = whole(owners[row])
        gain, number, other = _best_move(records, prices, classes, k, row) if sizes[own] > k else nothing
        if before[own] > spared[row]:
            gain, number, other = _best_swap(records, prices, classes, k, row, (gain, number, other))
        if gain <= 0:
            continue
        stand_up(classes, row)
        if other >= 0:
            stand_up(classes, other)
            sit_down(classes, other, own)
        sit_down(classes, row, number)
        measure(records, prices, classes, own)
        measure(records, prices, classes, number)
        steps += 1
    return int(steps)


@kernel
def _best_move(records: Records, prices: Prices, classes: Classes, k: int, row: int) -> Step:
    """Returns what the best move of a record of a class of more than k to another one gains, that class, and -1."""
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
def _best_swap(records: Records, prices: Prices, classes: Classes, k: int, row: int, best: Step) -> Step:
    """Returns what the best swap of a record, without which its class costs less, gains, and with whom; or a step that gains more."""
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
def _swapped(records: Records, prices: Prices, classes: Classes, row: int, other: int, saved: int, least: int) -> int:
    """Returns what it gains that two records change places, or anything up to ``least`` where it gains no more than that.

    Args:
        records: Of the block.
        prices: What labels cost.
        classes: Of the block.
        row: One record.
        other: The other.
        saved: What the class of the first saves without it.
        least: What must be gained.
    """
    own, number = whole(classes.owners[row]), whole(classes.owners[other])
    size, there = classes.sizes[own], classes.sizes[number]
    found = there * (classes.prices[number] - price_with(classes.without, other, records, row, prices))
    if found + saved <= least:
        return least
    return int(found + size * (classes.prices[own] - price_with(classes.without, row, records, other, prices)))
