"""Compiled loops (numba) over cells and their counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.kernels import Codes, Counts
from core.columns.sorting import run_starts
from core.compiling.compiled import compiler, small_in

kernel = compiler("histograms.kernels")


def _add_code_cells(codes: Codes, *given: Counts) -> None:
    *weights, counts, dense = given
    np.add.at(dense, sum(weight[codes[:, place]] for place, weight in enumerate(weights)), counts)


@small_in(_add_code_cells)
@kernel
def add_two_code_cells(
    codes: Codes, first_weights: NDArray[np.int32], second_weights: NDArray[np.int32], counts: Counts, dense: Counts
) -> None:
    """Add each cell's count to the entry of its coarser cell in ``dense``; a cell is a pair of codes.

    It costs half as much as the loop for any number of codes.

    Args:
        codes: Shape (cells, 2).
        first_weights: What each first code adds to the number of the new cell.
        second_weights: The same of the second.
        counts: Shape (cells,).
        dense: Shape (new cells,), added to.
    """
    for row in range(codes.shape[0]):
        dense[first_weights[codes[row, 0]] + second_weights[codes[row, 1]]] += counts[row]


@small_in(_add_code_cells)
@kernel
def add_three_code_cells(
    codes: Codes,
    first_weights: NDArray[np.int32],
    second_weights: NDArray[np.int32],
    third_weights: NDArray[np.int32],
    counts: Counts,
    dense: Counts,
) -> None:
    """Add each cell's count to the entry of its coarser cell in ``dense``; a cell is three codes.

    Arguments as for ``add_two_code_cells``.
    """
    for row in range(codes.shape[0]):
        dense[first_weights[codes[row, 0]] + second_weights[codes[row, 1]] + third_weights[codes[row, 2]]] += counts[row]


def _folded(counts: Counts, group_of: NDArray[np.int64]) -> tuple[NDArray[np.int64], Counts]:
    """Return the groups that have entries, and the sums of their entries along the second axis."""
    order = np.argsort(group_of, kind="stable")
    groups = group_of[order]
    starts = run_starts(groups)
    return groups[starts], np.add.reduceat(counts[:, order], starts, axis=1)


def _fold_axis(counts: Counts, group_of: NDArray[np.int64], out: Counts, first: int, last: int, left: int, right: int) -> None:
    groups, sums = _folded(counts[first:last, :, left:right], group_of)
    out[first:last, groups, left:right] += sums


@small_in(_fold_axis)
@kernel
def fold_axis(counts: Counts, group_of: NDArray[np.int64], out: Counts, first: int, last: int, left: int, right: int) -> None:
    """Sum a 3-D count array by groups of its middle axis, within bounds on the outer and inner axes.

    Args:
        counts: Shape (outer, entries, inner).
        group_of: Shape (entries,), the group of each.
        out: Shape (outer, groups, inner), added to.
        first: Where to begin on the outer axis.
        last: Where to end on it.
        left: Where to begin on the inner axis.
        right: Where to end on it.
    """
    for row in range(first, last):
        for entry in range(counts.shape[1]):
            group = group_of[entry]
            for place in range(left, right):
                out[row, group, place] += counts[row, entry, place]


def _fold_last(counts: Counts, group_of: NDArray[np.int64], out: Counts) -> None:
    groups, sums = _folded(counts, group_of)
    out[:, groups] += sums


@small_in(_fold_last)
@kernel
def fold_last(counts: Counts, group_of: NDArray[np.int64], out: Counts) -> None:
    """Add entries to their group in ``out`` along the last of two axes.

    Args:
        counts: Shape (outer, entries).
        group_of: Shape (entries,), the group of each.
        out: Shape (outer, groups), added to.
    """
    for row in range(counts.shape[0]):
        group, total = group_of[0], counts[row, 0]
        for entry in range(1, counts.shape[1]):
            # Neighbours are mostly of one group: added up in a register, they do not wait for one another's way through memory.
            if group_of[entry] != group:
                out[row, group] += total
                group, total = group_of[entry], counts[row, entry]
            else:
                total += counts[row, entry]
        out[row, group] += total


def _occupied_counts(counts: Counts) -> NDArray[np.int64]:
    found: NDArray[np.int64] = counts[counts != 0].astype(np.int64)
    return found


@small_in(_occupied_counts)
@kernel
def occupied_counts(counts: Counts) -> NDArray[np.int64]:
    """Return the counts that are not 0, in their order, as int64."""
    found = np.empty(counts.shape[0] + 1, np.int64)
    at = 0
    for count in counts:
        # Written in any case: to guess what comes next costs more.
        found[at] = count
        at += count != 0
    # A slice would keep room for all.
    return found[:at].copy()


@kernel
def tally_runs(
    rows: NDArray[np.int64],
    heads: NDArray[np.int64],
    ends: NDArray[np.int64],
    bits: int,
    tally: NDArray[np.int64],
    large: NDArray[np.int64],
) -> int:
    """Sum counts of equal numbers over sorted runs; tally small sums, list large ones, return how many.

    Args:
        rows: Shape (n,), run after run, each ascending: a number, and in its lowest bits a count.
        heads: Shape (runs,), where each begins; written to.
        ends: Shape (runs,), where each ends.
        bits: How many bits a count has.
        tally: Shape (small sums,), gets how many sums there are of each.
        large: Gets the sums that are no less than there are small ones; long enough for them.
    """
    mask, found = (1 << bits) - 1, 0
    while True:
        least = np.int64(-1)
        for run in range(heads.shape[0]):
            if heads[run] < ends[run]:
                number = rows[heads[run]] >> bits
                if least < 0 or number < least:
                    least = number
        if least < 0:
            return found
        total = np.int64(0)
        for run in range(heads.shape[0]):
            while heads[run] < ends[run] and rows[heads[run]] >> bits == least:
                total += rows[heads[run]] & mask
                heads[run] += 1
        if total < tally.shape[0]:
            tally[total] += 1
        else:
            large[found] = total
            found += 1


def _pack_counts(cells: NDArray[np.int64], counts: NDArray[np.int64], low: int, bits: int, rows: NDArray[np.int64]) -> None:
    rows[: len(cells)] = ((cells - low) << bits) | counts


@small_in(_pack_counts)
@kernel
def pack_counts(cells: NDArray[np.int64], counts: NDArray[np.int64], low: int, bits: int, rows: NDArray[np.int64]) -> None:
    """Pack each cell less ``low``, with its count in the lowest ``bits`` bits, into a number of ``rows``.

    Args:
        cells: Shape (n,), none below ``low``.
        counts: Shape (n,).
        low: What is taken from each cell.
        bits: How many a count has at most.
        rows: At least n of them, written to.
    """
    for row in range(cells.shape[0]):
        rows[row] = ((cells[row] - low) << bits) | counts[row]


def _sum_packed(rows: NDArray[np.int64], low: int, bits: int, cells: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    numbers = rows >> bits
    starts = run_starts(numbers)
    cells[: len(starts)] = numbers[starts] + low
    counts[: len(starts)] = np.add.reduceat(rows & ((1 << bits) - 1), starts)
    return len(starts)


@small_in(_sum_packed)
@kernel
def sum_packed(rows: NDArray[np.int64], low: int, bits: int, cells: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Write the distinct cells and summed counts to ``cells`` and ``counts``; return how many there are.

    Args:
        rows: Shape (n,), n ≥ 1, as ``pack_counts`` makes them.
        cells: Shape (n,), gets the different cells.
        counts: Shape (n,), gets their sums.
    """
    mask, at = (1 << bits) - 1, 0
    cell, total = rows[0] >> bits, rows[0] & mask
    for row in range(1, rows.shape[0]):
        if rows[row] >> bits == cell:
            total += rows[row] & mask
        else:
            cells[at], counts[at] = cell + low, total
            at += 1
            cell, total = rows[row] >> bits, rows[row] & mask
    cells[at], counts[at] = cell + low, total
    return at + 1
