"""Records in the order of their classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def members(classes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the records class by class, each class in the order of the records, and where the classes end.

    Args:
        classes: Shape (n,), dense from 0; -1 for records that are in none.

    Returns:
        Shapes (records in a class,) and (classes + 1,), int64; the second begins with 0.
    """
    order = np.argsort(classes, kind="stable").astype(np.int64)
    order = order[np.count_nonzero(classes < 0) :]
    return order, np.append(0, np.cumsum(np.bincount(classes[order]))).astype(np.int64)
