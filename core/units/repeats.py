"""Sketches of columns in one pass and bounded memory: repeated values, and persons' spellings.

Few values are counted exactly, many on a sample of the values. A value is looked at if its digest ends with so many zero bits; the more
values there are, the more bits (Gibbons, Distinct sampling for highly-accurate answers, VLDB 2001). So all records of a value are counted
or none, chunks add up in whatever order, and how many different values there are is the number of those looked at times two for every
bit: off by a percent or less where many are. A value that has more than a thousandth of the records may not be among them, so some
records of every batch are looked at as well.

A person is two digests: of its values as they are, by which k counts it, and of the same without case and extra blanks. Two persons with
one digest of the second kind are likely one. Few persons are counted exactly, many on a sample of the second digest.

Most keys are codes, in which no two can be alike. Which characters occur shows that, at a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from core.columns.column_types import ALL, MISSING, is_text, normalised
from core.units.digests import NOBODY, Digests, digests_of

MOST_PERSONS = 1 << 18
"""Persons that are looked at, at most."""


@dataclass(frozen=True, eq=False)
class PersonSpellings:
    """Digests of a sample of persons, each as it is and without case and blanks.

    Attributes:
        bits: Zero bits that the digests looked at end with; at 0 they are all persons.
        persons: Shape (n,), uint64, digests of the persons as they are, ascending.
        folded: Shape (n,), uint64, digests of the same without case and blanks; ``NOBODY`` for texts that say that nothing is known.
    """

    bits: int
    persons: Digests
    folded: Digests

    @property
    def alike(self) -> int:
        """Number of persons that equal another one but for case and blanks; estimated from a sample."""
        known = self.folded[self.folded != NOBODY]
        return int(len(known) - len(np.unique(known))) << self.bits

    @property
    def unknown(self) -> int:
        """Number of persons whose texts say that nothing is known; estimated from a sample."""
        return int(np.count_nonzero(self.folded == NOBODY)) << self.bits


NO_PERSON = PersonSpellings(0, np.empty(0, np.uint64), np.empty(0, np.uint64))
"""Of no record."""


LOWER, UPPER, OTHER = 1, 2, 4
"""Marks of texts: small letters, capitals, and anything that case or blanks may change in another way or that may mean a missing value."""


def character_marks(column: pa.Array) -> int:
    """Return which of LOWER, UPPER and OTHER a column's texts hold, added up; 0 for no text.

    Args:
        column: Shape (n,), of a working type or a dictionary of it.
    """
    texts = column.dictionary if isinstance(column, pa.DictionaryArray) else column
    if not is_text(texts.type) or texts.null_count == len(texts):
        return 0
    offsets = np.frombuffer(texts.buffers()[1], np.int64 if pt.is_large_string(texts.type) else np.int32)
    first, end = offsets[texts.offset], offsets[texts.offset + len(texts)]
    if first == end:
        return OTHER
    characters = np.frombuffer(texts.buffers()[2], np.uint8)[first:end]
    lower, upper = bool(((characters - ord("a")) < 26).any()), bool(((characters - ord("A")) < 26).any())
    # Blanks and control characters come first; from 127 on there is one more, and all that is no ASCII.
    other = int(characters.min()) <= ord(" ") or int(characters.max()) >= 127
    if not other and pc.min(pc.binary_length(texts)).as_py() <= max(map(len, MISSING)):
        words = [word for one in MISSING for word in {one, one.upper()}]
        other = pc.any(pc.is_in(texts, pa.array(words, texts.type))).as_py()
    return LOWER * lower + UPPER * upper + OTHER * other


def may_be_alike(marks: int) -> bool:
    """Return whether texts of the given marks may differ only in case and blanks, or mean a missing value."""
    return bool(marks & OTHER) or marks == LOWER | UPPER


def spellings_of(columns: Sequence[pa.Array], row_count: int) -> PersonSpellings:
    """Return digests of the persons of records, each once, as they are and without case and blanks.

    Args:
        columns: What names a person, one array of shape (rows,) per column, in their working types or dictionaries of these.
    """
    persons, first = np.unique(digests_of(columns, row_count), return_index=True)
    persons, first = persons[persons != NOBODY], first[persons != NOBODY]
    some = [column.take(pa.array(first)) for column in columns]
    return merge_spellings([PersonSpellings(0, persons, digests_of([normalised(one, ALL) for one in some], len(first)))])


def merge_spellings(parts: Iterable[PersonSpellings]) -> PersonSpellings:
    """Merge the persons of several parts of records into one sample; the order does not matter."""
    return reduce(_merged, parts, NO_PERSON)


def _merged(mine: PersonSpellings, other: PersonSpellings) -> PersonSpellings:
    persons, first = np.unique(np.concatenate([mine.persons, other.persons]), return_index=True)
    folded, bits = np.concatenate([mine.folded, other.folded])[first], max(mine.bits, other.bits)
    while True:
        # Persons of one spelling are looked at together or not at all; nothing folds those that are not known into one.
        kept = np.where(folded == NOBODY, persons, folded) & np.uint64((1 << bits) - 1) == 0
        persons, folded = persons[kept], folded[kept]
        if len(persons) <= MOST_PERSONS:
            return PersonSpellings(bits, persons, folded)
        bits += 1


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
