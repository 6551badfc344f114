"""Linked records: which to suppress so that k people share each set of classes, and at which node.

The lattice search ensures k people in every class. Where pseudonyms link the records of one person, ``method.linked: keep`` suppresses
further records (`core.units.set_tree`). If these are more than the limit allows, coarser levels are tried, a step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.columns.kernels import add_numbers
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import positions_of_finer_cells
from core.histograms.histogram import Histogram
from core.lattice.lattice import Lattice
from core.lattice.search import SearchResult
from core.units.class_table import NodeTable, table_at
from core.units.losses import Loss, sum_of_squares
from core.units.pairs import Pairs
from core.units.set_tree import Settled, SetTree, pairs_withheld
from schemas.errors.methods import LevelsError
from schemas.job.job import Job
from tasks.counting.coding import Coding
from tasks.counting.histograms import has_given_node
from tasks.counting.person_cells import pairs_by_share
from tasks.lattice.optimum import SearchRequirements, given_node_error
from tasks.lattice.promises import most_suppressed, searched_axes
from tasks.store.tables import array_file, write_numbers

Counts = NDArray[np.int64]
WITHHELD = np.dtype([("person", np.uint64), ("class", np.int32)])


@dataclass(frozen=True, eq=False)
class LinkedPeople:
    """A node with its loss and the records suppressed so that k people share each set of classes.

    Attributes:
        node: The node.
        at: Its cells, with all records.
        failing: Shape (cells,): cells that publish nothing.
        persons: Shape (cells,): people who keep records there.
        persons_lost: Shape (cells,): records suppressed in cells that publish others.
        loss: The loss at the node.
        pairs_lost: Functions, one per share of the people, that return the suppressed pairs of person and cell.
        pairs: How many such pairs there are of cells that publish other records.
        evaluated: Number of nodes tried.
    """

    node: Node
    at: NodeTable
    failing: NDArray[np.bool_]
    persons: Counts
    persons_lost: Counts
    loss: Loss
    pairs_lost: Sequence[Callable[[], Pairs]]
    pairs: int
    evaluated: int = 1

    def with_linked_loss(self, search_result: SearchResult) -> SearchResult:
        """Return a search result with this node and loss, uncertified unless both are the same as before.

        The search's certificate holds only if nothing more is suppressed here.
        """
        if self.node == search_result.node and self.loss.suppressed == search_result.loss.suppressed:
            return search_result
        return replace(search_result, node=self.node, loss=self.loss, measured={}, evaluated=search_result.evaluated + self.evaluated)


def keeps_linked(job: Job) -> bool:
    """Return whether a job makes k people share each set of classes (``method.linked: keep``)."""
    return job.full_domain.linked == "keep"


def best_linked_node(
    job: Job, coding: Coding, requirements: SearchRequirements, search_result: SearchResult, histogram: Histogram
) -> LinkedPeople:
    """Return a node near the best that keeps the limit with linked records suppressed too; raise if none.

    The records suppressed so that k people share each set of classes count too.

    Args:
        requirements: The privacy requirements, and the persons of the records.
        search_result: The best node for records by themselves.
        histogram: Histogram of a root below it.
    """
    assert requirements.people is not None
    shares, most = pairs_by_share(requirements.people, histogram), most_suppressed(job, coding.records)
    known: dict[Node, Loss] = {}

    def at(node: Node) -> Loss:
        if node not in known:
            known[node] = linked_people_at(job, coding, requirements, histogram, node, shares).loss
        return known[node]

    def allowed(node: Node) -> bool:
        return at(node).suppressed <= min(most, coding.records - 1)

    def dearness(node: Node) -> tuple[int, Node]:
        return at(node).dm_star, node

    best = search_result.node[: len(coding.hierarchies)]
    taken, axes = has_given_node(job), searched_axes(job, coding)[: len(best)]
    if taken and not allowed(best):
        raise given_node_error(job, at(best).suppressed, coding.records, most)
    better = at(best).suppressed > search_result.loss.suppressed and not taken
    # The top is one class of all, where everybody has the same set, unless the job leaves it out.
    while not allowed(best):
        best = min(_steps(axes, histogram, best, 1) or [_none_within()], key=dearness)
    while better:
        near = [node for step in (1, -1) for node in _steps(axes, histogram, best, step) if allowed(node)]
        nearest = min(near, key=dearness, default=best)
        better = at(nearest).dm_star < at(best).dm_star
        best = nearest if better else best
    return replace(linked_people_at(job, coding, requirements, histogram, best, shares), evaluated=len(known))


def _none_within() -> Node:
    raise LevelsError.none_within()


def _steps(axes: Sequence[Hierarchy], counted: Histogram, node: Node, step: int) -> list[Node]:
    """Return the allowed nodes one level above (step 1) or below (step -1) a node."""
    lattice = Lattice.allowed(axes)
    least = [max(pair) for pair in zip(lattice.root, counted.node, strict=False)]
    moved = [(*node[:axis], level + step, *node[axis + 1 :]) for axis, level in enumerate(node)]
    return [other for other in moved if all(low <= level <= top for low, level, top in zip(least, other, lattice.top, strict=True))]


def linked_people_at(
    job: Job, coding: Coding, requirements: SearchRequirements, histogram: Histogram, node: Node, shares: Sequence[Callable[[], Pairs]]
) -> LinkedPeople:
    """Return a node with the records to suppress there so that k people share each set of classes.

    Args:
        requirements: The privacy requirements, and the persons of the records.
        histogram: Histogram of a root below the node.
        node: Level of each QID.
        shares: Functions that return the pairs of persons and the root's cells.
    """
    at = table_at(histogram, node, coding.hierarchies, coding.sensitive, requirements.selected_persons(histogram, coding.sensitive))
    unsafe = at.classes.failing(requirements.promise)
    order = np.lexsort((np.arange(at.cells.cells), -at.classes.units, unsafe))
    ranks = np.empty(at.cells.cells, np.int64)
    ranks[order] = np.arange(at.cells.cells)
    ranks[unsafe] = -1
    places = ranks[positions_of_finer_cells(at.cells, histogram.node, histogram.codes, coding.hierarchies)]
    tree, ends = SetTree(), []
    for share in shares:
        ends.append(tree.add(_ordered(share(), places)))
    settled = tree.settle(job.privacy.k, at.cells.cells)
    persons, removed, pairs = np.zeros(at.cells.cells, np.int64), np.zeros(at.cells.cells, np.int64), 0
    persons[order] = settled.people
    failing = persons == 0

    gone = [partial(_gone, share, places, ended, settled, order) for share, ended in zip(shares, ends, strict=True)]
    for one in gone:
        mine = one()
        pairs += int((~failing[mine.cells]).sum())
        add_numbers(mine.cells, mine.counts, removed)
    removed[failing] = 0
    return LinkedPeople(node, at, failing, persons, removed, _loss(at.cells.counts, failing, removed), gone, pairs)


def _gone(share: Callable[[], Pairs], places: Counts, ends: NDArray[np.int32], settled: Settled, order: Counts) -> Pairs:
    """Return the suppressed pairs of person and cell of one share of the people."""
    return pairs_withheld(_ordered(share(), places), ends, settled).moved(order)


def _ordered(pairs: Pairs, places: Counts) -> Pairs:
    """Return the pairs of persons and safe classes, each person's largest classes first."""
    kept = np.flatnonzero(places[pairs.cells] >= 0)
    return Pairs.of(pairs.persons[kept], places[pairs.cells[kept]], pairs.counts[kept])


def _loss(counts: Counts, failing: NDArray[np.bool_], removed: Counts) -> Loss:
    """Return the loss at a node after suppression of linked records."""
    published = (counts - removed)[~failing]
    suppressed = int(counts.sum() - published.sum())
    return Loss(suppressed, sum_of_squares(published) + suppressed * suppressed, sum_of_squares(counts))


def write_withheld(linked: LinkedPeople, path: Path) -> int:
    """Write withheld (person, published class) pairs as a .npy file; return their number."""
    numbers, written = np.cumsum(~linked.failing) - 1, 0
    with array_file(path, WITHHELD, (linked.pairs,)) as file:
        for one in linked.pairs_lost:
            pairs = one()
            kept = ~linked.failing[pairs.cells]
            mine = np.empty(int(kept.sum()), WITHHELD)
            mine["person"], mine["class"] = pairs.persons[kept], numbers[pairs.cells[kept]]
            # Shares are ranges of digests, one after the other.
            write_numbers(file, np.sort(mine, order=["person", "class"]))
            written += len(mine)
    return written
