"""Compiled loops (numba) over cells and values: numbering, summing and finding them in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler, small_in

kernel = compiler("columns.kernels")

Codes = NDArray[np.unsignedinteger[Any]]
Counts = NDArray[np.signedinteger[Any]]


def _number_cells(codes: Codes, starts: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    cells = np.zeros(codes.shape[0], np.int64)
    for qid, start in enumerate(starts):
        cells += weights[start:][codes[:, qid]]
    return cells


def _add_cells(codes: Codes, starts: NDArray[np.int64], weights: NDArray[np.int64], counts: Counts, dense: Counts) -> None:
    np.add.at(dense, _number_cells(codes, starts, weights), counts)


@small_in(_add_cells)
@kernel
def add_cells(codes: Codes, starts: NDArray[np.int64], weights: NDArray[np.int64], counts: Counts, dense: Counts) -> None:
    """Add each cell's count to the entry of its coarser cell in ``dense``, numbered by mixed radix.

    Args:
        codes: Shape (cells, QIDs), the group of each QID in each cell.
        starts: Shape (QIDs,), where each QID's part of ``weights`` starts.
        weights: What each group adds to the number of the new cell.
        counts: Shape (cells,).
        dense: Shape (new cells,), added to.
    """
    for row in range(codes.shape[0]):
        cell = 0
        for qid in range(codes.shape[1]):
            cell += weights[starts[qid] + np.int64(codes[row, qid])]
        dense[cell] += counts[row]


@small_in(_number_cells)
@kernel
def number_cells(codes: Codes, starts: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the mixed-radix number of each cell's coarser cell, shape (cells,).

    Arguments as for ``add_cells``.
    """
    cells = np.empty(codes.shape[0], np.int64)
    for row in range(codes.shape[0]):
        cell = 0
        for qid in range(codes.shape[1]):
            cell += weights[starts[qid] + np.int64(codes[row, qid])]
        cells[row] = cell
    return cells


def _numbered(values: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the row in which each distinct value comes first, ascending, and the number of each value."""
    _, first, sorted_numbers = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers = np.empty(len(order), np.intp)
    numbers[order] = np.arange(len(order))
    return first[order], numbers[sorted_numbers]


def _sum_equal_cells(cells: NDArray[np.int64], counts: Counts, _: Counts) -> tuple[NDArray[np.int64], Counts]:
    first, numbers = _numbered(cells)
    summed = np.zeros(len(first), counts.dtype)
    np.add.at(summed, numbers, counts)
    return first, summed


@small_in(_sum_equal_cells)
@kernel
def sum_equal_cells(cells: NDArray[np.int64], counts: Counts, hash_slots: Counts) -> tuple[NDArray[np.int64], Counts]:
    """Return the first row and summed count of each distinct cell; ``hash_slots``, all -1, is scratch.

    For cells too many for an array this costs least.

    Args:
        cells: Shape (n,).
        counts: Shape (n,).
        hash_slots: Shape (a power of two, more than there are distinct cells,), all -1; written to.

    Returns:
        The row in which each distinct cell comes first, and the sum of its counts, in that order.
    """
    first, keys = np.empty(cells.shape[0], np.int64), np.empty(cells.shape[0], np.int64)
    summed = np.empty(cells.shape[0], counts.dtype)
    mask, size = np.uint64(hash_slots.shape[0] - 1), 0
    for row in range(cells.shape[0]):
        # Fibonacci hashing; the high half of the product is the well mixed one.
        place = ((np.uint64(cells[row]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while hash_slots[place] >= 0 and keys[hash_slots[place]] != cells[row]:
            place = (place + np.uint64(1)) & mask
        known = hash_slots[place]
        if known >= 0:
            summed[known] += counts[row]
        else:
            hash_slots[place] = size
            first[size], keys[size], summed[size] = row, cells[row], counts[row]
            size += 1
    # A slice would keep arrays as long as what was rolled up.
    return first[:size].copy(), summed[:size].copy()


def _number_distinct(cells: NDArray[np.int64], _: Counts) -> int:
    first, numbers = _numbered(cells)
    cells[:] = numbers
    return len(first)


@small_in(_number_distinct)
@kernel
def number_distinct(cells: NDArray[np.int64], hash_slots: Counts) -> int:
    """Replace each cell in place by a number from 0, the same for equal cells; return how many there are.

    Arguments as for ``sum_equal_cells``.
    """
    keys = np.empty(cells.shape[0], np.int64)
    mask, size = np.uint64(hash_slots.shape[0] - 1), 0
    for row in range(cells.shape[0]):
        cell = cells[row]
        place = ((np.uint64(cell) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while hash_slots[place] >= 0 and keys[hash_slots[place]] != cell:
            place = (place + np.uint64(1)) & mask
        if hash_slots[place] < 0:
            hash_slots[place] = size
            keys[size] = cell
            size += 1
        cells[row] = hash_slots[place]
    return size


def _number_values(values: NDArray[np.int64], _: Counts, most_values: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    first, numbers = _numbered(values)
    known = len(values) if len(first) <= most_values else 0
    return numbers[:known].astype(np.int32), values[first[:known]]


@small_in(_number_values)
@kernel
def number_values(values: NDArray[np.int64], hash_slots: Counts, most_values: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Assign numbers from 0 to values by first occurrence; return both, empty if above ``most_values``.

    Args:
        values: Shape (n,).
        hash_slots: Shape (a power of two, more than ``most_values``,), all -1; written to.
        most_values: The largest number of distinct values.

    Returns:
        The number of each, shape (n,), and the different values in the order of their numbers; both empty where there are more.
    """
    numbers, known = np.empty(values.shape[0], np.int32), np.empty(most_values, np.int64)
    shift, mask, size = np.uint64(64), np.uint64(hash_slots.shape[0] - 1), 0
    while np.int64(1) << np.int64(np.uint64(64) - shift) < hash_slots.shape[0]:
        shift -= np.uint64(1)
    for row in range(values.shape[0]):
        value = values[row]
        # The highest bits of the product alone depend on all bits of the value: those of floats often end in zeros.
        place = (np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> shift
        while hash_slots[place] >= 0 and known[hash_slots[place]] != value:
            place = (place + np.uint64(1)) & mask
        if hash_slots[place] < 0:
            if size == most_values:
                return numbers[:0].copy(), known[:0].copy()
            hash_slots[place] = size
            known[size] = value
            size += 1
        numbers[row] = hash_slots[place]
    return numbers, known[:size].copy()


@kernel
def find_cells(wanted: NDArray[np.int64], cells: NDArray[np.int64], position_table: Counts) -> NDArray[np.int32]:
    """Look up each cell number in a position table; return its position, -1 if unknown, shape (n,).

    Args:
        wanted: Shape (n,).
        cells: Shape (cells,), without repeats.
        position_table: What ``fill_position_table`` made of them.
    """
    found, mask = np.empty(wanted.shape[0], np.int32), np.uint64(position_table.shape[0] - 1)
    for row in range(wanted.shape[0]):
        place = ((np.uint64(wanted[row]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while position_table[place] >= 0 and cells[position_table[place]] != wanted[row]:
            place = (place + np.uint64(1)) & mask
        found[row] = position_table[place]
    return found


@kernel
def fill_position_table(cells: NDArray[np.int64], position_table: Counts) -> None:
    """Write the position of each cell into a position table, a hash table that is all -1 before.

    Args:
        cells: Shape (cells,), without repeats.
        position_table: Shape (a power of two, more than there are cells,), all -1; written to.
    """
    mask = np.uint64(position_table.shape[0] - 1)
    for row in range(cells.shape[0]):
        place = ((np.uint64(cells[row]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while position_table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        position_table[place] = row


def _add_numbers(cells: Counts, counts: Counts, dense: Counts) -> None:
    np.add.at(dense, cells, counts)


@small_in(_add_numbers)
@kernel
def add_numbers(cells: Counts, counts: Counts, dense: Counts) -> None:
    """Add each count to the entry of ``dense`` at its cell number, in place; both of shape (n,)."""
    for row in range(cells.shape[0]):
        dense[cells[row]] += counts[row]


def _count_numbers(numbers: NDArray[np.signedinteger[Any]], counts: NDArray[np.int64]) -> None:
    np.add.at(counts, numbers[numbers >= 0], 1)


@small_in(_count_numbers)
@kernel
def count_numbers(numbers: NDArray[np.signedinteger[Any]], counts: NDArray[np.int64]) -> None:
    """Add 1 to the entry of ``counts`` at each occurrence of its number; shape (n,), negative for none."""
    for number in numbers:
        if number >= 0:
            counts[number] += 1


def _entries_at(entries: NDArray[Any], positions: NDArray[np.int32]) -> NDArray[Any]:
    found: NDArray[Any] = entries[positions]
    return found


@small_in(_entries_at)
@kernel
def entries_at(entries: NDArray[Any], positions: NDArray[np.int32]) -> NDArray[Any]:
    """Return the entry at each position, shape (n,).

    NumPy would first convert the positions to the width of addresses, which takes longer than the look-up.
    """
    found = np.empty(positions.shape[0], entries.dtype)
    for row in range(positions.shape[0]):
        found[row] = entries[positions[row]]
    return found


def _occupied(dense: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    cells = np.flatnonzero(dense)
    return cells, dense[cells].astype(np.int64)


@small_in(_occupied)
@kernel
def occupied(dense: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of entries that are not 0, ascending, and these entries, both int64."""
    size = 0
    for count in dense:
        size += count != 0
    # Counted first, so that nothing is allocated for cells that are empty.
    cells, counts = np.empty(size, np.int64), np.empty(size, np.int64)
    at = 0
    for position in range(dense.shape[0]):
        if dense[position] != 0:
            cells[at] = position
            counts[at] = dense[position]
            at += 1
    return cells, counts


def _unpack_cells(cells: NDArray[np.int64], sizes: NDArray[np.int64], first: int, codes: Codes) -> None:
    rest = cells
    for qid in range(len(sizes) - 1, -1, -1):
        coarser = rest // sizes[qid]
        codes[:, first + qid] = rest - coarser * sizes[qid]
        rest = coarser


@small_in(_unpack_cells)
@kernel
def unpack_cells(cells: NDArray[np.int64], sizes: NDArray[np.int64], first: int, codes: Codes) -> None:
    """Unpack mixed-radix cell numbers into groups, written to columns of ``codes`` from ``first`` on.

    Args:
        cells: Shape (n,).
        sizes: Number of groups of each QID of this word.
        first: Column of ``codes`` for the first of them.
        codes: Shape (n, QIDs), written to.
    """
    for row in range(cells.shape[0]):
        rest = cells[row]
        for qid in range(sizes.shape[0] - 1, -1, -1):
            # One division: the remainder is what is left of it.
            coarser = rest // sizes[qid]
            codes[row, first + qid] = rest - coarser * sizes[qid]
            rest = coarser


@kernel
def mark_cells(cells: NDArray[np.int64], marks: NDArray[np.uint8], share: int, share_count: int) -> int:
    """Set the bits that cells hash to in one share of all bits, ``marks``; return the number of new bits.

    Args:
        cells: Shape (n,).
        marks: Shape (a power of two,), eight marks a byte: those of the share.
        share: Which share of all marks it is.
        share_count: How many there are, a power of two.
    """
    size, new = np.uint64(marks.shape[0] * 8), 0
    mask, first = np.uint64(marks.shape[0] * 8 * share_count - 1), np.uint64(marks.shape[0] * 8 * share)
    for cell in cells:
        # The finaliser of SplitMix64.
        mixed = np.uint64(cell) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        place = ((mixed ^ (mixed >> np.uint64(31))) & mask) - first
        # What lies below the share wraps round to far above it.
        if place < size:
            mark = np.uint8(1 << (place & np.uint64(7)))
            new += (marks[place >> np.uint64(3)] & mark) == 0
            marks[place >> np.uint64(3)] |= mark
    return new
