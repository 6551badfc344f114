"""What a node leaves: its cells, and where persons count, who is in them; and what a node makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.columns.node import Node
from core.histograms.histogram import Histogram
from core.persons.visits import Visits
from core.privacy.models import Spreads

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Whose:
    """Whose the records of some cells are, out of cells that hold all records.

    Attributes:
        everyone: The visits to all of these, with the persons of the whole source by sensitive value.
        values: By sensitive column, shape (all cells,), its code.
        rows: Shape (cells,), ascending: which of them are meant.
    """

    everyone: Visits
    values: Mapping[str, Integers]
    rows: NDArray[np.intp]

    @classmethod
    def of_all(cls, visits: Visits, values: Mapping[str, tuple[Integers, int]]) -> Whose:
        """Returns whose all records are.

        Args:
            visits: To all cells.
            values: By sensitive column, shape (all cells,), its code, and how many values there are.
        """
        wholes = {name: visits.count(codes, size) for name, (codes, size) in values.items()}
        everyone = replace(visits, wholes=wholes)
        return cls(everyone, {name: codes for name, (codes, _) in values.items()}, np.arange(visits.cells))

    @cached_property
    def visits(self) -> Visits:
        """The visits to the cells that are meant."""
        return self.everyone if len(self.rows) == self.everyone.cells else self.everyone.taken(self.rows)

    def taken(self, rows: NDArray[np.intp]) -> Whose:
        """Returns the same of some of the cells, ascending."""
        return replace(self, rows=self.rows[rows])


@dataclass(frozen=True, eq=False)
class Rest:
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
    def visits(self) -> Visits | None:
        """The visits to their cells; None where no person is named."""
        return self.whose.visits if self.whose else None

    def taken(self, rows: NDArray[np.intp]) -> Rest:
        """Returns the records of some of the cells, ascending."""
        cells = self.cells
        left = Histogram(cells.node, cells.packing, tuple(word[rows] for word in cells.words), cells.counts[rows])
        return Rest(left, self.whose.taken(rows) if self.whose else None)


@dataclass(frozen=True, eq=False)
class Members:
    """Who is in which of some numbered cells, be they coarser ones, combinations or classes.

    Attributes:
        whose: Whose the records of the finer cells are.
        owners: Shape (finer cells,), the number that each belongs to.
    """

    whose: Whose
    owners: Integers

    def owned(self, numbers: Integers) -> Members:
        """Returns the members of others that these belong to.

        Args:
            numbers: Shape (numbers,), another number for each; negative for those that are left out.
        """
        found = numbers[self.owners]
        kept = np.flatnonzero(found >= 0)
        return Members(self.whose.taken(kept), found[kept])

    def merged(self) -> tuple[Visits, Integers, dict[str, tuple[Integers, Integers]]]:
        """Returns the visits to cells that tell apart the numbers and sensitive values alone.

        Returns:
            The visits; shape (cells,), the number of each cell; and by sensitive column, shape (cells,), its code, and shape (values,),
            persons of the whole source by value.
        """
        codes = {name: one[self.whose.rows] for name, one in self.whose.values.items()}
        wholes = self.whose.everyone.wholes
        merged_of = self.owners
        for name, one in codes.items():
            # No more numbers than cells: a product of them cannot pass 64 bits.
            merged_of = np.unique(merged_of * len(wholes[name]) + one, return_inverse=True)[1]
        size = int(merged_of.max(initial=-1)) + 1
        first = np.empty(size, np.intp)
        first[merged_of] = np.arange(len(merged_of))
        visits = self.whose.visits.merged(merged_of, size)
        return visits, self.owners[first], {name: (one[first], wholes[name]) for name, one in codes.items()}


def joined_members(parts: Sequence[Members]) -> Members:
    """Returns the members of several numberings at once; no cell may be in two of them."""
    rows, owners = np.concatenate([part.whose.rows for part in parts]), np.concatenate([part.owners for part in parts])
    order = np.argsort(rows)
    return Members(replace(parts[0].whose, rows=rows[order]), owners[order])


@dataclass(frozen=True, eq=False)
class Level:
    """The cells of a node, and which of them fail.

    Attributes:
        cells: Of the QIDs alone.
        spreads: By sensitive column.
        failing: Shape (cells,).
        few: Shape (cells,): which of these have too few persons or records, whatever their sensitive values. They alone may be published
            otherwise: what becomes of the others must not follow from these values, for whoever knows the QIDs and the algorithm would
            learn them from it, and so they are left out.
        members: Who is in them; None where no person is named.
    """

    cells: Histogram
    spreads: Spreads
    failing: NDArray[np.bool_]
    few: NDArray[np.bool_]
    members: Members | None = None

    @property
    def dropped(self) -> Histogram:
        """The cells that are large enough and fail all the same."""
        cells, rows = self.cells, np.flatnonzero(self.failing & ~self.few)
        return Histogram(cells.node, cells.packing, tuple(word[rows] for word in cells.words), cells.counts[rows])

    @property
    def node(self) -> Node:
        """Level of each QID."""
        return self.cells.node
