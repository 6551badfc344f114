"""The persons in each equivalence class, from which merged classes can be counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.histograms.histogram import Histogram
from core.privacy.models import Spread
from core.units.persons import CellPersons
from core.units.unit import Counts, Integers


@dataclass(frozen=True, eq=False)
class SourceMembers:
    """The persons with records in some cells, selected from cells that hold all records.

    Attributes:
        everyone: The persons of all of these, with those of the whole source by sensitive value.
        values: By sensitive column, shape (all cells,), its code.
        rows: Shape (cells,), ascending: which of them are meant.
    """

    everyone: CellPersons
    values: Mapping[str, Counts]
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, persons: CellPersons, cells: Sequence[Histogram], sensitive: Sequence[Domain]) -> SourceMembers:
        """Return the persons of all cells of some histograms.

        Args:
            persons: Of these cells.
            cells: They, in one or several histograms one after the other, with the sensitive columns as last axes.
            sensitive: Domains of the sensitive columns.
        """
        first, values, wholes = len(cells[0].node) - len(sensitive), {}, {}
        for axis, domain in enumerate(sensitive, start=first):
            codes = values[domain.qid] = np.concatenate([one.codes[:, axis] for one in cells]).astype(np.int64)
            wholes[domain.qid] = persons.source_value_counts(domain.qid, codes, domain.size)
        return cls(replace(persons, source_counts=wholes), values, np.arange(persons.cells))

    @cached_property
    def persons(self) -> CellPersons:
        """The persons of the selected cells."""
        return self.everyone if len(self.rows) == self.everyone.cells else self.everyone.take(self.rows)

    def take(self, rows: NDArray[np.intp]) -> SourceMembers:
        """Return the members of some of the selected cells, ascending."""
        return replace(self, rows=self.rows[rows])


@dataclass(frozen=True, eq=False)
class ClassMembers:
    """The persons of each class, as cells with a class number.

    Attributes:
        source_members: Whose the records of the cells are that make them up.
        owners: Shape (cells,), the class of each; -1 for a cell that is in none.
    """

    source_members: SourceMembers
    owners: Integers

    @property
    def values(self) -> dict[str, Counts]:
        """The code of each cell's sensitive value, shape (cells,), by column."""
        return {name: codes[self.source_members.rows] for name, codes in self.source_members.values.items()}

    def count(self, classes: int) -> Counts:
        """Return the number of different persons in each class, shape (classes,)."""
        return self.source_members.persons.count(self.owners, classes)

    def spreads(self) -> dict[str, Spread]:
        """Return the counts of each sensitive value in each class, by column."""
        persons, wholes = self.source_members.persons, self.source_members.everyone.source_counts
        return {name: persons.spread(self.owners, codes, wholes[name]) for name, codes in self.values.items()}

    def relabelled(self, numbers: Integers) -> ClassMembers:
        """Return the members of coarser classes of the same cells.

        Args:
            numbers: Shape (classes,), the coarser class of each; -1 for those that are left out.
        """
        return ClassMembers(self.source_members, np.where(self.owners < 0, -1, numbers[self.owners]))

    def owned(self, numbers: Integers) -> ClassMembers:
        """Return the members of coarser classes without the cells that are in no class.

        Arguments as for ``relabelled``.
        """
        found = self.relabelled(numbers).owners
        kept = np.flatnonzero(found >= 0)
        return ClassMembers(self.source_members.take(kept), found[kept])

    def merged(self) -> ClassMembers:
        """Return the members with cells merged that have equal classes and sensitive values."""
        values, wholes, merged_of = self.values, self.source_members.everyone.source_counts, self.owners
        for name, one in values.items():
            # No more numbers than cells: a product of them cannot pass 64 bits.
            merged_of = np.unique(merged_of * len(wholes[name]) + one, return_inverse=True)[1]
        size = int(merged_of.max(initial=-1)) + 1
        first = np.empty(size, np.intp)
        first[merged_of] = np.arange(len(merged_of))
        persons = self.source_members.persons.merged(merged_of, size)
        return ClassMembers(SourceMembers(persons, {name: one[first] for name, one in values.items()}, np.arange(size)), self.owners[first])

    def settled(self) -> ClassMembers:
        """Return the members without cells that are not selected, for repeated queries."""
        whose = self.source_members
        return ClassMembers(SourceMembers(whose.persons, self.values, np.arange(len(whose.rows))), self.owners)


def joined_members(parts: Sequence[ClassMembers]) -> ClassMembers:
    """Return the members of several disjoint sets of classes together.

    No cell may be in two of them.
    """
    rows, owners = np.concatenate([part.source_members.rows for part in parts]), np.concatenate([part.owners for part in parts])
    order = np.argsort(rows)
    return ClassMembers(replace(parts[0].source_members, rows=rows[order]), owners[order])
