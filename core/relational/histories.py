"""Profiles and histories of persons as numbers; who shares each choice of few rows.

A person's profile in each part of the tables is a number; the numbers of all parts make the history.

For k^m-anonymity see Terrovitis, Mamoulis and Kalnis, VLDB 2008; Poulis and others, 2013.

A choice is a multiset of at most m of a person's rows of each table, with the labels of the person's row. Its digest is the sum of those of
its parts, so that equal choices have equal digests. A person stays if every choice is shared by k persons who stay. The largest such set is
found by leaving out persons with a rare choice, again and again. At coarser levels it is no smaller.

The digest of a multiset is the sum of the digests of its members (Clarke and others, ASIACRYPT 2003), here in two lanes of 64 bits that are
keyed by a secret. It is commutative, so that rows may come in any order. The digests of rows below a row enter the row's own digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler
from core.units.digests import mix

kernel = compiler("relational.histories")

Lanes = NDArray[np.uint64]
Numbers = NDArray[np.uint32]
NOWHERE = np.uint32(0xFFFFFFFF)
"""The parent of a row that is not published."""


@kernel
def row_digest(
    codes: Numbers, groups: Numbers, starts: NDArray[np.int64], below: Lanes, row: int, seeds: Lanes
) -> tuple[np.uint64, np.uint64]:
    """Return the digest, two words, of a row's labels and of the rows below it.

    Arguments are those of ``add_rows``.
    """
    first, second = mix(seeds[0]), mix(seeds[1])
    for column in range(codes.shape[0]):
        group = np.uint64(groups[starts[column] + codes[column, row]])
        first = mix(first + group + np.uint64(0x9E3779B97F4A7C15))
        second = mix(second ^ (group * np.uint64(0xD1342543DE82EF95) + np.uint64(0x632BE59BD9B4E019)))
    if below.shape[0]:
        first = mix(mix(first + below[row, 0]) + below[row, 1])
        second = mix(mix(second ^ below[row, 1]) + below[row, 0])
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
        found[place, 0] = mix(seeds[0] + mix(numbers[place]))
        found[place, 1] = mix(seeds[1] ^ mix(numbers[place] + np.uint64(0x9E3779B97F4A7C15)))
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


MOST = 1 << 62
"""What a number that stands for several may not pass."""
DENSE = 4
"""Up to how many times their count numbers reach that are counted in an array."""


@dataclass(frozen=True)
class Profile:
    """Profile number of each person in one part of the tables.

    Attributes:
        numbers: Shape (persons,), unsigned, from 0.
        size: More than any of them.
    """

    numbers: NDArray[np.unsignedinteger]
    size: int


def number_profiles(sums: Lanes) -> Profile:
    """Return each person's profile number from 0 and how many there are; equal digests get equal numbers.

    Args:
        sums: Shape (persons, 2).
    """
    first, second = sums[:, 0], sums[:, 1]
    # In which order equal ones come does not matter, and an order that is not stable costs half.
    order = np.argsort(first)
    new = _begins(first[order])
    if (~new & _begins(second[order])).any():
        # Half a digest in common, and not the other half: the sort must look at both.
        order = np.lexsort((second, first))
        new = _begins(first[order]) | _begins(second[order])
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = (np.cumsum(new) - 1).astype(np.uint32)
    return Profile(numbers, max(int(new.sum()), 1))


def combine_profiles(parts: Sequence[Profile]) -> NDArray[np.uint64]:
    """Return a number per person, equal just where the profiles of all parts are equal, shape (persons,).

    It is exact: where the product of the sizes exceeds 62 bits, the numbers combined so far are renumbered.
    """
    first, *others = parts
    numbers, size = first.numbers.astype(np.uint64), first.size
    for part in others:
        if size * part.size > MOST:
            _, inverse = np.unique(numbers, return_inverse=True)
            numbers, size = inverse.astype(np.uint64), int(inverse.max(initial=0)) + 1
        numbers *= np.uint64(part.size)
        numbers += part.numbers
        size *= part.size
    return numbers


def failing_persons(numbers: NDArray[np.uint64], k: int) -> int:
    """Return the number of persons whose history fewer than k persons share."""
    # Of few numbers it costs less to count each than to sort all.
    sizes = np.bincount(numbers.view(np.int64)) if _are_dense(numbers) else _sizes(np.sort(numbers))
    return int(sizes[sizes < k].sum())


def class_of_each(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each person's class, shape (persons,), and each class's number of persons, shape (classes,)."""
    if _are_dense(numbers):
        counts = np.bincount(numbers.view(np.int64))
        there = counts > 0
        return (np.cumsum(there) - 1)[numbers], counts[there]
    order = np.argsort(numbers)
    new = _begins(numbers[order])
    classes = np.empty(len(order), np.int64)
    classes[order] = np.cumsum(new) - 1
    return classes, np.diff(np.append(np.flatnonzero(new), len(order)))


def _are_dense(numbers: NDArray[np.uint64]) -> bool:
    """Return whether the greatest number is small relative to the count of numbers."""
    return bool(len(numbers)) and int(numbers.max()) < DENSE * len(numbers)


def _sizes(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the lengths of runs of equal numbers."""
    return np.diff(np.append(np.flatnonzero(_begins(ordered)), len(ordered)))


def _begins(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return a mask of the positions where a run of equal numbers begins, shape (n,)."""
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return new


Integers = NDArray[np.int64]
BYTES_EACH = 80
"""What a choice takes while choices are counted, about."""


def estimate_choices(starts: Sequence[Integers], known_rows: int) -> int:
    """Estimate the choices of up to ``known_rows`` rows of each table, over all persons, at most 2^62.

    Args:
        starts: Of each table, shape (persons + 1,), where the rows of each person begin.
        known_rows: Rows of a choice of each table.
    """
    total = np.ones(len(starts[0]) - 1, np.float64) if starts else np.ones(1)
    for one in starts:
        sizes = np.diff(one)
        ways = np.array(
            [sum(comb(size, chosen) for chosen in range(known_rows + 1)) for size in range(int(sizes.max(initial=0)) + 1)], np.float64
        )
        total *= ways[sizes]
    return int(min(total.sum(), 2.0**62))


def kept_persons(of_unit: Lanes, tables: Sequence[tuple[Integers, Lanes]], known_rows: int, k: int) -> NDArray[np.bool_]:
    """Return a mask of the largest set of persons whose choices are all shared by k of them.

    The mask has the shape (persons,).

    Args:
        of_unit: Shape (persons, 2), the digest of the labels of each person's row.
        tables: Of each table where the rows of each person begin, shape (persons + 1,), and the digests of rows in the order of persons.
        known_rows: Rows of a choice of each table.
        k: Persons who must share a choice.
    """
    persons, digests = np.arange(len(of_unit)), of_unit
    for starts, rows in tables:
        mine, own = _choices_of_table(starts, rows, known_rows)
        begins = np.searchsorted(mine, np.arange(len(of_unit) + 1))
        many = np.diff(begins)[persons]
        places = np.repeat(begins[persons] - np.cumsum(many) + many, many) + np.arange(int(many.sum()))
        persons, digests = np.repeat(persons, many), np.repeat(digests, many, axis=0) + own[places]
    profile = number_profiles(digests)
    kept, choices = np.ones(len(of_unit), np.bool_), profile.numbers.astype(np.int64)
    while True:
        shared = np.bincount(choices[kept[persons]], minlength=profile.size)
        rare = np.zeros(len(of_unit), np.bool_)
        rare[persons[shared[choices] < k]] = True
        if not (rare & kept).any():
            return kept
        kept &= ~rare


def _choices_of_table(starts: Integers, rows: Lanes, most: int) -> tuple[Integers, Lanes]:
    """Return the distinct choices of at most ``most`` rows of one table: persons, ascending, and digests."""
    sizes, persons, digests = np.diff(starts), [np.arange(len(starts) - 1)], [np.zeros((len(starts) - 1, 2), np.uint64)]
    for size in np.unique(sizes).tolist():
        mine = np.flatnonzero(sizes == size)
        for chosen in range(1, min(most, size) + 1):
            ways = np.array(list(combinations(range(size), chosen)), np.int64)
            table = starts[mine][:, None, None] + ways
            persons.append(np.repeat(mine, len(ways)))
            digests.append(rows[table].sum(axis=2, dtype=np.uint64).reshape(-1, 2))
    whose, all_digests = np.concatenate(persons), np.concatenate(digests)
    order = np.lexsort((all_digests[:, 1], all_digests[:, 0], whose))
    whose, all_digests = whose[order], all_digests[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (whose[1:] != whose[:-1]) | (all_digests[1:] != all_digests[:-1]).any(axis=1)
    return whose[new], all_digests[new]
