"""Tables of the price of each class with each value of a block.

Sums over the columns of a record give the price of a class with that record added.

By far most of the work is done here and for every value. So arrays are taken out of their tuples once, and calls within loops are avoided:
numba counts references at every call that gets a tuple of arrays, which costs more than a price does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.kmember.set_labels import CodedRecords, SetLabels, kernel
from core.recoding.price_kernels import (
    EACH,
    KIND,
    LEVEL,
    LEVELS,
    RANGE,
    SECOND,
    SET,
    SIDE,
    SIZE,
    START,
    UNIT,
    WEIGHT,
    Numbers,
    Prices,
    RankPositions,
    column_price,
    first_not_below,
    whole,
)


@kernel
def price_values(set_labels: SetLabels, at: int, before: int, records: CodedRecords, prices: Prices, costs: RankPositions, to: int) -> None:
    """Fill column ``to`` of ``costs`` with a set label's price after adding each value of the block.

    Args:
        at: Which of them.
        before: Another one, whose costs stand there now: columns that are as they were are left alone.
        costs: Shape (values, m), int32.
        to: The column of ``costs`` that is written.
    """
    lows, highs, counts, words, terms, numbers = (
        set_labels.low,
        set_labels.high,
        set_labels.counts,
        set_labels.values,
        prices.terms,
        prices.numbers,
    )
    places, bits, starts, bit_starts = records.value_positions, records.value_bits, records.starts, records.bit_starts
    changed = False
    for column in range(terms.shape[0]):
        first, end, low, high, count = starts[column], starts[column + 1], lows[at, column], highs[at, column], counts[at, column]
        # Of a pair the second bears the price of both.
        changed = changed and terms[column, SIDE] == SECOND
        changed |= low != lows[before, column] or high != highs[before, column] or count != counts[before, column]
        changed = changed or _differ(words, at, before, bit_starts[column], bit_starts[column + 1])
        if first == end or not changed:
            continue
        if terms[column, SIDE] == SECOND:
            _price_pair(set_labels, at, records, prices, costs, to, whole(column))
            continue
        _price_labels(terms, numbers, column, whole(low), whole(high), places, first, end, costs, to)
        if terms[column, EACH] > 0:
            _add_held(terms, column, count, words, at, bits, first, end, costs, to)


@kernel
def _differ(words: NDArray[np.uint64], at: int, other: int, first: int, end: int) -> bool:
    """Return whether two set labels differ in some of their value bits."""
    for bit in range(first, end):  # noqa: SIM110 - a generator is nothing that numba compiles
        if (words[at, bit >> 6] ^ words[other, bit >> 6]) >> np.uint64(bit & 63) & np.uint64(1):
            return True
    return False


@kernel
def _price_labels(
    terms: Numbers,
    numbers: RankPositions,
    column: int,
    low: int,
    high: int,
    places: RankPositions,
    first: int,
    end: int,
    costs: RankPositions,
    to: int,
) -> None:
    """Write the price of a set label's label with each value added, for one column.

    Args:
        terms: As `Prices` has them.
        numbers: As `Prices` has them.
        low: The lowest place of the set label; of a core it may be above the highest.
        high: The highest.
        places: The places of all values of the block.
        first: Where those of the column start.
        end: Where they end.
        costs: Shape (values, m), int32.
        to: The column of ``costs`` that is written.
    """
    kind, start, size, weight = terms[column, KIND], terms[column, START], terms[column, SIZE], terms[column, WEIGHT]
    if kind == LEVELS:
        _price_levels(terms, numbers, column, low, high, places, first, end, costs, to)
    elif kind == RANGE:
        for value in range(first, end):
            below, above = min(low, places[value]), max(high, places[value])
            wide = min(whole(numbers[start + size + above]) - numbers[start + below], whole(UNIT))
            costs[value, to] = weight * wide if below != above else 0
    elif kind == SET:
        for value in range(first, end):
            below, above = min(low, places[value]), max(high, places[value])
            costs[value, to] = weight * UNIT if below != above and above == terms[column, LEVEL] else 0
    else:
        for value in range(first, end):
            below, above = min(low, places[value]), max(high, places[value])
            costs[value, to] = weight * numbers[start + below * size + above]


@kernel
def _price_levels(
    terms: Numbers,
    numbers: RankPositions,
    column: int,
    low: int,
    high: int,
    places: RankPositions,
    first: int,
    end: int,
    costs: RankPositions,
    to: int,
) -> None:
    """Write the prices for a column of LEVELS.

    The further a value is from the label, the coarser is the group of both; no level is looked up twice.
    """
    start, size, levels, weight = terms[column, START], terms[column, SIZE], terms[column, LEVEL], terms[column, WEIGHT]
    middle = whole(first_not_below(places, first, end, low))
    for side in range(2):
        level = start
        for step in range(end - middle if side else middle - first):
            value = middle + step if side else middle - 1 - step
            below, above = min(low, places[value]), max(high, places[value])
            while numbers[level + below] != numbers[level + above]:
                level += size
            costs[value, to] = weight * numbers[level + levels * size + below]


@kernel
def _add_held(
    terms: Numbers,
    column: int,
    count: int,
    words: NDArray[np.uint64],
    at: int,
    bits: RankPositions,
    first: int,
    end: int,
    costs: RankPositions,
    to: int,
) -> None:
    """Add the price of the distinct values that a set label holds with each value added.

    Args:
        terms: As `Prices` has them.
        count: Different values of the set label.
        bits: The bits of all values of the block.
        first: Where those of the column start.
        end: Where they end.
        costs: Shape (values, m), int32.
        to: The column of ``costs`` that is added to.
    """
    each, a_set = terms[column, EACH], terms[column, KIND] == SET
    for value in range(first, end):
        bit = bits[value]
        more = count + whole(not words[at, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1))
        # A set that is * costs no more for what it holds.
        if more > 1 and not (a_set and costs[value, to]):
            costs[value, to] += each * more


@kernel
def _price_pair(set_labels: SetLabels, at: int, records: CodedRecords, prices: Prices, costs: RankPositions, to: int, column: int) -> None:
    """Write the prices for a column whose labels name nulls, which is a pair of columns."""
    lows, highs, words, counts, terms, numbers = (
        set_labels.low,
        set_labels.high,
        set_labels.values,
        set_labels.counts,
        prices.terms,
        prices.numbers,
    )
    places, bits, firsts, other = records.positions, records.bits, records.firsts, column - 1
    for value in range(records.starts[column], records.starts[column + 1]):
        row = firsts[value]
        place, first, known = whole(places[row, column]), bits[row, other], whole(counts[at, other])
        if first >= 0 and not words[at, first >> 6] >> np.uint64(first & 63) & np.uint64(1):
            known += 1
        low, high = min(whole(lows[at, column]), place), max(whole(highs[at, column]), place)
        before = min(whole(lows[at, other]), whole(places[row, other]))
        costs[value, to] = column_price(terms, numbers, column, low, high, whole(0), before, known)
