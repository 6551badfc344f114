"""Connectivity-based outlier factors within partitions (Tang et al. 2002; papers/rayden.txt, Outlier Handling Phase).

Distances are whole numbers and so are the weighted chains, so that only the last division rounds. Among records at equal distance the one
that comes first in the order of the records is the nearer one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Metric, Points, Rows, distance, kernel
from core.recoding.members import members

Chaining = Literal["paper", "tang"]
SLACK = 1e-9


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
        factors[order] = _factors(points.rows[order], ends, k, chaining == "tang", points.metric)
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
def _factors(rows: Rows, ends: NDArray[np.int64], k: int, tang: bool, metric: Metric) -> NDArray[np.float64]:
    """Returns COF of rows that lie partition by partition, ``ends`` telling where; memory grows with the largest partition alone."""
    factors = np.ones(rows.shape[0])
    largest = 0
    for number in range(ends.shape[0] - 1):
        largest = max(largest, ends[number + 1] - ends[number])
    gaps, near = np.empty(largest, np.int64), np.empty(largest, np.int64)
    chains, farthest, last = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    reached = np.empty(min(k, largest), np.int64)
    for number in range(ends.shape[0] - 1):
        start, size = ends[number], ends[number + 1] - ends[number]
        count = min(k, size - 1)
        if count < 1 or _all_equal(rows, start, size):
            continue
        for row in range(size):
            for other in range(size):
                gaps[other] = distance(rows, start + row, rows, start + other, metric)
            _nearest(gaps, row, size, count, near)
            farthest[row], last[row] = gaps[near[count - 1]], near[count - 1]
            if tang:
                chains[row] = _trail(rows, start, row, near[:count], reached, metric)
            else:
                chains[row] = _chain(rows, start, row, near[:count], metric)
        for row in range(size):
            total = np.int64(0)
            for other in range(size):
                # Measured once more: to keep all gaps would take the square of the partition.
                gap = distance(rows, start + row, rows, start + other, metric)
                if other != row and (gap < farthest[row] or (gap == farthest[row] and other <= last[row])):
                    total += chains[other]
            if total:
                factors[start + row] = count * chains[row] / total
            elif chains[row]:
                factors[start + row] = np.inf
    return factors


@kernel
def _all_equal(rows: Rows, start: int, size: int) -> bool:
    for row in range(start + 1, start + size):
        for qid in range(rows.shape[1]):
            if rows[row, qid] != rows[start, qid]:
                return False
    return True


@kernel
def _nearest(gaps: NDArray[np.int64], row: int, size: int, count: int, near: NDArray[np.int64]) -> None:
    """Puts the ``count`` nearest of the records but ``row`` into ``near``, nearest first, by insertion; large ones are sorted instead."""
    if count > 64:
        # Stable, so that of equal distances the first record is the nearer one here too.
        order = np.argsort(gaps[:size], kind="mergesort")
        found = 0
        for place in order:
            if place != row and found < count:
                near[found] = place
                found += 1
        return
    found = 0
    for other in range(size):
        if other == row:
            continue
        # At equal distance who came first stays.
        if found == count and gaps[other] >= gaps[near[found - 1]]:
            continue
        found = min(found + 1, count)
        place = found - 1
        while place > 0 and gaps[near[place - 1]] > gaps[other]:
            near[place] = near[place - 1]
            place -= 1
        near[place] = other


@kernel
def _chain(rows: Rows, start: int, row: int, near: NDArray[np.int64], metric: Metric) -> int:
    """Returns Σ l · d(r_l, r_(l-1)), r_0 being the record itself; the factor 2 / (k (k + 1)) falls out of the ratio."""
    total, before = 0, row
    for place in range(near.shape[0]):
        total += (place + 1) * distance(rows, start + near[place], rows, start + before, metric)
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
