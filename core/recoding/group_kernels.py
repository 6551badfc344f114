"""The best groups of neighbouring numbers, each of so many people at least (Hansen and Mukherjee, IEEE TKDE 2003)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("recoding.group_kernels")


@kernel
def cut_groups(numbers: NDArray[np.float64], records: NDArray[np.int64], people: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Returns where the groups of least squared error start, shape (groups,).

    A group that could be cut in two is never better than its parts, so that only short groups are looked at.

    Args:
        numbers: Shape (m,), ascending, distinct.
        records: Shape (m,), how many records have each.
        people: Shape (m,), how many people have each, no person twice; at least ``least`` together.
        least: People of a group.
    """
    count = numbers.shape[0]
    before = np.zeros(count + 1, np.int64)
    for place in range(count):
        before[place + 1] = before[place] + people[place]
    best, start = np.full(count + 1, np.inf), np.full(count + 1, -1, np.int64)
    best[0] = 0.0
    for end in range(1, count + 1):
        weight, mean, error, most = 0.0, 0.0, 0.0, 0
        for first in range(end - 1, -1, -1):
            # Welford's sums: differences of large squares would lose all digits.
            added = float(records[first])
            weight += added
            apart = numbers[first] - mean
            mean += apart * added / weight
            error += apart * (numbers[first] - mean) * added
            held = before[end] - before[first]
            if held >= least and best[first] + error < best[end]:
                best[end], start[end] = best[first] + error, first
            most = max(most, people[first])
            # There is a cut with enough people on either side, whichever value it falls upon.
            if held >= 2 * least + most:
                break
    groups, after, made = np.empty(count, np.int64), count, 0
    while after > 0:
        groups[made] = start[after]
        after = int(start[after])
        made += 1
    return groups[:made][::-1].copy()
