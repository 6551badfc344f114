"""Branch-and-bound search of a lattice that is too large to hold, with a bound on the optimum.

A *region* is all nodes v with low ≤ v ≤ high, QID by QID; the first is the whole lattice. The region of the lowest bound is taken, narrowed
and split in two, until none is left that could hold a better node, or until the effort is spent: then the least bound of what is left says
how much better the optimum can be at most. Nothing is ever held but the regions that are open, and no clock is looked at.

**Narrowed.** What is finer than a failing node fails (papers/skald.txt, III.B). So a region whose ``high`` fails is empty, and if ``high``
with one QID at the level of ``low`` fails, that QID is coarser than that in all passing nodes; so it is in all nodes worth finding, if the
bound up to there is above the best value. Likewise, if the bound of ``low`` with one
QID at the level of ``high`` is above the best value, that QID is finer in all nodes worth finding.

**Bounded.** Let c be the size of the class that a record has at ``low``, C ≥ c that at a passing node v of the region, s the records that v
suppresses, and k the fewest records of a published class. A published record has C ≥ max(c, k). A suppressed one has C ≥ c, and s ≥ C. Let
T = Σ max(c, k) over all records, which is Σ c · max(c, k) over the cells of ``low``.

- Σ over all cells |E|² = Σ C over all records ≥ T − Σ (max(c, k) − c) over the s suppressed, and that sum is largest over the records of
  the smallest cells, as many as may be suppressed. (It contains the monotone bound Σ c² of ``low``.)
- DM* = Σ C over the published + s² ≥ T − Σ max(c, k) over the suppressed + s² ≥ T − s · max(s, k) + s². For s ≥ k that is T, for less it
  is T − s · (k − s), least at s = k/2. Under k-anonymity alone a suppressed record has c ≤ C < k, so that DM* ≥ T − s·k + s² for any s, and
  v suppresses no more than ``low``. It never suppresses less than ``high``, under models where that is not monotone than the part that is
  (`core.privacy.promise`).
- At prices (``core.lattice.objectives``) a record is charged for the groups that it is published with, never less at coarser levels, or
  as suppressed, never less than published. What fails at ``high`` fails at v. So v costs no less than all records at the prices of ``low``,
  but those that fail at ``high`` as suppressed (``core.lattice.node_classes``). The finer ``high``, the more of them: this is
  what excludes where the limit lets all records be suppressed, so that no node fails to pass.
- DM* is never below Σ over all cells |E|², because s² ≥ Σ |E|² over the suppressed; the larger bound of the two counts.

Where persons count, k of them have k records at least, so that all of this holds but for what k-anonymity alone adds: a class that fails
may have any number of records.

A region whose bound is above the best value is cut. If they are equal, ties decide (``core.lattice.search.Rank``): no node of the region
suppresses less than ``high`` or is more precise than ``low``. So without a limit to the effort the outcome is that of a full enumeration.

**Counted only where that may exclude.** The finest node of most regions has a cell for nearly every record: it costs most to roll up, and
its bound excludes nothing. What bounds a region bounds every region within it, so a part may keep the bound of the whole: as true, and less
sharp. It does where Σ|E|² of its finest node is guessed to be below the best value (``core.lattice.bounded_evaluations``): a guess excludes
no node. Nor is any left out: a region of one node is its ``high``, which was counted.

**What others do.** Flash (Kohlmayer et al. 2012) bisects chains of nodes by predictive tagging; it finds the optimum, and holds a label for
every node: 4.7 · 10¹¹ of them at fifteen QIDs of six levels. Lightning (Prasser et al. 2016) does not hold the lattice: it expands the node
of least loss again and again, with a greedy descent now and then, until its time is over; it reaches good nodes but knows nothing of the
ones that it did not reach. Here one roll-up excludes whole regions, so that such a lattice is often searched to the end (``python -m
benchmarks.census``); where it is not, the result says how far from the optimum it can be; and it depends on no clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from math import inf, prod, sqrt
from typing import NamedTuple

from core.lattice.bounded_evaluations import Evaluations, NodeRollUp, Steps
from core.lattice.lattice import Lattice
from core.lattice.search import SearchResult
from schemas.errors.signals import SpentError

# Fixed walks and no random restarts: the node that is found must not depend on a seed.
WALKS = (("dive", 0.5), ("climb", 1.0), ("climb", 0.5), ("dive", 1.0))
TINY = 1e-6


def with_step(steps: Steps, qid: int, step: int) -> Steps:
    """Return a node's steps with the step of one QID replaced."""
    return (*steps[:qid], step, *steps[qid + 1 :])


def improve_by_walks(nodes: Evaluations) -> Iterator[None]:
    """Improve ``nodes.best`` by greedy walks; yield after each walk; stop when no walk improves."""
    dive(nodes, nodes.top)
    yield
    for walk, weight in WALKS:
        dive(nodes, nodes.top, weight=weight) if walk == "dive" else dive(nodes, climb(nodes, nodes.bottom, weight))
        yield
    bettered = True
    while bettered:
        bettered = False
        for spoilt, qid in list(_spoilt(nodes)):
            before = nodes.best
            for weight in (0.0, 1.0):
                dive(nodes, dive(nodes, spoilt, qid, weight))
                yield
            if nodes.best != before:
                bettered = True
                break


def _spoilt(nodes: Evaluations) -> Iterator[tuple[Steps, int]]:
    """Yield the best node with one QID made coarser, by one step first, and that QID."""
    for more in range(1, max(nodes.top) + 1):
        for qid, step in enumerate(nodes.steps):
            if step + more <= nodes.top[qid]:
                yield with_step(nodes.steps, qid, step + more), qid


def dive(nodes: Evaluations, start: Steps, frozen: int = -1, weight: float = 0.0) -> Steps:
    """Walk greedily from a passing node to finer passing nodes of better rank; return the last one.

    Args:
        nodes: The lattice.
        start: A node that passes.
        frozen: A QID whose level stays.
        weight: How much a step counts for suppressing less, against lowering the value: 0 not at all, 1 as a quotient of the two.
    """
    current, seen = start, nodes.evaluate(start)
    gains = {qid: inf for qid, step in enumerate(start) if step and qid != frozen}
    while gains:
        # The QID itself breaks ties, else the order in which gains were put in would decide.
        qid = max(gains, key=lambda qid: (gains[qid], -qid))
        finer = with_step(current, qid, current[qid] - 1)
        found = nodes.evaluate(finer)
        # What fails, fails at every finer node; what is no gain now may be one later, but is left for the next walk.
        if found.least > nodes.most_suppressed or nodes.rank(finer, found) >= nodes.rank(current, seen):
            del gains[qid]
            continue
        gains[qid] = _gain(nodes, seen, found, weight)
        if gains[qid] >= max(gains.values()):
            current, seen = finer, found
            if not current[qid]:
                del gains[qid]
    return current


def _gain(nodes: Evaluations, seen: NodeRollUp, found: NodeRollUp, weight: float) -> float:
    if seen.value == inf:
        return inf
    price = max(found.least - seen.least, 0) / (nodes.most_suppressed + 1) + 0.001
    return ((seen.value - found.value) / (found.value + TINY) + TINY**2) / _power(price, weight)


def climb(nodes: Evaluations, start: Steps, weight: float) -> Steps:
    """Walk greedily from a node to coarser nodes until one passes; return it.

    Cheap steps come first, or those that also save many records, by ``weight``.
    """
    current, seen = start, nodes.evaluate(start)
    costs = {qid: 0.0 for qid, step in enumerate(start) if step < nodes.top[qid]}
    while seen.least > nodes.most_suppressed:
        qid = min(costs, key=lambda qid: (costs[qid], -qid))
        coarser = with_step(current, qid, current[qid] + 1)
        found = nodes.evaluate(coarser)
        # A model that looks at sensitive values may ask a coarser node to suppress more.
        saved = max(seen.least - found.least, 0) / (nodes.most_suppressed + 1) + TINY
        before = nodes.cost(current)
        costs[qid] = ((nodes.cost(coarser) - before) / (before + TINY) + TINY**2) / _power(saved, weight)
        if costs[qid] <= min(costs.values()):
            current, seen = coarser, found
            if current[qid] == nodes.top[qid]:
                del costs[qid]
    return current


def _power(base: float, weight: float) -> float:
    # Not base**weight: pow differs in the last bit between C libraries, a square root does not.
    return {0.0: 1.0, 0.5: sqrt(base), 1.0: base}[weight]


MOST_REGIONS = 50_000


class Region(NamedTuple):
    """All nodes from ``low`` to ``high``, with a lower bound on the value of its passing nodes.

    The region of the lowest bound is taken first.
    """

    bound: int | float
    low: Steps
    high: Steps


class BranchAndBound:
    """Branch-and-bound search of the lattice above a root histogram, as far as the effort goes."""

    def __init__(self, nodes: Evaluations) -> None:
        """Begin a search of the nodes, none of which is evaluated yet."""
        self._nodes = nodes
        self._heap: list[Region] = []
        # Regions beyond what the heap may hold: the last one goes first, so that there are never more than the lattice is deep.
        self._stack: list[Region] = []

    def run(self) -> SearchResult | None:
        """Return the best passing node found within the effort; None if none was found.

        Without a limit to the effort, None means that no node passes.
        """
        nodes = self._nodes
        self._heap = [Region(0, nodes.bottom, nodes.top)]
        try:
            # The top is coarser than all nodes: if it fails, there is nothing to search.
            if not nodes.passes(nodes.top):
                return None
            self._heap = [Region(nodes.bound(nodes.bottom, nodes.top), nodes.bottom, nodes.top)]
            self._search(improve_by_walks(nodes))
        except SpentError:
            pass
        return self._found()

    def _found(self) -> SearchResult | None:
        nodes = self._nodes
        if nodes.best is None or nodes.loss is None:
            return None
        value, root = nodes.best[0], nodes.root.node
        # Equal bounds stay in: a node of the same value could still win the tie.
        still = [region for region in (*self._heap, *self._stack) if region.bound <= value]
        bound = min((region.bound for region in still), default=value)
        # Of a bound of 0 no ratio can be told, and none is made up.
        gap = 0.0 if value == bound else value / bound - 1 if bound else None
        everywhere = Lattice.allowed(nodes.hierarchies).nodes
        # Regions share no node.
        unexamined = everywhere - nodes.lattice.nodes + sum(map(self._size, still))
        return SearchResult(
            nodes.best[3], nodes.loss, None, everywhere, nodes.spent, unexamined, (root,), measured=nodes.measured, bound=bound, gap=gap
        )

    def _size(self, region: Region) -> int:
        """Count the nodes of a region, including levels that merge no groups."""
        spans = zip(self._nodes.levels, region.low, region.high, self._nodes.lattice.levels, strict=True)
        return prod((levels[high + 1] if high + 1 < len(levels) else most) - levels[low] for levels, low, high, most in spans)

    def _search(self, hunting: Iterator[None]) -> None:
        """Branch until no region is open; spend half the effort on walks to better nodes while these succeed."""
        nodes, hunted, hunts = self._nodes, 0, True
        # Regions of the stack are taken first, so that the heap is empty last.
        while self._heap:
            before = nodes.spent
            if hunts and 2 * hunted <= nodes.spent:
                hunts = next(hunting, hunting) is None
                hunted += nodes.spent - before
                continue
            region = self._stack[-1] if self._stack else self._heap[0]
            children = [] if nodes.cannot_improve(*region) else self._branch(region)
            # It stays open until all that can be better in it is; then the effort may end anywhere.
            if self._stack:
                self._stack.pop()
            else:
                heapq.heappop(self._heap)
            for child in children:
                self._open(child)

    def _open(self, region: Region) -> None:
        if len(self._heap) >= MOST_REGIONS:
            self._heap = [other for other in self._heap if other.bound <= self._nodes.value]
            heapq.heapify(self._heap)
        if len(self._heap) < MOST_REGIONS:
            heapq.heappush(self._heap, region)
        else:
            self._stack.append(region)

    def _branch(self, region: Region) -> list[Region]:
        """Narrow a region and split it at the QID with the best bounds: its coarsest level, and the others."""
        nodes = self._nodes
        narrow = self._narrowed(region)
        if narrow is None or narrow.low == narrow.high:
            return []
        bound, low, high = narrow
        wide = [qid for qid in range(len(low)) if low[qid] < high[qid]]

        def promise(qid: int) -> tuple[int | float, float, int]:
            # Ties go to the more important QID, so that the walk is the same on every machine.
            return nodes.bound_within(bound, with_step(low, qid, high[qid]), high), nodes.rise(qid, low, high), -qid

        qid = max(wide, key=promise)
        coarse, fine = with_step(low, qid, high[qid]), with_step(high, qid, high[qid] - 1)
        children = [Region(nodes.bound_within(bound, coarse, high), coarse, high)]
        if nodes.passes(fine):
            children.append(Region(nodes.bound_within(bound, low, fine), low, fine))
        return [child for child in children if not nodes.cannot_improve(*child)]

    def _narrowed(self, region: Region) -> Region | None:
        """Return a region without levels that fail or cannot beat the best node; None if it is empty."""
        nodes, (bound, low, high) = self._nodes, region
        for qid, (finest, coarsest) in enumerate(zip(low, high, strict=True)):

            def holds(step: int, qid: int = qid, low: Steps = low, high: Steps = high) -> bool:
                finer = with_step(high, qid, step)
                return nodes.passes(finer) and not nodes.cannot_improve(nodes.bound_within(region.bound, low, finer), low, finer)

            if finest < coarsest:
                low = with_step(low, qid, _first(holds, finest, coarsest))
        bound = nodes.bound_within(bound, low, high)
        if nodes.cannot_improve(bound, low, high):
            return None
        for qid, (finest, coarsest) in enumerate(zip(low, high, strict=True)):

            def cut(step: int, qid: int = qid, low: Steps = low, high: Steps = high) -> bool:
                coarser = with_step(low, qid, step)
                return nodes.cannot_improve(nodes.bound_within(region.bound, coarser, high), coarser, high)

            if finest < coarsest and cut(coarsest):
                high = with_step(high, qid, _first(cut, finest + 1, coarsest) - 1)
                if not nodes.passes(high):
                    return None
        return Region(bound, low, high)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number from ``low`` on for which a monotone predicate holds, at most ``high``."""
    if holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
