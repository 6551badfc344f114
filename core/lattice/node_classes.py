"""The classes of a node as a search looks at them, whether k counts records or persons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.node import Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.histogram import Histogram
from core.histograms.rollups import RollUps
from core.persons.rollups import PersonRollUps
from core.persons.visits import Visits
from core.privacy.class_tables import classes_of
from core.privacy.models import Spreads

Counts = NDArray[np.int64]
Decided = NDArray[np.int8] | Callable[[Sequence[int]], float]


class NodeClasses(NamedTuple):
    """The classes of a node.

    Attributes:
        records: Shape (classes,), int64.
        persons: Shape (classes,), int64: what a privacy model counts. Records where no person is named; else exact enough to tell who has
            fewer than k.
        spreads: By sensitive column.
        codes: Shape (classes, QIDs), the group of each QID; no columns where nobody asks.
    """

    records: Counts
    persons: Counts
    spreads: Spreads
    codes: NDArray[np.unsignedinteger[Any]]


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
        coded: Whether codes are asked for.
    """

    def __init__(self, roll_ups: RollUps, sensitive: Sequence[Domain], *, coded: bool) -> None:
        self._roll_ups, self._sensitive, self._whole = roll_ups, sensitive, coded or bool(sensitive)

    @property
    def made(self) -> int:
        """How many histograms were rolled up."""
        return self._roll_ups.made

    def at(self, node: Node, *, keep: bool = False, exact: bool = True) -> NodeClasses:
        """Returns the classes of a node; arguments as for ``Counted``."""
        if not self._whole:
            counts = self._roll_ups.counts(node, keep=keep)
            return NodeClasses(counts, counts, {}, np.empty((len(counts), 0), np.uint16))
        classes = classes_of(self._roll_ups.cells(node, keep=keep), self._sensitive)
        return NodeClasses(classes.counts, classes.counts, classes.spreads, classes.codes)


class PeopleClasses:
    """Counts persons beside records.

    Args:
        roll_ups: Of the root.
        sensitive: Domains of the last axes.
        coded: Whether codes are asked for.
        qids: How many axes come before these.
    """

    def __init__(self, roll_ups: PersonRollUps, sensitive: Sequence[Domain], qids: int, *, coded: bool) -> None:
        self._roll_ups, self._coded = roll_ups, coded
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
        codes = rolled.codes(classes) if self._coded else np.empty((len(classes.records), 0), np.uint16)
        return NodeClasses(classes.records, classes.persons, spreads, codes)


def counted(
    root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int, decided: Decided, sensitive: Sequence[Domain], visits: Visits | None,
    k: int, *, coded: bool,
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
        coded: Whether codes are asked for.
    """
    if visits is None:
        return RecordClasses(RollUps(root, hierarchies, capacity, decided), sensitive, coded=coded)
    qids = len(hierarchies) - len(sensitive)
    rolled = PersonRollUps(root, hierarchies, capacity, decided, visits, k, qids)
    return PeopleClasses(rolled, sensitive, qids, coded=coded)
