"""The loops that put numbers in order by their digits, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("order.kernels")

DIGIT = 11
"""Bits of a digit: 2,048 places to write to at a time are about what a processor keeps track of."""


@kernel
def deal_out(numbers: NDArray[Any], other: NDArray[Any], low: int, passes: int) -> bool:
    """Sorts numbers by some of their bits; of equal bits they stay in order. A digit that all have in common takes no pass.

    Args:
        numbers: Shape (n,), unsigned; written to.
        other: Shape (n,), room for as many.
        low: The lowest bit that is looked at.
        passes: How many digits are looked at from there.

    Returns:
        Whether the sorted numbers are in ``other``.
    """
    size, mask = numbers.shape[0], (1 << DIGIT) - 1
    places = np.zeros((passes, 1 << DIGIT), np.int64)
    for row in range(size):
        rest = np.uint64(numbers[row]) >> np.uint64(low)
        for digit in range(passes):
            places[digit, np.int64(rest) & mask] += 1
            rest >>= np.uint64(DIGIT)
    swapped = False
    for digit in range(passes):
        shift, here = np.uint64(low + digit * DIGIT), places[digit]
        if size == 0 or here[np.int64(np.uint64(numbers[0]) >> shift) & mask] == size:
            continue
        before = 0
        for number in range(here.shape[0]):
            count = here[number]
            here[number] = before
            before += count
        for row in range(size):
            place = np.int64(np.uint64(numbers[row]) >> shift) & mask
            other[here[place]] = numbers[row]
            here[place] += 1
        numbers, other = other, numbers
        swapped = not swapped
    return swapped


@kernel
def settle(numbers: NDArray[np.uint64], most: int) -> bool:
    """Puts numbers that are nearly in order, shape (n,), into it, each before those that are greater; gives up after so many steps.

    Args:
        numbers: Written to.
        most: Steps of a number past another one.

    Returns:
        Whether they are in order.
    """
    for row in range(1, numbers.shape[0]):
        number, place = numbers[row], row
        while place > 0 and numbers[place - 1] > number:
            numbers[place] = numbers[place - 1]
            place -= 1
            most -= 1
        numbers[place] = number
        if most < 0:
            return False
    return True


@kernel
def settle_order(order: NDArray[np.intp], numbers: NDArray[Any], most: int) -> bool:
    """Does the same to a permutation that nearly sorts numbers: each place comes before those of greater numbers.

    Args:
        order: Shape (n,), written to.
        numbers: Shape (n,).
        most: Steps of a place past another one.

    Returns:
        Whether the numbers are in order.
    """
    for row in range(1, order.shape[0]):
        place, mine = row, order[row]
        while place > 0 and numbers[order[place - 1]] > numbers[mine]:
            order[place] = order[place - 1]
            place -= 1
            most -= 1
        order[place] = mine
        if most < 0:
            return False
    return True
