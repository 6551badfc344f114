"""Digests of persons over the rows of several tables, independent of the order of rows.

The digest of a multiset is the sum of the digests of its members (Clarke and others, ASIACRYPT 2003), modulo 2^64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.composition.contents import row_digests
from core.persons.digests import NOBODY, Digests, combine


class RowSums:
    """Sums of the row digests of each person.

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

    def of(self, digests: Digests) -> Digests:
        """Return a digest of each person from the sums of the digests of the person's rows, shape (persons,)."""
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
        """The digest of each person's set, shape (persons,)."""
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
