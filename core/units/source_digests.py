"""Digests of records and persons by which two sources are compared, and a bottom-k sketch of them.

Equal values have equal 64-bit digests in whatever file, chunk or process, a null too. Two records that are alike in the compared columns
count as one and the same for an attacker who has nothing else to distinguish them.

A sketch holds the smallest digests of a source (bottom-k sampling; Cohen and Kaplan, PODC 2007). Where two sources hold the same record,
both sketches do or neither, as far as both reach, so that what the sketches share is a fair share of what the sources do. It is of a
bounded size whatever the source is; a source of fewer different records than it holds is in it completely.

The digest of a person with rows in several tables is that of a multiset: the sum of the digests of its
members (Clarke and others, ASIACRYPT 2003), modulo 2^64. It does not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import holds_bytes, working_type
from core.columns.numbers import dictionary_positions
from core.units.digests import NOBODY, Digests, combine, combine_entries, digests_of

SKETCH_SIZE = 8_192
"""Different digests that a sketch holds at most."""
_START = np.uint64(0x2545F4914F6CDD1D)
_DEVIATIONS = 3
_MOSTLY = 0.5


def contents_of(columns: Sequence[pa.Array], row_count: int) -> Digests:
    """Return a digest of each record's values in all given columns, shape (rows,).

    Args:
        columns: Arrays of shape (rows,), in an order that both sources have in common.
    """
    total = np.full(row_count, _START, np.uint64)
    for column in columns:
        # One by one: a null is a value like others here, while it makes a person nobody.
        if isinstance(column, pa.DictionaryArray):
            # Of each entry, which are few, and not of each record.
            entries = np.append(digests_of([column.dictionary], len(column.dictionary)), NOBODY)
            combine_entries(total, entries, dictionary_positions(column).astype(np.int32))
        else:
            combine(total, digests_of([column], row_count))
    return total


def row_digests(columns: Sequence[Digests], row_count: int) -> Digests:
    """Combine digests of the columns into one digest of each record, shape (rows,)."""
    total = np.full(row_count, _START, np.uint64)
    for column in columns:
        combine(total, column)
    return total


def kind_of(dtype: pa.DataType) -> str:
    """Return the name of a type family within which equal values have equal digests."""
    dtype = working_type(dtype)
    if pt.is_integer(dtype) or pt.is_boolean(dtype):
        return "whole"
    if pt.is_floating(dtype):
        # What a narrower type holds is rounded: 0.1 is another number there.
        return "real" if pt.is_float64(dtype) else f"real of {dtype.bit_width} bits"
    if holds_bytes(dtype):
        # Older releases linked "text" as it was spelled.
        return "folded text"
    if pt.is_timestamp(dtype) and dtype.tz:
        return f"timestamp[{dtype.unit}, UTC]"
    return str(dtype)


@dataclass(frozen=True, eq=False)
class Sketch:
    """Bottom-k sketch of a source: its smallest distinct record digests, ascending.

    Attributes:
        digests: Shape (n,), uint64.
        counts: Shape (n,), int64, the records of each.
        is_complete: Whether the source has no others.
    """

    digests: Digests
    counts: NDArray[np.int64]
    is_complete: bool = True

    @classmethod
    def of(cls, digests: Digests, others: Sketch | None = None) -> Sketch:
        """Return the sketch of records given by their digests.

        Args:
            digests: Shape (rows,), one of each.
            others: The sketch of the other records of the source: digests that cannot be among the smallest of both may be left out.
        """
        whole, rows = True, len(digests)
        if others is not None and len(others.digests) >= SKETCH_SIZE:
            digests = digests[digests <= others.digests[-1]]
            whole = len(digests) == rows
        if len(digests) > 4 * SKETCH_SIZE:
            # Most of them cannot be among the smallest, unless hardly any are different.
            near = digests[digests <= np.partition(digests, 4 * SKETCH_SIZE)[4 * SKETCH_SIZE]]
            if len(np.unique(near)) > SKETCH_SIZE:
                digests, whole = near, False
        found, counts = np.unique(digests, return_counts=True)
        return cls(found, counts.astype(np.int64), whole).smallest()

    @classmethod
    def of_all(cls, sketches: Sequence[Sketch]) -> Sketch:
        """Merge the sketches of several sources into one; the order does not matter."""
        digests = np.concatenate([np.empty(0, np.uint64), *(one.digests for one in sketches)])
        counts = np.concatenate([np.empty(0, np.int64), *(one.counts for one in sketches)])
        found, place = np.unique(digests, return_inverse=True)
        summed = np.zeros(len(found), np.int64)
        np.add.at(summed, place, counts)
        return cls(found, summed, all(one.is_complete for one in sketches)).smallest()

    def smallest(self) -> Sketch:
        """Return the sketch cut to its ``SKETCH_SIZE`` smallest digests."""
        return (
            self if len(self.digests) <= SKETCH_SIZE else Sketch(self.digests[:SKETCH_SIZE], self.counts[:SKETCH_SIZE], is_complete=False)
        )

    @property
    def reach(self) -> float:
        """The share of the digest space, from 0 up, in which the sketch has all digests of the source."""
        return 1.0 if self.is_complete or not len(self.digests) else float(self.digests[-1]) / 2.0**64

    @property
    def doubles(self) -> float:
        """The share of the sketched records that have a duplicate in the source."""
        return float(self.counts[self.counts > 1].sum() / max(self.counts.sum(), 1))


@dataclass(frozen=True)
class Likeness:
    """Counts of equal records in two sets of records.

    Attributes:
        mine: Records of one of them.
        theirs: Records of the other.
        common_of_first: How many of the first have one like them among the others.
        common_of_second: How many of the others have one like them among the first.
        mine_doubled: The share of the first that have a double among themselves.
        theirs_doubled: The share of the others that have.
    """

    mine: float
    theirs: float
    common_of_first: int
    common_of_second: int
    mine_doubled: float
    theirs_doubled: float

    @property
    def is_shared(self) -> bool:
        """Whether the two sets share more equal records than chance explains.

        How likely chance is, is seen in the data: a record that another source of the same kind drew has a duplicate in this one about as
        often as this one's own have. Where most records have duplicates, chance and identity cannot be distinguished, and what is alike
        counts as the same.
        """
        if not self.common_of_first:
            return False
        if max(self.mine_doubled, self.theirs_doubled) > _MOSTLY:
            return True
        return _exceeds(self.common_of_first, self.mine, self.theirs_doubled) or _exceeds(
            self.common_of_second, self.theirs, self.mine_doubled
        )


def _exceeds(found: int, records: float, share: float) -> bool:
    """Return whether more records are alike than chance explains, where each one is by a share."""
    return found > records * share + _DEVIATIONS * sqrt(records * share * (1 - share))


class RowSums:
    """Sum of row digests and number of rows of each person.

    Attributes:
        sums: Shape (persons,), uint64.
        counts: Shape (persons,), how many rows were added.
    """

    def __init__(self, persons: int) -> None:
        self.sums = np.zeros(persons, np.uint64)
        self.counts = np.zeros(persons, np.int64)

    def add(self, persons: NDArray[np.integer], digests: Digests) -> None:
        """Add the digests of rows to their persons; ``persons`` has the person number of each row.

        Both have the shape (rows,).
        """
        if not len(persons):
            return
        # Rows of a person mostly stand together.
        first = np.flatnonzero(np.append(True, persons[1:] != persons[:-1]))
        np.add.at(self.sums, persons[first], np.add.reduceat(digests, first))
        np.add.at(self.counts, persons[first], np.diff(np.append(first, len(persons))))

    def combine_into(self, digests: Digests) -> Digests:
        """Combine in place the digest of each person with the sum of the person's rows; return the digests."""
        combine(digests, self.sums)
        return digests


class ValueSets:
    """The set of values that each person has in one column, as digests.

    A set is identified by the sum of the digests of its rows' values, so that one more row of a value makes another set. It is never
    ``NOBODY``, the digest of a null. A person without a row has no set.
    """

    def __init__(self, persons: int) -> None:
        self._rows = RowSums(persons)
        self._whose: list[NDArray[np.int64]] = []
        self._values: list[Digests] = []

    def add(self, persons: NDArray[np.integer], values: Digests) -> None:
        """Add rows of persons, with the digests of their values, both of shape (rows,)."""
        self._rows.add(persons, row_digests([values], len(values)))
        self._whose.append(persons.astype(np.int64))
        self._values.append(values)

    @property
    def there(self) -> NDArray[np.bool_]:
        """A mask of the persons who have rows, shape (persons,)."""
        return self._rows.counts > 0

    @property
    def sets(self) -> Digests:
        """The digest of each person's set, shape (persons,); without meaning for persons who have no rows."""
        return np.where(self._rows.sums == NOBODY, np.uint64(1), self._rows.sums)

    def members(self) -> tuple[Digests, Digests]:
        """Return the set digest and value digest of each member of each distinct set.

        Each value of a set comes once.
        """
        nothing = np.empty(0, np.uint64)
        if not self._whose:
            return nothing, nothing
        sets, persons, values = self.sets, np.concatenate(self._whose), np.concatenate(self._values)
        known = np.flatnonzero(self.there)
        _, first = np.unique(sets[known], return_index=True)
        chosen = np.zeros(len(sets), np.bool_)
        chosen[known[first]] = True
        mine = chosen[persons]
        found, held = sets[persons[mine]], values[mine]
        order = np.lexsort((held, found))
        found, held = found[order], held[order]
        new = np.append(True, (found[1:] != found[:-1]) | (held[1:] != held[:-1]))[: len(found)]
        return found[new], held[new]
