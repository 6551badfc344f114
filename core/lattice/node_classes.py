"""The classes of a lattice node as a search counts them, whether k counts records or persons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import Cells
from core.histograms.histogram import Histogram
from core.histograms.record_rollups import RecordRollUps
from core.histograms.rollups import Decided, RollUps
from core.lattice.objectives import LevelPrices
from core.privacy.promise import Promise
from core.units.class_table import ClassTable, classes_of
from core.units.person_rollups import PersonRollUps
from core.units.persons import CellPersons

Parts = Literal["any", "root"]
"""Of which cells the parts of classes are asked for: whatever is at hand, or the root's (where there is nothing but records)."""
MOST_CACHED_CELLS = 4_000_000


def ignore_progress() -> None:
    """Do nothing: the progress callback of a search that no caller watches."""


@dataclass
class RootSearch:
    """What a search of the lattice above a root histogram is given.

    Attributes:
        root: The root histogram.
        hierarchies: One per QID in job order, and those of the sensitive axes.
        promise: What a class must satisfy.
        most_suppressed: How many records of the whole dataset may be suppressed.
        objective: The name of what is minimised, as in a job.
        most_cached_cells: Cells of rolled-up histograms that may be kept for further roll-ups, about 16 bytes each.
        sensitive: Domains of the sensitive columns that the promise looks at; theirs are the last axes of the root, never generalised.
        prices: Of the objective, if it has any.
        persons: Of the root's cells; None where the job has no person column and every record counts as one.
        report_progress: Called before each roll-up; what it raises ends the search.
    """

    root: Histogram
    hierarchies: Sequence[Hierarchy]
    promise: Promise
    most_suppressed: int
    objective: str = "dm_star"
    most_cached_cells: int = MOST_CACHED_CELLS
    sensitive: Sequence[Domain] = ()
    prices: LevelPrices | None = None
    persons: CellPersons | None = None
    report_progress: Callable[[], None] = ignore_progress


class RolledClasses(NamedTuple):
    """The classes of a node, and the cells that make up each class.

    Attributes:
        table: Records, and units exact enough to find the classes with fewer than k; exact where that is asked for.
        parts: Given which of the classes, shape (classes,): the cells, of the node or a finer one, that fall into these.
    """

    table: ClassTable
    parts: Callable[[NDArray[np.bool_]], Cells]


class NodeClasses(ABC):
    """Counter of the classes of lattice nodes.

    Attributes:
        adds_up: Whether the units of a class are those of its cells one by one.
    """

    adds_up: ClassVar[bool]

    def __init__(self, roll_ups: RollUps[Any]) -> None:
        self._rolled = roll_ups

    @property
    @abstractmethod
    def units(self) -> int:
        """The number of different units (records or persons) in all."""

    @property
    def histograms_rolled_up(self) -> int:
        """The number of histograms that were rolled up."""
        return self._rolled.made

    @abstractmethod
    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> RolledClasses:
        """Return the equivalence classes of a node, with their numbers of records and units.

        Args:
            node: Level of each axis.
            keep: Whether coarser nodes will be asked for.
            exact: Whether it matters how many have a sensitive value, not only whether any unit has it, and how many units a class has
                where the objective is of these.
        """


class _OfRecords(NodeClasses):
    adds_up = True

    def __init__(self, roll_ups: RecordRollUps, records: int, sensitive: Sequence[Domain], parts: Parts) -> None:
        super().__init__(roll_ups)
        self._roll_ups, self._records, self._sensitive, self._parts = roll_ups, records, sensitive, parts

    @property
    def units(self) -> int:
        """The number of records in all."""
        return self._records

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> RolledClasses:
        """Return the equivalence classes of a node, with their numbers of records."""
        if self._sensitive:
            table, codes = classes_of(self._roll_ups.cells(node, keep=keep), self._sensitive)
            return RolledClasses(table, partial(_among, Cells(node, codes, table.records)))
        if self._parts == "root":
            cells, owners, counts = self._roll_ups.numbered(node)
            return RolledClasses(ClassTable(counts, counts, {}), lambda which: _among(cells, which[owners]))
        counts, parts = self._roll_ups.count_cells(node, keep=keep)
        return RolledClasses(ClassTable(counts, counts, {}), parts)


class _OfPersons(NodeClasses):
    adds_up = False

    def __init__(self, roll_ups: PersonRollUps, persons: CellPersons, sensitive: Sequence[Domain], qids: int, *, of_units: bool) -> None:
        super().__init__(roll_ups)
        self._roll_ups, self._persons, self._of_units = roll_ups, persons, of_units
        self._wholes = {
            domain.qid: (axis, roll_ups.source_value_counts(domain.qid, axis, domain.size))
            for axis, domain in enumerate(sensitive, start=qids)
        }

    @cached_property
    def units(self) -> int:
        """The number of different persons in all."""
        # All pairs are read for it, so that it is counted only for an objective that asks.
        return int(self._persons.count(np.zeros(self._persons.cells, np.int64), 1)[0])

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> RolledClasses:
        """Return the equivalence classes of a node, with their numbers of records and persons."""
        rolled = self._roll_ups
        # What is kept on the way forgets who is in cells with k persons.
        classes = rolled.classes(node, keep=keep, from_root=exact and (self._of_units or bool(self._wholes)))
        spreads = {name: rolled.spread(classes, axis, whole, exact=exact) for name, (axis, whole) in self._wholes.items()}
        table = ClassTable(classes.records, classes.persons, spreads)
        return RolledClasses(table, lambda which: _among(classes.base, which[classes.owners]))


def _among(cells: Cells, which: NDArray[np.bool_]) -> Cells:
    return Cells(cells.node, cells.codes[which], cells.counts[which])


def node_classes(given: RootSearch, decided: Decided, parts: Parts, *, of_units: bool) -> NodeClasses:
    """Return the counter of classes for the nodes above a root.

    Args:
        given: What is searched.
        decided: As for ``RollUps``.
        parts: Of which cells the parts of classes are asked for.
        of_units: Whether the objective asks how many units each class has, not only whether it has k.
    """
    cache = given.root, given.hierarchies, given.most_cached_cells, decided
    if given.persons is None:
        return _OfRecords(RecordRollUps(*cache), given.root.records, given.sensitive, parts)
    qids = len(given.hierarchies) - len(given.sensitive)
    roll_ups = PersonRollUps(*cache, given.persons, given.promise.k, qids, exact=of_units)
    return _OfPersons(roll_ups, given.persons, given.sensitive, qids, of_units=of_units)


Levels = NDArray[np.float64]
"""Shape (QIDs, levels), up to the levels of a node: what suppressing some records adds to their price. An array, because many are kept."""


class SuppressionPenalties:
    """The added cost of suppressing records, by QID and level.

    Args:
        prices: Of the objective.
        hierarchies: One per axis; those of sensitive columns, the last ones, have no prices.
        finer: Whether the levels below those of a node are looked at too. If not, the penalty at the node, the lowest, stands for them.
    """

    def __init__(self, prices: LevelPrices, hierarchies: Sequence[Hierarchy], *, finer: bool = False) -> None:
        self._extra, self._hierarchies, self._finer = prices.extra, hierarchies, finer
        self._coarser: dict[tuple[int, int], NDArray[np.uint32]] = {}

    def of(self, suppressed_cells: Cells, node: Node) -> Levels:
        """Return the added cost of suppressing cells at each level up to those of a node.

        Below the levels of the cells the cost is as low as at these levels. The order of the cells does not matter.

        Args:
            suppressed_cells: The cells, at the node or finer.
            node: Level of each axis.

        Returns:
            Shape (QIDs, levels).
        """
        told = np.zeros((len(self._extra), max(node) + 1))
        for qid, (extra, codes) in enumerate(zip(self._extra, suppressed_cells.codes.T, strict=False)):
            if len(extra[-1]):
                told[qid, : node[qid] + 1] = self._levels(qid, codes, suppressed_cells, node[qid])
        return told

    def _levels(self, qid: int, codes: NDArray[np.unsignedinteger], lost: Cells, coarsest: int) -> list[float]:
        first, extra = lost.node[qid], self._extra[qid]
        # Whole numbers up to 2^53 add up exactly, so that no sum depends on the order of the cells.
        records = np.bincount(codes, weights=lost.counts, minlength=len(extra[first]))
        told = [float(np.dot(records, extra[first]))] * (first + 1)
        for level in range(first + 1, coarsest + 1):
            records = np.bincount(self._map(qid, level), weights=records, minlength=len(extra[level]))
            told.append(float(np.dot(records, extra[level])))
        return told if self._finer else [told[-1]] * len(told)

    def _map(self, qid: int, level: int) -> NDArray[np.uint32]:
        if (qid, level) not in self._coarser:
            self._coarser[qid, level] = self._hierarchies[qid].rolled(level - 1, level)
        return self._coarser[qid, level]


def suppression_penalty_at(node: Node, levels: Levels) -> float:
    """Return the added cost of suppression at a node, summed over QIDs.

    The node must be nowhere coarser than the node of ``levels``.
    """
    return float(sum((each[level] for each, level in zip(levels, node, strict=False)), start=0.0))
