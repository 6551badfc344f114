"""Distinct-count sketch of a column: how often its values repeat, in one pass and bounded memory.

Few values are counted exactly, many on a sample of the values. A value is looked at if its digest ends with so many zero bits; the more
values there are, the more bits (Gibbons, Distinct sampling for highly-accurate answers, VLDB 2001). So all records of a value are counted
or none, chunks add up in whatever order, and how many different values there are is the number of those looked at times two for every
bit: off by a percent or less where many are. A value that has more than a thousandth of the records may not be among them, so some
records of every batch are looked at as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.units.digests import NOBODY, Digests

MOST_VALUES = 1 << 15
"""Values that are looked at, at most."""
SAMPLED_RECORDS = 4096
"""Records of a batch that are looked at, whatever their value."""


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Record counts of a sample of a column's values.

    Attributes:
        bits: Zero bits that the digests of these end with; at 0 they are all values.
        values: Shape (n,), uint64, their digests, ascending.
        counts: Shape (n,), int64, the records of each.
        records: Records that have a value, any.
        records_counted: Records of one value among some of a batch.
        measured: Whether some values are fractions: a coordinate or a price, and no number that was given to a person.
    """

    bits: int
    values: Digests
    counts: NDArray[np.int64]
    records: int
    records_counted: int = 0
    measured: bool = False

    def with_records(self, digests: Digests, *, measured: bool = False) -> ValueCounts:
        """Return new counts with a batch of further records added.

        Args:
            digests: Shape (m,), of the value of each; ``NOBODY`` where there is none.
            measured: Whether some of these are fractions.
        """
        there = digests[digests != NOBODY]
        mine = there[_ends(there, self.bits)]
        ones = np.ones(len(mine), np.int64)
        some = np.unique(there[:: max(len(there) // SAMPLED_RECORDS, 1)], return_counts=True)[1]
        seen = max(self.records_counted, int(some.max(initial=0)))
        return _put_together(
            self.bits, [self.values, mine], [self.counts, ones], self.records + len(there), seen, measured=self.measured or measured
        )

    @property
    def distinct(self) -> int:
        """The number of distinct values, estimated if not all were sampled."""
        return len(self.values) << self.bits

    @property
    def mean(self) -> float:
        """The mean number of records of a value."""
        return max(self.records / self.distinct, 1.0) if self.distinct else 0.0

    @property
    def most(self) -> int:
        """The records of the most frequent value: exact if all values were sampled, else a lower bound."""
        return max(int(self.counts.max(initial=0)), self.records_counted)

    @property
    def share(self) -> float:
        """Share of the values that were sampled."""
        return 0.5**self.bits


NOTHING = ValueCounts(0, np.empty(0, np.uint64), np.empty(0, np.int64), 0)
"""Of no record."""


def merge_value_counts(parts: Iterable[ValueCounts]) -> ValueCounts:
    """Merge the value counts of disjoint records; the order does not matter."""
    known = list(parts)
    bits = max((part.bits for part in known), default=0)
    chosen = [_ends(part.values, bits) for part in known]
    values = [part.values[kept] for part, kept in zip(known, chosen, strict=True)]
    counts = [part.counts[kept] for part, kept in zip(known, chosen, strict=True)]
    records, seen = sum(part.records for part in known), max((part.records_counted for part in known), default=0)
    return _put_together(bits, values, counts, records, seen, measured=any(part.measured for part in known))


def _put_together(
    bits: int, values: Sequence[Digests], counts: Sequence[NDArray[np.int64]], records: int, seen: int, *, measured: bool
) -> ValueCounts:
    found, place = np.unique(np.concatenate([np.empty(0, np.uint64), *values]), return_inverse=True)
    summed = np.zeros(len(found), np.int64)
    np.add.at(summed, place, np.concatenate([np.empty(0, np.int64), *counts]))
    while len(found) > MOST_VALUES:
        bits += 1
        kept = _ends(found, bits)
        found, summed = found[kept], summed[kept]
    return ValueCounts(bits, found, summed, records, seen, measured)


def _ends(digests: Digests, bits: int) -> NDArray[np.bool_]:
    """Return a mask of the digests that end with ``bits`` zero bits, shape (n,)."""
    ends: NDArray[np.bool_] = digests & np.uint64((1 << bits) - 1) == 0
    return ends
