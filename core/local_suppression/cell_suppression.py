"""Local suppression: suppress the fewest cells that bring rare records into safe classes.

At the chosen node some combinations fail the privacy model. Instead of dropping their records, some of their QIDs are replaced by ``*``.
Combinations that are equal but for these QIDs make a *pool*, and a pool that satisfies the model is a class. Combinations that are safe
stay as they are.

**What is done.** Sets of QIDs are taken by size, 0, 1, 2 …; a set of s QIDs puts every combination that is in no class yet into one pool.
Of all safe pools of one size s, those become classes that outrank every safe pool with which they share a combination. That is repeated
with the other combinations until no pool of the size is safe, and then s grows by one. The larger pool ranks higher. Among equals it is the
one whose suppressed cells add less penalty over all suppressed records, then the one that leaves more important QIDs alone. A greedy choice
of one pool at a time would take the same ones, and it depends on nothing but the combinations and their counts.

**What is promised.** The records that are published with more than s suppressed cells, or not at all, have no safe pool of s QIDs among
themselves. Which pools to take for the fewest suppressed cells is a packing problem, and greedy is not always best. But no choice can
publish a record with fewer suppressed cells than the smallest s at which its pool among *all* suppressed records is safe. This holds as far
as a safe pool stays safe when it grows (`core.privacy.promise`). The sum of these is a bound, which is reported with the outcome.

Up to nine QIDs all sets are tried. Of more, at each size the ``MOST_SETS / QIDs`` sets with the largest Σ of squared pools are tried. They
add one QID to a set kept at the size before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import WORD
from core.columns.kernels import number_distinct
from core.compiling.compiled import compiler
from core.local_suppression.residual import Integers, RareCombinations
from core.privacy.promise import Promise

kernel = compiler("local_suppression.cell_suppression")


@kernel
def choose_sets_of_largest_pools(
    pools: NDArray[np.int32], starts: NDArray[np.int64], counts: NDArray[np.int64], k: int
) -> NDArray[np.int64]:
    """Return each combination's set of QIDs to suppress, by number, largest safe pool first; -1 for none.

    The result has the shape (combinations,).

    Args:
        pools: Shape (sets, combinations), int32: the pool of each combination, from 0 for each set.
        starts: Shape (sets + 1,): how many pools the sets before have together.
        counts: Shape (combinations,): records.
        k: Fewest records of a class. Of equally large pools that of the earlier set comes first, in a set the earlier pool.
    """
    sets, size = pools.shape
    every = starts[sets]
    records = np.zeros(every, np.int64)
    members = np.zeros(every + 1, np.int64)
    for number in range(sets):
        for at in range(size):
            records[starts[number] + pools[number, at]] += counts[at]
            members[starts[number] + pools[number, at] + 1] += 1
    members = np.cumsum(members)
    held, filled = np.empty(sets * size, np.int32), members[:-1].copy()
    for number in range(sets):
        for at in range(size):
            pool = starts[number] + pools[number, at]
            held[filled[pool]] = at
            filled[pool] += 1
    # One number to compare: more records come first, and of as many the pool that is numbered first.
    most = counts.sum()
    heap = [(most - records[pool]) * every + pool for pool in range(every) if records[pool] >= k]
    heapify(heap)
    chosen = np.full(size, -1, np.int64)
    while heap:
        key = heappop(heap)
        pool = key % every
        if records[pool] < most - key // every:
            if records[pool] >= k:
                heappush(heap, (most - records[pool]) * every + pool)
            continue
        number = np.searchsorted(starts, pool, side="right") - 1
        for place in range(members[pool], members[pool + 1]):
            at = held[place]
            if chosen[at] < 0:
                chosen[at] = number
                for other in range(sets):
                    records[starts[other] + pools[other, at]] -= counts[at]
    return chosen


MOST_SETS = 512
MOST_NUMBERS = 1 << 24
"""Numbers of pools that are held at a time: sets of QIDs times combinations."""

Set = tuple[int, ...]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CellSuppression:
    """Cells to suppress in each combination, and a mask of the combinations that are published at all.

    Attributes:
        suppressed_cells: Shape (combinations, QIDs).
        published: Shape (combinations,): which are published at all.
        least: Suppressed cells that no choice could do without, each counted once per record; None where not all sets of QIDs were tried.
    """

    suppressed_cells: Bools
    published: Bools
    least: int | None

    def cost(self, cells: RareCombinations) -> float:
        """Return the penalty of all records of ``cells`` over all QIDs; a suppressed cell counts as 1.

        Each cell of a record that is not published counts as 1, too.
        """
        withheld = self.suppressed_cells | ~self.published[:, None]
        return float(np.dot(np.where(withheld, 1.0, 1 - cells.gains).sum(axis=1), cells.counts))


def choose_suppressed_cells(failing: RareCombinations, promise: Promise) -> CellSuppression:
    """Choose few cells to suppress, small sets of QIDs first, so that failing combinations become safe.

    Args:
        failing: The combinations that fail.
        promise: What a class must satisfy.
    """
    # A star where all are alike brings nobody together and costs as much as any other.
    varied = [qid for qid in range(failing.codes.shape[1]) if len(np.unique(failing.codes[:, qid])) > 1]
    order = _Order(varied, failing)
    starred, open_ = np.zeros(failing.codes.shape, np.bool_), np.arange(len(failing.counts))
    for size in range(len(varied) + 1):
        if not len(open_):
            break
        left = failing.take(open_)
        sets = order.sets(size, left)
        chosen = _choose(left, sets, promise)
        for number, one in enumerate(sets):
            starred[np.ix_(open_[chosen == number], one)] = True
        open_ = open_[chosen < 0]
    published = np.ones(len(failing.counts), np.bool_)
    published[open_] = False
    least = _least(failing, varied, promise, ~published) if 1 << len(varied) <= MOST_SETS else None
    return CellSuppression(starred, published, least)


class _Order:
    """Order of the sets of QIDs: by size, then as ties among pools are broken."""

    def __init__(self, varied: Sequence[int], failing: RareCombinations) -> None:
        """Start with the empty set; ``varied`` are the QIDs with more than one group."""
        self._varied = varied
        self._cost = failing.counts @ failing.gains
        self._kept: list[Set] = [()]

    def sets(self, size: int, left: RareCombinations) -> list[Set]:
        """Return the sets of a size to try on the remaining combinations.

        Sizes must be asked for in ascending order.
        """
        if not size or 1 << len(self._varied) <= MOST_SETS:
            return self._ranked(combinations(self._varied, size))
        wider = {tuple(sorted((*one, qid))) for one in self._kept for qid in self._varied if qid not in one}
        ranked = self._ranked(wider)
        together = [-_squares(left, one) for one in ranked]
        best = sorted(range(len(ranked)), key=lambda place: (together[place], place))[: MOST_SETS // len(self._varied)]
        self._kept = [ranked[place] for place in sorted(best)]
        return self._kept

    def _ranked(self, sets: Iterator[Set] | set[Set]) -> list[Set]:
        """Sort sets of QIDs by the penalty of suppressing them; ties by the least important QIDs first."""
        # The last QIDs are the least important.
        return sorted(sets, key=lambda one: (float(self._cost[list(one)].sum()), tuple(-qid for qid in reversed(one))))


def _squares(left: RareCombinations, one: Set) -> int:
    """Return the sum of squared pool sizes that a set of QIDs makes."""
    pools, size = number_pools(left.codes, one)
    counts = np.bincount(pools, weights=left.counts, minlength=size).astype(np.int64)
    return int(np.dot(counts, counts))


def number_pools(codes: NDArray[np.unsignedinteger], starred: Sequence[int]) -> tuple[Integers, int]:
    """Group combinations by their values without some suppressed QIDs; return group numbers and count.

    Returns:
        The pool of each combination, shape (combinations,), numbered by first appearance, and how many there are.
    """
    key, span = np.zeros(len(codes), np.int64), 1
    # Never more than half full, so that probing is short and comes to an end.
    places = np.full(1 << (2 * len(codes)).bit_length(), -1, np.int64)
    for qid in range(codes.shape[1]):
        if qid in starred:
            continue
        size = int(codes[:, qid].max(initial=0)) + 1
        # No more pools than combinations: numbered anew, there is room for the QIDs that are left.
        if span * size > WORD:
            span = number_distinct(key, places)
            places.fill(-1)
        key = key * size + codes[:, qid]
        span *= size
    return key, number_distinct(key, places)


def _choose(left: RareCombinations, sets: Sequence[Set], promise: Promise) -> Integers:
    """Return the number of the set suppressed in each combination, -1 for none, shape (combinations,).

    Sets are taken in batches.
    """
    chosen, open_ = np.full(len(left.counts), -1), np.arange(len(left.counts))
    batch = max(MOST_NUMBERS // max(len(left.counts), 1), 1)
    found = True
    while found and len(open_):
        found = False
        for first in range(0, len(sets), batch):
            now = left.take(open_)
            picked = _pick(now, sets[first : first + batch], promise)
            chosen[open_] = np.where(picked < 0, -1, picked + first)
            found = found or bool((picked >= 0).any())
            open_ = open_[picked < 0]
        found = found and len(sets) > batch
    return chosen


def _pick(left: RareCombinations, sets: Sequence[Set], promise: Promise) -> Integers:
    """Return the set suppressed in each combination for one batch of sets, -1 for none.

    The batch is small enough to hold the numbers of all its pools.
    """
    if not promise.models and left.members is None:
        return _pick_by_records(left, sets, promise.k)
    numbered = [number_pools(left.codes, one) for one in sets]
    chosen, open_, now = np.full(len(left.counts), -1), np.arange(len(left.counts)), left
    pools = [pools for pools, _ in numbered]
    while len(open_):
        ranks = _ranks(now, pools, [size for _, size in numbered], promise)
        best = np.full(len(open_), len(open_) * len(sets) + 1)
        for rank, mine in zip(ranks, pools, strict=True):
            np.minimum(best, rank[mine], out=best)
        taken = np.full(len(open_), -1)
        for number, (rank, mine) in enumerate(zip(ranks, pools, strict=True)):
            # A pool is taken if all of its combinations rank it highest.
            other = np.zeros(len(rank), np.bool_)
            other[mine[best != rank[mine]]] = True
            safe = rank < UNSAFE
            taken[(safe & ~other)[mine]] = number
        if (taken < 0).all():
            break
        chosen[open_] = taken
        rest = np.flatnonzero(taken < 0)
        open_, now, pools = open_[rest], now.take(rest), [mine[rest] for mine in pools]
    return chosen


def _pick_by_records(left: RareCombinations, sets: Sequence[Set], k: int) -> Integers:
    """Return the set suppressed in each combination where a pool needs k records alone."""
    pools, sizes = np.empty((len(sets), len(left.counts)), np.int32), [0]
    for number, one in enumerate(sets):
        pools[number], size = number_pools(left.codes, one)
        sizes.append(size)
    # An empty pool is none, whatever k is.
    return choose_sets_of_largest_pools(pools, np.cumsum(sizes), left.counts, max(k, 1))


UNSAFE = np.iinfo(np.int64).max


def _ranks(now: RareCombinations, pools: Sequence[Integers], sizes: Sequence[int], promise: Promise) -> list[Integers]:
    """Return the rank of each set's pools, from 0 for the largest; UNSAFE if a pool fails or is empty."""
    ranks, safe, records = [], [], []
    for mine, size in zip(pools, sizes, strict=True):
        pooled = now.classes.grouped(mine, size)
        kept = np.flatnonzero((pooled.records > 0) & ~pooled.failing(promise))
        ranks.append(np.full(size, UNSAFE))
        safe.append(kept)
        records.append(pooled.records[kept])
    # A stable sort leaves equal sizes in the order of the sets and of their pools.
    order = np.argsort(-np.concatenate(records), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    starts = np.cumsum([0, *map(len, safe)])
    for number, kept in enumerate(safe):
        ranks[number][kept] = place[starts[number] : starts[number + 1]]
    return ranks


def _least(failing: RareCombinations, varied: Sequence[int], promise: Promise, lost: Bools) -> int:
    """Return a lower bound of the cells that any choice must suppress in published records.

    It sums the size of the smallest set whose complete pool is safe, by the part of the model that never breaks when a class grows.
    """
    weaker, fewest, open_ = promise.relaxed, np.full(len(failing.counts), len(varied)), np.ones(len(failing.counts), np.bool_)
    for size in range(len(varied)):
        for one in combinations(varied, size):
            if not open_.any():
                break
            pools, number = number_pools(failing.codes, one)
            safe = ~failing.classes.grouped(pools, number).failing(weaker)[pools] & open_
            fewest[safe] = size
        open_ &= fewest > size
    return int(np.dot(fewest[~lost], failing.counts[~lost]))
