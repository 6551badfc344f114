"""Count of persons that differ from others only in spelling, in one pass and bounded memory.

A person is two digests: of its values as they are, by which k counts it, and of the same without case and extra blanks. Two persons with
one digest of the second kind are likely one. Few persons are counted exactly, many on a sample of the second digest, as in
``core.units.repeats``.

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
        row_count: Number of records.
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
