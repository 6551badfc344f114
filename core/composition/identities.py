"""Which records two sources have in common, told by a sample that depends on nothing but the records.

A record is known by a digest of all its columns. Of each source the records are kept whose first columns have the smallest digests: where
two sources hold the same record, both samples do or neither, so that what the samples share is a fair share of what the sources do
(bottom-k sampling; Cohen and Kaplan, PODC 2007). Sources of fewer records than a sample are in it whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.persons.digests import Digests, combine, digests_of

KEPT = 16_384
"""Records of a sample at most."""
LEADING = 3
"""Columns that decide which records are looked at: to digest all columns of all records would cost three times as much."""
_START = np.uint64(0x2545F4914F6CDD1D)


@dataclass(frozen=True, eq=False)
class Sample:
    """Records of a source, in ascending order of both digests.

    Attributes:
        leading: Shape (n,), uint64, digests of the first columns.
        whole: Shape (n,), uint64, digests of all columns.
        file: Shape (n,), int32, the number of the file that holds the record.
    """

    leading: Digests
    whole: Digests
    file: NDArray[np.int32]

    @classmethod
    def of(cls, columns: Sequence[pa.Array], rows: int, file: int = 0) -> Sample:
        """Returns the sample of a batch.

        Args:
            columns: Arrays of shape (rows,), in an order that both sources have in common.
            rows: Number of records.
            file: The number of their file.
        """
        leading = _digests(columns[:LEADING], rows)
        near = np.flatnonzero(leading <= np.partition(leading, KEPT)[KEPT]) if rows > KEPT else np.arange(rows)
        taken = pa.array(near)
        whole = _digests([column.take(taken) for column in columns], len(near))
        return cls(leading[near], whole, np.full(len(near), file, np.int32)).smallest()

    @classmethod
    def of_all(cls, samples: Sequence[Sample]) -> Sample:
        """Returns the sample of several batches or chunks, whatever their order."""
        parts = [(one.leading, one.whole, one.file) for one in samples]
        none = (np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int32))
        leading, whole, file = (np.concatenate(arrays) for arrays in zip(none, *parts, strict=True))
        return cls(leading, whole, file).smallest()

    def smallest(self) -> Sample:
        """Returns what a sample keeps of these records."""
        order = np.lexsort((self.whole, self.leading))[:KEPT]
        return self.at(order)

    def at(self, rows: NDArray[np.integer]) -> Sample:
        """Returns some of the records."""
        return Sample(self.leading[rows], self.whole[rows], self.file[rows])

    def among(self, files: NDArray[np.int32]) -> Sample:
        """Returns the records of some files."""
        return self.at(np.flatnonzero(np.isin(self.file, files)))

    @property
    def end(self) -> tuple[np.uint64, np.uint64] | None:
        """Digests of the last record, if there may be others after it."""
        return (self.leading[-1], self.whole[-1]) if len(self.whole) >= KEPT else None

    def up_to(self, end: tuple[np.uint64, np.uint64] | None) -> Sample:
        """Returns the records up to given digests."""
        if end is None:
            return self
        leading, whole = end
        return self.at(np.flatnonzero((self.leading < leading) | ((self.leading == leading) & (self.whole <= whole))))


def _digests(columns: Sequence[pa.Array], rows: int) -> Digests:
    total = np.full(rows, _START, np.uint64)
    for column in columns:
        combine(total, digests_of([column], rows))
    return total


def share_records(mine: Sample, theirs: Sample) -> bool:
    """Tells whether records of two samples are the same ones, and not only alike by chance, as records with few columns are.

    How likely that is, is seen in the samples: as many records of one source have a double in it.
    """
    if not len(mine.whole) or not len(theirs.whole):
        return False
    found = int(np.isin(mine.whole, theirs.whole).sum())
    if found == len(mine.whole) or np.isin(theirs.whole, mine.whole).all():
        return True
    doubles = max(1 - len(np.unique(one.whole)) / len(one.whole) for one in (mine, theirs))
    expected = doubles * len(mine.whole)
    return found > expected + 3 * sqrt(expected)
