"""Whose single records are, and so what k counts in classes of them: different persons, or records where no person is named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.persons.digests import NOBODY, Digests
from core.persons.kernels import number_persons
from core.persons.pairs import places_for
from core.persons.spreads import spread_of_people
from core.persons.visits import Counts, Visits
from core.privacy.models import Spread

Owners = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Crowd:
    """Whose each of some records is.

    Attributes:
        people: Shape (n,), int32: the person of each record, by a number from 0 that means nothing else; -1 where it is nobody's. None
            where no person is named, and every record counts.
    """

    people: Owners | None = None

    @classmethod
    def of(cls, digests: Digests) -> Crowd:
        """Numbers the persons of records, given as digests of shape (n,)."""
        numbers, _ = number_persons(digests, places_for(len(digests)))
        return cls(np.where(digests == NOBODY, np.int32(-1), numbers))

    @cached_property
    def visits(self) -> Visits:
        """The records as cells that persons have; only where persons are named."""
        assert self.people is not None
        return Visits.of_records(self.people)

    def count(self, classes: NDArray[np.int32]) -> Counts:
        """Returns how many different persons, or records, each class has, shape (classes,).

        Args:
            classes: Shape (n,), dense from 0; negative for a record that is in none.
        """
        if self.people is None:
            return np.bincount(classes[classes >= 0])
        owners, size = _with_rest(classes)
        return self.visits.count(owners, size + 1)[:size]

    def spread(self, classes: NDArray[np.int32], codes: NDArray[np.integer[Any]], whole: Counts) -> Spread:
        """Returns how the values of a sensitive column are spread over classes: persons, each once for each of their values, or records.

        Args:
            classes: As for ``count``.
            codes: Shape (n,), the value of each record.
            whole: Shape (values,), how often each occurs in the whole source.
        """
        if self.people is None:
            kept = classes >= 0
            pairs, counts = np.unique(classes[kept].astype(np.int64) * len(whole) + codes[kept], return_counts=True)
            return Spread(pairs // len(whole), pairs % len(whole), counts.astype(np.int64), whole)
        owners, size = _with_rest(classes)
        found = spread_of_people(self.visits, owners, codes.astype(np.int64), whole)
        # Ascending by class: what is in none comes last.
        end = int(np.searchsorted(found.owners, size))
        return replace(found, owners=found.owners[:end], values=found.values[:end], counts=found.counts[:end])

    def values(self, codes: NDArray[np.integer[Any]], size: int) -> Counts:
        """Returns how many different persons, or records, have each value of a column, shape (size,).

        Args:
            codes: Shape (n,), the value of each record.
            size: How many values there are.
        """
        return np.bincount(codes, minlength=size) if self.people is None else self.visits.count(codes.astype(np.int64), size)

    def take(self, rows: NDArray[np.intp]) -> Crowd:
        """Returns whose some of the records are."""
        return self if self.people is None else Crowd(self.people[rows])

    def dense(self) -> Crowd:
        """Returns the same persons numbered without gaps: what counts a few of many takes no room for the others."""
        if self.people is None:
            return self
        known, numbers = np.unique(self.people, return_inverse=True)
        return Crowd((numbers - np.count_nonzero(known < 0)).astype(np.int32))

    def figures(self) -> tuple[int, int] | None:
        """Returns how many persons there are, and how many records the one has who has most; None where no person is named."""
        if self.people is None:
            return None
        records = np.bincount(self.people[self.people >= 0])
        return int(np.count_nonzero(records)), int(records.max(initial=0))


RECORDS = Crowd()
"""No person is named."""


def _with_rest(classes: NDArray[np.int32]) -> tuple[Owners, int]:
    """Returns classes with what is in none as one more, after them, and how many they are."""
    size = int(classes.max(initial=-1)) + 1
    return np.where(classes < 0, np.int32(size), classes), size
