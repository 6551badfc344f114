"""Who is in which class of two releases, where no file tells who is in both: records that are alike in all QIDs count as the same ones.

Of each combination as many records are in both as the smaller of its two counts; which of them, nobody who knows the QIDs alone can tell.
They are laid side by side in the order of the classes (the north-west corner rule), so that each record has one class in each release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Domain
from core.columns.translation import codes_in
from schemas.errors.signals import UnmeasuredError

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Members:
    """The records of a release by their combination and class.

    Attributes:
        domains: One per QID.
        codes: Shape (n, QIDs), int64.
        classes: Shape (n,), int64; negative where the records are not published.
        counts: Shape (n,), int64, records.
    """

    domains: tuple[Domain, ...]
    codes: Numbers
    classes: Numbers
    counts: Numbers

    @property
    def names(self) -> list[str]:
        """The QIDs."""
        return [domain.qid for domain in self.domains]

    @property
    def records(self) -> int:
        """How many records there are."""
        return int(self.counts.sum())


class Together(NamedTuple):
    """What two releases are together: classes and records of each part.

    Attributes:
        shared: Class in this release, class in the other, and records that are in both.
        added: Class and records that only this one has.
        removed: Class and records that only the other has.
    """

    shared: tuple[Numbers, Numbers, Numbers]
    added: tuple[Numbers, Numbers]
    removed: tuple[Numbers, Numbers]


def side_by_side(mine: Members, theirs: Members) -> Together:
    """Returns which records two releases have in common, and which only one of them has.

    Raises:
        UnmeasuredError: neither has all the QIDs of the other.
    """
    common = [name for name in mine.names if name in theirs.names]
    if len(common) < min(len(mine.names), len(theirs.names)) or not common:
        raise UnmeasuredError("its quasi-identifiers are others")
    here, there = _cells(mine, theirs, common)
    first, other = _Line.of(here, mine), _Line.of(there, theirs)
    cells = int(max(here.max(initial=-1), there.max(initial=-1))) + 1
    both = np.minimum(first.totals(cells), other.totals(cells))
    ends, others = first.ends(both), other.ends(both)
    cuts = np.union1d(ends, others)
    cuts = cuts[cuts > 0]
    records = np.diff(cuts, prepend=0)
    shared = (first.classes[np.searchsorted(ends, cuts)], other.classes[np.searchsorted(others, cuts)], records)
    return Together(shared, (first.classes, first.left(ends)), (other.classes, other.left(others)))


@dataclass(frozen=True, eq=False)
class _Line:
    """The records of a release in the order of cells and, within a cell, of classes; arrays of shape (n,)."""

    cells: Numbers
    classes: Numbers
    counts: Numbers

    @classmethod
    def of(cls, cells: Numbers, members: Members) -> _Line:
        order = np.lexsort((members.classes, cells))
        return cls(cells[order], members.classes[order], members.counts[order])

    def totals(self, cells: int) -> Numbers:
        """Returns the records of each cell, shape (cells,)."""
        totals = np.zeros(cells, np.int64)
        np.add.at(totals, self.cells, self.counts)
        return totals

    def ends(self, both: Numbers) -> Numbers:
        """Returns where each class of a cell ends on the line of the records that are in both, given by cell."""
        before = np.cumsum(both) - both
        reached = np.cumsum(self.counts)
        starts = np.searchsorted(self.cells, self.cells)
        within = reached - np.where(starts > 0, reached[starts - 1], 0)
        return before[self.cells] + np.minimum(within, both[self.cells])

    def left(self, ends: Numbers) -> Numbers:
        """Returns how many records of each class of a cell are not on that line."""
        return self.counts - np.diff(ends, prepend=0)


def _cells(mine: Members, theirs: Members, common: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Numbers the combinations of common QIDs alike in both releases; returns the number of each of their rows."""
    rows = len(mine.counts)
    numbers = np.zeros(rows + len(theirs.counts), np.int64)
    for name in common:
        own, other = mine.names.index(name), theirs.names.index(name)
        size = mine.domains[own].size
        known = codes_in(theirs.domains[other], mine.domains[own])
        # A value that only the other source has is one of its own here.
        known = np.where(known < 0, size + np.arange(len(known)), known)
        codes = np.concatenate([mine.codes[:, own], known[theirs.codes[:, other]]])
        _, numbers = np.unique(numbers * (size + len(known)) + codes, return_inverse=True)
    numbers = numbers.astype(np.int64)
    return numbers[:rows], numbers[rows:]
