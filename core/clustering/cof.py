"""Connectivity-based outlier factors within partitions (Tang et al. 2002; papers/rayden.txt, Outlier Handling Phase).

Distances are whole numbers and so are the weighted chains, so that only the last division rounds. Among records at equal distance the one
that comes first in the order of the records is the nearer one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Metric, Points, Rows, distance, kernel
from core.clustering.neighbours import HELD, Distances, Room, filled_up, measure_from, put_nearest, room_for_partitions
from core.columns.data_parallel import least_for_threads, parts_in_parallel
from core.recoding.members import members

Chaining = Literal["paper", "tang"]
SLACK = 1e-9
LEAST_ROWS = 1 << 13
"""Records for which a thread is worth its start."""


def outlier_factors(points: Points, classes: NDArray[np.int32], k: int, chaining: Chaining = "paper") -> NDArray[np.float64]:
    """Returns COF of each record among the min(k, |P| - 1) nearest records of its partition.

    Equal records have COF 1; a record whose neighbours all have chains of length 0 and which has not itself, infinity.

    Args:
        points: The records.
        classes: Shape (n,), int32, the partition of each record.
        k: Neighbours.
        chaining: ``paper`` chains the neighbours in the order of their distance, the last edge weighing most; ``tang`` chains each to the
            nearest of those before it, the first edge weighing most (Tang et al. 2002, definitions 4 to 7).

    Returns:
        Shape (n,), float64.
    """
    order, ends = members(classes)
    factors = np.ones(points.size)
    if len(order):
        found, rows = np.ones(len(order)), points.rows[order]

        def of_some(part: slice) -> None:
            mine = ends[part.start : part.stop + 1]
            _factors(rows, mine, k, chaining == "tang", points.metric, room_for_partitions(points, int(np.diff(mine).max()), k), found)

        parts_in_parallel(of_some, len(ends) - 1, least=least_for_threads(len(ends) - 1, len(order), LEAST_ROWS))
        factors[order] = found
    return factors


def outliers(factors: NDArray[np.float64], classes: NDArray[np.int32], alpha: float) -> NDArray[np.bool_]:
    """Returns which records lie above the threshold μ + α·σ of their partition, σ being that of the partition and not of a sample.

    A difference below a billionth of the threshold is taken for none, so that rounding makes no outliers among equals. An infinite factor
    is above any threshold and has no part in μ and σ. In a partition of p records no factor can lie more than √(p - 1)·σ above μ, so
    that with α = 2 none of five records or fewer is ever an outlier.

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
def _factors(rows: Rows, ends: NDArray[np.int64], k: int, tang: bool, metric: Metric, room: Room, factors: NDArray[np.float64]) -> None:
    """Writes COF of rows that lie partition by partition.

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
def _link(rows: Rows, start: int, size: int, count: int, tang: bool, metric: Metric, room: Room) -> None:
    """Finds the neighbours of each record of a partition, and the length of the chain that they make."""
    columns, held, alone, near, chains = room.columns, room.held, room.alone, room.near, room.chains
    farthest, last = room.farthest, room.last
    padded = filled_up(size)
    for row in range(size):
        for qid in range(rows.shape[1]):
            columns[qid, row] = rows[start + row, qid]
    if size <= HELD:
        for row in range(size):
            measure_from(columns, padded, row, metric, held[row])
    for row in range(size):
        gaps = held[row] if size <= HELD else alone
        if size > HELD:
            measure_from(columns, size, row, metric, gaps)
        put_nearest(gaps, row, size, count, room.keys, near)
        farthest[row], last[row] = gaps[near[count - 1]], near[count - 1]
        if tang:
            chains[row] = _trail(rows, start, row, near[:count], room.reached, metric)
        elif size <= HELD:
            chains[row] = _held_chain(held, row, near, count)
        else:
            chains[row] = _chain(rows, start, row, near[:count], metric)


@kernel
def _compare(start: int, size: int, count: int, metric: Metric, room: Room, factors: NDArray[np.float64]) -> None:
    """Writes COF of the records of a partition: how long the chain of each is beside those of its neighbours."""
    held, alone, chains = room.held, room.alone, room.chains
    for row in range(size):
        gaps = held[row] if size <= HELD else alone
        if size > HELD:
            # Measured once more: to keep all gaps would take the square of the partition.
            measure_from(room.columns, size, row, metric, gaps)
        total = _within(gaps, row, size, room.farthest[row], room.last[row], chains)
        if total:
            factors[start + row] = count * chains[row] / total
        elif chains[row]:
            factors[start + row] = np.inf


@kernel
def _within(gaps: Distances, row: int, size: int, farthest: int, last: int, chains: NDArray[np.int64]) -> int:
    """Returns the sum of the chains of a record's neighbours: of those no farther than the farthest, at equal distance up to ``last``."""
    total = 0
    for other in range(size):
        near = gaps[other] < farthest or (gaps[other] == farthest and other <= last)
        total += int(chains[other]) if near and other != row else 0
    return total


@kernel
def _all_equal(rows: Rows, start: int, size: int) -> bool:
    for row in range(start + 1, start + size):
        for qid in range(rows.shape[1]):
            if rows[row, qid] != rows[start, qid]:
                return False
    return True


@kernel
def _chain(rows: Rows, start: int, row: int, near: NDArray[np.int64], metric: Metric) -> int:
    """Returns Σ l · d(r_l, r_(l-1)), r_0 being the record itself; the factor 2 / (k (k + 1)) falls out of the ratio."""
    total, before = 0, row
    for place in range(near.shape[0]):
        total += (place + 1) * distance(rows, start + near[place], rows, start + before, metric)
        before = int(near[place])
    return total


@kernel
def _held_chain(held: Distances, row: int, near: NDArray[np.int64], count: int) -> int:
    """Returns the same of a partition whose distances are held, shape (size or more, size or more)."""
    total, before = 0, row
    for place in range(count):
        total += (place + 1) * int(held[near[place], before])
        before = int(near[place])
    return total


@kernel
def _trail(rows: Rows, start: int, row: int, near: NDArray[np.int64], reached: NDArray[np.int64], metric: Metric) -> int:
    """Returns Σ (k + 1 - l) · e_l over the set-based nearest trail; ``reached`` holds the distance of each neighbour to the set so far."""
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
