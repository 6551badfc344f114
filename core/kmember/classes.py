"""Classes of a block under change: members, prices, and prices without each record.

Compiled by numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.kmember.set_labels import (
    NEVER,
    CodedRecords,
    SetLabels,
    bitset_words_for,
    copy_set_label,
    kernel,
    price_with,
    set_label_arrays,
    set_label_price,
)
from core.kmember.tables import price_values
from core.recoding.price_kernels import SECOND, SIDE, Numbers, Prices, RankPositions, column_price, greatest, whole

MOST_COSTS = 1 << 23
"""Entries of a table of costs, of which a block has two; 32 MB."""


class Classes(NamedTuple):
    """Members, sizes, set labels and prices of the classes of a block, which kernels change in place.

    Attributes:
        owners: Shape (n,), int32: the class of each record.
        seats: Shape (n,), int32: where each record stands among the members of its class.
        members: Shape (most classes, most members), int32.
        sizes: Shape (most classes,), records; 0 for a class that is none.
        prices: Shape (most classes,): what a record of the class costs.
        set_labels: Of the classes, and a last one for what a class was before.
        cores: Of the classes: within the set label of a class without any one of its records, whichever that is; and a last one.
        spared: Shape (n,): what the class of each record would cost without it.
        without: Of the records: the set label of the class without it.
        most: Shape (1,): members that a class may have.
        costs: Shape (values, most classes), int32: what each class costs in a column with each value of the block; no entry where these
            would be too many.
        core_costs: The same of cores.
        totals: Shape (most classes,), scratch: what `costs_with` found.
    """

    owners: RankPositions
    seats: RankPositions
    members: RankPositions
    sizes: Numbers
    prices: Numbers
    set_labels: SetLabels
    cores: SetLabels
    spared: Numbers
    without: SetLabels
    most: Numbers
    costs: RankPositions
    core_costs: RankPositions
    totals: Numbers


@kernel
def build_classes(records: CodedRecords, prices: Prices, owners: RankPositions, k: int) -> Classes:
    """Build a block's classes from the class of each record, an array that they keep and change.

    Args:
        prices: What labels cost.
        owners: Shape (n,), int32, dense from 0. It stays the one that the classes change.
        k: Persons or records that each has.
    """
    size, columns, words = owners.shape[0], records.positions.shape[1], bitset_words_for(records)
    sizes = np.zeros(max(greatest(owners) + 1, size // k), np.int64)
    for row in range(size):
        sizes[owners[row]] += 1
    # Where persons are counted a class may have many more records than k.
    most = 3 * k - 1 if records.people.shape[0] == 0 else max(greatest(sizes), 3 * k) + k
    values = records.firsts.shape[0]
    table = (values, sizes.shape[0]) if values * sizes.shape[0] <= MOST_COSTS else (0, 0)
    # One more, where a set label stands while it changes. A count below 0 is that of none: nothing is priced yet.
    set_labels, cores = set_label_arrays(sizes.shape[0] + 1, columns, words), set_label_arrays(sizes.shape[0] + 1, columns, words)
    set_labels.counts[:], cores.counts[:] = -1, -1
    made = Classes(
        owners,
        np.zeros(size, np.int32),
        np.zeros((sizes.shape[0], max(most, greatest(sizes))), np.int32),
        np.zeros_like(sizes),
        np.zeros_like(sizes),
        set_labels,
        cores,
        np.zeros(size, np.int64),
        set_label_arrays(size, columns, words),
        np.array([most], np.int64),
        np.zeros(table, np.int32),
        np.zeros(table, np.int32),
        np.zeros_like(sizes),
    )
    for row in range(size):
        add_to_class(made, row, owners[row])
    for number in range(sizes.shape[0]):
        reprice_class(records, prices, made, number)
    return made


@kernel
def add_to_class(classes: Classes, row: int, number: int) -> None:
    """Add a record that is in no class to a class; its label and price are not updated."""
    seat = classes.sizes[number]
    classes.owners[row], classes.seats[row], classes.members[number, seat] = number, seat, row
    classes.sizes[number] = seat + 1


@kernel
def remove_from_class(classes: Classes, row: int) -> None:
    """Remove a record from its class; the last member takes its seat; label and price are not updated."""
    number, seat = classes.owners[row], classes.seats[row]
    last = classes.members[number, classes.sizes[number] - 1]
    classes.members[number, seat], classes.seats[last] = last, seat
    classes.sizes[number] -= 1


@kernel
def reprice_class(records: CodedRecords, prices: Prices, classes: Classes, number: int) -> None:
    """Recompute in place the label and price of a class, as it is and without each of its records."""
    size, members = classes.sizes[number], classes.members[number]
    if size == 0:
        classes.prices[number] = 0
        return
    set_labels, cores, last = classes.set_labels, classes.cores, whole(classes.sizes.shape[0])
    copy_set_label(set_labels, number, set_labels, last)
    copy_set_label(cores, number, cores, last)
    _gather(records, members, size, set_labels, cores, number)
    classes.prices[number] = set_label_price(set_labels, number, prices)
    if classes.costs.shape[0]:
        price_values(set_labels, number, last, records, prices, classes.costs, number)
        price_values(cores, number, last, records, prices, classes.core_costs, number)
    _spare(records, prices, set_labels, cores, number, members[:size], classes.without, classes.spared)


@kernel
def costs_with(set_labels: SetLabels, costs: RankPositions, records: CodedRecords, row: int, prices: Prices, totals: Numbers) -> None:
    """Write the price of each class with one record added into ``totals``.

    Args:
        set_labels: Of the classes, or their cores.
        costs: Of these set labels, as `Classes` has them.
        totals: Shape (classes,), written to.
    """
    if costs.shape[0] == 0:
        for number in range(totals.shape[0]):
            totals[number] = price_with(set_labels, number, records, row, prices)
        return
    values = records.values
    for number in range(totals.shape[0]):
        totals[number] = 0
    for column in range(values.shape[1]):
        value = values[row, column]
        # The classes in a row: several at a time are added up by one instruction.
        for number in range(totals.shape[0]):
            totals[number] += costs[value, number]


@kernel
def cost_with(values: RankPositions, costs: RankPositions, row: int, number: int) -> int:
    """Return the price of a class with one record added, from a table of costs; 0 without a table."""
    total = whole(0)
    if costs.shape[0]:
        for column in range(values.shape[1]):
            total += costs[values[row, column], number]
    return int(total)


@kernel
def _gather(records: CodedRecords, members: RankPositions, size: int, set_labels: SetLabels, cores: SetLabels, at: int) -> None:
    """Compute the label of some records, and its core.

    The core is without the lowest and the highest positions, and without the values of one record alone.
    """
    places = records.positions
    for word in range(set_labels.values.shape[1]):
        set_labels.values[at, word] = cores.values[at, word] = 0
    for column in range(places.shape[1]):
        low = second_low = whole(NEVER)
        high = second_high = whole(-1)
        for seat in range(size):
            place = whole(places[members[seat], column])
            second_low, low = min(second_low, max(low, place)), min(low, place)
            second_high, high = max(second_high, min(high, place)), max(high, place)
        set_labels.low[at, column], set_labels.high[at, column] = low, high
        # A class of one record has no other.
        cores.low[at, column] = second_low if size > 1 else low
        cores.high[at, column] = second_high if size > 1 else high
        _gather_values(records, members, size, set_labels, cores, at, whole(column))


@kernel
def _gather_values(
    records: CodedRecords, members: RankPositions, size: int, set_labels: SetLabels, cores: SetLabels, at: int, column: int
) -> None:
    """Compute the values of some records in one column, and of their core."""
    if records.bit_starts[column] == records.bit_starts[column + 1]:
        set_labels.counts[at, column] = cores.counts[at, column] = 1
        return
    once = twice = whole(0)
    for seat in range(size):
        bit = records.bits[members[seat], column]
        word, mask = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
        if not set_labels.values[at, word] & mask:
            set_labels.values[at, word] |= mask
            once += 1
        elif not cores.values[at, word] & mask:
            cores.values[at, word] |= mask
            twice += 1
    set_labels.counts[at, column], cores.counts[at, column] = once, twice


@kernel
def _spare(
    records: CodedRecords,
    prices: Prices,
    set_labels: SetLabels,
    cores: SetLabels,
    number: int,
    members: RankPositions,
    without: SetLabels,
    spared: Numbers,
) -> None:
    """Write the label and price of a class without each of its records.

    They are those of the class but for the values of that record alone.
    """
    lows, highs, counts, words = without.low, without.high, without.counts, without.values
    terms, numbers, places, bits, twice = prices.terms, prices.numbers, records.positions, records.bits, cores.values
    for row in members:
        spared[row] = 0
        for word in range(words.shape[1]):
            words[row, word] = set_labels.values[number, word]
    for column in range(terms.shape[0]):
        before, other = terms[column, SIDE] == SECOND, max(column - 1, 0)
        low, high, count = set_labels.low[number, column], set_labels.high[number, column], set_labels.counts[number, column]
        second_low, second_high = cores.low[number, column], cores.high[number, column]
        price = column_price(
            terms,
            numbers,
            column,
            whole(low),
            whole(high),
            whole(count),
            whole(set_labels.low[number, other]),
            whole(set_labels.counts[number, other]),
        )
        for row in members:
            place, bit = places[row, column], bits[row, column]
            lows[row, column] = second_low if place == low else low
            highs[row, column] = second_high if place == high else high
            counts[row, column] = count
            mask = np.uint64(1) << np.uint64(bit & 63)
            if bit >= 0 and not twice[number, bit >> 6] & mask:
                words[row, bit >> 6] ^= mask
                counts[row, column] = count - 1
            if before or lows[row, column] != low or highs[row, column] != high or counts[row, column] != count:
                spared[row] += column_price(
                    terms,
                    numbers,
                    column,
                    whole(lows[row, column]),
                    whole(highs[row, column]),
                    whole(counts[row, column]),
                    whole(lows[row, other]),
                    whole(counts[row, other]),
                )
            else:
                spared[row] += price


@kernel
def persons_in(records: CodedRecords, classes: Classes, number: int, leaving_record: int, coming_record: int) -> int:
    """Return the number of persons a class would have if one record left and another came.

    Records are counted without a person column; -1 stands for no record.
    """
    size = classes.sizes[number]
    if records.people.shape[0] == 0:
        return int(size - (leaving_record >= 0) + (coming_record >= 0))
    found = np.empty(size + 1, np.int32)
    count = whole(0)
    for seat in range(size + 1):
        row = whole(classes.members[number, seat]) if seat < size else coming_record
        if row < 0 or row == leaving_record:
            continue
        person = records.people[row]
        known = person < 0
        for other in range(count):
            known |= found[other] == person
        if not known:
            found[count] = person
            count += 1
    return int(count)
