"""Kernels that digest and sum the rows of several tables, compiled by numba.

The digest of a multiset is the sum of the digests of its members (Clarke and others, ASIACRYPT 2003), here in two lanes of 64 bits that are
keyed by a secret. It is commutative, so that rows may come in any order. The digests of rows below a row enter the row's own digest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler

kernel = compiler("relational.kernels")

Lanes = NDArray[np.uint64]
Numbers = NDArray[np.uint32]
NOWHERE = np.uint32(0xFFFFFFFF)
"""The parent of a row that is not published."""


@kernel
def mix_bits(value: np.uint64) -> np.uint64:
    """Mix the bits of a number with the finaliser of SplitMix64.

    Steele, Lea and Flood, OOPSLA 2014.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def row_digest(
    codes: Numbers, groups: Numbers, starts: NDArray[np.int64], below: Lanes, row: int, seeds: Lanes
) -> tuple[np.uint64, np.uint64]:
    """Return the digest, two words, of a row's labels and of the rows below it.

    Arguments are those of ``add_rows``.
    """
    first, second = mix_bits(seeds[0]), mix_bits(seeds[1])
    for column in range(codes.shape[0]):
        group = np.uint64(groups[starts[column] + codes[column, row]])
        first = mix_bits(first + group + np.uint64(0x9E3779B97F4A7C15))
        second = mix_bits(second ^ (group * np.uint64(0xD1342543DE82EF95) + np.uint64(0x632BE59BD9B4E019)))
    if below.shape[0]:
        first = mix_bits(mix_bits(first + below[row, 0]) + below[row, 1])
        second = mix_bits(mix_bits(second ^ below[row, 1]) + below[row, 0])
    return first, second


@kernel
def digests_of_rows(
    codes: Numbers, groups: Numbers, starts: NDArray[np.int64], below: Lanes, rows: NDArray[np.int64], seeds: Lanes
) -> Lanes:
    """Return the digests of the rows with the given numbers, shape (chosen, 2).

    Other arguments are those of ``add_rows``.
    """
    found = np.empty((rows.shape[0], 2), np.uint64)
    for place in range(rows.shape[0]):
        found[place, 0], found[place, 1] = row_digest(codes, groups, starts, below, rows[place], seeds)
    return found


@kernel
def digests_of_numbers(numbers: NDArray[np.uint64], seeds: Lanes) -> Lanes:
    """Return a digest of each number, shape (n, 2)."""
    found = np.empty((numbers.shape[0], 2), np.uint64)
    for place in range(numbers.shape[0]):
        found[place, 0] = mix_bits(seeds[0] + mix_bits(numbers[place]))
        found[place, 1] = mix_bits(seeds[1] ^ mix_bits(numbers[place] + np.uint64(0x9E3779B97F4A7C15)))
    return found


@kernel
def add_rows(
    codes: Numbers, groups: Numbers, starts: NDArray[np.int64], below: Lanes, parents: Numbers, depths: Numbers, depth: int, seeds: Lanes,
    sums: Lanes,
) -> None:  # fmt: skip
    """Add the digest of each row at one depth to the digest sum of its parent row or person, ``sums``.

    Args:
        codes: Shape (columns, rows), the code of each value.
        groups: The group of every code at the node, column after column.
        starts: Shape (columns,), where those of each column begin.
        below: Shape (rows, 2), what hangs from each row; shape (0, 2) where nothing does.
        parents: Shape (rows,), the row that each hangs from, ``NOWHERE`` of those that are not published.
        depths: Shape (rows,), in which of the tables above.
        depth: Of the rows that are added here.
        seeds: Shape (2,), secret, of the table and the depth.
        sums: Shape (parents, 2); added to.
    """
    for row in range(parents.shape[0]):
        if parents[row] == NOWHERE or depths[row] != depth:
            continue
        first, second = row_digest(codes, groups, starts, below, row, seeds)
        sums[parents[row], 0] += first
        sums[parents[row], 1] += second


@kernel
def cost_of_lost(
    codes: Numbers, extra: NDArray[np.float64], starts: NDArray[np.int64], persons: Numbers, parents: Numbers, lost: NDArray[np.bool_]
) -> float:
    """Return the extra cost of withholding the published rows of persons who are left out.

    Args:
        codes: Shape (columns, rows).
        extra: What withholding a value adds, by code, column after column.
        starts: Shape (columns,), where those of each column begin.
        persons: Shape (rows,), whose row each is.
        parents: Shape (rows,), ``NOWHERE`` of rows that are not published anyway.
        lost: Shape (persons,), who is left out.
    """
    total = 0.0
    for row in range(parents.shape[0]):
        if parents[row] != NOWHERE and lost[persons[row]]:
            for column in range(codes.shape[0]):
                total += extra[starts[column] + codes[column, row]]
    return total
