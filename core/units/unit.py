"""Units of counting: the records or persons that k counts in cells and classes.

Records add up over cells; a person may be in several cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.sorting import run_starts
from core.privacy.models import Spread

Counts = NDArray[np.int64]
Integers = NDArray[np.signedinteger[Any]]


class Unit(ABC):
    """The units (records or persons) in some cells.

    Attributes:
        adds_up: Whether a class has as many as its cells have one by one.
    """

    adds_up: ClassVar[bool]

    @abstractmethod
    def count(self, class_of: Integers, class_count: int) -> Counts:
        """Return the number of units (records or persons) in each class, shape (classes,).

        Args:
            class_of: Shape (cells,), the class of each cell; -1 for a cell that is in none.
        """

    def per_class(self, class_of: Integers) -> Counts:
        """Return the number of units in each class, shape (classes,); classes are numbered without gaps."""
        return self.count(class_of, int(class_of.max(initial=-1)) + 1)

    @abstractmethod
    def spread(self, class_of: Integers, value_of: Integers, source_counts: Counts) -> Spread:
        """Count the units of each class by sensitive value, given each cell's class (-1: none) and value.

        Units are records, or persons, each once for each of their values.

        Args:
            class_of: As for ``count``.
            value_of: Shape (cells,), the value of each cell.
            source_counts: Shape (values,), how often each occurs in the whole source.
        """

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the units of some of the cells, numbered anew in their order."""

    @property
    def people(self) -> NDArray[np.int32] | None:
        """The person number of each single record, shape (cells,); None for other cells or without persons."""
        return None

    def figures(self) -> tuple[int, int] | None:
        """Return the number of persons and the most records of one; None where the job has no person column."""
        return None

    def dense(self) -> Self:
        """Return the units numbered without gaps, which saves memory for a few of many."""
        return self


@dataclass(frozen=True, eq=False)
class Records(Unit):
    """Records as the unit of counting, where the job has no person column.

    Attributes:
        per_cell: Shape (cells,): records of each cell; None where every cell is one record.
    """

    adds_up: ClassVar[bool] = True
    per_cell: Counts | None = None

    def count(self, class_of: Integers, class_count: int) -> Counts:
        """Return the number of records in each class, shape (classes,); arguments as for ``Unit``."""
        kept = in_classes(class_of)
        # bincount adds weights as floats, exact below 2^53 records.
        weights = None if self.per_cell is None else self.per_cell[kept]
        return np.bincount(class_of[kept], weights=weights, minlength=class_count).astype(np.int64, copy=False)

    def spread(self, class_of: Integers, value_of: Integers, source_counts: Counts) -> Spread:
        """Count the records of each class by sensitive value, given each cell's class (-1: none) and value.

        Arguments as for ``Unit``.
        """
        kept = in_classes(class_of)
        keys = class_of[kept].astype(np.int64) * len(source_counts) + value_of[kept]
        found, counts = np.unique(keys, return_counts=True) if self.per_cell is None else sum_by_key(keys, self.per_cell[kept])
        return spread_of_keys(found, counts, source_counts)

    def take(self, rows: NDArray[np.intp]) -> Records:
        """Return the records of some of the cells."""
        return self if self.per_cell is None else Records(self.per_cell[rows])


def in_classes(owners: Integers) -> slice | NDArray[np.bool_]:
    """Return a selection of the entries that are in a class: a mask, or a full slice if all are.

    The slice copies nothing.
    """
    return slice(None) if owners.min(initial=0) >= 0 else owners >= 0


def sum_by_key(keys: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Sum the counts of equal keys; return the distinct keys, ascending, and their sums."""
    order = np.argsort(keys, kind="stable")
    starts = run_starts(keys[order])
    return keys[order][starts], np.add.reduceat(counts[order], starts) if len(starts) else counts


def spread_of_keys(keys: Counts, counts: Counts, source_counts: Counts) -> Spread:
    """Return the sensitive-value counts of classes from entries numbered by class and value.

    Entries with a count of 0 are left out.

    Args:
        keys: Shape (entries,), ascending: class times number of values, and value; a negative one is left out.
        counts: Shape (entries,).
        source_counts: Shape (values,), how often each occurs in the whole source.
    """
    kept = (counts > 0) & (keys >= 0)
    if not kept.all():
        keys, counts = keys[kept], counts[kept]
    return Spread(keys // len(source_counts), keys % len(source_counts), counts.astype(np.int64, copy=False), source_counts)


def source_value_counts(domain: Domain) -> Counts:
    """Return the number of source records with each value of a domain, shape (size,), a null last."""
    return np.append(domain.counts, domain.nulls) if domain.nulls else domain.counts
