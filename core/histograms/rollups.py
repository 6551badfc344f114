"""Cache of rolled-up histograms, and the choice of the cheapest one for each further roll-up.

papers/skald.txt, III.B.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from math import log, prod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.hierarchies.hierarchy import Hierarchy

LARGE = 20_000
SHRINK = 8
MOST_CACHED = 256


class NodeCounts(Protocol):
    """The record counts of a node, in any form that can be rolled up."""

    @property
    def node(self) -> Node:
        """Level of each QID."""
        ...

    @property
    def counts(self) -> NDArray[np.signedinteger[Any]]:
        """The number of records in each cell, one-dimensional."""
        ...


CachedCounts = TypeVar("CachedCounts", bound=NodeCounts)
Decided = NDArray[np.int8] | None


class RollUps(ABC, Generic[CachedCounts]):
    """Histograms of nodes, each rolled up from the cheapest finer histogram in a cache.

    From a small histogram this is cheap; from a large one it is not. So a large one is first rolled up to a node between that many others
    share, and that is kept while there is room.

    Args:
        first: The root's histogram, as it is rolled up.
        hierarchies: One per QID in job order.
        capacity: Cells that may be kept besides the root's, about 16 bytes each.
        decided: One entry per node above the root, in the lattice's shape, 0 where it may yet be asked for; read, never written. None for
            a lattice too large for that, any node of which may be asked for.

    Attributes:
        made: How many histograms were rolled up.
    """

    def __init__(self, first: CachedCounts, hierarchies: Sequence[Hierarchy], capacity: int, decided: Decided) -> None:
        self._hierarchies = hierarchies
        self._sizes = [[len(labels) for labels in hierarchy.labels] for hierarchy in hierarchies]
        self._logarithms = [[log(fine / coarse) for fine, coarse in pairwise(sizes)] for sizes in self._sizes]
        self._kept = [first]
        # Of each kept histogram: its node, and what rolling it up costs, as arrays, since each roll-up looks at all of them.
        self._nodes = np.array([first.node]).T
        self._works = np.array([self._work(first)])
        # What it takes of the capacity; nothing for the root's.
        self._rooms = [0]
        self._capacity = capacity
        # Of each kept histogram: what making it anew would cost for the room that it takes, and that on top of what was let go when it was
        # last of use. The least of these goes first (Cao and Irani 1997, GreedyDual-Size); the root's is never asked for.
        self._prices, self._standing, self._gone = [0.0], [0.0], 0.0
        self._decided = decided
        self.made = 0

    def _base(self, node: Node) -> CachedCounts:
        """Return the cheapest cached histogram for a node, after caching useful intermediate ones."""
        finer = np.flatnonzero((self._nodes <= np.array(node)[:, None]).all(axis=0))
        index = int(finer[self._works[finer].argmin()])
        base = self._kept[index]
        self._standing[index] = self._gone + self._prices[index]
        while self._work(base) > LARGE:
            between = self._between(base, node)
            if between == node:
                break
            base = self._keep(base, between)
        return base

    def _between(self, base: CachedCounts, node: Node) -> Node:
        """Return an intermediate node with few cells, below as many undecided nodes as possible."""
        step = list(base.node)
        sizes, most = [self._sizes[qid][level] for qid, level in enumerate(step)], self._most_between(base)
        product = prod(sizes)
        promising = self._promising(step, node)
        while product > most and step != list(node):
            qid = promising()
            step[qid] += 1
            size = self._sizes[qid][step[qid]]
            product = product // sizes[qid] * size
            sizes[qid] = size
        return tuple(step)

    def _promising(self, step: list[int], node: Node) -> Callable[[], int]:
        """Return a function that chooses the best QID to take one level up.

        The best saves most cells per share of nodes that could no longer be rolled up from there.

        Args:
            step: Level of each QID, changed between calls: the chosen QID goes one level up.
            node: How far each may go.
        """
        if self._decided is not None:
            return lambda: max((qid for qid in range(len(step)) if step[qid] < node[qid]), key=self._gains(step))
        # What a QID promises hangs on its own level alone.
        waiting = [(-self._gain(qid, level), qid) for qid, level in enumerate(step) if level < node[qid]]
        heapify(waiting)

        def first() -> int:
            qid = waiting[0][1]
            heapreplace(waiting, (-self._gain(qid, step[qid] + 1), qid)) if step[qid] + 1 < node[qid] else heappop(waiting)
            return qid

        return first

    def _gain(self, qid: int, level: int) -> float:
        return self._logarithms[qid][level] * (len(self._sizes[qid]) - level)

    def _gains(self, step: list[int]) -> Callable[[int], float]:
        assert self._decided is not None
        first = self._kept[0].node
        # Looked at anew each time: tags are written while the search goes on.
        above = self._decided[tuple(slice(level - start, None) for level, start in zip(step, first, strict=True))] == 0
        open_ = max(int(np.count_nonzero(above)), 1)

        def gain(qid: int) -> float:
            still = int(np.count_nonzero(above[(slice(None),) * qid + (slice(1, None),)]))
            # 1.01, because a step may lose none.
            return self._logarithms[qid][step[qid]] / (1.01 - still / open_)

        return gain

    @abstractmethod
    def _keep(self, base: CachedCounts, node: Node) -> CachedCounts:
        """Roll up an intermediate node and cache its histogram."""

    def _put(self, made: CachedCounts, base: CachedCounts) -> None:
        """Cache a histogram that was rolled up from another one."""
        room = self._room(made)
        price = self._work(base) / max(room, 1)
        self._kept.append(made)
        self._rooms.append(room)
        self._prices.append(price)
        self._standing.append(self._gone + price)
        self._nodes = np.concatenate([self._nodes, np.array(made.node)[:, None]], axis=1)
        self._works = np.append(self._works, self._work(made))
        self._let_go(self._capacity)

    def _let_go(self, capacity: float) -> None:
        """Remove histograms from the cache until it takes at most ``capacity``; the root stays."""
        while len(self._kept) > MOST_CACHED or sum(self._rooms) > capacity:
            least = min(range(1, len(self._kept)), key=self._standing.__getitem__)
            self._gone = self._standing[least]
            for each in (self._kept, self._rooms, self._prices, self._standing):
                del each[least]
            self._nodes, self._works = np.delete(self._nodes, least, axis=1), np.delete(self._works, least)

    def _most_between(self, base: CachedCounts) -> int:
        """Return the most cells that an intermediate node may have."""
        return len(base.counts) // SHRINK

    def _work(self, kept: CachedCounts) -> int:
        """Return the cost of rolling up a histogram, in cells."""
        return len(kept.counts)

    def _room(self, kept: CachedCounts) -> int:
        """Return the part of the capacity that a cached histogram takes."""
        return len(kept.counts)


def pays_to_cache(base: int, made: int) -> bool:
    """Return whether a rolled-up histogram is small enough, against its base, to be worth caching."""
    return base > LARGE and 2 * made <= base
