"""The loop over the classes of a node, compiled by numba: a search of millions of cells asks for their losses some dozens of times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("losses.kernels")


@kernel
def add_classes(counts: NDArray[np.int64], failing: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Adds up classes in one reading.

    Args:
        counts: Shape (classes,), records of each; the square of their sum is below 2^63.
        failing: Shape (classes,).

    Returns:
        The sum of the squares of all, the records of those that fail, and the sum of the squares of these.
    """
    squares = lost = lost_squares = 0
    for place in range(counts.shape[0]):
        count = int(counts[place])
        # Without a branch: to guess which class fails costs more than to add nothing.
        gone = count * int(failing[place])
        squares += count * count
        lost += gone
        lost_squares += gone * gone
    return squares, lost, lost_squares
