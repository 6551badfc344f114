"""Residual records of a node, and the cells that a node makes of them.

Where persons are counted, the members of the cells are held too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.histograms.histogram import Histogram
from core.units.class_table import ClassMembers, ClassTable, SelectedPersons
from core.units.persons import CellPersons


def selected_cells(cells: Histogram, rows: NDArray[np.intp]) -> Histogram:
    """Return the cells of a histogram at the given rows, ascending."""
    return Histogram(cells.node, cells.packing, tuple(word[rows] for word in cells.words), cells.counts[rows])


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual records: those that are not published yet.

    Attributes:
        cells: Their cells, with the sensitive columns as last axes.
        selected_persons: Whose they are; None where the job has no person column.
    """

    cells: Histogram
    selected_persons: SelectedPersons | None = None

    @property
    def records(self) -> int:
        """Number of residual records."""
        return self.cells.records

    @property
    def persons(self) -> CellPersons | None:
        """Persons of the cells; None without a person column."""
        return self.selected_persons.persons if self.selected_persons else None

    def selected_records(self, rows: NDArray[np.intp]) -> Residual:
        """Return the residual records of the cells at the given rows, ascending."""
        whose = self.selected_persons
        return Residual(selected_cells(self.cells, rows), whose.take(rows) if whose else None)


@dataclass(frozen=True, eq=False)
class ResidualLevel:
    """Cells of a node, with masks of those that fail and those with too few units.

    Attributes:
        cells: Of the QIDs alone.
        classes: The same as classes.
        failing: Shape (cells,).
        few: Shape (cells,): which of these have too few persons or records, whatever their sensitive values. They alone may be published
            otherwise: what becomes of the others must not follow from these values, for a reader who knows the QIDs and the algorithm would
            learn them from it. So they are left out.
    """

    cells: Histogram
    classes: ClassTable
    failing: NDArray[np.bool_]
    few: NDArray[np.bool_]

    @property
    def members(self) -> ClassMembers | None:
        """Members of the cells; None without a person column."""
        return self.classes.members

    @property
    def dropped(self) -> Histogram:
        """Cells that are large enough and fail by their sensitive values."""
        return selected_cells(self.cells, np.flatnonzero(self.failing & ~self.few))

    @property
    def node(self) -> Node:
        """Level of each QID."""
        return self.cells.node


Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RareCombinations:
    """Rare combinations: cells whose records fail at a node.

    Attributes:
        codes: Shape (combinations, QIDs), the group of each QID; no two rows are equal.
        classes: The combinations as classes.
        gains: Shape (combinations, QIDs), float64: what suppressing a cell adds to the penalty of a record (1 − NCP of its group).
        members: Who is in the cells of the level that the combinations are of; None where the job has no person column.
        cell_positions: Shape (combinations,), which of these each is.
    """

    codes: NDArray[np.unsignedinteger]
    classes: ClassTable
    gains: NDArray[np.float64]
    members: ClassMembers | None
    cell_positions: NDArray[np.intp]

    @classmethod
    def of(cls, level: ResidualLevel, gains: NDArray[np.float64]) -> RareCombinations:
        """Return all cells of a level as rare combinations."""
        classes = level.classes
        if classes.members is not None:
            # Asked again and again: only what tells combinations and sensitive values apart is read each time.
            classes = replace(classes, members=classes.members.merged())
        return cls(level.cells.codes, classes, gains, level.members, np.arange(level.cells.cells))

    @property
    def counts(self) -> Integers:
        """Number of records of each combination, shape (combinations,)."""
        return self.classes.records

    def take(self, rows: NDArray[np.intp]) -> RareCombinations:
        """Return the combinations at the given rows, ascending."""
        return replace(
            self, codes=self.codes[rows], classes=self.classes.take(rows), gains=self.gains[rows], cell_positions=self.cell_positions[rows]
        )

    def members_of(self, numbers: Integers) -> ClassMembers:
        """Return the members of the source cells that make up combinations, owned by the given numbers.

        Args:
            numbers: Shape (combinations,), by which the members are numbered.
        """
        assert self.members is not None
        given = np.full(int(self.members.owners.max(initial=-1)) + 1, -1)
        given[self.cell_positions] = numbers
        return self.members.relabelled_without_outside(given)
