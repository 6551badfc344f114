"""Connectivity-based outlier factors within partitions (Tang et al. 2002; papers/rayden.txt, Outlier Handling Phase).

Distances are whole numbers and so are the weighted chains, so that only the last division rounds. Among records at equal distance the one
that comes first in the order of the records is the nearer one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import UNIT, Metric, Points, Rows, distance, kernel
from core.recoding.members import members

Chaining = Literal["paper", "tang"]
SLACK = 1e-9
HELD = 256
"""Records of a partition up to which all of its distances are held: half a megabyte, as much as stays in a core's cache."""


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
        found, room = np.ones(len(order)), _room(points.rows.shape[1], int(np.diff(ends).max()), k)
        _factors(points.rows[order], ends, k, chaining == "tang", points.metric, room, found)
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


class Room(NamedTuple):
    """Scratch arrays, made once, each as long as the largest partition.

    Attributes:
        columns: Shape (columns, largest): the points of a partition, column by column.
        held: Shape (HELD, HELD) or less: all distances of a partition that is small enough.
        alone: Shape (largest,): those of one record, where it is not.
        keys: Shape (largest,): distances and places; ``near`` the nearest records.
        chains: Shape (largest,): of each record; ``farthest`` the distance of its last neighbour, ``last`` that neighbour.
        reached: Shape (k,) or less: distances to a trail.
    """

    columns: NDArray[np.int64]
    held: NDArray[np.int64]
    alone: NDArray[np.int64]
    keys: NDArray[np.int64]
    near: NDArray[np.int64]
    chains: NDArray[np.int64]
    farthest: NDArray[np.int64]
    last: NDArray[np.int64]
    reached: NDArray[np.int64]


def _room(columns: int, largest: int, k: int) -> Room:
    """Makes the scratch arrays; memory grows with the largest partition alone."""

    def numbers(*shape: int) -> NDArray[np.int64]:
        return np.empty(shape, np.int64)

    held = min(largest, HELD)
    return Room(
        columns=numbers(columns, largest), held=numbers(held, held), alone=numbers(largest), keys=numbers(largest), near=numbers(largest),
        chains=numbers(largest), farthest=numbers(largest), last=numbers(largest), reached=numbers(min(k, largest)),
    )  # fmt: skip


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
    for row in range(size):
        for qid in range(rows.shape[1]):
            columns[qid, row] = rows[start + row, qid]
    if size <= HELD:
        for row in range(size):
            _measured(columns, size, row, metric, held[row])
    for row in range(size):
        gaps = held[row] if size <= HELD else alone
        if size > HELD:
            _measured(columns, size, row, metric, gaps)
        _nearest(gaps, row, size, count, room.keys, near)
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
            _measured(room.columns, size, row, metric, gaps)
        total = _within(gaps, row, size, room.farthest[row], room.last[row], chains)
        if total:
            factors[start + row] = count * chains[row] / total
        elif chains[row]:
            factors[start + row] = np.inf


@kernel
def _measured(columns: NDArray[np.int64], size: int, row: int, metric: Metric, gaps: NDArray[np.int64]) -> None:
    """Writes the distances of a record to all of its partition, as ``distance`` tells them.

    Column by column and without a branch, so that the compiler makes one instruction of several records.

    Args:
        columns: Shape (QIDs, size or more), the points of the partition.
        size: How many there are.
        row: The record.
        metric: What the columns are.
        gaps: Shape (size or more,), written to.
    """
    missing, squared, weights = np.int64(metric.missing), metric.squared, metric.weights
    for other in range(size):
        gaps[other] = 0
    for qid in range(columns.shape[0]):
        values, mine = columns[qid], columns[qid, row]
        if qid >= metric.numerical:
            weight = weights[qid]
            for other in range(size):
                told = missing != 0 or (mine >= 0 and values[other] >= 0)
                gaps[other] += weight if mine != values[other] and told else 0
        elif squared:
            for other in range(size):
                gap = abs(mine - values[other])
                gap = missing if gap > UNIT else gap
                gaps[other] += gap * gap
        else:
            for other in range(size):
                gap = abs(mine - values[other])
                gaps[other] += missing if gap > UNIT else gap


@kernel
def _within(gaps: NDArray[np.int64], row: int, size: int, farthest: int, last: int, chains: NDArray[np.int64]) -> int:
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
def _nearest(gaps: NDArray[np.int64], row: int, size: int, count: int, keys: NDArray[np.int64], near: NDArray[np.int64]) -> None:
    """Puts the ``count`` nearest of the records but ``row`` into ``near``, nearest first; of equal distances the first record is nearer."""
    if size > HELD:
        order = np.argsort(gaps[:size], kind="mergesort")
        found = 0
        for place in order:
            if place != row and found < count:
                near[found] = place
                found += 1
        return
    # Distance and place in one number, below 2^62 with all columns that a distance can have; the record itself comes last.
    for other in range(size):
        keys[other] = gaps[other] * HELD + other
    keys[row] = np.iinfo(np.int64).max
    for other in range(size):
        # Ranks are counted, all by all: without a branch that costs less than to sort so few.
        key, rank = keys[other], np.int64(0)
        for place in range(size):
            rank += keys[place] < key
        if rank < count:
            near[rank] = other


@kernel
def _chain(rows: Rows, start: int, row: int, near: NDArray[np.int64], metric: Metric) -> int:
    """Returns Σ l · d(r_l, r_(l-1)), r_0 being the record itself; the factor 2 / (k (k + 1)) falls out of the ratio."""
    total, before = 0, row
    for place in range(near.shape[0]):
        total += (place + 1) * distance(rows, start + near[place], rows, start + before, metric)
        before = int(near[place])
    return total


@kernel
def _held_chain(held: NDArray[np.int64], row: int, near: NDArray[np.int64], count: int) -> int:
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
