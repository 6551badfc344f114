"""Loops over the records of classes, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.compiled import compiler

kernel = compiler("recoding.kernels")


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
    seen = np.zeros(size, np.int64)
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
