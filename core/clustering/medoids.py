"""The record in the middle of each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Metric, Points, Rows, distance, kernel


def medoids(points: Points, order: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the record of each class with the least sum of distances to the others, the first of equals, shape (classes,).

    Args:
        points: The records.
        order: Records class by class.
        ends: Shape (classes + 1,), where the classes end.
    """
    return order[_medoids(points.rows[order], ends, points.metric)]


@kernel
def _medoids(rows: Rows, ends: NDArray[np.int64], metric: Metric) -> NDArray[np.int64]:
    found = np.empty(ends.shape[0] - 1, np.int64)
    for number in range(ends.shape[0] - 1):
        best, least = int(ends[number]), int(np.iinfo(np.int64).max)
        for row in range(ends[number], ends[number + 1]):
            total = 0
            for other in range(ends[number], ends[number + 1]):
                total += distance(rows, row, rows, other, metric)
                # Cannot win any more, and among equals the first has won: most sums are broken off early.
                if total >= least:
                    break
            if total < least:
                best, least = row, total
        found[number] = best
    return found
