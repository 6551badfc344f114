"""RAYDEN written from Algorithms 1 to 3 of papers/rayden.txt, one record at a time, with the design's rulings where the paper is silent.

Where persons are named, by record, what k asks for is counted in different persons; a negative one is nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

Distance = Callable[[int, int], Fraction]
Partition = list[int]
People = Sequence[int] | None


def size(part: Sequence[int], people: People) -> int:
    """How many persons or records there are."""
    return len(part) if people is None else len({people[record] for record in part if people[record] >= 0})


def vp_tree(parts: Sequence[Partition], k: int, split: str, vantage: str, seed: int, d: Distance, people: People = None) -> list[Partition]:
    """Algorithm 1, level by level, from one part or several, near sides before far ones; parts of fewer than 2k records are partitions.

    With persons a part is cut at the rank nearest to the wanted one of those that leave k on both sides, and is a partition without any.
    """
    draws = np.random.default_rng(seed)
    finished: list[tuple[tuple[int, ...], Partition]] = []
    level: list[tuple[tuple[int, ...], Partition]] = [((number,), list(part)) for number, part in enumerate(parts)]
    while level:
        finished += [(path, part) for path, part in level if len(part) <= 2 * k - 1]
        level = [(path, part) for path, part in level if len(part) > 2 * k - 1]
        following: list[tuple[tuple[int, ...], Partition]] = []
        for (path, part), (first, second) in zip(level, draws.random((len(level), 2)), strict=True):
            v = select_vantage_point(part, vantage, first, second, d)
            ranked = sorted(part, key=lambda record: (d(v, record), record))
            wanted = near_size(len(part), k, split)
            allowed = [cut for cut in range(k, len(part) - k + 1) if size(ranked[:cut], people) >= k <= size(ranked[cut:], people)]
            if not allowed:
                finished.append((path, part))
                continue
            cut = min(allowed, key=lambda cut: abs(cut - wanted))
            following += [((*path, 0), sorted(ranked[:cut])), ((*path, 1), sorted(ranked[cut:]))]
        level = following
    return [part for _, part in sorted(finished)]


def near_size(size: int, k: int, split: str) -> int:
    if split == "median":
        return math.ceil(size / 2)
    return min(range(k, size - k + 1, k), key=lambda cut: (abs(2 * cut - size), -cut))


def select_vantage_point(part: Partition, vantage: str, first: float, second: float, d: Distance) -> int:
    picked = part[int(first * len(part))]
    if vantage == "random":
        return picked
    if vantage == "farthest":
        return max(part, key=lambda record: (d(picked, record), -record))
    weights = [float(d(picked, record) * 2**20) ** 2 for record in part]
    wanted, passed = second * sum(weights), 0.0
    for record, weight in zip(part, weights, strict=True):
        passed += weight
        if passed > wanted:
            return record
    return part[-1]


def k_nearest_neighbours(record: int, part: Partition, k: int, d: Distance) -> Partition:
    others = sorted((other for other in part if other != record), key=lambda other: (d(record, other), other))
    return others[: min(k, len(part) - 1)]


def ac_dist(record: int, neighbours: Partition, chaining: str, d: Distance) -> Fraction:
    count = len(neighbours)
    if chaining == "paper":
        chain = [record, *neighbours]
        total = sum((step * d(chain[step], chain[step - 1]) for step in range(1, count + 1)), Fraction(0))
        return Fraction(2, count * (count + 1)) * total
    reached, left, total = [record], list(neighbours), Fraction(0)
    for step in range(1, count + 1):
        gaps = [min(d(one, other) for one in reached) for other in left]
        total += (count + 1 - step) * min(gaps)
        reached.append(left.pop(gaps.index(min(gaps))))
    return Fraction(2, count * (count + 1)) * total


def cof(part: Partition, k: int, chaining: str, d: Distance) -> dict[int, float]:
    if len(part) == 1:
        return {part[0]: 1.0}
    nearest = {record: k_nearest_neighbours(record, part, k, d) for record in part}
    chains = {record: ac_dist(record, nearest[record], chaining, d) for record in part}
    found = {}
    for record in part:
        total = sum((chains[other] for other in nearest[record]), Fraction(0))
        if total:
            found[record] = float(len(nearest[record]) * chains[record] / total)
        else:
            found[record] = math.inf if chains[record] else 1.0
    return found


def outliers(factors: dict[int, float], alpha: float) -> Partition:
    finite = [factor for factor in factors.values() if factor < math.inf]
    mean = math.fsum(finite) / len(finite) if finite else 0.0
    deviation = math.sqrt(math.fsum((factor - mean) ** 2 for factor in finite) / len(finite)) if finite else 0.0
    threshold = (mean + alpha * deviation) * (1 + 1e-9)
    return [record for record, factor in factors.items() if factor > threshold]


def medoid(part: Partition, d: Distance) -> int:
    return min(part, key=lambda record: (sum(d(record, other) for other in part), record))


def merge_small(parts: list[Partition], k: int, d: Distance, people: People = None) -> list[Partition]:
    """Every partition below k goes to the one with the nearest medoid, all of a round at once, until there is none."""
    parts = [part for part in parts if part]
    while len(parts) > 1 and any(size(part, people) < k for part in parts):
        centres = [medoid(part, d) for part in parts]
        home = {}
        for number, part in enumerate(parts):
            others = [other for other in range(len(parts)) if other != number]
            home[number] = number if size(part, people) >= k else min(others, key=lambda other: (d(centres[number], centres[other]), other))
        merged: dict[int, Partition] = {}
        for number, part in enumerate(parts):
            end = number
            while home[home[end]] != end:
                end = home[end]
            merged.setdefault(min(end, home[end]), []).extend(part)
        parts = [sorted(merged[number]) for number in sorted(merged)]
    return parts


def leaving_of(found: Partition, part: Partition, k: int, people: People) -> Partition:
    """Which outliers leave if each may only where k stay."""
    leaving: Partition = []
    for record in found:
        if size([other for other in part if other != record and other not in leaving], people) >= k:
            leaving.append(record)
    return leaving


def rayden(
    records: int,
    k: int,
    alpha: float,
    chaining: str,
    leave: str,
    pool_rule: str,
    split: str,
    vantage: str,
    d: Distance,
    people: People = None,
) -> tuple[list[Partition], int, Partition]:
    """Algorithms 2 and 3: the published classes, how many outliers were detected, and which left their partitions."""

    def vp(parts: list[Partition]) -> list[Partition]:
        return vp_tree(parts, k, split, vantage, 0, d, people)

    def again(parts: list[Partition], before: list[Partition]) -> list[Partition]:
        """With persons a part may be large and could not be cut: only one that others were merged into is tried again."""
        large = [part for part in parts if len(part) >= 2 * k and (people is None or not any(set(part) <= set(one) for one in before))]
        return [part for part in parts if part not in large] + vp(large)

    normal, pool, detected = [], [], 0
    for part in vp([list(range(records))]):
        factors = cof(part, k, chaining, d)
        found = sorted(outliers(factors, alpha), key=lambda record: (-factors[record], record))
        detected += len(found)
        leaving = leaving_of(found, part, k, people) if leave == "bounded" else found
        normal.append([record for record in part if record not in leaving])
        pool += leaving
    normal = again(merge_small(normal, k, d, people), normal)
    if size(pool, people) >= k:
        normal += vp([sorted(pool)])
        normal = again(merge_small(normal, k, d, people), normal)
    elif pool and pool_rule == "join":
        centres, before = [medoid(part, d) for part in normal], [list(part) for part in normal]
        for record in pool:
            home = min(range(len(centres)), key=lambda number: (d(record, centres[number]), number))
            normal[home] = sorted([*normal[home], record])
        normal = again(normal, before)
    return [part for part in normal if size(part, people) >= k], detected, pool
