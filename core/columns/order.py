"""Compiled order of numbers (numba), for kernels that sort."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("columns.order")

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
