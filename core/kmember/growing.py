"""Greedy k-member clustering (Byun and others: Efficient k-anonymization using clustering techniques, DASFAA 2007); by numba."""

from __future__ import annotations

import numpy as np

from core.kmember.hulls import (
    NEVER,
    Hulls,
    Numbers,
    Places,
    Prices,
    Records,
    begin,
    hull_price,
    kernel,
    price_with,
    room_of,
    take_into,
    whole,
)


@kernel
def grow(records: Records, rows: Places, k: int, prices: Prices, owners: Places, numbers: Numbers, words: int) -> int:
    """Makes classes of some records, one after the other: a seed, then always the record that makes the class cost least.

    The last record that is left is the next seed. What is too little for a class joins the classes that it makes dearer by least.

    Args:
        records: Of the block.
        rows: The records, at least k, of k persons; in the order that decides ties.
        k: Persons or records of a class.
        prices: What labels cost.
        owners: Shape (n,), int32: gets the class of each of the records.
        numbers: What classes are called, in the order in which they are made; as many as there may be.
        words: For the bits of values.

    Returns:
        How many classes there are.
    """
    left, size = rows.copy(), rows.shape[0]
    most = size // k
    hulls, sizes = room_of(most, records.places.shape[1], words), np.zeros(most, np.int64)
    made = whole(0)
    while size >= k:
        filled, size = _grow_one(records, left, size, k, prices, hulls, made)
        if filled == 0:
            break
        for at in range(size, size + filled):
            owners[left[at]] = numbers[made]
        sizes[made] = filled
        made += 1
    for at in range(size):
        nearest = _cheapest(records, whole(left[at]), prices, hulls, sizes, made)
        owners[left[at]] = numbers[nearest]
        take_into(hulls, nearest, records, whole(left[at]))
        sizes[nearest] += 1
    return int(made)


@kernel
def _grow_one(records: Records, left: Places, size: int, k: int, prices: Prices, hulls: Hulls, made: int) -> tuple[int, int]:
    """Grows one class, whose records are put behind those that are left.

    Returns:
        How many it has, and how many are left; where it has no k persons, none, and all are.
    """
    end = size
    size = _seed(records, left, size)
    if size == end:
        return 0, end
    begin(hulls, made, records, whole(left[size]))
    price = whole(0)
    while end - size < k:
        least, best = whole(NEVER), whole(-1)
        for at in range(size):
            row = whole(left[at])
            if _is_in(records, left, size, end, row):
                continue
            found = price_with(hulls, made, records, row, prices, least - 1)
            if found < least:
                least, best = found, whole(at)
                if least <= price:
                    break
        if best < 0:
            return 0, end
        size -= 1
        left[best], left[size] = left[size], left[best]
        take_into(hulls, made, records, whole(left[size]))
        price = hull_price(hulls, made, prices)
    return end - size, size


@kernel
def _seed(records: Records, left: Places, size: int) -> int:
    """Puts the last record that is somebody's at the end of those that are left and takes it off; returns how many then are."""
    if records.people.shape[0] == 0:
        return size - 1
    for at in range(size - 1, -1, -1):
        if records.people[left[at]] >= 0:
            left[at], left[size - 1] = left[size - 1], left[at]
            return size - 1
    return size


@kernel
def _is_in(records: Records, left: Places, first: int, end: int, row: int) -> bool:
    """Tells whether a record is nobody's, or somebody's who has a record in the class already; never where no person is named."""
    if records.people.shape[0] == 0:
        return False
    person = records.people[row]
    if person < 0:
        return True
    at = first
    while at < end and records.people[left[at]] != person:
        at += 1
    return at < end


@kernel
def _cheapest(records: Records, row: int, prices: Prices, hulls: Hulls, sizes: Numbers, made: int) -> int:
    """Returns the class that a record makes dearer by least, the first of equals."""
    least, best = whole(NEVER), whole(0)
    for number in range(made):
        before = hull_price(hulls, number, prices) * sizes[number]
        after = price_with(hulls, number, records, row, prices, whole(NEVER)) * (sizes[number] + 1)
        if after - before < least:
            least, best = after - before, whole(number)
    return int(best)
