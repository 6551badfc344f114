"""Semantic clustering as papers/semantic-clustering.txt lists it, row by row, with the design's rulings; greedy k-member clustering.

The latter is written out from Byun et al. 2007, with what a set of records costs worked out from the records themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tests.oracles.rayden import size
from tests.oracles.records import Records

UNIT = 1 << 20
Cost = Callable[[Sequence[int]], int]


def generate_clusters(records: Records, k: int, start: str, scaled: bool, people: Sequence[int] | None = None) -> list[list[int]]:
    """Algorithm 1 with the last block joined to the one before it where it is too small; blocks in the order of emission.

    With persons a block is closed with the record by which it has k of them.
    """
    named = [qid for qid, numerical in enumerate(records.numerical) if not numerical]
    maxlevel = max((records.hierarchies[qid].top for qid in named), default=0)
    rest, blocks = list(range(len(records.rows))), []
    level = 1 if start == "parents" and maxlevel else 0
    while rest and len(rest) > k and level <= maxlevel:
        buckets: dict[tuple[Any, ...], list[int]] = {}
        for row in rest:
            buckets.setdefault(tuple(generalised(records, row, qid, level) for qid in named), []).append(row)
        overflow = []
        for _, rows in sorted(buckets.items(), key=lambda bucket: (len(bucket[1]), bucket[0])):
            queue = sorted(rows, key=lambda row: (distance(records, row, scaled), row))
            block: list[int] = []
            for row in queue:
                block.append(row)
                if size(block, people) == k:
                    blocks.append(block)
                    block = []
            overflow += block
        rest = sorted(overflow)
        level += 1
    if size(rest, people) >= k or not blocks:
        blocks.append(rest)
    elif rest:
        blocks[-1] = blocks[-1] + rest
    return [sorted(block) for block in blocks if block]


def generalised(records: Records, row: int, qid: int, level: int) -> int:
    hierarchy = records.hierarchies[qid]
    return int(hierarchy.groups[min(level, hierarchy.top)][records.codes[row, qid]])


def distance(records: Records, row: int, scaled: bool) -> float:
    total = 0.0
    for domain, numerical, value in zip(records.domains, records.numerical, records.rows[row], strict=True):
        if numerical:
            values = domain.values.to_pylist()
            span = values[-1] - values[0] if values else 0
            if scaled:
                total += 2**21 + 1 if value is None else round((value - values[0]) / span * 2**20) if span else 0
            else:
                total += (span + 1 if values else 0) if value is None else value - values[0]
    return total


def is_number(domain: Any) -> bool:
    return bool(pa.types.is_integer(domain.values.type))


def cost_of(records: Records, ways: Sequence[str | None], members: Sequence[int]) -> int:
    """What a record of a class pays: four parts for the label of each column, one for the values that are held."""
    total = 0
    for qid, given in enumerate(ways):
        values = {records.rows[member][qid] for member in members}
        numerical, size = records.numerical[qid], records.domains[qid].size
        way = given or ("interval" if numerical and not records.hierarchies[qid].least else "hierarchy")
        held = round(UNIT / size) * len(values) if len(values) > 1 else 0
        if way == "set":
            total += 5 * held
            continue
        published = label_price(records, qid, way, members)
        counted = way == "prefix" or not (numerical or way == "interval")
        total += 4 * published + held if counted else 5 * published
    return total


def label_price(records: Records, qid: int, way: str, members: Sequence[int]) -> int:
    """What a class pays for the label of one column, in units, where that is no set."""
    values, size = {records.rows[member][qid] for member in members}, records.domains[qid].size
    found = round(UNIT * label_cost(records, qid, way, values, members))
    # The null is one value more, and so is a value that stands alone.
    return min(max(found, round(UNIT / size)) + round(UNIT / size), UNIT) if len(values) > 1 and None in values else found


def label_cost(records: Records, qid: int, way: str, values: set[Any], members: Sequence[int]) -> float:
    """The share of the domain that the label of some values covers, nulls apart; 0 for a single one."""
    domain, hierarchy = records.domains[qid], records.hierarchies[qid]
    known, size = domain.values.to_pylist(), domain.size
    by_level, mixed = way == "hierarchy", len(values) > 1 and None in values
    values = values - {None} if mixed else values
    if len(values) == 1 and not (by_level and (hierarchy.least or mixed)):
        return 0.0
    if way == "interval":
        # Each end is a whole number of small units.
        ends = [round((value - known[0]) / (known[-1] - known[0]) * UNIT) for value in (max(values), min(values))]
        return (ends[0] - ends[1]) / UNIT
    if way == "prefix":
        texts = [str(value) for value in values]
        shared = next((n for n in range(min(map(len, texts)), 0, -1) if len({text[:n] for text in texts}) == 1), 0)
        return sum(str(value).startswith(texts[0][:shared]) for value in known) / size if shared else 1.0
    codes = [code for member in members if (code := records.codes[member, qid]) < len(known) or not mixed]
    least = max(hierarchy.least, int(mixed and records.numerical[qid]))
    level = next(n for n in range(least, hierarchy.levels) if len({hierarchy.groups[n][code] for code in codes}) == 1)
    covered = [code for code in range(size) if hierarchy.groups[level][code] == hierarchy.groups[level][codes[0]]]
    numbers = [known[code] for code in covered if code < len(known)]
    if level == hierarchy.top:
        return float(size > 1)
    if records.numerical[qid] and known[-1] != known[0]:
        return float((max(numbers) - min(numbers)) / (known[-1] - known[0])) if len(covered) > 1 else 0.0
    return len(covered) / size if len(covered) > 1 else 0.0


def k_member(rows: Sequence[int], k: int, cost: Cost) -> list[list[int]]:
    """The greedy classes of some records: the last one left is a seed, and of the records that cost least the first joins it."""
    left, classes = list(rows), []
    while len(left) >= k:
        made = [left.pop()]
        while len(made) < k:
            costs = [cost([*made, row]) for row in left]
            best = costs.index(min(costs))
            # The last one takes the place of the one that leaves.
            left[best], left[-1] = left[-1], left[best]
            made.append(left.pop())
        classes.append(made)
    for row in left:
        rises = [cost([*made, row]) * (len(made) + 1) - cost(made) * len(made) for made in classes]
        classes[rises.index(min(rises))].append(row)
    return classes


def fewest(rows: Sequence[int], k: int, cost: Cost) -> int:
    """The least that classes of k or more can cost in all: every way to part a few records is tried, the dear ones not to the end."""
    best = len(rows) * cost(rows)

    def extend(classes: list[list[int]], place: int) -> None:
        nonlocal best
        # Classes only become dearer, and records that are to come can only add to what is paid.
        paid = sum(len(made) * cost(made) for made in classes)
        missing = sum(max(k - len(made), 0) for made in classes)
        if paid >= best or missing > len(rows) - place:
            return
        if place == len(rows):
            best = paid
            return
        for number in range(len(classes)):
            extend([[*made, rows[place]] if at == number else made for at, made in enumerate(classes)], place + 1)
        extend([*classes, [rows[place]]], place + 1)

    extend([], 0)
    return best
