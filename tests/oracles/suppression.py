"""Local suppression by force: every choice of stars for every combination, one record at a time, and one pool after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

Row = tuple[Any, ...]
Safe = Callable[[Sequence[int]], bool]
"""Tells whether some records, by their positions, may be a class."""
CellSuppression = dict[Row, frozenset[int]]
"""The starred QIDs of each combination that is published."""


def published(row: Row, stars: frozenset[int]) -> Row:
    """What a combination publishes."""
    return tuple("*" if qid in stars else value for qid, value in enumerate(row))


def classes_of(rows: Sequence[Row], stars: CellSuppression) -> dict[Row, list[int]]:
    """The positions of the records of each class."""
    classes: defaultdict[Row, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        if row in stars:
            classes[published(row, stars[row])].append(position)
    return dict(classes)


def starred(rows: Sequence[Row], stars: CellSuppression) -> int:
    """Stars of published records."""
    return sum(len(stars[row]) for row in rows if row in stars)


def unsafe_pools(rows: Sequence[Row], size: int, safe: Safe) -> Iterator[bool]:
    """Of every pool that a set of so many QIDs makes of the records, whether it is unsafe."""
    for one in combinations(range(len(rows[0])), size):
        pools = classes_of(rows, dict.fromkeys(rows, frozenset(one)))
        yield from (not safe(members) for members in pools.values())


def withheld(rows: Sequence[Row], stars: CellSuppression) -> int:
    """Values that are not published: stars, and all of records that are left out."""
    return sum(len(stars[row]) if row in stars else len(row) for row in rows)


def fewest_withheld(rows: Sequence[Row], safe: Safe) -> int:
    """The least of that; every choice of a set of QIDs for every combination is tried."""
    different = sorted(set(rows))
    qids = range(len(different[0]))
    sets = [frozenset(one) for size in range(len(qids) + 1) for one in combinations(qids, size)]
    found = len(rows) * len(qids)
    for choice in product([None, *sets], repeat=len(different)):
        stars = {row: one for row, one in zip(different, choice, strict=True) if one is not None}
        if withheld(rows, stars) < found and all(map(safe, classes_of(rows, stars).values())):
            found = withheld(rows, stars)
    return found


def greedy(rows: Sequence[Row], safe: Safe, order: Sequence[frozenset[int]]) -> CellSuppression:
    """The largest safe pool of the smallest size, again and again; among equals the first in the order of sets, then of combinations."""
    stars: CellSuppression = {}
    for size in sorted({len(one) for one in order}):
        while True:
            left = [row for row in rows if row not in stars]
            pools = []
            for number, one in enumerate(order):
                if len(one) == size and left:
                    for members in classes_of(left, dict.fromkeys(left, one)).values():
                        if safe([position for position, row in enumerate(rows) if row in {left[member] for member in members}]):
                            pools.append((-len(members), number, min(left[member] for member in members), one, members))
            if not pools:
                break
            _, _, _, one, members = min(pools, key=lambda pool: pool[:3])
            stars |= {left[member]: one for member in members}
    return stars


def spread(values: Sequence[Any], members: Sequence[int]) -> Counter[Any]:
    """Records per sensitive value."""
    return Counter(values[member] for member in members)
