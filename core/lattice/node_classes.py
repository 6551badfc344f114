"""The classes of a node as a search looks at them, whether k counts records or persons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import Cells
from core.histograms.histogram import Histogram
from core.histograms.record_rollups import RecordRollUps
from core.histograms.rollups import Decided
from core.persons.rollups import PersonRollUps
from core.persons.visits import Visits
from core.privacy.class_tables import classes_of
from core.privacy.models import Spreads

Counts = NDArray[np.int64]


Parts = Literal["none", "any", "root"]
"""Of which cells the parts of classes are asked for: none, whatever is at hand, or the root's (where there is nothing but records)."""


class NodeClasses(NamedTuple):
    """The classes of a node.

    Attributes:
        records: Shape (classes,), int64.
        persons: Shape (classes,), int64: what a privacy model counts. Records where no person is named; else exact enough to tell who has
            fewer than k.
        spreads: By sensitive column.
        parts: Given which of the classes, shape (classes,): the cells, of the node or a finer one, that fall into these; none where nobody
            asks.
    """

    records: Counts
    persons: Counts
    spreads: Spreads
    parts: Callable[[NDArray[np.bool_]], Cells]


class Counted(Protocol):
    """Counts the classes of nodes."""

    @property
    def made(self) -> int:
        """How many histograms were rolled up."""

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> NodeClasses:
        """Returns the classes of a node.

        Args:
            node: Level of each axis.
            keep: Whether coarser nodes will be asked for.
            exact: Whether it matters how many have a sensitive value, not only whether anybody does.
        """
        ...


class RecordClasses:
    """Counts records.

    Args:
        roll_ups: Of the root.
        sensitive: Domains of the last axes.
        parts: Whether ``NodeClasses.parts`` are asked for, and of which cells.
    """

    def __init__(self, roll_ups: RecordRollUps, sensitive: Sequence[Domain], parts: Parts) -> None:
        self._roll_ups, self._sensitive, self._parts = roll_ups, sensitive, parts

    @property
    def made(self) -> int:
        """How many histograms were rolled up."""
        return self._roll_ups.made

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> NodeClasses:
        """Returns the classes of a node; arguments as for ``Counted``."""
        if self._sensitive:
            classes = classes_of(self._roll_ups.cells(node, keep=keep), self._sensitive)
            parts = partial(_among, Cells(node, classes.codes, classes.counts))
            return NodeClasses(classes.counts, classes.counts, classes.spreads, parts)
        if self._parts != "none":
            cells, owners, counts = self._roll_ups.numbered(node, from_root=self._parts == "root")
            return NodeClasses(counts, counts, {}, lambda which: _among(cells, which[owners]))
        counts = self._roll_ups.counts(node, keep=keep)
        return NodeClasses(counts, counts, {}, lambda which: Cells(node, np.empty((0, 0), np.uint16), np.empty(0, np.int64)))


class PeopleClasses:
    """Counts persons beside records.

    Args:
        roll_ups: Of the root.
        sensitive: Domains of the last axes.
        qids: How many axes come before these.
    """

    def __init__(self, roll_ups: PersonRollUps, sensitive: Sequence[Domain], qids: int) -> None:
        self._roll_ups = roll_ups
        self._wholes = {
            domain.qid: (axis, roll_ups.whole(domain.qid, axis, domain.size)) for axis, domain in enumerate(sensitive, start=qids)
        }

    @property
    def made(self) -> int:
        """How many histograms were rolled up."""
        return self._roll_ups.made

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> NodeClasses:
        """Returns the classes of a node; arguments as for ``Counted``."""
        rolled = self._roll_ups
        # What is kept on the way forgets the visits to cells with k persons.
        classes = rolled.classes(node, keep=keep, from_root=exact and bool(self._wholes))
        spreads = {name: rolled.spread(classes, axis, whole, exact=exact) for name, (axis, whole) in self._wholes.items()}
        return NodeClasses(classes.records, classes.persons, spreads, lambda which: _among(classes.base, which[classes.owners]))


def _among(cells: Cells, which: NDArray[np.bool_]) -> Cells:
    return Cells(cells.node, cells.codes[which], cells.counts[which])


def counted(
    root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int, decided: Decided, sensitive: Sequence[Domain], visits: Visits | None,
    k: int, parts: Parts,
) -> Counted:  # fmt: skip
    """Returns what counts the classes of the nodes above a root.

    Args:
        root: The root histogram.
        hierarchies: One per axis.
        capacity: Cells of rolled-up histograms that may be kept.
        decided: As for ``RollUps``.
        sensitive: Domains of the sensitive columns, whose axes are the last ones.
        visits: To the root's cells; None where no person is named.
        k: Fewest persons of a class.
        parts: Whether the parts of classes are asked for, and of which cells.
    """
    if visits is None:
        return RecordClasses(RecordRollUps(root, hierarchies, capacity, decided), sensitive, parts)
    qids = len(hierarchies) - len(sensitive)
    rolled = PersonRollUps(root, hierarchies, capacity, decided, visits, k, qids)
    return PeopleClasses(rolled, sensitive, qids)
