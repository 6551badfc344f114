"""Search of a lattice for the best passing node, and each node's status after it.

It is phase 2 of papers/skald.txt, III.B.2.

Predictive tagging finds which nodes pass. Among them the objective is minimised exactly: Σ over all cells |E|² is monotone and never
above DM* (eq. 4), so a node where it exceeds the best value found is cut, and everything coarser with it.

A node that publishes nothing has the value infinity, whatever the objective makes of it: some charge nothing for suppression, and would
take it where the limit allows all records to be suppressed. Lower bounds stay what they are, for infinity is above any of them; as long
as no node that publishes something is found, nothing is cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.histograms.cells import Cells
from core.lattice.lattice import FAILS, PASSES, UNKNOWN, Lattice, tag
from core.lattice.node_classes import RootSearch, SuppressionPenalties, node_classes, suppression_penalty_at
from core.lattice.objectives import Counting, named_objective_value, objective_of
from core.units.losses import Loss, loss_of

STATUSES = ("fails", "passes", "cut", "unexamined")
FAILED, PASSED, BOUNDED, UNEXAMINED = (np.int8(number) for number in range(len(STATUSES)))
BARRED = np.int8(-1)
"""A node that the job does not allow, because it publishes values as they are; it is no part of a picture."""
MOST_IN_A_ROW, MOST_AWAY = 12, 3
Statuses = NDArray[np.int8]


@dataclass(frozen=True)
class DrawnNode:
    """A node of the lattice picture, with its levels and status.

    The status is ``fails``, ``passes``, ``cut`` or ``unexamined``.
    """

    node: Node
    status: str


@dataclass(frozen=True)
class LatticeMap:
    """The counts and nodes shown in a picture of the lattice; it contains no value of the data.

    Attributes:
        name: Of the job.
        qids: Names of the QIDs in job order.
        levels: Number of levels of each.
        node: The chosen node.
        heights: For each height from 0 up, how many nodes are of each status, by name.
        drawn: Nodes that are drawn one by one, by height.
        whole: Whether these are all nodes, and not the neighbourhood of the chosen one.
    """

    name: str
    qids: tuple[str, ...]
    levels: tuple[int, ...]
    node: Node
    heights: tuple[dict[str, int], ...]
    drawn: tuple[DrawnNode, ...]
    whole: bool


def statuses_of(tags: NDArray[np.int8], evaluated: Mapping[Node, bool], lattice: Lattice) -> Statuses:
    """Return the status of each node above a root: passed, failed or cut by the bound.

    A node that was rolled up passes or fails by its own count; of the others, tagging says which fail, and those that could not be better
    than the best were cut by the bound.

    Args:
        tags: In the lattice's shape, PASSES, FAILS, CUT or UNKNOWN.
        evaluated: Of each node that was rolled up, whether no more records than allowed are suppressed there.
    """
    statuses = np.where(tags == FAILS, FAILED, BOUNDED)
    for node, admitted in evaluated.items():
        # Tags know the monotone part of a model only; a count knows all of it.
        statuses[lattice.position(node)] = PASSED if admitted else FAILED
    return statuses


def complete_lattice_statuses(statuses: Statuses, passing: NDArray[np.bool_], lattice: Lattice, allowed: Node) -> Statuses:
    """Extend statuses above a root to all nodes: failed if the join with the root fails, else unexamined.

    Where the join with the root fails, the finer node fails too; other nodes are unexamined. ``allowed`` is the finest node that may be
    published.
    """
    steps = [np.maximum(np.arange(levels) - first, 0) for levels, first in zip(lattice.levels, lattice.root, strict=True)]
    known = np.where(passing[np.ix_(*steps)], UNEXAMINED, FAILED)
    whole = np.full(known.shape, BARRED)
    part = tuple(slice(level, None) for level in allowed)
    whole[part] = known[part]
    whole[tuple(slice(first, None) for first in lattice.root)] = statuses
    return whole


def map_of(name: str, qids: Sequence[str], statuses: Statuses, node: Node) -> LatticeMap:
    """Build the map of a lattice picture from the statuses of all nodes.

    Args:
        name: Of the job.
        qids: Names of the QIDs.
        statuses: In the shape of the whole lattice of the QIDs.
        node: The chosen node.
    """
    lattice = Lattice.from_exact_values(statuses.shape)
    heights, allowed = lattice.heights.astype(np.int64), statuses != BARRED
    counts = np.bincount((heights * len(STATUSES) + statuses)[allowed], minlength=(int(heights.max()) + 1) * len(STATUSES))
    rows = tuple(dict(zip(STATUSES, row, strict=True)) for row in counts.reshape(-1, len(STATUSES)).tolist())
    whole = max(sum(row.values()) for row in rows) <= MOST_IN_A_ROW
    shown = allowed if whole else allowed & _neighbourhood(lattice, node)
    positions = sorted(np.argwhere(shown).tolist(), key=lambda position: (sum(position), [-step for step in position]))
    drawn = tuple(DrawnNode(tuple(position), STATUSES[statuses[tuple(position)]]) for position in positions)
    return LatticeMap(name, tuple(qids), statuses.shape, node, rows, drawn, whole)


def _neighbourhood(lattice: Lattice, node: Node) -> NDArray[np.bool_]:
    """Return a mask of the nodes above and below a node that fit in the picture.

    They are one to three levels away, as many as fit in a row.
    """
    shown = np.zeros(lattice.shape, np.bool_)
    for sign, side in ((1, lattice.above(node)), (-1, lattice.below(node))):
        comparable = np.zeros(lattice.shape, np.bool_)
        comparable[side] = True
        distance = sign * (lattice.heights.astype(np.int64) - sum(node))
        for radius in range(MOST_AWAY + 1):
            row = comparable & (distance == radius)
            if radius > 1 and int(row.sum()) > MOST_IN_A_ROW:
                break
            shown |= row
    return shown


@dataclass(frozen=True)
class SearchResult:
    """The best node of a search, with its losses and the number of nodes examined.

    Attributes:
        node: The best passing node.
        loss: Its losses.
        nodes_passing: How many nodes of the lattice are known to pass; with a limit of suppression and a model that is more than its
            ``relaxed`` part, how many pass that part. None if they were not counted (``core.lattice.branch_and_bound``).
        evaluated: How many were rolled up.
        unexamined: Nodes not above a root that could still pass, and so could be better; 0 proves the node optimal.
        roots: The roots whose histograms were searched, in order.
        statuses: The status of each node of the complete lattice, for its picture; None if that was not kept.
        measured: The objective's value by its name, per record and QID, where it is none of the losses that every release has.
        bound: What no node above a root is below, as the objective measures it; None if ``unexamined`` says all that is to say.
        gap: By what share of ``bound`` the node is above it; None if there is no bound, or it is 0.
    """

    node: Node
    loss: Loss
    nodes_passing: int | None
    nodes: int
    evaluated: int
    unexamined: int
    roots: tuple[Node, ...]
    statuses: Statuses | None = field(default=None, compare=False, repr=False)
    measured: dict[str, float] = field(default_factory=dict)
    bound: int | float | None = None
    gap: float | None = None


Rank = tuple[int | float, int, int, Node]


@dataclass
class Search(RootSearch):
    """Search of the lattice above a root histogram for the best passing node.

    Attributes:
        known_verdicts: In the lattice's shape, what is known of its nodes beforehand: PASSES, FAILS, or CUT for one that need not be
            looked at.
        best: Rank of the best node known beforehand; only a better one is looked for.
        most_priced: Records that a node may suppress and still get a price, if these are more than may be suppressed.
        losses: The losses of the evaluated nodes.
        values: The objective's values of these nodes; infinity where nothing is published. Prices of nodes that suppress too much are
            left out.
        tags: ``known_verdicts`` and the verdicts found.
        bounds: In the lattice's shape: lower bounds of the objective, of the two DM Σ over all cells |E|².
    """

    known_verdicts: NDArray[np.int8] | None = None
    best: Rank | None = None
    most_priced: int = 0
    losses: dict[Node, Loss] = field(default_factory=dict)
    values: dict[Node, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        objective = objective_of(self.objective)
        self._counting = objective if isinstance(objective, Counting) else None
        if self._counting is None and not self.prices:
            raise ValueError(f"{self.objective} has prices")
        self.lattice = Lattice.above_root(self.hierarchies, self.root.node)
        self._allowed = Lattice.allowed(self.hierarchies).root
        self.tags = np.full(self.lattice.shape, UNKNOWN) if self.known_verdicts is None else self.known_verdicts.copy()
        self.bounds = self.prices.floor(self.lattice) if self.prices else np.zeros(self.lattice.shape)
        self._least: dict[Node, int] = {}
        self._penalties_of_suppression = SuppressionPenalties(self.prices, self.hierarchies) if self.prices and self.prices.extra else None
        of_units = self._counting is not None and self._counting.of_units
        self._classes = node_classes(self, self.tags, "any", of_units=of_units)
        # How many units a class has costs more to know, of persons, than whether it has k.
        self._counts_units = of_units and not self._classes.adds_up
        # Where records may be suppressed, not every promise can be tagged by; what it implies can.
        # Where persons count, not even a union of two safe classes is safe under every model: they may share those who have a rare value.
        self._tagged_by = self.promise if self.most_suppressed == 0 and self._classes.adds_up else self.promise.relaxed
        self._in_two_steps = not self._classes.adds_up and (of_units or not self.promise.is_closed_under_union)

    @property
    def evaluated(self) -> int:
        """The number of histograms that were rolled up."""
        return self._classes.histograms_rolled_up

    def run(self) -> SearchResult | None:
        """Return the best passing node with figures of the search; None if none passes and beats ``best``.

        None if not even the top passes or no node is better than the best known. The best publishes something if any does, and has the
        lowest objective. Ties go to fewer suppressed records, then to better precision, then to the finest on the most important QID, so
        that the outcome does not depend on the order of the search.
        """
        tags = tag(self.lattice, self.passes, self.tags)
        best = self._minimise(tags == PASSES)
        if best is None:
            return None
        passing = tags == PASSES
        counts = int(passing.sum()), self.lattice.nodes, self.evaluated, self._unexamined(passing)
        statuses = complete_lattice_statuses(self.statuses(), passing, self.lattice, self._allowed)
        return SearchResult(best, self.losses[best], *counts, (self.root.node,), statuses, self._measured(best))

    def _measured(self, node: Node) -> dict[str, float]:
        values = self.root.records * (len(self.hierarchies) - len(self.sensitive))
        return named_objective_value(self.objective, self.values[node], values, self.prices)

    def statuses(self) -> Statuses:
        """Return the status of each node (passed, failed, cut), in the lattice's shape."""
        return statuses_of(self.tags, {node: self._admits(node) for node in self.losses}, self.lattice)

    def passes(self, node: Node) -> bool:
        """Return whether a node suppresses no more records than allowed, by the monotone part of the promise.

        Then all coarser nodes pass too.
        """
        if node not in self._least:
            self._evaluate_node(node, whole=not self._in_two_steps)
        return self._least[node] <= self.most_suppressed

    def evaluate(self, node: Node) -> Loss:
        """Return the losses of a node; count its classes if that was not done."""
        if node not in self.losses:
            self._evaluate_node(node, whole=True)
        return self.losses[node]

    def risk(self, node: Node) -> float:
        """Return the mean of 1 / class size over the released records or persons of a node.

        0 if none is released.

        Sizes are in persons where persons are named, else in records.
        """
        table = self._classes.at(node).table
        kept = table.units[~table.failing(self.promise)]
        return len(kept) / int(kept.sum()) if len(kept) else 0.0

    def _evaluate_node(self, node: Node, *, whole: bool) -> None:
        """Count the classes of a node and store its least suppression.

        With ``whole``, store its losses and value too.
        """
        self.report_progress()
        table, parts = self._classes.at(node, exact=whole and self._in_two_steps)
        records, surely = table.records, table.failing(self._tagged_by)
        failing = surely if not whole or self._tagged_by is self.promise else table.failing(self.promise)
        loss = loss_of(records, failing)
        # The same array means the same model: nothing to add up twice.
        self._least[node] = loss.suppressed if surely is failing else int(records[surely].sum())
        published = len(failing) - int(np.count_nonzero(failing))
        if whole:
            self.losses[node] = loss
        if whole and self.prices and loss.suppressed <= max(self.most_suppressed, self.most_priced):
            self.values[node] = self.prices.cost(node) + self._suppression_penalty(node, parts(failing)) if published else inf
        if self._counting is None or self.prices:
            return
        if whole:
            released = int(table.units[~failing].sum()) if self._counts_units else int(records.sum()) - loss.suppressed
            self.values[node] = self._counting.value(loss, released, published) if published else inf
        # One step down makes the float no larger than the integer, so that rounding never cuts a node that could win.
        every = self._classes.units if self._counts_units else int(records.sum())
        least = np.nextafter(float(self._counting.floor(loss, every, len(records), self.most_suppressed)), 0)
        above = self.bounds[self.lattice.above(node)]
        # A monotone bound holds for all that is coarser: one count may cut whole parts of the lattice.
        np.maximum(above, least, out=above)

    def _suppression_penalty(self, node: Node, lost: Cells) -> float:
        return suppression_penalty_at(node, self._penalties_of_suppression.of(lost, node)) if self._penalties_of_suppression else 0.0

    def _admits(self, node: Node) -> bool:
        return self.losses[node].suppressed <= self.most_suppressed

    def bound(self, node: Node) -> float:
        """Return the lower bound of a node's objective, rounded down."""
        self.passes(node)
        return float(self.bounds[self.lattice.position(node)])

    def rank(self, node: Node) -> Rank:
        """Return the sort key of an evaluated node; the lowest is best, from whichever root it was found."""
        loss = self.losses[node]
        return self.values[node], loss.suppressed, int(self.lattice.imprecision[self.lattice.position(node)]), node

    def _minimise(self, passing: NDArray[np.bool_]) -> Node | None:
        open_nodes = passing.copy()
        for node in self.losses:
            open_nodes[self.lattice.position(node)] = False
        # What tagging has counted on its way may already hold the best, and cuts the more the earlier it is known.
        known = [self.rank(node) for node in self.losses if passing[self.lattice.position(node)] and self._admits(node)]
        best = min([*known, self.best] if self.best else known, default=None)
        while True:
            if best:
                # Equal bounds stay open: a tie may be better on suppression or precision.
                open_nodes &= self.bounds <= float(best[0])
            if not open_nodes.any():
                return None if best is None or best == self.best else best[3]
            # The lowest bound first; among equals argmin takes the finest in C order.
            node = self.lattice.at(int(np.where(open_nodes, self.bounds, np.inf).argmin()))
            self.evaluate(node)
            if self._admits(node):
                best = min(best, self.rank(node)) if best else self.rank(node)
            open_nodes[self.lattice.position(node)] = False

    def _unexamined(self, passing: NDArray[np.bool_]) -> int:
        """Count the nodes not above the root whose join with it passes, so that they could pass.

        Where the join fails, the finer node fails too.
        """
        if self.lattice.root == self._allowed:
            return 0
        spans = zip(self._allowed, self.lattice.levels, self.lattice.root, strict=True)
        steps = [np.maximum(np.arange(least, levels) - first, 0) for least, levels, first in spans]
        return int(passing[np.ix_(*steps)].sum()) - int(passing.sum())
