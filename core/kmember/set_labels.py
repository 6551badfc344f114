"""Labels of sets of records, column by column, and their prices, compiled by numba.

The values of a column are ordered so that every group of the column's hierarchy is a run. A set label is the lowest and the highest
position of its records in each column: their lowest common ancestor, range and common prefix are those of these two. The distinct values
are kept as bits, too, where sets are published or values counted. A set label and its price grow with the set.

A column whose labels name nulls next to values has two positions. The null is the highest in the first and the lowest in the second. So the
lowest value is that of the first position, the highest that of the second, and a second position of 0 means that the null was met.

Prices are whole numbers, so that sums are equal on every machine and in whatever order they are taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.sorting import ascending_order
from core.compiling.compiled import compiler
from core.recoding.price_kernels import FIRST, SIDE, Prices, RankPositions, column_price, whole

MODULES = (
    "columns.sorting", "recoding.price_kernels", "kmember.set_labels", "kmember.tables", "kmember.classes",
    "kmember.class_dissolution", "kmember.blocks",
)  # fmt: skip
kernel = compiler(*MODULES)
NEVER = 1 << 60


class CodedRecords(NamedTuple):
    """Records of a block, coded by positions, values and bits.

    Attributes:
        positions: Shape (n, columns), int32.
        bits: Shape (n, columns), int32: the bit of each value among those of the block; -1 in columns whose values are not counted.
        people: Shape (n,), int32: the person of each record, -1 for none; no entry without a person column.
        values: Shape (n, priced columns), int32: the number of each value among those of the block, through the columns that bear a price.
        firsts: Shape (values,), int32: a record that has each value.
        starts: Shape (columns + 1,), int32: where the values of each column start; none are of a column that bears no price.
        bit_starts: Shape (columns + 1,), int32: where the bits of each column start; none are of a column whose values are not counted.
        value_positions: Shape (values,), int32: the place of each value, ascending in each column.
        value_bits: Shape (values,), int32: the bit of each value, -1 in columns whose values are not counted.
    """

    positions: RankPositions
    bits: RankPositions
    people: RankPositions
    values: RankPositions
    firsts: RankPositions
    starts: RankPositions
    bit_starts: RankPositions
    value_positions: RankPositions
    value_bits: RankPositions


class SetLabels(NamedTuple):
    """Labels of sets of records: lowest and highest position and distinct values of each column.

    Attributes:
        low: Shape (m, columns), int32, the lowest place.
        high: Shape (m, columns), int32, the highest.
        values: Shape (m, words), uint64: the bits of the values.
        counts: Shape (m, columns), int32: how many different ones.
    """

    low: RankPositions
    high: RankPositions
    values: NDArray[np.uint64]
    counts: RankPositions


@kernel
def set_label_arrays(size: int, column_count: int, word_count: int) -> SetLabels:
    """Return ``SetLabels`` with room for ``size`` sets of records, all zeros, to be filled by kernels."""
    return SetLabels(
        np.zeros((size, column_count), np.int32),
        np.zeros((size, column_count), np.int32),
        np.zeros((size, word_count), np.uint64),
        np.zeros((size, column_count), np.int32),
    )


@kernel
def bitset_words_for(records: CodedRecords) -> int:
    """Return the number of 64-bit words that the value bits of a block take."""
    return (int(records.bit_starts[-1]) + 63) // 64


@kernel
def start_set_label(set_labels: SetLabels, at: int, records: CodedRecords, row: int) -> None:
    """Overwrite the set label at a position by the label of a single record."""
    for word in range(set_labels.values.shape[1]):
        set_labels.values[at, word] = 0
    for column in range(records.positions.shape[1]):
        set_labels.low[at, column] = set_labels.high[at, column] = records.positions[row, column]
        bit = records.bits[row, column]
        set_labels.counts[at, column] = 1
        if bit >= 0:
            set_labels.values[at, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@kernel
def extend_set_label(set_labels: SetLabels, at: int, records: CodedRecords, row: int) -> None:
    """Extend the set label at a position so that it covers one more record."""
    for column in range(records.positions.shape[1]):
        place, bit = records.positions[row, column], records.bits[row, column]
        set_labels.low[at, column] = min(set_labels.low[at, column], place)
        set_labels.high[at, column] = max(set_labels.high[at, column], place)
        if bit >= 0 and not set_labels.values[at, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1):
            set_labels.values[at, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            set_labels.counts[at, column] += 1


@kernel
def copy_set_label(source: SetLabels, at: int, target: SetLabels, to: int) -> None:
    """Copy one set label over the one at a position among other set labels."""
    for column in range(source.low.shape[1]):
        target.low[to, column] = source.low[at, column]
        target.high[to, column] = source.high[at, column]
        target.counts[to, column] = source.counts[at, column]
    for word in range(source.values.shape[1]):
        target.values[to, word] = source.values[at, word]


@kernel
def set_label_price(set_labels: SetLabels, at: int, prices: Prices) -> int:
    """Return the price of a set label per record, summed over all columns."""
    lows, highs, counts, terms, numbers = set_labels.low, set_labels.high, set_labels.counts, prices.terms, prices.numbers
    total = before = known = whole(0)
    for column in range(lows.shape[1]):
        low, high, count = whole(lows[at, column]), whole(highs[at, column]), whole(counts[at, column])
        total += column_price(terms, numbers, column, low, high, count, before, known)
        before, known = low, count
    return int(total)


@kernel
def price_with(set_labels: SetLabels, at: int, records: CodedRecords, row: int, prices: Prices) -> int:
    """Return the price of a set label with one record added."""
    lows, highs, words, counts, terms, numbers = (
        set_labels.low,
        set_labels.high,
        set_labels.values,
        set_labels.counts,
        prices.terms,
        prices.numbers,
    )
    places, bits = records.positions, records.bits
    total = before = known = whole(0)
    for column in range(places.shape[1]):
        place, bit, count = whole(places[row, column]), bits[row, column], whole(counts[at, column])
        if bit >= 0 and not words[at, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1):
            count += 1
        low, high = min(whole(lows[at, column]), place), max(whole(highs[at, column]), place)
        total += column_price(terms, numbers, column, low, high, count, before, known)
        before, known = low, count
    return int(total)


@kernel
def block_of(
    places: RankPositions, people: RankPositions, counts_values: NDArray[np.bool_], prices: Prices, scratch: RankPositions
) -> CodedRecords:
    """Code a block's records: number the distinct values of each column; ``scratch`` stays 0.

    Args:
        places: Shape (n, columns), int32.
        people: As `CodedRecords` has them.
        counts_values: Shape (columns,): whose values are counted.
        prices: Has the columns that bear a price.
        scratch: As many entries as any column has places, 0 before and after.
    """
    rows, columns, terms = places.shape[0], places.shape[1], prices.terms
    bits, values, found = np.full(places.shape, np.int32(-1)), np.zeros(places.shape, np.int32), np.zeros(rows, np.int32)
    room = rows * columns
    firsts, value_places, value_bits = np.zeros(room, np.int32), np.zeros(room, np.int32), np.full(room, np.int32(-1))
    starts, bit_starts = np.zeros(columns + 1, np.int32), np.zeros(columns + 1, np.int32)
    unsorted, ascending = np.empty(rows, np.int64), np.empty(rows, np.int32)
    bit = value = priced = 0
    for column in range(columns):
        bears, different = terms[column, SIDE] != FIRST, whole(0)
        for row in range(rows):
            if scratch[places[row, column]] == 0:
                scratch[places[row, column]] = row + 1
                found[different] = places[row, column]
                different += 1
        for at in range(different):
            unsorted[at] = found[at]
        for at, one in enumerate(ascending_order(unsorted[:different])):
            ascending[at] = unsorted[one]
        for at in range(different):
            place = ascending[at]
            if bears:
                firsts[value + at], value_places[value + at] = scratch[place] - 1, place
                value_bits[value + at] = bit + at if counts_values[column] else -1
            scratch[place] = at + 1
        for row in range(rows):
            at = scratch[places[row, column]] - 1
            values[row, priced] = value + at
            if counts_values[column]:
                bits[row, column] = bit + at
        for at in range(different):
            scratch[ascending[at]] = 0
        value += different * bears
        bit += different * counts_values[column]
        priced += bears
        starts[column + 1], bit_starts[column + 1] = value, bit
    kept = np.empty((rows, priced), np.int32)
    for row in range(rows):
        for column in range(priced):
            kept[row, column] = values[row, column]
    return CodedRecords(places, bits, people, kept, firsts[:value], starts, bit_starts, value_places[:value], value_bits[:value])
