"""Kernels that compute the price (penalty) of labels, column by column, compiled by numba.

The values of a column are ordered so that every group of the column's hierarchy is a run. The label of a set of records follows from its
lowest and its highest position in that order: lowest common ancestor, range and common prefix of the set are those of these two.

A column whose labels name nulls next to values has two positions. The null is the highest in the first and the lowest in the second. So the
lowest value is that of the first position, the highest that of the second, and a second position of 0 means that the null was met.

Prices are whole numbers, so that sums are equal on every machine and in whatever order they are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("recoding.price_kernels")
RANGE, TABLE, LEVELS, SET = range(4)
ALONE, FIRST, SECOND = range(3)
KIND, SIDE, START, SIZE, LEVEL, WEIGHT, EACH, NULL = range(8)
"""The terms of a column."""
UNIT = 1 << 20
"""The penalty of a whole domain."""

Numbers = NDArray[np.int64]
RankPositions = NDArray[np.int32]

# A constant is a type of its own to numba, for which it compiles whatever is called with it once more; a whole number is just one.
whole: Any = np.int64


class Prices(NamedTuple):
    """Prices of labels, column by column, as arrays for kernels.

    Attributes:
        terms: Shape (columns, 8). KIND is RANGE, TABLE, LEVELS or SET. SIDE is ALONE, or of a pair the FIRST and then the SECOND, which
            bears the price of both. START is where the numbers of the column begin, SIZE its places, LEVEL its levels if it is of LEVELS.
            A penalty is multiplied by WEIGHT. EACH value that is held costs so much besides, where there are two or more; 0 where values
            are not counted. NULL is the penalty of the null beside a label, of the SECOND of a pair.
        numbers: int32. RANGE: for each place where ranges that begin there begin, then where those that end there end. TABLE: the penalty
            of every pair of places. LEVELS: the group of each place at every level, then its penalty at every level. SET: nothing. Of the
            SECOND of a pair that is a TABLE or of LEVELS also the penalty of each place alone beside the null.
    """

    terms: Numbers
    numbers: RankPositions


@kernel
def greatest(numbers: Numbers | RankPositions) -> int:
    """Return the greatest of at least one number.

    NumPy's own function takes half a second to compile.

    Args:
        numbers: Shape (n,), int32 or int64.
    """
    found = whole(numbers[0])
    for one in numbers:
        found = max(found, whole(one))
    return int(found)


@kernel
def first_not_below(places: NDArray[Any], first: int, end: int, value: int) -> int:
    """Return the index of the first ascending position that is not below a value; ``end`` if all are."""
    low, high = whole(first), whole(end)
    while low < high:
        middle = (low + high) // 2
        if places[middle] < value:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def column_price(
    terms: Numbers, numbers: RankPositions, column: int, low: int, high: int, distinct: int, low_of_first: int, distinct_of_first: int
) -> int:
    """Return the price of a class's label in a column; of a pair, 0 in the first and both in the second.

    Args:
        terms: As `Prices` has them. By itself and not in a tuple, because numba counts references whenever an array is taken out of one.
        numbers: As `Prices` has them.
        column: The column.
        low: Its lowest place.
        high: Its highest place.
        distinct: Its different values, where they are counted.
        low_of_first: The lowest place of the column before.
        distinct_of_first: Its different values.
    """
    side = terms[column, SIDE]
    if side == FIRST:
        return 0
    if side == SECOND:
        return int(_pair_price(terms, numbers, column, low_of_first, low, high, distinct_of_first))
    held = terms[column, EACH] * distinct if distinct > 1 else whole(0)
    if terms[column, KIND] == SET:
        # A null that cannot be named has the highest place: where it meets values, * is published.
        return int(terms[column, WEIGHT] * UNIT if low != high and high == terms[column, LEVEL] else held)
    return int(terms[column, WEIGHT] * _penalty(terms, numbers, column, low, high) + held)


@kernel
def _penalty(terms: Numbers, numbers: RankPositions, column: int, low: int, high: int) -> int:
    """Return the penalty of the label from a column's lowest to its highest position."""
    kind, first, size, levels = terms[column, KIND], terms[column, START], terms[column, SIZE], terms[column, LEVEL]
    if kind == TABLE:
        return int(numbers[first + low * size + high])
    if kind == RANGE:
        if low == high:
            return 0
        return int(min(whole(numbers[first + size + high]) - numbers[first + low], whole(UNIT)))
    level = whole(0)
    while numbers[first + level * size + low] != numbers[first + level * size + high]:
        level += 1
    return int(numbers[first + (levels + level) * size + low])


@kernel
def _pair_price(terms: Numbers, numbers: RankPositions, column: int, low: int, second: int, high: int, count: int) -> int:
    """Return the price of a column whose labels name nulls, for one class.

    Args:
        terms: As `Prices` has them.
        numbers: As `Prices` has them.
        column: The second of the pair.
        low: The lowest place of the first: that of the lowest value, if there is any.
        second: The lowest place of the second: 0 where there is a null.
        high: The highest place of the second: one more than that of the highest value.
        count: Its different values, the null among them, where they are counted.
    """
    held, high = terms[column, EACH] * count if count > 1 else whole(0), high - 1
    # Nulls alone.
    if low > high:
        return int(held)
    if second > 0:
        return int(terms[column, WEIGHT] * _penalty(terms, numbers, column, low, high) + held)
    kind, first, size, found = terms[column, KIND], terms[column, START], terms[column, SIZE], whole(0)
    if kind == RANGE:
        # Beside nulls one value is told as an end of a range may be.
        found = min(whole(numbers[first + size + high]) - numbers[first + low], whole(UNIT))
    elif low == high:
        behind = size * size if kind == TABLE else 2 * terms[column, LEVEL] * size
        found = whole(numbers[first + behind + low])
    else:
        found = whole(_penalty(terms, numbers, column, low, high))
    null = terms[column, NULL]
    return int(terms[column, WEIGHT] * min(max(found, null) + null, whole(UNIT)) + held)
