"""What a node leaves: its cells, and where persons count, who is in them; and what a node makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.columns.node import Node
from core.histograms.histogram import Histogram
from core.units.class_table import ClassTable
from core.units.members import ClassMembers, Whose
from core.units.persons import CellPersons


def cells_taken(cells: Histogram, rows: NDArray[np.intp]) -> Histogram:
    """Returns some of the cells of a histogram, ascending."""
    return Histogram(cells.node, cells.packing, tuple(word[rows] for word in cells.words), cells.counts[rows])


@dataclass(frozen=True, eq=False)
class Residual:
    """Records that are not published yet.

    Attributes:
        cells: Their cells, with the sensitive columns as last axes.
        whose: Whose they are; None where no person is named.
    """

    cells: Histogram
    whose: Whose | None = None

    @property
    def records(self) -> int:
        """How many they are."""
        return self.cells.records

    @property
    def persons(self) -> CellPersons | None:
        """The persons of their cells; None where no person is named."""
        return self.whose.persons if self.whose else None

    def taken(self, rows: NDArray[np.intp]) -> Residual:
        """Returns the records of some of the cells, ascending."""
        return Residual(cells_taken(self.cells, rows), self.whose.take(rows) if self.whose else None)


@dataclass(frozen=True, eq=False)
class Level:
    """The cells of a node, and which of them fail.

    Attributes:
        cells: Of the QIDs alone.
        classes: The same as classes.
        failing: Shape (cells,).
        few: Shape (cells,): which of these have too few persons or records, whatever their sensitive values. They alone may be published
            otherwise: what becomes of the others must not follow from these values, for whoever knows the QIDs and the algorithm would
            learn them from it, and so they are left out.
    """

    cells: Histogram
    classes: ClassTable
    failing: NDArray[np.bool_]
    few: NDArray[np.bool_]

    @property
    def members(self) -> ClassMembers | None:
        """Who is in the cells; None where no person is named."""
        return self.classes.members

    @property
    def dropped(self) -> Histogram:
        """The cells that are large enough and fail all the same."""
        return cells_taken(self.cells, np.flatnonzero(self.failing & ~self.few))

    @property
    def node(self) -> Node:
        """Level of each QID."""
        return self.cells.node
