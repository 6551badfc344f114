"""Loops over the records of classes, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler
from core.recoding.price_kernels import first_not_below

kernel = compiler("recoding.price_kernels", "recoding.kernels")


@kernel
def count_members(classes: NDArray[np.signedinteger[Any]], counts: NDArray[np.int64]) -> None:
    """Adds one to the count of each record's class; shape (n,), negative for records that are in none."""
    for number in classes:
        if number >= 0:
            counts[number] += 1


@kernel
def gather_members(classes: NDArray[np.signedinteger[Any]], places: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """Puts each record at the next place of its class.

    Args:
        classes: Shape (n,), negative for records that are in none.
        places: Shape (classes,), where each begins; counted up to where it ends.
        order: Shape (records in a class,), written to.
    """
    for row in range(classes.shape[0]):
        number = classes[row]
        if number >= 0:
            order[places[number]] = row
            places[number] += 1


@kernel
def count_distinct(codes: NDArray[np.integer[Any]], order: NDArray[np.int64], starts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Counts the different codes of each class, in one pass and without sorting.

    Args:
        codes: Shape (n,), below ``size``.
        order: Shape (records in a class,), the records class by class.
        starts: Shape (classes,), where each class begins; none is empty.
        size: Number of codes.

    Returns:
        Shape (classes,).
    """
    # There are fewer classes than 2^31.
    seen = np.zeros(size, np.int32)
    counts = np.zeros(starts.shape[0], np.int64)
    number = 0
    for row in range(order.shape[0]):
        while number < starts.shape[0] and starts[number] <= row:
            number += 1
        code = codes[order[row]]
        # The number of the class is the mark, so that nothing is cleared between classes.
        if seen[code] != number:
            seen[code] = number
            counts[number - 1] += 1
    return counts


@kernel
def cut_grid_lines(
    places: NDArray[np.int64], before: NDArray[np.int64], widths: NDArray[np.int64], k: int, lines: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Cuts a grid along its lines, widest first, nearest to the middle first, where k people are on both sides up to the next cut.

    Where there are fewer on one side, no line on that side is looked at any more.

    Args:
        places: Shape (m,), ascending: where values lie.
        before: Shape (m + 1,): people at the values before each.
        widths: How far apart lines are, ascending, each a multiple of the one before; all places lie within the last one of zero.
        k: People.
        lines: Shape (m,): gets the line between each value and the one before it, where there was a cut.

    Returns:
        Shape (m,): whether there was a cut before the value.
    """
    starts = np.zeros(places.shape[0], np.bool_)
    last = widths.shape[0] - 1
    # Lower and upper line of a part, its first value and the one after its last. A part is at most 63 cuts by halves below the whole.
    stack = np.empty((1024, 4), np.int64)
    # Number by number: an array that is set to a tuple takes seconds to compile.
    stack[0, 0] = -widths[last] if places.shape[0] and places[0] < 0 else 0
    stack[0, 1], stack[0, 2], stack[0, 3] = widths[last], 0, places.shape[0]
    size = 1
    while size:
        size -= 1
        low, high, first, end = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        width = last
        while before[end] - before[first] >= 2 * k and width >= 0:
            step = widths[width]
            under = (low + high) // 2 // step * step
            over = under + step
            if under <= low and over >= high:
                width -= 1
                continue
            line = under if under > low and (over >= high or 2 * under + step >= low + high) else over
            at = first_not_below(places, first, end, line)
            left, right = before[at] - before[first], before[end] - before[at]
            if left >= k and right >= k:
                starts[at], lines[at] = True, line
                stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = line, high, at, end
                size += 1
                high, end = line, at
            elif left < k:
                low = line
            else:
                high = line
    return starts
