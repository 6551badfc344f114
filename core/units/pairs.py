"""Person–cell pairs of a chunk: the persons with records in each cell; they merge like histograms.

A pair is a person's digest and a cell, given by its place among the occupied cells of the chunk's histogram, with how many records it
holds. Pairs ascend by digest, so that a *share* of the persons, a range of digests, is a run of neighbouring pairs in every chunk. Shares
have no person in common, persons are counted share by share, and the counts add up, here or on other machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.kernels import fill_position_table, find_cells, number_values
from core.columns.sorting import order_of_digests, sort_numbers
from core.histograms.histogram import count_cells
from core.units.digests import NOBODY, Digests
from core.units.kernels import kernel

KEY_SPACE = 1 << 64


@dataclass(frozen=True, eq=False)
class Pairs:
    """Person–cell pairs of some records, with the records of each pair.

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
        """Return the person–cell pairs of records with their counts; records of no person are left out.

        Args:
            persons: Shape (n,), digests.
            cells: Shape (n,), from 0.
            counts: Shape (n,), records; one each if left out.
        """
        somebody = np.flatnonzero(persons != NOBODY)
        if len(somebody) < len(persons):
            persons, cells = persons[somebody], cells[somebody]
            counts = None if counts is None else counts[somebody]
        numbers, known = number_persons(persons)
        order = order_of_digests(known)
        ranks = np.empty(len(known), np.int64)
        ranks[order] = np.arange(len(known))
        span = int(cells.max(initial=0)) + 1
        # One number per pair: there are no more persons than records, no more cells, and at most 2^31 records at a time.
        (key,), summed = count_cells((ranks[numbers] * span + cells,), len(known) * span, counts)
        return cls(known[order][key // span], key % span, summed)

    @property
    def records(self) -> int:
        """The number of records of all pairs."""
        return int(self.counts.sum())

    def share(self, number: int, share_count: int) -> Pairs:
        """Return the pairs of one share of the persons (a range of digests).

        Args:
            number: From 0.
        """
        first, end = (np.searchsorted(self.persons, np.array(bound, np.uint64)) for bound in _bounds(number, share_count))
        mine = slice(int(first), int(end) if number + 1 < share_count else len(self.persons))
        return Pairs(self.persons[mine], self.cells[mine], self.counts[mine])

    def moved(self, places: NDArray[np.integer[Any]]) -> Pairs:
        """Return the pairs with cells renumbered, for another coding or a coarser node; not yet merged.

        They have yet to be merged: pairs may repeat, and their cells need not ascend.

        Args:
            places: Shape (cells,), the new cell of each.
        """
        return Pairs(self.persons, places[self.cells], self.counts)


def _bounds(number: int, shares: int) -> Iterator[int]:
    """Yield the least digest of a share and, except for the last share, that of the next one."""
    return (min(KEY_SPACE * place // shares, KEY_SPACE - 1) for place in (number, number + 1))


def joined_pairs(parts: Sequence[Pairs]) -> tuple[Digests, NDArray[np.signedinteger[Any]], NDArray[np.int64]]:
    """Return persons, cells and counts of several parts, one part after the other; not yet merged."""
    return (
        np.concatenate([np.empty(0, np.uint64), *(part.persons for part in parts)]),
        np.concatenate([np.empty(0, np.int32), *(part.cells for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)]),
    )


def merge_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Merge pairs of disjoint records whose cells are coded alike; counts of equal pairs are added."""
    return Pairs.of(*joined_pairs(parts))


def number_persons(digests: Digests) -> tuple[NDArray[np.int32], Digests]:
    """Assign numbers from 0 to persons by first occurrence; return each record's, and persons' digests."""
    slots = np.full(1 << (2 * len(digests)).bit_length(), -1, np.int32)
    numbers, known = number_values(digests.view(np.int64), slots, len(digests))
    return numbers, known.view(np.uint64)


Counts = NDArray[np.int64]
HashTable = NDArray[np.int32]

ALONE = -1
"""The place of a key that occurs once."""


def positions_of_repeated_keys(keys: NDArray[np.int64]) -> tuple[HashTable, int]:
    """Return each key's position among those that repeat, ALONE if it does not, and how many repeat.

    Args:
        keys: Shape (n,), none negative.

    Returns:
        The places, shape (n,), and how many different ones there are.
    """
    ordered = sort_numbers(keys, int(keys.max(initial=0)))
    again = ordered[1:] == ordered[:-1]
    # Those that equal the next one, but not the one before.
    shared = ordered[:-1][again & ~np.append(False, again[:-1])[: len(again)]]
    table = np.full(1 << (2 * len(shared)).bit_length(), -1, np.int32)
    fill_position_table(shared, table)
    return find_cells(keys, shared, table), len(shared)


@kernel
def count_different(owners: HashTable, persons: Digests, size: int) -> Counts:
    """Count the different persons of each owner, shape (size,).

    Args:
        owners: Shape (n,), from 0.
        persons: Shape (n,).
    """
    ends = np.zeros(size + 1, np.int64)
    for owner in owners:
        ends[owner + 1] += 1
    for owner in range(size):
        ends[owner + 1] += ends[owner]
    grouped = np.empty(owners.shape[0], np.uint64)
    for row in range(owners.shape[0]):
        # What starts as the end of the owner before becomes that of this one.
        grouped[ends[owners[row]]] = persons[row]
        ends[owners[row]] += 1
    counts, start = np.zeros(size, np.int64), np.int64(0)
    for owner in range(size):
        mine = grouped[start : ends[owner]]
        start = ends[owner]
        mine.sort()
        for place in range(mine.shape[0]):
            counts[owner] += place == 0 or mine[place] != mine[place - 1]
    return counts
