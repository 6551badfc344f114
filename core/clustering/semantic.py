"""Level-wise semantic clustering of records (papers/semantic-clustering.txt, Algorithms 1 to 5).

It works on arrays, O(n log n) per level.

Records whose categorical values fall into the same groups make a bucket. A bucket is ordered by the numerical distance Σ (value - min). Its
first ⌊size / k⌋·k records are blocks of k; the others go on to the next level, where groups are coarser.

The last records are one block under the lowest common ancestors of their values. The listing publishes it even with fewer than k records;
here such a block joins the one before it. With a person column, a block is closed with the record by which it has k persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import kernel, positions_in_range
from core.columns.coding import Packing, single_word
from core.columns.domains import Domain
from core.columns.numbers import is_numerical, number_line
from core.hierarchies.hierarchy import Hierarchy
from core.privacy.promise import Promise
from core.units.persons import EVERY_RECORD
from core.units.unit import Unit

Start = Literal["values", "parents"]
LOWEST_COMMON = -1


@dataclass(frozen=True, eq=False)
class Blocks:
    """Block of each record and level of each block, made by semantic clustering.

    Attributes:
        classes: Shape (n,), int32: the block of each record, numbered as they are emitted.
        levels: Shape (blocks,): the level whose groups all records of the block share, or LOWEST_COMMON for the last one.
    """

    classes: NDArray[np.int32]
    levels: NDArray[np.int64]


@dataclass(frozen=True)
class Clustering:
    """Settings of semantic clustering: units of a block, first level, and scaling of numbers.

    Attributes:
        k: Persons, or records, of a block.
        start: What level 0 compares: the values themselves, so that siblings are merged only when equal records are exhausted, or, as the
            listing has it, their parents.
        scaled: Whether numerical values are divided by their range before they are summed; else they are summed as they are.
    """

    k: int
    start: Start = "values"
    scaled: bool = True

    def blocks(
        self, records: NDArray[np.integer], domains: Sequence[Domain], hierarchies: Sequence[Hierarchy], unit: Unit = EVERY_RECORD
    ) -> Blocks:
        """Cluster records level by level; return each record's block and each block's level.

        Args:
            records: Shape (n, QIDs), the code of each value, n ≥ k; their order decides ties.
            domains: One per QID. Numbers, dates and times are numerical, all others categorical.
            hierarchies: One per QID.
            unit: Whose they are; k persons or more where persons are named.
        """
        distances = self._distances(records, domains)
        named = [qid for qid, domain in enumerate(domains) if not is_numerical(domain)]
        top = max((hierarchies[qid].top for qid in named), default=0)
        rest = np.arange(len(records))
        classes, levels = np.full(len(records), -1, np.int32), np.empty(0, np.int64)
        for level in range(min(self.start == "parents", top), top + 1):
            if len(rest) <= self.k:
                break
            buckets = _buckets(records[rest], [hierarchies[qid] for qid in named], named, level)
            found = _cut(buckets, distances[rest], self.k, unit.take(rest))
            classes[rest] = np.where(found >= 0, found + len(levels), -1)
            levels = np.append(levels, np.full(int(found.max()) + 1, level))
            rest = rest[found < 0]
        return self._closed(classes, levels, rest, unit.take(rest))

    def _closed(self, classes: NDArray[np.int32], levels: NDArray[np.int64], rest: NDArray[np.intp], unit: Unit) -> Blocks:
        """Put the last records into a block of their own if they are enough, else into the last block.

        Without any other block, they make a block even if they are not enough.
        """
        enough = not Promise(self.k).too_few(unit.count(np.zeros(len(rest), np.int32), 1))[0]
        if enough or (len(rest) and not len(levels)):
            levels = np.append(levels, LOWEST_COMMON)
        elif len(rest):
            levels = np.append(levels[:-1], LOWEST_COMMON)
        classes[rest] = len(levels) - 1
        return Blocks(classes, levels)

    def _distances(self, records: NDArray[np.integer], domains: Sequence[Domain]) -> NDArray[np.float64]:
        """Return Σ (value - min) over the numerical QIDs of each record.

        A null lies beyond the greatest value.
        """
        total = np.zeros(len(records))
        for qid, domain in enumerate(domains):
            if is_numerical(domain):
                line = number_line(domain)
                assert line is not None
                numbers = line.of(domain.values)
                # Slices and not entries: a column of nulls alone has no first number.
                beyond = numbers[-1:] - numbers[:1] + 1
                raw = np.append(numbers - numbers[:1], beyond if len(beyond) else 0.0)[: domain.size]
                total += (positions_in_range(domain).astype(np.float64) if self.scaled else raw)[records[:, qid]]
        return total


def _buckets(records: NDArray[np.integer], hierarchies: Sequence[Hierarchy], named: Sequence[int], level: int) -> NDArray[np.int64]:
    """Return each record's bucket, dense from 0: the combination of its groups at a level.

    A shorter hierarchy gives its last level.
    """
    if not named:
        return np.zeros(len(records), np.int64)
    groups = [hierarchy.groups[min(level, hierarchy.top)] for hierarchy in hierarchies]
    packing = Packing(tuple(int(group.max()) + 1 for group in groups))
    words = packing.pack([group[records[:, qid]] for group, qid in zip(groups, named, strict=True)])
    buckets: NDArray[np.int64] = np.unique(single_word(words), return_inverse=True)[1].astype(np.int64)
    return buckets


def _cut(buckets: NDArray[np.int64], distances: NDArray[np.float64], k: int, unit: Unit) -> NDArray[np.int64]:
    """Return each record's block, or -1 for records that a bucket leaves over.

    Small buckets come first, as in the listing.
    """
    sizes = np.bincount(buckets)
    rank = np.empty(len(sizes), np.int64)
    # Buckets of one size keep their order, else blocks would depend on the version of the sort.
    rank[np.argsort(sizes, kind="stable")] = np.arange(len(sizes))
    ranked = rank[buckets]
    order = np.lexsort((distances, ranked))
    if unit.people is not None:
        return blocks_of_persons(order, ranked, unit.people, k)
    sizes = np.bincount(ranked)
    within = np.empty(len(buckets), np.int64)
    within[order] = np.arange(len(buckets)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    blocks = sizes // k
    before = np.cumsum(blocks) - blocks
    return np.where(within < blocks[ranked] * k, before[ranked] + within // k, -1)


@kernel
def blocks_of_persons(order: NDArray[np.int64], buckets: NDArray[np.int64], people: NDArray[np.int32], k: int) -> NDArray[np.int64]:
    """Return each record's block of k persons, or -1 for records that a bucket leaves over.

    A block is closed as soon as it has k persons.

    Args:
        order: Shape (n,), the records bucket by bucket.
        buckets: Shape (n,), the bucket of each.
        people: Shape (n,), the person of each record; negative for none.
    """
    blocks = np.full(order.shape[0], -1, np.int64)
    met = np.full(people.max() + 1, -1, np.int64)
    block, begin, count = 0, 0, 0
    for place in range(order.shape[0]):
        if place > begin and buckets[order[place]] != buckets[order[begin]]:
            begin, count = place, 0
        person = people[order[place]]
        # Where the open block begins says which one it is.
        if person < 0 or met[person] == begin:
            continue
        met[person] = begin
        count += 1
        if count == k:
            for mine in range(begin, place + 1):
                blocks[order[mine]] = block
            block, begin, count = block + 1, place + 1, 0
    return blocks
