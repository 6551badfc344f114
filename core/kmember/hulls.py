"""What a set of records publishes, column by column, and its price; compiled by numba.

A hull is kept by two places a column, the lowest and the highest of the records in an order in which every group of the column's
hierarchy is a run: their lowest common ancestor, their range and their common prefix are those of these two. Beside them stand the
different values, as bits, where sets are published or values counted. All of it grows with the set, and so does its price.

A column whose labels name nulls beside values has two places. In the first the null is the highest and in the second the lowest, so that
the lowest value is that of the first, the highest that of the second, and where the null was met the second is 0.

Prices are whole numbers, so that sums are equal on every machine and in whatever order they are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.compiled import compiler

MODULES = ("kmember.hulls", "kmember.classes", "kmember.growing", "kmember.exchange", "kmember.dissolving", "kmember.blocks")
kernel = compiler(*MODULES)
RANGE, TABLE, LEVELS, SET = range(4)
ALONE, FIRST, SECOND = range(3)
UNIT = 1 << 20
"""The penalty of a whole domain."""
PUBLISHED, HELD = 8, 1
"""What the penalty of a label weighs beside that of the values held, which decides among equal labels."""
NEVER = 1 << 60

Numbers = NDArray[np.int64]
Places = NDArray[np.int32]


class Prices(NamedTuple):
    """What labels cost, column by column.

    Attributes:
        kinds: Shape (columns,), RANGE, TABLE, LEVELS or SET.
        sides: Shape (columns,): ALONE, or the FIRST and then the SECOND of a pair, which bears the price of both.
        firsts: Shape (columns,): where the numbers of each column start in ``numbers``.
        sizes: Shape (columns,): places of each column.
        levels: Shape (columns,): levels of a column of LEVELS.
        numbers: int32. RANGE: for each place where ranges that begin there begin, then where those that end there end. TABLE: the penalty
            of every pair of places. LEVELS: the group of each place at every level, then its penalty at every level. SET: nothing. Of the
            SECOND of a pair that is a TABLE or of LEVELS also the penalty of each place alone beside the null.
        weights: Shape (columns,): what a penalty of the column is multiplied by.
        units: Shape (columns,): what each value that is held costs besides, where there are two or more; 0 where values are not counted.
        nulls: Shape (columns,): the penalty of the null beside a label, of the SECOND of a pair.
    """

    kinds: Numbers
    sides: Numbers
    firsts: Numbers
    sizes: Numbers
    levels: Numbers
    numbers: Places
    weights: Numbers
    units: Numbers
    nulls: Numbers


class Records(NamedTuple):
    """The records of a block.

    Attributes:
        places: Shape (n, columns), int32.
        bits: Shape (n, columns), int32: the bit of each value among those of the block; -1 in columns whose values are not counted.
        people: Shape (n,), int32: whose each is, -1 for nobody's; no entry where no person is named.
    """

    places: Places
    bits: Places
    people: Places


class Hulls(NamedTuple):
    """Some hulls.

    Attributes:
        low: Shape (m, columns), int32, the lowest place.
        high: Shape (m, columns), int32, the highest.
        values: Shape (m, words), uint64: the bits of the values.
        counts: Shape (m, columns), int32: how many different ones.
    """

    low: Places
    high: Places
    values: NDArray[np.uint64]
    counts: Places


# A constant is a type of its own to numba, for which it compiles whatever is called with it once more; a whole number is just one.
whole: Any = np.int64


@kernel
def room_of(size: int, columns: int, words: int) -> Hulls:
    """Makes room for hulls."""
    return Hulls(
        np.zeros((size, columns), np.int32),
        np.zeros((size, columns), np.int32),
        np.zeros((size, words), np.uint64),
        np.zeros((size, columns), np.int32),
    )


@kernel
def words_for(records: Records) -> int:
    """Returns how many words the bits of a block take."""
    most = whole(-1)
    for row in range(records.bits.shape[0]):
        for column in range(records.bits.shape[1]):
            most = max(most, whole(records.bits[row, column]))
    return int(most // 64 + 1)


@kernel
def begin(hulls: Hulls, at: int, records: Records, row: int) -> None:
    """Makes a hull that of one record."""
    for word in range(hulls.values.shape[1]):
        hulls.values[at, word] = 0
    for column in range(records.places.shape[1]):
        hulls.low[at, column] = hulls.high[at, column] = records.places[row, column]
        bit = records.bits[row, column]
        hulls.counts[at, column] = 1
        if bit >= 0:
            hulls.values[at, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@kernel
def take_into(hulls: Hulls, at: int, records: Records, row: int) -> None:
    """Takes one record more into a hull."""
    for column in range(records.places.shape[1]):
        place, bit = records.places[row, column], records.bits[row, column]
        hulls.low[at, column] = min(hulls.low[at, column], place)
        hulls.high[at, column] = max(hulls.high[at, column], place)
        if bit >= 0 and not hulls.values[at, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1):
            hulls.values[at, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            hulls.counts[at, column] += 1


@kernel
def copy_hull(source: Hulls, at: int, target: Hulls, to: int) -> None:
    """Copies a hull."""
    for column in range(source.low.shape[1]):
        target.low[to, column] = source.low[at, column]
        target.high[to, column] = source.high[at, column]
        target.counts[to, column] = source.counts[at, column]
    for word in range(source.values.shape[1]):
        target.values[to, word] = source.values[at, word]


@kernel
def label_price(column: int, low: int, high: int, count: int, prices: Prices) -> int:
    """Returns what a column of a hull costs.

    Args:
        column: The column.
        low: Its lowest place.
        high: Its highest place.
        count: Its different values, where they are counted.
        prices: Of all columns.
    """
    held = prices.units[column] * count if count > 1 else whole(0)
    if prices.kinds[column] == SET:
        # A null that cannot be named has the highest place: where it meets values, * is published.
        return int(prices.weights[column] * UNIT if low != high and high == prices.levels[column] else held)
    return int(prices.weights[column] * _penalty(column, low, high, prices) + held)


@kernel
def _penalty(column: int, low: int, high: int, prices: Prices) -> int:
    first, size, levels = prices.firsts[column], prices.sizes[column], prices.levels[column]
    if prices.kinds[column] == TABLE:
        return int(prices.numbers[first + low * size + high])
    if prices.kinds[column] == RANGE:
        if low == high:
            return 0
        return int(min(whole(prices.numbers[first + size + high]) - prices.numbers[first + low], whole(UNIT)))
    level = whole(0)
    while prices.numbers[first + level * size + low] != prices.numbers[first + level * size + high]:
        level += 1
    return int(prices.numbers[first + (levels + level) * size + low])


@kernel
def pair_price(column: int, low: int, second: int, high: int, count: int, prices: Prices) -> int:
    """Returns what a column costs whose labels name nulls.

    Args:
        column: The second of the pair.
        low: The lowest place of the first: that of the lowest value, if there is any.
        second: The lowest place of the second: 0 where there is a null.
        high: The highest place of the second: one more than that of the highest value.
        count: Its different values, the null among them, where they are counted.
        prices: Of all columns.
    """
    held, high = prices.units[column] * count if count > 1 else whole(0), high - 1
    # Nulls alone.
    if low > high:
        return int(held)
    if second > 0:
        return int(prices.weights[column] * _penalty(column, low, high, prices) + held)
    kind, size, found = prices.kinds[column], prices.sizes[column], whole(0)
    if kind == RANGE:
        # Beside nulls one value is told as an end of a range may be.
        first = prices.firsts[column]
        found = min(whole(prices.numbers[first + size + high]) - prices.numbers[first + low], whole(UNIT))
    elif low == high:
        behind = size * size if kind == TABLE else 2 * prices.levels[column] * size
        found = whole(prices.numbers[prices.firsts[column] + behind + low])
    else:
        found = whole(_penalty(column, low, high, prices))
    null = prices.nulls[column]
    return int(prices.weights[column] * min(max(found, null) + null, whole(UNIT)) + held)


@kernel
def hull_price(hulls: Hulls, at: int, prices: Prices) -> int:
    """Returns what a hull costs: a record of it, in all columns."""
    total = before = known = whole(0)
    for column in range(hulls.low.shape[1]):
        low, high = whole(hulls.low[at, column]), whole(hulls.high[at, column])
        count = whole(hulls.counts[at, column])
        if prices.sides[column] == ALONE:
            total += label_price(column, low, high, count, prices)
        elif prices.sides[column] == SECOND:
            total += pair_price(column, before, low, high, known, prices)
        before, known = low, count
    return int(total)


@kernel
def price_with(hulls: Hulls, at: int, records: Records, row: int, prices: Prices, most: int) -> int:
    """Returns what a hull costs with one record more, or anything above ``most`` where it costs more than that."""
    total = before = known = whole(0)
    for column in range(records.places.shape[1]):
        place, bit = whole(records.places[row, column]), records.bits[row, column]
        count = whole(hulls.counts[at, column])
        if bit >= 0 and not hulls.values[at, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1):
            count += 1
        low, high = min(whole(hulls.low[at, column]), place), max(whole(hulls.high[at, column]), place)
        if prices.sides[column] == ALONE:
            total += label_price(column, low, high, count, prices)
        elif prices.sides[column] == SECOND:
            total += pair_price(column, before, low, high, known, prices)
        before, known = low, count
        # To break off the loop instead keeps numba from seeing that no array needs to be counted, and takes thirty times as long.
        if total > most:
            return int(total)
    return int(total)
