"""Whose the records of rows are, before and after these are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.columns.kernels import add_numbers
from core.mondrian.rows import People
from core.persons.kernels import group, number_persons
from core.persons.pairs import Pairs, places_for
from core.persons.visits import Visits, numbered_share


@dataclass(frozen=True, eq=False)
class RowPeople:
    """The persons of rows; of a record of nobody nothing is here.

    Attributes:
        rows: Shape (visits,), int64, the row of each visit; there may be several of a person to a row.
        persons: Shape (visits,), int32, its person, from 0.
        counts: Shape (visits,), int64, its records.
        size: How many persons there are.
        of: How many rows there are.
    """

    rows: NDArray[np.int64]
    persons: NDArray[np.int32]
    counts: NDArray[np.int64]
    size: int
    of: int

    @classmethod
    def of_pairs(cls, parts: Sequence[Pairs], rows: int) -> Self:
        """Numbers the persons of some rows.

        Args:
            parts: The pairs of disjoint records, in which a cell is a row.
            rows: How many rows there are.
        """
        digests = np.concatenate([np.empty(0, np.uint64), *(part.persons for part in parts)])
        cells = np.concatenate([np.empty(0, np.int64), *(part.cells for part in parts)])
        counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)])
        persons, known = number_persons(digests, places_for(len(digests)))
        return cls(cells, persons, counts, len(known), rows)

    @classmethod
    def of_records(cls, persons: NDArray[np.int32]) -> Self:
        """Returns the persons of rows of one record each, given by number from 0, shape (rows,); a negative one is nobody."""
        somebody = np.flatnonzero(persons >= 0)
        return cls(somebody, persons[somebody], np.ones(len(somebody), np.int64), int(persons.max(initial=-1)) + 1, len(persons))

    @cached_property
    def visits(self) -> Visits:
        """The rows as cells that persons have records in."""
        return Visits.of([numbered_share(self.persons, self.rows, self.counts, self.of, self.size)])

    @property
    def most_records(self) -> int:
        """The records of the one who has most."""
        records = np.zeros(self.size, np.int64)
        add_numbers(self.persons.astype(np.int64), self.counts, records)
        return int(records.max(initial=0))

    def listed(self, sensitive: NDArray[np.integer[Any]]) -> People:
        """Lists the persons row by row, as kernels read them.

        Args:
            sensitive: Shape (rows, sensitive columns), the codes of their values.
        """
        starts, order = group(self.rows, np.arange(len(self.rows)), self.of)
        persons, rows = self.persons[order], self.rows[order]
        values, most = np.empty((sensitive.shape[1], len(order)), np.int32), 0
        for column in range(len(values)):
            codes = sensitive[rows, column].astype(np.int64)
            found, values[column] = np.unique(persons * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
            most = max(most, len(found))
        return People(starts, persons, values, np.zeros(self.size, np.int64), np.zeros(most, np.int64), np.zeros(1, np.int64))


def unseen(people: People) -> People:
    """Returns the same persons with scratch of their own: for another core, which looks at other rows at the same time."""
    return people._replace(seen=np.zeros_like(people.seen), seen_values=np.zeros_like(people.seen_values), passes=np.zeros(1, np.int64))
