"""Semantic clustering as papers/semantic-clustering.txt lists it, row by row, with the design's rulings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tests.oracles.rayden import size
from tests.oracles.records import Records


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
