"""Losses and lower bounds of single nodes, computed on demand within a budget of roll-ups.

The lattices are too large to be held as arrays. Each node is rolled up once.

**The expected sum of squared class sizes** of a node is estimated before the node is counted.
It is a guess of which nodes to count, never a bound. Were QIDs independent, two records would share a cell as often as they share the
groups of all QIDs, which follows from the marginal counts: N² · Π Σ p². Real QIDs are not independent; the ratio of the true to the
expected sum is known for counted nodes. Between a finer and a coarser counted node its logarithm is interpolated by that of the product.
A wrong guess costs one more roll-up, or one more split of a region; the node that is found, and the proof, are the same
(core/lattice/branch_and_bound.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor, frexp, inf, ldexp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import Cells
from core.histograms.histogram import Histogram
from core.lattice.lattice import Lattice
from core.lattice.node_classes import Levels, Parts, RootSearch, SuppressionPenalties, node_classes, suppression_penalty_at
from core.lattice.objectives import ROUNDING, Counting, NodeRegion, named_objective_value, objective_of
from core.lattice.search import Rank
from core.privacy.models import Failing
from core.units.class_table import ClassTable
from core.units.losses import Loss, loss_of, sum_of_squares
from schemas.errors.signals import SpentError


class ExpectedSquareSums:
    """Estimates of the sum of squared cell sizes, Σ |E|², for the nodes above a root.

    Args:
        root: The root histogram.
        hierarchies: One per QID; further axes of the root are left out of account.
        levels: The level of each step, one list per QID or more.
    """

    def __init__(self, root: Histogram, hierarchies: Sequence[Hierarchy], levels: Sequence[Sequence[int]]) -> None:
        self._records = root.records
        whole = 2 * _logarithm(self._records)
        self._shared = [
            [_logarithm(sum_of_squares(_records(root, qid, hierarchy, level))) - whole for level in levels[qid]]
            for qid, hierarchy in enumerate(hierarchies)
        ]

    def rise(self, qid: int, low: int, high: int) -> float:
        """Return the rise in log2 of the estimate where one QID goes from a step to a coarser one."""
        return self._shared[qid][high] - self._shared[qid][low]

    def between(self, steps: Sequence[int], fine: tuple[Sequence[int], int], coarse: tuple[Sequence[int], int]) -> float:
        """Return an estimate of a node's Σ |E|² from a finer and a coarser node with known sums.

        Args:
            steps: The node.
            fine: The steps of a node that is nowhere coarser, and its Σ |E|².
            coarse: The same of one that is nowhere finer.
        """
        low, here, high = self._apart(fine[0]), self._apart(steps), self._apart(coarse[0])
        below, above = self._ratio(low, fine[1]), self._ratio(high, coarse[1])
        way = (here - low) / (high - low) if high > low else 1.0
        return _power(here + below + (above - below) * way) + self._records

    def _apart(self, steps: Sequence[int]) -> float:
        """Return log2 of the ordered pairs of records that would share a cell if QIDs were independent."""
        return sum((shared[step] for shared, step in zip(self._shared, steps, strict=False)), start=2 * _logarithm(self._records))

    def _ratio(self, apart: float, squares: int) -> float:
        # One more of each: where cells hold one record each there are no pairs, and a handful of them says little.
        return _logarithm(squares - self._records + 1) - _logarithm(_power(apart) + 1)


def _records(root: Histogram, qid: int, hierarchy: Hierarchy, level: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    groups = hierarchy.rolled(root.node[qid], level)[root.codes[:, qid]]
    return np.bincount(groups, weights=root.counts).astype(np.int64)


def _logarithm(number: float) -> float:
    """Return a binary logarithm, interpolated linearly between powers of two.

    Logarithms of C libraries differ in the last bit, and the course of a search must not.
    """
    mantissa, exponent = frexp(number)
    return exponent - 2 + 2 * mantissa


def _power(logarithm: float) -> float:
    """Return the number with the given ``_logarithm``."""
    whole = floor(logarithm)
    return ldexp(1 + logarithm - whole, whole)


NOTHING_COUNTED = Counting(lambda loss, records, classes: inf, lambda loss, records, cells, most: 0)
# What was forgotten is rolled up again: right all the same, and only some of the effort is lost.
NO_SUPPRESSION_PENALTIES: Levels = np.zeros((0, 0))
EFFORT = 20_000
CACHED_NODES = 50_000
MOST_CELLS_REREAD = 1 << 18
"""Cells of a root that are read for every node where objectives have prices."""

Steps = tuple[int, ...]
"""A node by its position among the levels that differ: 0 is the root's level of a QID, one more the next level that merges any groups."""


class NodeRollUp(NamedTuple):
    """The loss, objective and bounds of a node, from one roll-up of its cells.

    Attributes:
        loss: Its losses.
        value: Its objective; infinity where nothing is published.
        least: Records that it, and so every finer node, suppresses at least.
        floor: Σ over all cells c · max(c, k), of the sizes c.
        spared: How much of ``floor`` falls away at most if as many records as allowed are suppressed.
        cells: How many cells it has.
        penalties_of_suppression: What it adds at prices that it, and so every finer node, suppresses these records.
    """

    loss: Loss
    value: int | float
    least: int
    floor: int
    spared: int
    cells: int
    penalties_of_suppression: Levels


@dataclass
class Evaluations(RootSearch):
    """Cache of node roll-ups that keeps the best passing node and stops when the effort is spent.

    Attributes:
        effort: How many nodes are rolled up at most.
        levels: The levels of each QID that differ, from the root's on. One that merges nothing is never better than the one below it:
            the classes are the same, the precision is lower.
        k: Fewest records that the promise lets a class have.
        spent: How many nodes were rolled up.
        best: Rank of the best node so far, its ``steps`` and its ``loss``.
    """

    effort: int = EFFORT

    def __post_init__(self) -> None:
        sizes = [hierarchy.levels for hierarchy in self.hierarchies]
        self.lattice = Lattice.above_root(self.hierarchies, self.root.node)
        self.levels = [_differing(hierarchy, first) for hierarchy, first in zip(self.hierarchies, self.root.node, strict=True)]
        objective = objective_of(self.objective)
        # Prices are asked first wherever an objective has them.
        self._counting = objective if isinstance(objective, Counting) else NOTHING_COUNTED
        self.bottom: Steps = (0,) * len(sizes)
        self.top: Steps = tuple(len(levels) - 1 for levels in self.levels)
        self.k = self.promise.k
        self.spent = 0
        self.best: Rank | None = None
        self.steps = self.top
        self.loss: Loss | None = None
        self._seen: dict[Steps, NodeRollUp] = {}

        # Which cells are at hand must not matter: they are the root's, where to read all of them each time costs little, or no finer ones.
        finer = self.root.cells <= MOST_CELLS_REREAD and self.persons is None
        self._penalties_of_suppression = (
            SuppressionPenalties(self.prices, self.hierarchies, finer=finer) if self.prices and self.prices.extra else None
        )
        parts: Parts = "root" if finer and self._penalties_of_suppression else "any"

        qids = self.hierarchies[: len(sizes) - len(self.sensitive)]
        self._likely = ExpectedSquareSums(self.root, qids, self.levels) if self._counting.sums_squares else None
        self._finest: int | None = None
        self._classes = node_classes(self, None, parts, of_units=self._counting.of_units)
        self._counts_units = self._counting.of_units and not self._classes.adds_up
        # Entropy, recursive l and t are not monotone once records may be suppressed, or where persons count: only what is monotone may take
        # finer nodes with it.
        self._weaker = self.promise.relaxed if self.most_suppressed or not self._classes.adds_up else self.promise

    @property
    def value(self) -> float:
        """The best value of the objective so far, or infinity."""
        return self.best[0] if self.best else inf

    @property
    def measured(self) -> dict[str, float]:
        """The best value by the name of its objective, as in ``core.lattice.search.SearchResult``."""
        values = self.root.records * (len(self.hierarchies) - len(self.sensitive))
        return named_objective_value(self.objective, self.value, values, self.prices)

    def node(self, steps: Steps) -> Node:
        """Return the node (level of each QID) at the given steps."""
        return tuple(levels[step] for levels, step in zip(self.levels, steps, strict=True))

    def evaluate(self, steps: Steps, *, keep: bool = False) -> NodeRollUp:
        """Evaluate a node once; return its loss, objective and bounds; raise SpentError past the limit.

        Args:
            keep: Whether coarser nodes will be asked for.
        """
        if steps in self._seen:
            return self._seen[steps]
        if self.spent >= self.effort:
            raise SpentError
        self.report_progress()
        self.spent += 1
        seen = self._roll_up(self.node(steps), keep=keep)
        if len(self._seen) >= CACHED_NODES:
            # A dict keeps the order of insertion, so what is forgotten depends on the search alone and runs end alike.
            for old in list(islice(self._seen, CACHED_NODES // 2)):
                del self._seen[old]
        self._seen[steps] = seen
        if seen.loss.suppressed <= self.most_suppressed and (self.best is None or self.rank(steps, seen) < self.best):
            self.best, self.steps, self.loss = self.rank(steps, seen), steps, seen.loss
        return seen

    def _roll_up(self, node: Node, *, keep: bool) -> NodeRollUp:
        table, parts = self._classes.at(node, keep=keep, exact=False)
        records, surely = table.records, table.failing(self._weaker)
        failing, least, penalties_of_suppression = surely, int(records[surely].sum()), self._suppression_penalties_of(node, parts(surely))
        suppressed = penalties_of_suppression
        if (self._weaker is not self.promise or self._counts_units) and least <= self.most_suppressed:
            # Of persons, how many there are, or have a value, costs more to know than whether there are k, or anybody has it.
            table, parts = (table, parts) if self._classes.adds_up else self._classes.at(node)
            records, failing = table.records, table.failing(self.promise)
            suppressed = self._suppression_penalties_of(node, parts(failing))
        loss, small = loss_of(records, failing), records[self.promise.too_few(records)]
        return NodeRollUp(
            loss,
            self._value(node, loss, table, failing, suppression_penalty_at(node, suppressed)),
            least,
            # c · max(c, k) is c² and, for small cells, c · (k − c) more; in int64, because such sums pass 2^53.
            loss.dm_all + int(np.dot(small, self.k - small)),
            _spared(small, self.k, self.most_suppressed),
            len(records),
            penalties_of_suppression,
        )

    def _suppression_penalties_of(self, node: Node, lost: Cells) -> Levels:
        return self._penalties_of_suppression.of(lost, node) if self._penalties_of_suppression else NO_SUPPRESSION_PENALTIES

    def _value(self, node: Node, loss: Loss, table: ClassTable, failing: Failing, suppression_penalty: float) -> int | float:
        published = len(failing) - int(np.count_nonzero(failing))
        if not published:
            return inf  # publishes nothing: worse than any node that publishes something, as core.lattice.search has it
        if self.prices:
            return self.prices.cost(node) + suppression_penalty
        # Where more than the limit fails units are not exact, and nobody asks for the value.
        released = int(table.units[~failing].sum()) if self._counts_units else self.root.records - loss.suppressed
        return self._counting.value(loss, released, published)

    def passes(self, steps: Steps) -> bool:
        """Return whether a node may pass; a node that may not excludes every finer node."""
        return self.evaluate(steps).least <= self.most_suppressed

    def rank(self, steps: Steps, roll_up: NodeRollUp) -> Rank:
        """Return the sort key of a node, as the search of a complete lattice compares nodes."""
        node = self.node(steps)
        return roll_up.value, roll_up.loss.suppressed, self.lattice.imprecision_of(node), node

    def cost(self, steps: Steps) -> float:
        """Return the cost of a node without suppression; lower is better.

        It grows from finer to coarser nodes as the objective does.
        """
        if self.prices:
            return self.prices.cost(self.node(steps))
        seen = self.evaluate(steps)
        return self._counting.growth(seen.loss, seen.cells)

    def bound(self, low: Steps, high: Steps) -> int | float:
        """Return a lower bound of the objective of every passing node from ``low`` to ``high``.

        The proof is in core/lattice/branch_and_bound.py.

        Args:
            low: The finest of them.
            high: The coarsest, which was rolled up before.
        """
        if self.prices:
            # Prices are floats: a bound that rounding had lifted above the value could cut the optimum.
            return (self.cost(low) + suppression_penalty_at(self.node(low), self.evaluate(high).penalties_of_suppression)) * ROUNDING
        seen, least = self.evaluate(low, keep=True), self.evaluate(high).least
        records, most = self._classes.units if self._counts_units else self.root.records, self.most_suppressed
        if self._counting.region is None:
            return self._counting.floor(seen.loss, records, seen.cells, most)
        # A class that lacks persons may have any number of records.
        alone = not self.promise.models and self._classes.adds_up
        return self._counting.region(NodeRegion(records, most, self.k, alone, seen.floor, seen.spared, seen.cells, least, seen.least))

    def bound_within(self, known: int | float, low: Steps, high: Steps) -> int | float:
        """Return a lower bound from ``low`` to ``high``, without a roll-up where that would hardly help.

        Then the bound of the larger region is returned. The finer a node is, the more a roll-up costs, and the less its bound excludes.

        Args:
            known: A lower bound of a region that holds this one.
            low: As for ``bound``.
            high: As for ``bound``.
        """
        if self._likely is None or self.best is None or low in self._seen:
            return max(known, self.bound(low, high))
        if self._finest is None:
            self._finest = self.evaluate(self.bottom).loss.dm_all
        squares = self._likely.between(low, (self.bottom, self._finest), (high, self.evaluate(high).loss.dm_all))
        # ``floor`` exceeds Σ|E|² by c · (k − c) for each cell of fewer than k.
        return known if squares + self.k * self.root.records < self.best[0] else max(known, self.bound(low, high))

    def rise(self, qid: int, low: Steps, high: Steps) -> float:
        """Return the expected rise of a bound if one QID goes from its level in ``low`` to that in ``high``.

        It is the rise in log2 of the expected Σ over all cells |E|²; 0 if it is unknown.
        """
        return self._likely.rise(qid, low[qid], high[qid]) if self._likely else 0.0

    def cannot_improve(self, bound: int | float, low: Steps, high: Steps) -> bool:
        """Return whether no node from ``low`` to ``high`` can be better than the best node.

        Ties are decided too: a node of the value ``bound`` suppresses no less than ``high``, and one that does not suppress more is no
        more precise than ``low``.
        """
        if self.best is None or bound != self.best[0]:
            return self.best is not None and bound > self.best[0]
        node = self.node(low)
        return (bound, self.evaluate(high).least, self.lattice.imprecision_of(node), node) >= self.best


def _differing(hierarchy: Hierarchy, first: int) -> list[int]:
    sizes = list(map(len, hierarchy.labels))
    # Levels nest, so as many groups as the level below are the same groups.
    return [level for level in range(first, hierarchy.levels) if level == first or sizes[level] < sizes[level - 1]]


def _spared(small: NDArray[np.int64], k: int, most: int) -> int:
    """Return the greatest Σ (k − c) over the records that may be suppressed, smallest cells first.

    Args:
        small: Shape (n,), sizes c of the cells with fewer than k records.
        k: The fewest that a class may have.
    """
    sizes = np.arange(k, dtype=np.int64)
    taken = np.minimum(np.cumsum(np.bincount(small, minlength=k) * sizes), most)
    return int(np.dot(np.diff(taken, prepend=0), k - sizes))
