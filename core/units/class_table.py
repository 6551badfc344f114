"""Tables of equivalence classes: records, units of counting, sensitive-value counts and members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.domains import Domain, Node
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import packing_of, positions_of_finer_cells, roll_up
from core.histograms.histogram import Histogram
from core.privacy.models import Failing, Spread, Spreads
from core.privacy.promise import Promise
from core.units.persons import CellPersons
from core.units.unit import Counts, Integers, Records, source_value_counts, spread_of_keys, sum_by_key


@dataclass(frozen=True, eq=False)
class SelectedPersons:
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
    def of(cls, persons: CellPersons, cells: Sequence[Histogram], sensitive: Sequence[Domain]) -> SelectedPersons:
        """Return the persons of all cells of some histograms.

        Args:
            persons: Of these cells.
            cells: They, in one or several histograms one after the other, with the sensitive columns as last axes.
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

    def take(self, rows: NDArray[np.intp]) -> SelectedPersons:
        """Return the members of some of the selected cells, ascending."""
        return replace(self, rows=self.rows[rows])


@dataclass(frozen=True, eq=False)
class ClassMembers:
    """The persons of each class, as cells with a class number.

    Attributes:
        selected_persons: Whose the records of the cells are that make them up.
        owners: Shape (cells,), the class of each; -1 for a cell that is in none.
    """

    selected_persons: SelectedPersons
    owners: Integers

    @property
    def values(self) -> dict[str, Counts]:
        """The code of each cell's sensitive value, shape (cells,), by column."""
        return {name: codes[self.selected_persons.rows] for name, codes in self.selected_persons.values.items()}

    def count(self, class_count: int) -> Counts:
        """Return the number of different persons in each class, shape (classes,)."""
        return self.selected_persons.persons.count(self.owners, class_count)

    def spreads(self) -> dict[str, Spread]:
        """Count the persons of each class by sensitive value; return a spread per sensitive column."""
        persons, wholes = self.selected_persons.persons, self.selected_persons.everyone.source_counts
        return {name: persons.spread(self.owners, codes, wholes[name]) for name, codes in self.values.items()}

    def relabelled(self, numbers: Integers) -> ClassMembers:
        """Return the members of coarser classes of the same cells.

        Args:
            numbers: Shape (classes,), the coarser class of each; -1 for those that are left out.
        """
        return ClassMembers(self.selected_persons, np.where(self.owners < 0, -1, numbers[self.owners]))

    def relabelled_without_outside(self, numbers: Integers) -> ClassMembers:
        """Return the members of coarser classes without the cells that are in no class.

        Arguments as for ``relabelled``.
        """
        found = self.relabelled(numbers).owners
        kept = np.flatnonzero(found >= 0)
        return ClassMembers(self.selected_persons.take(kept), found[kept])

    def merged(self) -> ClassMembers:
        """Return the members with cells merged that have equal classes and sensitive values."""
        values, wholes, merged_of = self.values, self.selected_persons.everyone.source_counts, self.owners
        for name, one in values.items():
            # No more numbers than cells: a product of them cannot pass 64 bits.
            merged_of = np.unique(merged_of * len(wholes[name]) + one, return_inverse=True)[1]
        size = int(merged_of.max(initial=-1)) + 1
        first = np.empty(size, np.intp)
        first[merged_of] = np.arange(len(merged_of))
        persons = self.selected_persons.persons.merged(merged_of, size)
        return ClassMembers(
            SelectedPersons(persons, {name: one[first] for name, one in values.items()}, np.arange(size)), self.owners[first]
        )

    def without_unselected_cells(self) -> ClassMembers:
        """Return the same members without unselected cells of the source, for repeated queries."""
        whose = self.selected_persons
        return ClassMembers(SelectedPersons(whose.persons, self.values, np.arange(len(whose.rows))), self.owners)


def joined_members(parts: Sequence[ClassMembers]) -> ClassMembers:
    """Return the members of several disjoint sets of classes together.

    No cell may be in two of them.
    """
    rows, owners = np.concatenate([part.selected_persons.rows for part in parts]), np.concatenate([part.owners for part in parts])
    order = np.argsort(rows)
    return ClassMembers(replace(parts[0].selected_persons, rows=rows[order]), owners[order])


Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Equivalence classes with all counts that privacy promises are checked on.

    Attributes:
        records: Shape (classes,), int64.
        units: Shape (classes,), int64: what k counts; records where the job has no person column.
        spreads: By sensitive column.
        members: Who is in them; None where units add up, and where no classes are put together.
    """

    records: Counts
    units: Counts
    spreads: Spreads
    members: ClassMembers | None = None

    @classmethod
    def of_members(cls, records: Counts, members: ClassMembers) -> ClassTable:
        """Return the table of classes with the given members.

        Args:
            records: Shape (classes,).
        """
        return cls(records, members.count(len(records)), members.spreads(), members)

    def failing(self, promise: Promise) -> Failing:
        """Return a mask of the classes that break a promise, shape (classes,)."""
        return promise.failing(self.units, self.spreads)

    def grouped(self, owners: Integers, size: int) -> ClassTable:
        """Return the table of coarser classes, made by merging these classes.

        Args:
            owners: Shape (classes,), the coarser class of each; -1 for one that is left out.
        """
        records = Records(self.records).count(owners, size)
        if self.members is not None:
            return ClassTable.of_members(records, self.members.relabelled(owners))
        units = records if self.units is self.records else Records(self.units).count(owners, size)
        return ClassTable(records, units, {name: merge_spread(spread, owners) for name, spread in self.spreads.items()})

    def union(self, mask: Bools) -> ClassTable:
        """Return the table of one class, made by merging the marked classes."""
        return self.grouped(np.where(mask, 0, -1), 1)

    def take(self, rows: NDArray[np.intp]) -> ClassTable:
        """Return the table of some of the classes, in ascending order."""
        numbers = np.full(len(self.records), -1)
        numbers[rows] = np.arange(len(rows))
        spreads = {name: merge_spread(spread, numbers) for name, spread in self.spreads.items()}
        members = self.members and self.members.relabelled_without_outside(numbers).without_unselected_cells()
        return ClassTable(self.records[rows], self.units[rows], spreads, members)


def merge_spread(spread: Spread, owners: Integers) -> Spread:
    """Return the value counts of coarser classes: those of merged classes are added up.

    Args:
        owners: Shape (classes,), the coarser class of each; -1 for one that is left out.
    """
    mine = owners[spread.owners]
    return spread_of_keys(
        *sum_by_key(np.where(mine < 0, -1, mine * len(spread.source_counts) + spread.values), spread.counts), spread.source_counts
    )


def exact_hierarchy(domain: Domain) -> Hierarchy:
    """Return the hierarchy of an axis that is never generalised: one level, of the values themselves."""
    groups = np.arange(domain.size, dtype=np.uint32)
    groups.setflags(write=False)
    labels = pa.concat_arrays([domain.values, pa.nulls(1, domain.values.type)]) if domain.nulls else domain.values
    return Hierarchy(domain.qid, (groups,), (labels,), (None,), (domain.size,))


def classes_of(cells: Histogram, sensitive: Sequence[Domain]) -> tuple[ClassTable, NDArray[np.unsignedinteger[Any]]]:
    """Merge a node's cells that differ in sensitive values only; return classes and their QID groups.

    Args:
        cells: The last axes are those of the sensitive columns, in their order.

    Returns:
        The classes, and the group of each QID, shape (classes, QIDs).
    """
    qids, codes = len(cells.packing.sizes) - len(sensitive), cells.codes
    if not sensitive:
        return ClassTable(cells.counts, cells.counts, {}), codes
    new = first_of_classes(codes, qids)
    owners, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    counts = np.add.reduceat(cells.counts, starts) if len(starts) else cells.counts
    unit = Records(cells.counts)
    spreads = {
        domain.qid: unit.spread(owners, codes[:, axis].astype(np.int64), source_value_counts(domain))
        for axis, domain in enumerate(sensitive, start=qids)
    }
    return ClassTable(counts, counts, spreads), codes[starts, :qids]


def first_of_classes(codes: NDArray[np.unsignedinteger[Any]], qids: int) -> NDArray[np.bool_]:
    """Return a mask of the cells that are the first of their class, shape (cells,).

    No sort is needed: cells ascend and the sensitive axes come last.
    """
    new = np.ones(len(codes), np.bool_)
    new[1:] = (codes[1:, :qids] != codes[:-1, :qids]).any(axis=1)
    return new


def without_sensitive(cells: Histogram, hierarchies: Sequence[Hierarchy]) -> Histogram:
    """Return a histogram without its axes of sensitive columns, cells that are then equal merged.

    Args:
        cells: Cells with further axes after the QIDs.
    """
    node = cells.node[: len(hierarchies)]
    if len(node) == len(cells.node):
        return cells
    packing = packing_of(node, hierarchies)
    starts = np.flatnonzero(first_of_classes(cells.codes, len(node)))
    words = packing.pack(tuple(cells.codes[starts, : len(node)].T))
    return Histogram(node, packing, words, np.add.reduceat(cells.counts, starts) if len(starts) else cells.counts)


class NodeTable(NamedTuple):
    """The cells of a node without sensitive columns, and their table of classes."""

    cells: Histogram
    classes: ClassTable


def table_at(
    root: Histogram, node: Node, hierarchies: Sequence[Hierarchy], sensitive: Sequence[Domain], whose: SelectedPersons | None
) -> NodeTable:
    """Return the cells and classes of a node, rolled up from a finer root histogram.

    Args:
        root: Cells of a node that is nowhere coarser, with the sensitive columns as last axes.
        node: Level of each QID, or of each axis.
        whose: Whose the root's cells are; None where the job has no person column.
    """
    axes = (*hierarchies, *map(exact_hierarchy, sensitive))
    cells = roll_up(root, (*node[: len(hierarchies)], *(0,) * len(sensitive)), axes)
    plain = without_sensitive(cells, hierarchies)
    if whose is None:
        return NodeTable(plain, classes_of(cells, sensitive)[0])
    members = ClassMembers(whose, positions_of_finer_cells(plain, root.node, root.codes, hierarchies))
    return NodeTable(plain, ClassTable.of_members(plain.counts, members))
