"""Records in the order of their classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.recoding.kernels import count_members, place_members


def members(classes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the records class by class, each class in the order of the records, and where the classes end.

    Args:
        classes: Shape (n,), dense from 0; -1 for records that are in none.

    Returns:
        Shapes (records in a class,) and (classes + 1,), int64; the second begins with 0.
    """
    # Counted and not sorted: numbers that are dense tell themselves where their records go.
    counts = np.zeros(int(classes.max(initial=-1)) + 1, np.int64)
    count_members(classes, counts)
    ends = np.append(0, np.cumsum(counts)).astype(np.int64)
    order = np.empty(int(ends[-1]), np.int64)
    place_members(classes, ends[:-1].copy(), order)
    return order, ends
