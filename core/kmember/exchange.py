"""Local exchange: records that move to another class or change places with a record of one, where all then cost less; by numba."""

from __future__ import annotations

from core.kmember.classes import Classes, measure, persons_in, sit_down, stand_up
from core.kmember.hulls import Prices, Records, kernel, price_with, whole

Step = tuple[int, int, int]


@kernel
def exchange(records: Records, prices: Prices, classes: Classes, k: int) -> int:
    """Looks at each record once and takes the best of all its steps, if any lowers the price; returns how many did."""
    steps = whole(0)
    for row in range(classes.owners.shape[0]):
        own = whole(classes.owners[row])
        gain, number, other = _best_move(records, prices, classes, k, row)
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
    """Returns what the best move of a record to another class gains, that class, and -1."""
    own = whole(classes.owners[row])
    size, best = classes.sizes[own], (whole(0), whole(-1), whole(-1))
    if size <= k or persons_in(records, classes, own, row, whole(-1)) < k:
        return best
    saved = size * classes.prices[own] - (size - 1) * classes.spared[row]
    for number in range(classes.sizes.shape[0]):
        there = classes.sizes[number]
        if number == own or there == 0 or there >= classes.most[0]:
            continue
        before = there * classes.prices[number]
        # What the class may cost a record at most, so that something is gained.
        most = (saved - best[0] + before) // (there + 1)
        if most < classes.prices[number]:
            continue
        gain = saved + before - (there + 1) * price_with(classes.hulls, number, records, row, prices, most)
        if gain > best[0]:
            best = (gain, whole(number), whole(-1))
    return best


@kernel
def _best_swap(records: Records, prices: Prices, classes: Classes, k: int, row: int, best: Step) -> Step:
    """Returns what the best swap of a record with one of another class gains, that class and record; or a step that gains more."""
    own = whole(classes.owners[row])
    size = classes.sizes[own]
    saved = size * (classes.prices[own] - classes.spared[row])
    if saved <= 0:
        return best
    for number in range(classes.sizes.shape[0]):
        there = classes.sizes[number]
        if number == own or there == 0 or saved + there * classes.prices[number] <= best[0]:
            continue
        # Whichever record leaves the class, its core stays and the price cannot be lower: most classes are settled by that.
        most = classes.prices[number] + (saved - best[0]) // there
        if saved + there * (classes.prices[number] - price_with(classes.cores, number, records, row, prices, most)) <= best[0]:
            continue
        for seat in range(there):
            other = whole(classes.members[number, seat])
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
    if saved + there * (classes.prices[number] - classes.spared[other]) <= least:
        return least
    most = classes.prices[number] + (saved - least) // there
    found = there * (classes.prices[number] - price_with(classes.without, other, records, row, prices, most))
    if found + saved <= least:
        return least
    most = classes.prices[own] + (found - least) // size
    return int(found + size * (classes.prices[own] - price_with(classes.without, row, records, other, prices, most)))
