"""VP-tree partitions of records (Yianilos 1993; papers/rayden.txt, Algorithm 1).

The tree is built breadth-first: all segments of a level are split at once.

A segment is split by rank of distance to its vantage point, and equal distances by the order of the records. So both sides are never
smaller than k however many records are equal. The recursion stops at P ≤ 2k - 1 records (the paper's text; its Algorithm 1 has a slip
there).

With a person column, a segment is split at the nearest rank that leaves k persons on both sides, if there is one (``segments``). Classes
may then hold more than 2k - 1 records. Records keep their order within a segment. The result is a function of the points, their order and
the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Points, euclidean_points, kernel, measure_to_vantages
from core.clustering.nearest import sizes_with_persons, split_segments
from core.columns.data_parallel import least_for_threads, parts_in_parallel
from core.columns.domains import Domain

LEAST_ROWS = 1 << 15
"""Records for which a thread is worth its start."""
WITH_PEOPLE = 2
"""Cores that split where persons are named: each marks them all in memory of its own."""
Split = Literal["multiple", "median"]
Vantage = Literal["random", "farthest", "seed"]
TOGETHER = 1 << 15
"""Records of the largest segment from which on they are moved to where they belong, once."""


@dataclass(frozen=True)
class VantageTree:
    """Settings of a VP-tree: least partition size, place of the cut, choice of vantage points, and seed.

    Attributes:
        k: Least number of records, or of persons, of a partition.
        split: Where a segment is cut: at the median, or at the multiple of k nearest to it, which leaves fewer records over.
        vantage: The vantage point: a record at random, the one farthest from such a record, or one drawn with a probability that grows
            with the square of the distance from such a record (the seeding of clusters; Arthur and Vassilvitskii 2007).
        seed: Of the draws.
    """

    k: int
    split: Split = "multiple"
    vantage: Vantage = "random"
    seed: int = 0

    def partition(
        self, points: Points, groups: NDArray[np.int32] | None = None, people: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Cut records into partitions of k to 2k - 1; return the number of each record's partition, (n,).

        With a person column, partitions are those that cannot be cut with k persons on both sides.

        Args:
            points: The records, in the order that decides ties.
            groups: Shape (n,), int32, dense from 0: parts that are to be cut each by itself; one part of all if left out.
            people: Shape (n,), int32: the person of each record, -1 for none; left out without a person column.

        Returns:
            Shape (n,), int32, dense from 0. A part of fewer than 2k records stays as it is, also one of fewer than k.
        """
        order, segments = _segments(points, groups)
        draws = np.random.default_rng(self.seed)
        distances, finished, before = np.zeros(points.size, np.int64), [], None
        while len(segments):
            if before is None and (segments[:, 1] - segments[:, 0]).max() <= TOGETHER < points.size:
                # From here on the records of a segment stand together, where they are found in a cache.
                before, points, people = order, points.take(order), None if people is None else people[order]
                order = np.arange(points.size)
            small = segments[:, 1] - segments[:, 0] < 2 * self.k
            finished.append(segments[small])
            segments = segments[~small]
            near = self.halved(points, order, segments, draws.random((len(segments), 2)), distances, people)
            finished.append(segments[near == 0])
            segments, near = segments[near > 0], near[near > 0]
            cuts = segments[:, 0] + near
            segments = np.stack([np.stack([segments[:, 0], cuts], 1), np.stack([cuts, segments[:, 1]], 1)], 1).reshape(-1, 2)
        # Segments end in the order of their depth; numbered by place, classes do not tell when they were finished.
        ends = np.sort(np.concatenate([np.empty(0, np.int64), *(part[:, 1] for part in finished)]))
        classes, order = np.empty(points.size, np.int32), order if before is None else before[order]
        classes[order] = np.searchsorted(ends, np.arange(points.size), side="right")
        return classes

    def halved(
        self,
        points: Points,
        order: NDArray[np.int64],
        segments: NDArray[np.int64],
        draws: NDArray[np.float64],
        distances: NDArray[np.int64],
        people: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int64]:
        """Put each segment's near records first in ``order``; return the number of near ones, 0 if not split.

        Args:
            order: Shape (n,), the records segment by segment; changed.
            segments: Shape (s, 2), where each begins and ends; 2k records or more.
            draws: Shape (s, 2), uniform on [0, 1), for the vantage points.
            distances: Shape (n,), scratch.
            people: As of ``partition``.

        Returns:
            Shape (s,), how many records are near, or 0 where a segment is not to be split.
        """
        near = np.zeros(len(segments), np.int64)

        def of_some(part: slice) -> None:
            mine = segments[part]
            near[part] = found = self._near(points, order, mine, draws[part], distances, people)
            split_segments(order, mine[found > 0], found[found > 0], distances)

        records = int((segments[:, 1] - segments[:, 0]).sum())
        most = None if people is None else WITH_PEOPLE
        parts_in_parallel(of_some, len(segments), most, least_for_threads(len(segments), records, LEAST_ROWS))
        return near

    def _near(
        self,
        points: Points,
        order: NDArray[np.int64],
        segments: NDArray[np.int64],
        draws: NDArray[np.float64],
        distances: NDArray[np.int64],
        people: NDArray[np.int32] | None,
    ) -> NDArray[np.int64]:
        """Measure segments' records to a vantage point and return each segment's number of near records.

        The number is 0 where a segment is not to be split.
        """
        starts, sizes = segments[:, 0], segments[:, 1] - segments[:, 0]
        picked = order[starts + (draws[:, 0] * sizes).astype(np.int64)]
        measure_to_vantages(points.rows, order, segments, picked, points.metric, distances)
        if self.vantage != "random":
            picked = pick_vantages(order, segments, distances, draws[:, 1], self.vantage == "seed")
            measure_to_vantages(points.rows, order, segments, picked, points.metric, distances)
        near = near_sizes(sizes, self.k, self.split)
        return near if people is None else sizes_with_persons(order, segments, near, distances, people, self.k)


def near_sizes(sizes: NDArray[np.int64], k: int, split: Split) -> NDArray[np.int64]:
    """Return the number of near records for segments of 2k records or more; both halves have k.

    Args:
        sizes: Shape (segments,).
        k: Least number on either side.
        split: ``median``, which takes the record in the middle to the near side, or ``multiple``, the multiple of k nearest to half.
    """
    return -(-sizes // 2) if split == "median" else (sizes + k) // (2 * k) * k


def _segments(points: Points, groups: NDArray[np.int32] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the record order and the segments of groups; one segment without groups."""
    if groups is None:
        order, sizes = np.arange(points.size), np.array([points.size] if points.size else [], np.int64)
    else:
        order, sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
    ends = np.cumsum(sizes)
    return order.astype(np.int64), np.stack([ends - sizes, ends], 1)


@kernel
def pick_vantages(
    order: NDArray[np.int64], segments: NDArray[np.int64], distances: NDArray[np.int64], draws: NDArray[np.float64], weighted: bool
) -> NDArray[np.int64]:
    """Return a vantage point per segment: the farthest record, or one drawn by squared distance.

    ``distances`` are those to a first pick.

    Args:
        order: Shape (n,), the records segment by segment.
        segments: Shape (s, 2), where each begins and ends.
        distances: Shape (n,), of the record at each place.
        draws: Shape (s,), uniform on [0, 1).
        weighted: Whether to draw; else the farthest is taken, the first of equals.
    """
    picked = np.empty(segments.shape[0], np.int64)
    for segment in range(segments.shape[0]):
        start, end = segments[segment, 0], segments[segment, 1]
        best = start
        total = 0.0
        for place in range(start, end):
            total += float(distances[place]) * float(distances[place])
            if distances[place] > distances[best]:
                best = place
        if weighted:
            wanted = draws[segment] * total
            place = start
            passed = float(distances[start]) * float(distances[start])
            while passed <= wanted and place < end - 1:
                place += 1
                passed += float(distances[place]) * float(distances[place])
            best = place
        picked[segment] = order[best]
    return picked


def canon_partition(
    records: NDArray[np.integer], domains: Sequence[Domain], tree: VantageTree, people: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """Partition records by CANON, the Euclidean distance of scaled numerical QIDs; return their classes.

    Each QID is divided by its range.

    Args:
        records: Shape (n, QIDs), the code of each value, in the order that decides ties.
        domains: One per QID; categorical ones are generalised with the rest but play no part here.
        tree: How the tree is built.
        people: As for the tree.

    Returns:
        Shape (n,), int32, dense from 0; each class of k to 2k - 1 records, or of k persons or more.
    """
    return tree.partition(euclidean_points(records, domains), people=people)
