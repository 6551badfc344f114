"""Connectivity-based outlier factors (COF) of records within their partitions.

See Tang et al. 2002 and papers/rayden.txt, Outlier Handling Phase.

Distances are whole numbers and so are the weighted chains, so that only the last division rounds. Among records at equal distance the one
that comes first in the order of the records is the nearer one.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import UNIT, Metric, Points, Rows, distance, kernel
from core.columns.data_parallel import least_for_threads, parts_in_parallel
from core.recoding.classes import records_by_class

Distances = NDArray[np.signedinteger[Any]]
MOST_CACHED_RECORDS = 256
"""Records of a partition up to which all of its distances are held: half a megabyte, as much as stays in a core's cache."""
LANES = 64
"""Records of which a loop does as many as it can at a time; those left over, which it would do one by one, are filled up to so many."""


class NeighbourBuffers(NamedTuple):
    """Scratch arrays of the outlier kernels, allocated once, each as long as the largest partition.

    Attributes:
        columns: Shape (columns, largest): the points of a partition, column by column; int32 where all that is reckoned with distances
            fits it, else int64, as all that has distances.
        cached_distances: Shape (HELD, HELD) or less: all distances of a partition that is small enough.
        alone: Shape (largest,): those of one record, where it is not.
        near: Shape (largest,): the nearest records of one.
        chains: Shape (largest,): of each record; ``farthest`` the distance of its last neighbour, ``last`` that neighbour.
        reached: Shape (k,) or less: distances to a trail.
    """

    columns: Distances
    cached_distances: Distances
    alone: Distances
    near: NDArray[np.int64]
    chains: NDArray[np.int64]
    farthest: Distances
    last: NDArray[np.int64]
    reached: NDArray[np.int64]


def scratch_for_partitions(points: Points, largest: int, k: int) -> NeighbourBuffers:
    """Return scratch arrays for outlier factors; memory grows with the largest partition alone.

    Args:
        largest: Records of the largest partition.
        k: Neighbours.
    """
    # Numbers of half the width are worked on twice as many at a time.
    short = not points.metric.squared and int(points.metric.weights.sum()) * MOST_CACHED_RECORDS < 1 << 31
    distances, places = (np.int32 if short else np.int64), np.int64
    held, padded = min(largest, MOST_CACHED_RECORDS), -(-largest // LANES) * LANES
    return NeighbourBuffers(
        columns=np.zeros((points.rows.shape[1], padded), distances),
        cached_distances=np.empty((held, min(padded, MOST_CACHED_RECORDS)), distances),
        alone=np.empty(padded, distances), near=np.empty(largest, places),
        chains=np.empty(largest, places), farthest=np.empty(largest, distances), last=np.empty(largest, places),
        reached=np.empty(min(k, largest), places),
    )  # fmt: skip


@kernel
def padded_size(size: int) -> int:
    """Return a number of records padded to full loop lanes; a small number stays as it is."""
    return size if 2 * size < LANES else -(-size // LANES) * LANES


@kernel
def measure_from(columns: Distances, size: int, row: int, metric: Metric, gaps: Distances) -> None:
    """Write the distances from one record to all records of its partition into ``gaps``.

    The distances are those of ``distance``. The loop goes column by column and without a branch, so that the compiler makes one instruction
    of several records.

    Args:
        columns: Shape (QIDs, size or more), the points of the partition.
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
def write_nearest(gaps: Distances, row: int, size: int, count: int, near: NDArray[np.int64]) -> None:
    """Write the ``count`` other records nearest to a record into ``near``, nearest first.

    The record itself is left out. Of equal distances the first record is nearer.

    Args:
        gaps: Shape (size or more,), the distances of the record.
        row: The record, which is not among them.
        size: Records of the partition.
        count: How many are wanted, fewer than these.
        near: Shape (size or more,), written to.
    """
    found = 0
    for other in range(size):
        # Most records are no nearer than the last of those found.
        if other == row or (found == count and gaps[other] >= gaps[near[count - 1]]):
            continue
        found += found < count
        place = found - 1
        while place > 0 and gaps[near[place - 1]] > gaps[other]:
            near[place] = near[place - 1]
            place -= 1
        near[place] = other


Chaining = Literal["paper", "tang"]
SLACK = 1e-9
LEAST_ROWS = 1 << 13
"""Records for which a thread is worth its start."""


def outlier_factors(points: Points, classes: NDArray[np.int32], k: int, chaining: Chaining = "paper") -> NDArray[np.float64]:
    """Return each record's connectivity-based outlier factor (COF) within its partition, shape (n,).

    There are min(k, P - 1) neighbours in a partition of P records. Equal records have COF 1. A record has an infinite COF if its chain has
    a length and the chains of all its neighbours have length 0.

    Args:
        classes: Shape (n,), int32, the partition of each record.
        k: Neighbours.
        chaining: ``paper`` chains the neighbours in the order of their distance, the last edge weighing most; ``tang`` chains each to the
            nearest of those before it, the first edge weighing most (Tang et al. 2002, definitions 4 to 7).

    Returns:
        Shape (n,), float64.
    """
    order, ends = records_by_class(classes)
    factors = np.ones(points.size)
    if len(order):
        found, rows = np.ones(len(order)), points.rows[order]

        def of_some(part: slice) -> None:
            mine = ends[part.start : part.stop + 1]
            _factors(rows, mine, k, chaining == "tang", points.metric, scratch_for_partitions(points, int(np.diff(mine).max()), k), found)

        parts_in_parallel(of_some, len(ends) - 1, least=least_for_threads(len(ends) - 1, len(order), LEAST_ROWS))
        factors[order] = found
    return factors


def outliers(factors: NDArray[np.float64], classes: NDArray[np.int32], alpha: float) -> NDArray[np.bool_]:
    """Return a mask of outliers: records with a factor above μ + α·σ of their partition.

    σ is that of the partition and not of a sample. A difference below a billionth of the threshold counts as none, so that rounding makes
    no outliers among equals. An infinite factor is above any threshold and has no part in μ and σ. In a partition of p records no factor
    can lie more than √(p - 1)·σ above μ. So with α = 2 none of five records or fewer is ever an outlier.

    Args:
        factors: Shape (n,).
        classes: Shape (n,), int32, the partition of each record.
        alpha: How many standard deviations above the mean the threshold lies.
    """
    finite = np.isfinite(factors)
    values, groups = np.where(finite, factors, 0.0), classes.astype(np.int64)
    # A partition without a finite factor has no mean; its factors are above any threshold anyway.
    sizes = np.maximum(np.bincount(groups, weights=finite), 1)
    mean = np.bincount(groups, weights=values) / sizes
    gaps = np.where(finite, values - mean[groups], 0.0)
    deviation = np.sqrt(np.bincount(groups, weights=gaps * gaps) / sizes)
    threshold = (mean + alpha * deviation)[groups]
    return ~finite | (factors > threshold * (1 + SLACK))


@kernel
def _factors(
    rows: Rows, ends: NDArray[np.int64], k: int, tang: bool, metric: Metric, room: NeighbourBuffers, factors: NDArray[np.float64]
) -> None:
    """Write the COF of records that are sorted by partition.

    Args:
        rows: Shape (n, columns).
        ends: Shape (partitions + 1,), where they end.
        k: Neighbours.
        tang: How they are chained.
        metric: What the columns are.
        room: Scratch.
        factors: Shape (n,), all 1; of equal records they stay so.
    """
    for number in range(ends.shape[0] - 1):
        start, size = ends[number], ends[number + 1] - ends[number]
        count = min(k, size - 1)
        if count > 0 and not _all_equal(rows, start, size):
            _link(rows, start, size, count, tang, metric, room)
            _compare(start, size, count, metric, room, factors)


@kernel
def _link(rows: Rows, start: int, size: int, count: int, tang: bool, metric: Metric, room: NeighbourBuffers) -> None:
    """Find each record's neighbours in a partition, and the length of the chain through them."""
    columns, held, alone, near, chains = room.columns, room.cached_distances, room.alone, room.near, room.chains
    farthest, last = room.farthest, room.last
    padded = padded_size(size)
    for row in range(size):
        for qid in range(rows.shape[1]):
            columns[qid, row] = rows[start + row, qid]
    if size <= MOST_CACHED_RECORDS:
        for row in range(size):
            measure_from(columns, padded, row, metric, held[row])
    for row in range(size):
        gaps = held[row] if size <= MOST_CACHED_RECORDS else alone
        if size > MOST_CACHED_RECORDS:
            measure_from(columns, size, row, metric, gaps)
        write_nearest(gaps, row, size, count, near)
        farthest[row], last[row] = gaps[near[count - 1]], near[count - 1]
        if tang:
            chains[row] = _trail(rows, start, row, near[:count], room.reached, metric)
        elif size <= MOST_CACHED_RECORDS:
            chains[row] = _cached_chain(held, row, near, count)
        else:
            chains[row] = _chain(rows, start, row, near[:count], metric)


@kernel
def _compare(start: int, size: int, count: int, metric: Metric, room: NeighbourBuffers, factors: NDArray[np.float64]) -> None:
    """Write each record's COF in a partition: its chain relative to those of its neighbours."""
    held, alone, chains = room.cached_distances, room.alone, room.chains
    for row in range(size):
        gaps = held[row] if size <= MOST_CACHED_RECORDS else alone
        if size > MOST_CACHED_RECORDS:
            # Measured once more: to keep all gaps would take the square of the partition.
            measure_from(room.columns, size, row, metric, gaps)
        total = _within(gaps, row, size, room.farthest[row], room.last[row], chains)
        if total:
            factors[start + row] = count * chains[row] / total
        elif chains[row]:
            factors[start + row] = np.inf


@kernel
def _within(gaps: Distances, row: int, size: int, farthest: int, last: int, chains: NDArray[np.int64]) -> int:
    """Return the sum of the chains of a record's neighbours.

    Neighbours are no farther than ``farthest``, and at equal distance up to ``last``.
    """
    total = 0
    for other in range(size):
        near = gaps[other] < farthest or (gaps[other] == farthest and other <= last)
        total += int(chains[other]) if near and other != row else 0
    return total


@kernel
def _all_equal(rows: Rows, start: int, size: int) -> bool:
    """Return whether all records of a partition are equal."""
    for row in range(start + 1, start + size):
        for qid in range(rows.shape[1]):
            if rows[row, qid] != rows[start, qid]:
                return False
    return True


@kernel
def _chain(rows: Rows, start: int, row: int, near: NDArray[np.int64], metric: Metric) -> int:
    """Return the paper's weighted chain length of a record: Σ l · d(r_l, r_(l-1)).

    r_0 is the record itself. The factor 2 / (k (k + 1)) cancels in the ratio.
    """
    total, before = 0, row
    for place in range(near.shape[0]):
        total += (place + 1) * distance(rows, start + near[place], rows, start + before, metric)
        before = int(near[place])
    return total


@kernel
def _cached_chain(held: Distances, row: int, near: NDArray[np.int64], count: int) -> int:
    """Return the paper's chain length of a record from cached distances.

    ``held`` has the shape (size or more, size or more).
    """
    total, before = 0, row
    for place in range(count):
        total += (place + 1) * int(held[near[place], before])
        before = int(near[place])
    return total


@kernel
def _trail(rows: Rows, start: int, row: int, near: NDArray[np.int64], reached: NDArray[np.int64], metric: Metric) -> int:
    """Return the chain length of a record over its set-based nearest trail: Σ (k + 1 - l) · e_l.

    ``reached`` holds the distance of each neighbour to the set so far.
    """
    count, total, newest = near.shape[0], 0, row
    reached[:count] = np.iinfo(np.int64).max
    for step in range(count):
        closest = -1
        for place in range(count):
            if reached[place] < 0:
                continue
            gap = distance(rows, start + near[place], rows, start + newest, metric)
            reached[place] = min(reached[place], gap)
            if closest < 0 or reached[place] < reached[closest]:
                closest = place
        total += (count - step) * int(reached[closest])
        reached[closest] = -1
        newest = int(near[closest])
    return total
