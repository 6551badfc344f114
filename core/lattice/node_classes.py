"""The classes of a node as a search looks at them, whether k counts records or persons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import Cells
from core.histograms.histogram import Histogram
from core.histograms.record_rollups import RecordRollUps
from core.histograms.rollups import Decided, RollUps
from core.units.class_table import ClassTable
from core.units.person_rollups import PersonRollUps
from core.units.persons import CellPersons
from core.units.sensitive_axes import classes_of

Parts = Literal["any", "root"]
"""Of which cells the parts of classes are asked for: whatever is at hand, or the root's (where there is nothing but records)."""


class RolledClasses(NamedTuple):
    """The classes of a node.

    Attributes:
        table: Records, and units exact enough to tell which classes have fewer than k; exact where that is asked for.
        parts: Given which of the classes, shape (classes,): the cells, of the node or a finer one, that fall into these.
    """

    table: ClassTable
    parts: Callable[[NDArray[np.bool_]], Cells]


class NodeClasses(ABC):
    """Counts the classes of nodes.

    Attributes:
        adds_up: Whether the units of a class are those of its cells one by one.
    """

    adds_up: ClassVar[bool]

    def __init__(self, roll_ups: RollUps[Any]) -> None:
        self._rolled = roll_ups

    @property
    @abstractmethod
    def units(self) -> int:
        """How many different units there are in all."""

    @property
    def histograms_rolled_up(self) -> int:
        """How many histograms were rolled up."""
        return self._rolled.made

    @abstractmethod
    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> RolledClasses:
        """Returns the classes of a node.

        Args:
            node: Level of each axis.
            keep: Whether coarser nodes will be asked for.
            exact: Whether it matters how many have a sensitive value, not only whether anybody does, and how many units a class has where
                the objective is of these.
        """


class _OfRecords(NodeClasses):
    adds_up = True

    def __init__(self, roll_ups: RecordRollUps, records: int, sensitive: Sequence[Domain], parts: Parts) -> None:
        super().__init__(roll_ups)
        self._roll_ups, self._records, self._sensitive, self._parts = roll_ups, records, sensitive, parts

    @property
    def units(self) -> int:
        return self._records

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> RolledClasses:
        if self._sensitive:
            table, codes = classes_of(self._roll_ups.cells(node, keep=keep), self._sensitive)
            return RolledClasses(table, partial(_among, Cells(node, codes, table.records)))
        if self._parts == "root":
            cells, owners, counts = self._roll_ups.numbered(node)
            return RolledClasses(ClassTable(counts, counts, {}), lambda which: _among(cells, which[owners]))
        counts, parts = self._roll_ups.counted(node, keep=keep)
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
        # All pairs are read for it, so that it is counted only for an objective that asks.
        return int(self._persons.count(np.zeros(self._persons.cells, np.int64), 1)[0])

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> RolledClasses:
        rolled = self._roll_ups
        # What is kept on the way forgets who is in cells with k persons.
        classes = rolled.classes(node, keep=keep, from_root=exact and (self._of_units or bool(self._wholes)))
        spreads = {name: rolled.spread(classes, axis, whole, exact=exact) for name, (axis, whole) in self._wholes.items()}
        table = ClassTable(classes.records, classes.persons, spreads)
        return RolledClasses(table, lambda which: _among(classes.base, which[classes.owners]))


def _among(cells: Cells, which: NDArray[np.bool_]) -> Cells:
    return Cells(cells.node, cells.codes[which], cells.counts[which])


def node_classes(
    root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int, decided: Decided, sensitive: Sequence[Domain],
    persons: CellPersons | None, k: int, parts: Parts, *, of_units: bool = False,
) -> NodeClasses:  # fmt: skip
    """Returns what counts the classes of the nodes above a root.

    Args:
        root: The root histogram.
        hierarchies: One per axis.
        capacity: Cells of rolled-up histograms that may be kept.
        decided: As for ``RollUps``.
        sensitive: Domains of the sensitive columns, whose axes are the last ones.
        persons: Of the root's cells; None where no person is named.
        k: Fewest units of a class.
        parts: Of which cells the parts of classes are asked for.
        of_units: Whether the objective asks how many units each class has, not only whether it has k.
    """
    if persons is None:
        return _OfRecords(RecordRollUps(root, hierarchies, capacity, decided), root.records, sensitive, parts)
    qids = len(hierarchies) - len(sensitive)
    roll_ups = PersonRollUps(root, hierarchies, capacity, decided, persons, k, qids, exact=of_units)
    return _OfPersons(roll_ups, persons, sensitive, qids, of_units=of_units)
