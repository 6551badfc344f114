"""Persons as the unit of counting: those of cells, of classes of cells, and of single rows.

Persons do not add up over cells: a class has as many as its cells together, less one for every cell in which it sees a person again. They
do add up over *shares* of the persons, so that one share at a time is all that memory must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.columns.kernels import add_numbers, count_numbers
from core.privacy.models import Spread
from core.units.digests import NOBODY, Digests
from core.units.kernels import (
    count_known_persons,
    count_repeated_persons,
    distinct_pairs,
    drop_person_cells,
    first_cells,
    group,
    merge_person_cells,
)
from core.units.pairs import Pairs, joined_pairs, number_persons
from core.units.unit import Counts, Integers, Records, Unit, spread_of_keys


class Share(NamedTuple):
    """One of several disjoint sets of the persons, with the cells in which they have records.

    Attributes:
        per_cell: Shape (cells,), int32: how many of them have records in each cell.
        person_cells: Shape (pairs,), int32: the cells of those who are in more than one, as the kernels read them.
        size: How many they are.
        most_records: The records of the one who has most.
    """

    per_cell: NDArray[np.int32]
    person_cells: NDArray[np.int32]
    size: int
    most_records: int


def share_of(parts: Sequence[Pairs], cell_count: int) -> Share:
    """Return one share of the persons from chunks' pairs: persons per cell, and cells of those in several.

    Args:
        parts: The pairs of that share in every chunk, with cells coded alike.
    """
    digests, owners, counts = joined_pairs(parts)
    numbers, known = number_persons(digests)
    return numbered_share(numbers, owners, counts, cell_count, len(known))


def numbered_share(persons: NDArray[np.int32], owners: Integers, counts: Counts, cell_count: int, size: int) -> Share:
    """Return one share of the persons from their numbers: persons per cell, and cells of those in several.

    Args:
        persons: Shape (n,), from 0; a negative number is no person.
        owners: Shape (n,), the cell of each.
        counts: Shape (n,), its records.
    """
    per_cell, last, records = np.zeros(cell_count, np.int32), np.full(cell_count, -1, np.int32), np.zeros(size + 1, np.int64)
    # Those of nobody go to the last place.
    add_numbers(persons, counts, records)
    most = int(records[:size].max(initial=0))
    # The cells of a person are near each other: if persons come in the order of cells, whoever reads their visits looks up what is at hand.
    _, order = group(first_cells(persons, owners, size), np.arange(size), cell_count)
    ranks = np.full(size + 1, -1, np.int32)
    ranks[order] = np.arange(size)
    return Share(per_cell, distinct_pairs(*group(ranks[persons], owners, size), per_cell, last), size, most)


@dataclass(frozen=True, eq=False)
class CellPersons(Unit):
    """The persons of the cells of a node as the unit of counting.

    Attributes:
        per_cell: Shape (cells,): the persons of each cell.
        shares: The cells of each share of the persons who are in more than one, as the kernels read them; read once for each question, so
            that they need not all be in memory.
        source_counts: By sensitive column, shape (values,): persons of the whole source by value, where the cells are but a part of it.
    """

    adds_up: ClassVar[bool] = False
    per_cell: Counts
    shares: Iterable[NDArray[np.int32]]
    source_counts: Mapping[str, Counts] = field(default_factory=dict)

    @classmethod
    def of(cls, shares: Sequence[Share]) -> Self:
        """Return the persons of several shares together."""
        return cls(np.sum([share.per_cell for share in shares], axis=0, dtype=np.int64), [share.person_cells for share in shares])

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.per_cell)

    def least(self) -> Counts:
        """Return the number of persons who have each cell as their first cell, shape (cells,).

        A person has one first cell: the sum over any cells is no more than the persons of these cells together.
        """
        later = np.zeros(self.cells, np.int64)
        for person_cells in self.shares:
            # A person's first cell is written as a negative number.
            count_numbers(person_cells, later)
        return self.per_cell - later

    def count(self, class_of: Integers, class_count: int) -> Counts:
        """Return the number of different persons in each class; arguments as for ``Unit``."""
        # What is in no class goes to the last place.
        counts = np.zeros(class_count + 1, np.int64)
        add_numbers(class_of.astype(np.int64), self.per_cell, counts)
        return counts[:class_count] - self.count_repeated_pairs(class_of, np.append(np.arange(class_count), -1), class_count)

    def count_repeated_pairs(self, class_of: Integers, asked_positions: Integers, asked_count: int) -> Counts:
        """Count person–cell pairs beyond each person's first in a class, for each class asked about.

        Args:
            class_of: Shape (cells,), the class of each cell.
            asked_positions: Shape (classes,): from 0, the place of each class among those that are asked for, or a negative number.
        """
        repeats = np.zeros(asked_count, np.int64)
        for person_cells in self.shares:
            count_repeated_persons(person_cells, class_of, asked_positions, np.full(asked_count, -1, np.int32), repeats)
        return repeats

    def spread(self, class_of: Integers, value_of: Integers, source_counts: Counts) -> Spread:
        """Count the persons of each class by sensitive value, given each cell's class (-1: none) and value.

        Arguments as for ``Unit``.

        A person counts once for each of their values.
        """
        keys = np.where(class_of < 0, -1, class_of.astype(np.int64) * len(source_counts) + value_of)
        found, places = np.unique(keys, return_inverse=True)
        return spread_of_keys(found, self.count(places, len(found)), source_counts)

    def source_value_counts(self, column: str, value_of: Integers, size: int) -> Counts:
        """Return source persons by sensitive value: stored counts, else counted from these cells, (size,).

        Args:
            value_of: Shape (cells,), the value of each cell; not read where counts of the whole source are stored.
        """
        return self.source_counts[column] if column in self.source_counts else self.count(value_of, size)

    def persons_not_before(self, before: NDArray[np.bool_], class_of: Integers, class_count: int) -> Counts:
        """Return the number of persons of each class who are in none of the given cells, shape (classes,).

        Args:
            before: Shape (cells,): the cells before all classes, in no class themselves.
            class_of: Shape (cells,), the class of each cell; -1 for a cell that is in none.
        """
        known, last = np.zeros(class_count, np.int64), np.full(class_count, -1, np.int32)
        for person_cells in self.shares:
            last[:] = -1
            count_known_persons(person_cells, before, class_of, last, known)
        return CellPersons(self.per_cell, ()).count(class_of, class_count) - known

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the persons of some of the cells, ascending; cells are numbered anew in that order."""
        numbers = np.full(self.cells, -1, np.int32)
        numbers[rows] = np.arange(len(rows))
        wanted = numbers >= 0
        shares = []
        for person_cells in self.shares:
            left = drop_person_cells(person_cells, wanted)
            first = left < 0
            shares.append(np.where(first, ~numbers[np.where(first, ~left, left)], numbers[left]))
        return replace(self, per_cell=self.per_cell[rows], shares=shares)

    def merged(self, coarser_cell_of: Integers, cell_count: int) -> Self:
        """Return the persons of coarser cells, made by merging these cells.

        Args:
            coarser_cell_of: Shape (cells,), the coarser cell of each.
        """
        every, counts, repeats = np.ones(cell_count, np.bool_), np.zeros(cell_count, np.int64), np.zeros(cell_count, np.int64)
        add_numbers(coarser_cell_of.astype(np.int64), self.per_cell, counts)
        shares = [
            drop_person_cells(merge_person_cells(person_cells, coarser_cell_of, every, np.full(cell_count, -1, np.int32), repeats), every)
            for person_cells in self.shares
        ]
        return replace(self, per_cell=counts - repeats, shares=shares)


EVERY_RECORD = Records()
"""The unit where the job has no person column, and every row is one record."""


@dataclass(frozen=True, eq=False)
class RowPersons(Unit):
    """The persons of single rows as the unit of counting.

    Attributes:
        numbers: Shape (pairs,), int32, the person of each pair of person and row, from 0; -1 for no person.
        of: How many rows there are.
        rows: Shape (pairs,), int64, the row of each; there may be several of a person to a row. None where every row is one record.
        counts: Shape (pairs,), int64, records; None likewise.
    """

    adds_up: ClassVar[bool] = False
    numbers: NDArray[np.int32]
    of: int
    rows: Counts | None = None
    counts: Counts | None = None

    @classmethod
    def of_pairs(cls, parts: Sequence[Pairs], row_count: int) -> RowPersons:
        """Return the persons of rows, numbered from 0, given person–row pairs of several parts.

        Args:
            parts: The pairs of disjoint records, in which a cell is a row.
        """
        digests, cells, counts = joined_pairs(parts)
        return cls(number_persons(digests)[0], row_count, cells.astype(np.int64, copy=False), counts)

    @classmethod
    def of_records(cls, numbers: NDArray[np.int32]) -> RowPersons:
        """Return the persons of single records by their numbers from 0, shape (records,).

        A negative number means no person.
        """
        return cls(numbers, len(numbers))

    @classmethod
    def of_digests(cls, digests: Digests) -> RowPersons:
        """Return the persons of single records, numbered from 0, given as digests of shape (records,)."""
        numbers, _ = number_persons(digests)
        return cls.of_records(np.where(digests == NOBODY, np.int32(-1), numbers))

    @property
    def people(self) -> NDArray[np.int32] | None:
        """The number of each record's person, shape (records,); None where rows are no single records."""
        return self.numbers if self.rows is None else None

    @cached_property
    def size(self) -> int:
        """One more than the largest person number; some numbers may have no person."""
        return int(self.numbers.max(initial=-1)) + 1

    @property
    def row_of_pair(self) -> Counts:
        """The row of each person–row pair, shape (pairs,)."""
        return np.arange(self.of) if self.rows is None else self.rows

    @cached_property
    def persons(self) -> CellPersons:
        """The persons of the rows, with each row as a cell."""
        # How many records a person has is asked of the rows themselves.
        once = np.ones(len(self.numbers), np.int64)
        return CellPersons.of([numbered_share(self.numbers, self.row_of_pair, once, self.of, self.size)])

    def count(self, class_of: Integers, class_count: int) -> Counts:
        """Return the number of different persons in each class; arguments as for ``Unit``."""
        return self.persons.count(class_of, class_count)

    def spread(self, class_of: Integers, value_of: Integers, source_counts: Counts) -> Spread:
        """Count the persons of each class by sensitive value, given each row's class (-1: none) and value.

        Arguments as for ``Unit``.
        """
        return self.persons.spread(class_of, value_of, source_counts)

    def take(self, rows: NDArray[np.intp]) -> RowPersons:
        """Return the persons of some of the rows, which must be single records."""
        assert self.rows is None
        return RowPersons.of_records(self.numbers[rows])

    def dense(self) -> RowPersons:
        """Return the same persons numbered without gaps."""
        known, numbers = np.unique(self.numbers, return_inverse=True)
        return replace(self, numbers=(numbers - np.count_nonzero(known < 0)).astype(np.int32))

    def figures(self) -> tuple[int, int]:
        """Return the number of persons and the most records of one person."""
        there = self.numbers >= 0
        records = np.bincount(self.numbers[there], weights=None if self.counts is None else self.counts[there])
        return int(np.count_nonzero(records)), int(records.max(initial=0))


def unit_of_records(digests: Digests | None) -> Unit:
    """Return the unit of single records: persons by digests of shape (records,), else records."""
    return EVERY_RECORD if digests is None else RowPersons.of_digests(digests)
