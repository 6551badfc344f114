"""The persons of single rows or records, as small integers that loops over rows can compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.persons.digests import NOBODY, Digests
from core.persons.kernels import number_persons
from core.persons.pairs import Pairs, person_hash_table
from core.privacy.models import Spread
from core.units.persons import CellPersons, numbered_share
from core.units.unit import Counts, Integers, Records, Unit

EVERY_RECORD = Records()
"""The unit where no person is named, and every row is one record."""


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
    def of_pairs(cls, parts: Sequence[Pairs], rows: int) -> RowPersons:
        """Assign numbers to the persons of rows, given as person–row pairs.

        Args:
            parts: The pairs of disjoint records, in which a cell is a row.
            rows: How many rows there are.
        """
        digests = np.concatenate([np.empty(0, np.uint64), *(part.persons for part in parts)])
        cells = np.concatenate([np.empty(0, np.int64), *(part.cells for part in parts)])
        counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)])
        return cls(number_persons(digests, person_hash_table(len(digests)))[0], rows, cells, counts)

    @classmethod
    def of_records(cls, numbers: NDArray[np.int32]) -> RowPersons:
        """Return the persons of single records by their numbers from 0, shape (records,).

        A negative number means no person.
        """
        return cls(numbers, len(numbers))

    @classmethod
    def of_digests(cls, digests: Digests) -> RowPersons:
        """Assign numbers to the persons of single records, given as digests of shape (records,)."""
        numbers, _ = number_persons(digests, person_hash_table(len(digests)))
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
        counts = np.ones(len(self.numbers), np.int64) if self.counts is None else self.counts
        return CellPersons.of([numbered_share(self.numbers, self.row_of_pair, counts, self.of, self.size)])

    def count(self, owners: Integers, classes: int) -> Counts:
        """Return the number of different persons in each class; arguments as for ``Unit``."""
        return self.persons.count(owners, classes)

    def spread(self, owners: Integers, codes: Integers, whole: Counts) -> Spread:
        """Return the number of persons with each sensitive value in each class.

        Arguments as for ``Unit``.
        """
        return self.persons.spread(owners, codes, whole)

    def take(self, rows: NDArray[np.intp]) -> RowPersons:
        """Return the persons of some of the records."""
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
