"""Segments of records and their splits by distance to a vantage point.

With a person column, a segment is split at a rank that leaves k persons on both sides, if there is one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import kernel

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
