"""The nearest records of each record of a partition, in loops without a branch: several records are one instruction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import UNIT, Metric, Points, kernel

Distances = NDArray[np.signedinteger[Any]]
HELD = 256
"""Records of a partition up to which all of its distances are held: half a megabyte, as much as stays in a core's cache."""
LANES = 64
"""Records of which a loop does as many as it can at a time; those left over, which it would do one by one, are filled up to so many."""


class Room(NamedTuple):
    """Scratch arrays, made once, each as long as the largest partition.

    Attributes:
        columns: Shape (columns, largest): the points of a partition, column by column; int32 where all that is reckoned with distances
            fits it, else int64, as all that has distances.
        held: Shape (HELD, HELD) or less: all distances of a partition that is small enough.
        alone: Shape (largest,): those of one record, where it is not.
        keys: Shape (largest,): distances and places; ``near`` the nearest records.
        chains: Shape (largest,): of each record; ``farthest`` the distance of its last neighbour, ``last`` that neighbour.
        reached: Shape (k,) or less: distances to a trail.
    """

    columns: Distances
    held: Distances
    alone: Distances
    keys: Distances
    near: NDArray[np.int64]
    chains: NDArray[np.int64]
    farthest: Distances
    last: NDArray[np.int64]
    reached: NDArray[np.int64]


def room_for_partitions(points: Points, largest: int, k: int) -> Room:
    """Makes the scratch arrays; memory grows with the largest partition alone.

    Args:
        points: The records.
        largest: Records of the largest partition.
        k: Neighbours.
    """
    # Numbers of half the width are worked on twice as many at a time.
    short = not points.metric.squared and int(points.metric.weights.sum()) * HELD < 1 << 31
    distances, places = (np.int32 if short else np.int64), np.int64
    held, padded = min(largest, HELD), -(-largest // LANES) * LANES
    return Room(
        columns=np.zeros((points.rows.shape[1], padded), distances), held=np.empty((held, min(padded, HELD)), distances),
        alone=np.empty(padded, distances), keys=np.empty(padded, distances), near=np.empty(largest, places),
        chains=np.empty(largest, places), farthest=np.empty(largest, distances), last=np.empty(largest, places),
        reached=np.empty(min(k, largest), places),
    )  # fmt: skip


@kernel
def filled_up(size: int) -> int:
    """Returns how many records a loop takes for so many: a few are not worth it."""
    return size if 2 * size < LANES else -(-size // LANES) * LANES


@kernel
def measure_from(columns: Distances, size: int, row: int, metric: Metric, gaps: Distances) -> None:
    """Writes the distances of a record to all of its partition, as ``distance`` tells them.

    Column by column and without a branch, so that the compiler makes one instruction of several records.

    Args:
        columns: Shape (QIDs, size or more), the points of the partition.
        size: How many there are.
        row: The record.
        metric: What the columns are.
        gaps: Shape (size or more,), written to.
    """
    # All of one type: numba would reckon in 64 bits otherwise.
    as_distance = gaps.dtype.type
    missing, one, nothing, squared = as_distance(metric.missing), as_distance(UNIT), as_distance(0), metric.squared
    for other in range(size):
        gaps[other] = nothing
    for qid in range(columns.shape[0]):
        values, mine = columns[qid], columns[qid, row]
        if qid >= metric.numerical:
            weight = as_distance(metric.weights[qid])
            for other in range(size):
                told = missing != nothing or (mine >= nothing and values[other] >= nothing)
                gaps[other] = as_distance(gaps[other] + (weight if mine != values[other] and told else nothing))
        else:
            for other in range(size):
                gap = as_distance(mine - values[other])
                gap = as_distance(-gap) if gap < nothing else gap
                gap = missing if gap > one else gap
                gaps[other] = as_distance(gaps[other] + (as_distance(gap * gap) if squared else gap))


@kernel
def put_nearest(gaps: Distances, row: int, size: int, count: int, keys: Distances, near: NDArray[np.int64]) -> None:
    """Puts the ``count`` nearest of the records but ``row`` into ``near``, nearest first; of equal distances the first record is nearer.

    Args:
        gaps: Shape (size or more,), the distances of the record.
        row: The record, which is not among them.
        size: Records of the partition.
        count: How many are wanted, fewer than these.
        keys: Scratch.
        near: Shape (size or more,), written to.
    """
    if size > HELD:
        order = np.argsort(gaps[:size], kind="mergesort")
        found = 0
        for place in order:
            if place != row and found < count:
                near[found] = place
                found += 1
        return
    # Distance and place in one number, which fits it; the record itself comes last, and what fills up behind it.
    for other in range(size):
        keys[other] = gaps[other] * HELD + other
    padded = filled_up(size)
    for other in range(size, padded):
        keys[other] = np.iinfo(keys.dtype).max
    keys[row] = np.iinfo(keys.dtype).max
    for other in range(size):
        # Ranks are counted, all by all: without a branch that costs less than to sort so few.
        key, rank = keys[other], keys.dtype.type(0)
        for place in range(padded):
            rank = keys.dtype.type(rank + (keys[place] < key))
        near[rank] = other
