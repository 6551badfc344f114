"""Profiles and histories of persons as numbers; who shares each choice of few rows (k^m-anonymity).

A person's profile in each part of the tables is a number; the numbers of all parts make the history.

For k^m-anonymity see Terrovitis, Mamoulis and Kalnis, VLDB 2008; Poulis and others, 2013.

A choice is a multiset of at most m of a person's rows of each table, with the labels of the person's row. Its digest is the sum of those of
its parts, so that equal choices have equal digests. A person stays if every choice is shared by k persons who stay. The largest such set is
found by leaving out persons with a rare choice, again and again. At coarser levels it is no smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from core.relational.kernels import Lanes

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
    """Return profile numbers for the digests of persons; equal digests get equal numbers.

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
    """Return one number per person that combines the profiles of all parts, shape (persons,).

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
    """Return the class of each person, shape (persons,), and the persons of each class, shape (classes,)."""
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
