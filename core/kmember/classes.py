"""The classes of a block while they change: who is in them, what they cost, and what they would cost without each record; by numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.kmember.hulls import Hulls, Numbers, Places, Prices, Records, begin, hull_price, kernel, room_of, take_into, whole, words_for


class Classes(NamedTuple):
    """The classes of a block.

    Attributes:
        owners: Shape (n,), int32: the class of each record.
        seats: Shape (n,), int32: where each record stands among the members of its class.
        members: Shape (most classes, most members), int32.
        sizes: Shape (most classes,), records; 0 for a class that is none.
        prices: Shape (most classes,): what a record of the class costs.
        hulls: Of the classes.
        cores: Of the classes: within the hull of a class without any one of its records, whichever that is.
        spared: Shape (n,): what the class of each record would cost without it.
        without: Of the records: the hull of the class without it.
        most: Shape (1,): members that a class may have.
    """

    owners: Places
    seats: Places
    members: Places
    sizes: Numbers
    prices: Numbers
    hulls: Hulls
    cores: Hulls
    spared: Numbers
    without: Hulls
    most: Numbers


@kernel
def seated(records: Records, prices: Prices, owners: Places, k: int) -> Classes:
    """Makes the classes of a block, given the class of each record.

    Args:
        records: Of the block.
        prices: What labels cost.
        owners: Shape (n,), int32, dense from 0. It stays the one that the classes change.
        k: Persons or records that each has.
    """
    size, columns, words = owners.shape[0], records.places.shape[1], words_for(records)
    sizes = np.zeros(max(owners.max() + 1, size // k), np.int64)
    for row in range(size):
        sizes[owners[row]] += 1
    # Where persons are counted a class may have many more records than k.
    most = 3 * k - 1 if records.people.shape[0] == 0 else max(sizes.max(), 3 * k) + k
    made = Classes(
        owners,
        np.zeros(size, np.int32),
        np.zeros((sizes.shape[0], max(most, sizes.max())), np.int32),
        np.zeros_like(sizes),
        np.zeros_like(sizes),
        room_of(sizes.shape[0], columns, words),
        room_of(sizes.shape[0], columns, words),
        np.zeros(size, np.int64),
        room_of(size, columns, words),
        np.array([most], np.int64),
    )
    for row in range(size):
        sit_down(made, row, owners[row])
    for number in range(sizes.shape[0]):
        measure(records, prices, made, number)
    return made


@kernel
def sit_down(classes: Classes, row: int, number: int) -> None:
    """Puts a record that is in no class into one."""
    seat = classes.sizes[number]
    classes.owners[row], classes.seats[row], classes.members[number, seat] = number, seat, row
    classes.sizes[number] = seat + 1


@kernel
def stand_up(classes: Classes, row: int) -> None:
    """Takes a record out of its class; the last one gets its seat."""
    number, seat = classes.owners[row], classes.seats[row]
    last = classes.members[number, classes.sizes[number] - 1]
    classes.members[number, seat], classes.seats[last] = last, seat
    classes.sizes[number] -= 1


@kernel
def measure(records: Records, prices: Prices, classes: Classes, number: int) -> None:
    """Works out anew what a class is and costs, as it is and without each of its records."""
    size, members = classes.sizes[number], classes.members[number]
    if size == 0:
        classes.prices[number] = 0
        return
    _gather(records, members, size, whole(-1), classes.hulls, number)
    classes.prices[number] = hull_price(classes.hulls, number, prices)
    _gather_core(records, members, size, classes.cores, classes.hulls, number)
    for seat in range(size):
        row = whole(members[seat])
        _gather(records, members, size, seat, classes.without, row)
        classes.spared[row] = hull_price(classes.without, row, prices)


@kernel
def _gather(records: Records, members: Places, size: int, left_out: int, hulls: Hulls, at: int) -> None:
    first = True
    for seat in range(size):
        if seat == left_out:
            continue
        if first:
            begin(hulls, at, records, whole(members[seat]))
            first = False
        else:
            take_into(hulls, at, records, whole(members[seat]))


@kernel
def _gather_core(records: Records, members: Places, size: int, cores: Hulls, hulls: Hulls, at: int) -> None:
    """Leaves out the lowest and the highest place of each column, and values that one record alone has."""
    for word in range(cores.values.shape[1]):
        cores.values[at, word] = 0
    for column in range(records.places.shape[1]):
        low, high = hulls.high[at, column], hulls.low[at, column]
        lowest = highest = once = 0
        for seat in range(size):
            place = records.places[members[seat], column]
            lowest += place == hulls.low[at, column]
            highest += place == hulls.high[at, column]
            low = min(low, place) if place > hulls.low[at, column] else low
            high = max(high, place) if place < hulls.high[at, column] else high
        cores.low[at, column] = hulls.low[at, column] if lowest > 1 else low
        cores.high[at, column] = hulls.high[at, column] if highest > 1 else high
        for seat in range(size):
            bit = records.bits[members[seat], column]
            if bit < 0:
                break
            twice = False
            for other in range(size):
                twice |= other != seat and records.bits[members[other], column] == bit
            if twice:
                cores.values[at, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            once += not twice
        cores.counts[at, column] = max(hulls.counts[at, column] - once, 0)


@kernel
def persons_in(records: Records, classes: Classes, number: int, leaves: int, comes: int) -> int:
    """Returns how many persons, or records where none is named, a class has once a record left and another came; -1 for no record."""
    size = classes.sizes[number]
    if records.people.shape[0] == 0:
        return int(size - (leaves >= 0) + (comes >= 0))
    found = np.empty(size + 1, np.int32)
    count = whole(0)
    for seat in range(size + 1):
        row = whole(classes.members[number, seat]) if seat < size else comes
        if row < 0 or row == leaves:
            continue
        person = records.people[row]
        known = person < 0
        for other in range(count):
            known |= found[other] == person
        if not known:
            found[count] = person
            count += 1
    return int(count)
