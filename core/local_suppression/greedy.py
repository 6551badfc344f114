"""Pools that become classes, one at a time and the largest first, in time that is bounded by how many combinations and sets there are.

To rank all pools anew after every choice takes as many rankings as there are choices that wait for one another: 32 were measured at 60,000
combinations, and nothing but the number of choices bounds them. A pool only ever shrinks, though, by what others take. So pools wait in a
heap by what they held when they were put there, and one that holds less by now is put back: the one that comes out as it went in is the
largest of all.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("local_suppression.greedy")


@kernel
def take_largest(pools: NDArray[np.int32], starts: NDArray[np.int64], counts: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Returns the set in whose pool each combination becomes part of a class, -1 for none, shape (combinations,).

    Args:
        pools: Shape (sets, combinations), int32: the pool of each combination, from 0 for each set.
        starts: Shape (sets + 1,): how many pools the sets before have together.
        counts: Shape (combinations,): records.
        k: Fewest records of a class. Of equally large pools that of the earlier set comes first, in a set the earlier pool.
    """
    sets, size = pools.shape
    every = starts[sets]
    records = np.zeros(every, np.int64)
    members = np.zeros(every + 1, np.int64)
    for number in range(sets):
        for at in range(size):
            records[starts[number] + pools[number, at]] += counts[at]
            members[starts[number] + pools[number, at] + 1] += 1
    members = np.cumsum(members)
    held, filled = np.empty(sets * size, np.int32), members[:-1].copy()
    for number in range(sets):
        for at in range(size):
            pool = starts[number] + pools[number, at]
            held[filled[pool]] = at
            filled[pool] += 1
    # One number to compare: more records come first, and of as many the pool that is numbered first.
    most = counts.sum()
    heap = [(most - records[pool]) * every + pool for pool in range(every) if records[pool] >= k]
    heapify(heap)
    chosen = np.full(size, -1, np.int64)
    while heap:
        key = heappop(heap)
        pool = key % every
        if records[pool] < most - key // every:
            if records[pool] >= k:
                heappush(heap, (most - records[pool]) * every + pool)
            continue
        number = np.searchsorted(starts, pool, side="right") - 1
        for place in range(members[pool], members[pool + 1]):
            at = held[place]
            if chosen[at] < 0:
                chosen[at] = number
                for other in range(sets):
                    records[starts[other] + pools[other, at]] -= counts[at]
    return chosen
