"""Segments of records, split by distance to a vantage point, and nearest points in a VP-tree.

Where the distance is no metric, points are compared one by one.

With a person column, a segment is split at a rank that leaves k persons on both sides, if there is one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Metric, Points, Rows, distance, kernel

Numbers = NDArray[np.int64]
Owners = NDArray[np.int32]


@kernel
def nth_smallest(values: Numbers, nth: int) -> int:
    """Return the nth smallest value (from 0), reordering ``values`` in place.

    It is Hoare's selection with the median of three.
    """
    low, high = 0, len(values) - 1
    while low < high:
        first, middle, last = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if nth <= right:
            high = right
        elif nth >= left:
            low = left
        else:
            break
    return int(values[nth])


@kernel
def split_segments(order: Numbers, segments: Numbers, near: Numbers, distances: Numbers) -> None:
    """Move each segment's nearest records to its front in ``order``; both halves keep their order.

    Args:
        order: Shape (n,), the records segment by segment; changed.
        segments: Shape (s, 2), where each begins and ends.
        near: Shape (s,), how many are near.
        distances: Shape (n,), of the record at each place.
    """
    most = np.int64(0)
    for segment in range(segments.shape[0]):
        most = max(most, segments[segment, 1] - segments[segment, 0])
    far = np.empty(most, np.int64)
    for segment in range(segments.shape[0]):
        start, end = segments[segment, 0], segments[segment, 1]
        # A copy, because selection reorders; a full sort would cost a logarithm more.
        threshold = nth_smallest(distances[start:end].copy(), near[segment] - 1)
        ties = near[segment]
        for place in range(start, end):
            ties -= distances[place] < threshold
        front, back = start, 0
        for place in range(start, end):
            record = order[place]
            tied = distances[place] == threshold and ties > 0
            if distances[place] < threshold or tied:
                ties -= tied
                order[front] = record
                front += 1
            else:
                far[back] = record
                back += 1
        # One by one: numba compiles a slice's check of shapes, with its message, for two seconds.
        for place in range(back):
            order[front + place] = far[place]


@kernel
def sizes_with_persons(order: Numbers, segments: Numbers, near: Numbers, distances: Numbers, people: Owners, k: int) -> Numbers:
    """Return per segment how many near records leave k persons on both sides, (s,); 0 if no number does.

    The persons of the nearest records grow with the rank and those of the others shrink. So the ranks that keep k persons are neighbours,
    and the one next to the wanted rank is taken.

    Args:
        order: Shape (n,), the records segment by segment.
        segments: Shape (s, 2), where each begins and ends.
        near: Shape (s,), how many records are wanted on the near side.
        distances: Shape (n,), of the record at each place.
        people: Shape (n,), the person of each record; negative for none.
        k: Fewest persons of a side.
    """
    sizes = near.copy()
    met = np.zeros((people.max() + 1, 2), np.int64)
    for segment in range(segments.shape[0]):
        start, end = segments[segment, 0], segments[segment, 1]
        # Most segments are large, and both sides have met k persons long before their end.
        if not _both_keep(order[start:end], distances[start:end], near[segment], people, k, met, 2 * segment + 1):
            sizes[segment] = _next_to(order[start:end], distances[start:end], near[segment], people, k, met, 2 * segment + 2)
    return sizes


@kernel
def _both_keep(order: Numbers, distances: Numbers, near: int, people: Owners, k: int, met: Numbers, stamp: int) -> bool:
    """Return whether both halves of a segment keep k persons."""
    threshold = nth_smallest(distances.copy(), near - 1)
    ties, left, right = near, 0, 0
    for place in range(order.shape[0]):
        ties -= distances[place] < threshold
    for place in range(order.shape[0]):
        tied = distances[place] == threshold and ties > 0
        ties -= tied
        far = not (distances[place] < threshold or tied)
        person = people[order[place]]
        if person < 0 or met[person, int(far)] == stamp:
            continue
        met[person, int(far)] = stamp
        left, right = left + (not far), right + far
        if left >= k and right >= k:
            return True
    return False


@kernel
def _next_to(order: Numbers, distances: Numbers, near: int, people: Owners, k: int, met: Numbers, stamp: int) -> int:
    """Return the rank nearest to the wanted one with which both halves keep k persons; 0 for none."""
    # Stable: of equal distances the first record is the nearer one, as when the segment is split.
    ranked = np.argsort(distances, kind="mergesort")
    least = most = -1
    count = 0
    for rank in range(ranked.shape[0]):
        person = people[order[ranked[rank]]]
        if person >= 0 and met[person, 0] != stamp:
            met[person, 0] = stamp
            count += 1
            if count == k:
                least = rank + 1
                break
    count = 0
    for rank in range(ranked.shape[0] - 1, -1, -1):
        person = people[order[ranked[rank]]]
        if person >= 0 and met[person, 1] != stamp:
            met[person, 1] = stamp
            count += 1
            if count == k:
                most = rank
                break
    if least < 0 or least > most:
        return 0
    return min(max(near, least), most)


LEAF = 8


def nearest(points: Points, among: Points, excluded_rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return for each point the row of the nearest in ``among``, the first of equals; -1 without any.

    Args:
        points: The points to find a neighbour for.
        among: Where it is looked for.
        excluded_rows: Shape (sought.size,), a row of ``among`` that is not to be found, such as the point itself.

    Returns:
        Shape (sought.size,), int64, rows of ``among``; -1 where there is none.
    """
    barred = np.full(points.size, -1) if excluded_rows is None else excluded_rows
    order = np.arange(among.size)
    # One leaf is looked through from end to end.
    leaf = LEAF if among.is_metric else max(among.size, 1)
    nodes = _grown(among.rows, order, leaf, among.metric)
    return _searched(points.rows, among.rows, order, nodes, barred, among.metric)


@kernel
def _grown(rows: Rows, order: NDArray[np.int64], leaf: int, metric: Metric) -> NDArray[np.int64]:
    """Sort the points into a VP-tree and return its nodes.

    A row per node: start and end in ``order``, vantage point, radius, first child (0 for a leaf).
    """
    nodes = np.zeros((2 * rows.shape[0] // max(leaf // 2, 1) + 3, 5), np.int64)
    nodes[0, 1] = rows.shape[0]
    count, node = 1, 0
    segment, near = np.empty((1, 2), np.int64), np.empty(1, np.int64)
    distances = np.empty(rows.shape[0], np.int64)
    while node < count:
        start, end = nodes[node, 0], nodes[node, 1]
        if end - start > leaf:
            # Not drawn: what is found is exact whatever the tree, so that the only matter is that it is the same each time.
            vantage = order[(start + end) // 2]
            for place in range(start, end):
                distances[place] = distance(rows, order[place], rows, vantage, metric)
            segment[0, 0], segment[0, 1] = start, end
            near[0] = (end - start) // 2
            split_segments(order, segment, near, distances)
            nodes[node, 2] = vantage
            nodes[node, 3] = nth_smallest(distances[start:end].copy(), near[0] - 1)
            nodes[node, 4] = count
            nodes[count, 0], nodes[count, 1] = start, start + near[0]
            nodes[count + 1, 0], nodes[count + 1, 1] = start + near[0], end
            count += 2
        node += 1
    return nodes


@kernel
def _searched(
    sought: Rows, rows: Rows, order: NDArray[np.int64], nodes: NDArray[np.int64], own: NDArray[np.int64], metric: Metric,
) -> NDArray[np.int64]:  # fmt: skip
    """Return the nearest point of each sought point by a search in a VP-tree."""
    found = np.full(sought.shape[0], -1, np.int64)
    # Splits are by rank, so the tree is as deep as the logarithm of the points, and one node waits per level.
    waiting, bounds = np.empty(256, np.int64), np.empty(256, np.int64)
    for row in range(sought.shape[0]):
        best, best_gap = np.int64(-1), np.iinfo(np.int64).max
        waiting[0], bounds[0], depth = 0, 0, 1
        while depth:
            depth -= 1
            node = waiting[depth]
            # Not at equal distance: a point of a lower number may be there.
            if bounds[depth] > best_gap:
                continue
            child = nodes[node, 4]
            if not child:
                for place in range(nodes[node, 0], nodes[node, 1]):
                    other = order[place]
                    if other == own[row]:
                        continue
                    gap = distance(sought, row, rows, other, metric)
                    if gap < best_gap or (gap == best_gap and other < best):
                        best, best_gap = other, gap
                continue
            reach = distance(sought, row, rows, nodes[node, 2], metric)
            radius = nodes[node, 3]
            near_first = reach <= radius
            # The triangle inequality: nothing within the radius is nearer than reach - radius, nothing beyond it than radius - reach.
            waiting[depth], bounds[depth] = child + near_first, max(radius - reach, 0) if near_first else max(reach - radius, 0)
            waiting[depth + 1], bounds[depth + 1] = child + (not near_first), 0
            depth += 2
        found[row] = best
    return found


def medoids(points: Points, order: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the medoid of each class, shape (classes,): the record of least summed distance to others.

    It has the least sum of distances to the others; of equals the first is taken.

    Args:
        ends: Shape (classes + 1,), where the classes end.
    """
    return order[_medoids(points.rows[order], ends, points.metric)]


@kernel
def _medoids(rows: Rows, ends: NDArray[np.int64], metric: Metric) -> NDArray[np.int64]:
    """Return the position of the medoid of each class, for rows that are sorted by class."""
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
