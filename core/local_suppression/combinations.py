"""The combinations whose records fail at a node, and what pools of them hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.local_suppression.residual import Level
from core.units.class_table import ClassTable
from core.units.members import ClassMembers

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RareCombinations:
    """Combinations whose records fail at a node.

    Attributes:
        codes: Shape (combinations, QIDs), the group of each QID; no two rows are equal.
        classes: The combinations as classes.
        gains: Shape (combinations, QIDs), float64: what a star adds to the penalty of a record (1 − NCP of its group).
        members: Who is in the cells of the level that the combinations are of; None where no person is named.
        places: Shape (combinations,), which of these each is.
    """

    codes: NDArray[np.unsignedinteger]
    classes: ClassTable
    gains: NDArray[np.float64]
    members: ClassMembers | None
    places: NDArray[np.intp]

    @classmethod
    def of(cls, level: Level, gains: NDArray[np.float64]) -> RareCombinations:
        """Returns all cells of a level.

        Args:
            level: The level.
            gains: As of the combinations.
        """
        classes = level.classes
        if classes.members is not None:
            # Asked again and again: only what tells combinations and sensitive values apart is read each time.
            classes = replace(classes, members=classes.members.merged())
        return cls(level.cells.codes, classes, gains, level.members, np.arange(level.cells.cells))

    @property
    def counts(self) -> Integers:
        """Shape (combinations,), records."""
        return self.classes.records

    def take(self, rows: NDArray[np.intp]) -> RareCombinations:
        """Returns some of the combinations, ascending by row."""
        return replace(self, codes=self.codes[rows], classes=self.classes.take(rows), gains=self.gains[rows], places=self.places[rows])

    def members_of(self, numbers: Integers) -> ClassMembers:
        """Returns who is in the cells of the source that make up the combinations.

        Args:
            numbers: Shape (combinations,), by which the members are numbered.
        """
        assert self.members is not None
        given = np.full(int(self.members.owners.max(initial=-1)) + 1, -1)
        given[self.places] = numbers
        return self.members.owned(given)
