"""Radix sort of whole numbers, and the order of numbers for compiled kernels that sort.

Records, cells and classes are numbered before anything else is done with them, so that nearly everything that is sorted is a whole number
that is not negative and has a known upper bound. It is dealt out by eleven bits at a time, the lowest first; a stable sort, as many
passes over the numbers as the bound has digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("columns.sorting")

Numbers = NDArray[np.int64]


@kernel
def ascending_order(numbers: Numbers) -> Numbers:
    """Return the stable ascending order of numbers, by merge sort.

    NumPy's own sorts take seconds to compile, once for each type and each caller.

    Args:
        numbers: Shape (n,), int64.

    Returns:
        Shape (n,), int64: where the numbers stand, in ascending order.
    """
    size = numbers.shape[0]
    order, merged = np.empty(size, np.int64), np.empty(size, np.int64)
    for at in range(size):
        order[at] = at
    width = 1
    while width < size:
        for start in range(0, size, 2 * width):
            middle, end = min(start + width, size), min(start + 2 * width, size)
            left, right = start, middle
            for at in range(start, end):
                if left < middle and (right >= end or numbers[order[left]] <= numbers[order[right]]):
                    merged[at] = order[left]
                    left += 1
                else:
                    merged[at] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


DIGIT = 11
"""Bits of a digit: 2,048 places to write to at a time are about what a processor keeps track of."""


@kernel
def radix_sort(numbers: NDArray[Any], other: NDArray[Any], low: int, passes: int) -> bool:
    """Sort numbers stably by some of their bits; return whether the sorted ones are in ``other``.

    A digit that all have in common takes no pass.

    Args:
        numbers: Shape (n,), n ≥ 1, unsigned; written to.
        other: Shape (n,), room for as many.
        low: The lowest bit that is looked at.
        passes: How many digits are looked at from there.
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
        if here[np.int64(np.uint64(numbers[0]) >> shift) & mask] == size:
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
def insertion_sort_order(order: NDArray[np.intp], numbers: NDArray[Any], most_steps: int) -> bool:
    """Correct in place an order that nearly sorts numbers; return whether ``most_steps`` were enough.

    Args:
        order: Shape (n,), written to.
        numbers: Shape (n,).
        most_steps: Steps of a place past another one.
    """
    for row in range(1, order.shape[0]):
        place, mine = row, order[row]
        while place > 0 and numbers[order[place - 1]] > numbers[mine]:
            order[place] = order[place - 1]
            place -= 1
            most_steps -= 1
        order[place] = mine
        if most_steps < 0:
            return False
    return True


FEW = 1 << 15
"""Numbers that are sorted by comparing before a loop is loaded that would do it by digits."""
WIDTH = 64
GREATEST_DIGEST = (1 << WIDTH) - 1


def sort_numbers(numbers: NDArray[Any], greatest: int, *, lowest_bit: int = 0, keeps_input: bool = True) -> NDArray[Any]:
    """Return non-negative integers sorted by their bits from ``lowest_bit`` up; may reorder the input.

    Args:
        numbers: Shape (n,), uint32, uint64 or int64, none negative.
        greatest: None is greater; below 2^63 for int64.
        lowest_bit: The first bit that need be looked at: numbers that are alike from there on may stand in any order.
        keeps_input: Whether the numbers given must stay as they are.

    Returns:
        Shape (n,), of the same type.
    """
    if len(numbers) < FEW:
        return np.sort(numbers)
    return _by_bits(numbers.copy() if keeps_input else numbers, lowest_bit, greatest.bit_length())


def order_of(numbers: NDArray[Any], greatest: int) -> NDArray[np.intp]:
    """Return the permutation that sorts whole numbers, shape (n,); the sort is stable.

    Args:
        numbers: Shape (n,), int64 or uint64, none negative.
        greatest: None is greater.
    """
    if len(numbers) < FEW:
        return np.argsort(numbers, kind="stable")
    bits, width = (len(numbers) - 1).bit_length(), greatest.bit_length()
    # A number and its place are one number: both are moved at once, and only the upper bits are looked at, as many as there is room for.
    lost = max(width + bits - WIDTH, 0)
    both = ((numbers >> numbers.dtype.type(lost)).astype(np.int64) << bits) | np.arange(len(numbers))
    order: NDArray[np.intp] = _by_bits(both, bits, bits + width - lost) & ((1 << bits) - 1)
    if lost and not insertion_sort_order(order, numbers, len(numbers)):
        return np.argsort(numbers, kind="stable")
    return order


def order_of_digests(digests: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the permutation that sorts digests, shape (n,); the sort is stable."""
    return order_of(digests, GREATEST_DIGEST)


def run_starts(ordered: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions where each run of equal numbers begins, ascending; none of an empty array."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])


def tied_positions(equals_previous: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the positions in a sorted array whose value equals a neighbour's.

    Args:
        equals_previous: Shape (n - 1,), or of none (0,): whether each but the first equals the one before it.
    """
    return np.flatnonzero(np.append(equals_previous, False) | np.append(False, equals_previous))


def _by_bits(numbers: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    plain = numbers.view(np.uint64) if numbers.dtype == np.int64 else numbers
    other = np.empty_like(plain)
    found = other if radix_sort(plain, other, low, -(-(high - low) // DIGIT)) else plain
    return found.view(numbers.dtype)
