"""How many different persons combinations have that several chunks may count, without bringing all pairs of person and cell together.

Most combinations of values as they are occur in one chunk alone: their persons are its pairs. Only of those that occur again a person may
be counted twice, and only their pairs are grouped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.kernels import find_cells, place_cells
from core.order.sorting import ascending
from core.persons.digests import Digests
from core.persons.kernels import kernel

Counts = NDArray[np.int64]
Places = NDArray[np.int32]

ALONE = -1
"""The place of a key that occurs once."""


def places_shared(keys: NDArray[np.int64]) -> tuple[Places, int]:
    """Returns where each key stands among those that occur more than once, ``ALONE`` if it does not, and how many these are.

    Args:
        keys: Shape (n,), none negative.

    Returns:
        The places, shape (n,), and how many different ones there are.
    """
    ordered = ascending(keys, int(keys.max(initial=0)))
    again = ordered[1:] == ordered[:-1]
    # Those that equal the next one, but not the one before.
    shared = ordered[:-1][again & ~np.append(False, again[:-1])[: len(again)]]
    table = np.full(1 << (2 * len(shared)).bit_length(), -1, np.int32)
    place_cells(shared, table)
    return find_cells(keys, shared, table), len(shared)


@kernel
def count_different(owners: Places, persons: Digests, size: int) -> Counts:
    """Counts the different persons of each owner, shape (size,).

    Args:
        owners: Shape (n,), from 0.
        persons: Shape (n,).
        size: How many owners there are.
    """
    ends = np.zeros(size + 1, np.int64)
    for owner in owners:
        ends[owner + 1] += 1
    for owner in range(size):
        ends[owner + 1] += ends[owner]
    grouped = np.empty(owners.shape[0], np.uint64)
    for row in range(owners.shape[0]):
        # What starts as the end of the owner before becomes that of this one.
        grouped[ends[owners[row]]] = persons[row]
        ends[owners[row]] += 1
    counts, start = np.zeros(size, np.int64), np.int64(0)
    for owner in range(size):
        mine = grouped[start : ends[owner]]
        start = ends[owner]
        mine.sort()
        for place in range(mine.shape[0]):
            counts[owner] += place == 0 or mine[place] != mine[place - 1]
    return counts
