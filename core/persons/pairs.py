"""Which persons have records in which cells of a chunk: what is kept of a chunk beside its histogram, and adds up as that does.

A pair is a person's digest and a cell, given by its place among the occupied cells of the chunk's histogram, with how many records it
holds. Pairs ascend by digest, so that a *share* of the persons, a range of digests, is a run of neighbouring pairs in every chunk: shares
have no person in common, persons are counted share by share, and the counts add up, here or on other machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.histograms.histogram import count_cells
from core.order.sorting import order_of_digests
from core.persons.digests import NOBODY, Digests
from core.persons.kernels import number_persons

WHOLE = 1 << 64


@dataclass(frozen=True, eq=False)
class Pairs:
    """The persons of some records and the cells that they are in.

    Attributes:
        persons: Shape (pairs,), uint64, digests, ascending.
        cells: Shape (pairs,), int32 or int64, ascending for each person.
        counts: Shape (pairs,), int64, records.
    """

    persons: Digests
    cells: NDArray[np.signedinteger[Any]]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, persons: Digests, cells: NDArray[np.integer[Any]], counts: NDArray[np.int64] | None = None) -> Pairs:
        """Counts the pairs of some records, without those of nobody.

        Args:
            persons: Shape (n,), digests.
            cells: Shape (n,), from 0.
            counts: Shape (n,), records; one each if left out.
        """
        somebody = np.flatnonzero(persons != NOBODY)
        if len(somebody) < len(persons):
            persons, cells = persons[somebody], cells[somebody]
            counts = None if counts is None else counts[somebody]
        numbers, known = number_persons(persons, places_for(len(persons)))
        order = order_of_digests(known)
        ranks = np.empty(len(known), np.int64)
        ranks[order] = np.arange(len(known))
        span = int(cells.max(initial=0)) + 1
        # One number per pair: there are no more persons than records, no more cells, and at most 2^31 records at a time.
        (key,), summed = count_cells((ranks[numbers] * span + cells,), len(known) * span, counts)
        return cls(known[order][key // span], key % span, summed)

    @property
    def records(self) -> int:
        """Records that belong to somebody."""
        return int(self.counts.sum())

    def share(self, number: int, shares: int) -> Pairs:
        """Returns the pairs of one share of the persons.

        Args:
            number: From 0.
            shares: How many there are.
        """
        first, end = (np.searchsorted(self.persons, np.array(bound, np.uint64)) for bound in _bounds(number, shares))
        mine = slice(int(first), int(end) if number + 1 < shares else len(self.persons))
        return Pairs(self.persons[mine], self.cells[mine], self.counts[mine])

    def moved(self, places: NDArray[np.integer[Any]]) -> Pairs:
        """Returns the same pairs with their cells in the coding of a whole, or at a coarser node, to be merged.

        Args:
            places: Shape (cells,), the new cell of each.
        """
        return Pairs(self.persons, places[self.cells], self.counts)


def _bounds(number: int, shares: int) -> Iterator[int]:
    """Yields the least digest of a share and, but for the last one, that of the next."""
    return (min(WHOLE * place // shares, WHOLE - 1) for place in (number, number + 1))


def merge_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Adds up pairs of disjoint records whose cells are coded alike; in whatever order, the outcome is the same."""
    return Pairs.of(
        np.concatenate([np.empty(0, np.uint64), *(part.persons for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.cells for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)]),
    )


def places_for(most: int) -> NDArray[np.int32]:
    """Makes the hash table of ``number_persons`` for at most so many persons."""
    return np.full(1 << (2 * most).bit_length(), -1, np.int32)
