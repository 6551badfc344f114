"""k^m-anonymity of several tables: each choice of few rows is shared by k persons.

See Terrovitis, Mamoulis and Kalnis, VLDB 2008; Poulis and others, 2013.

A choice is a multiset of at most m of a person's rows of each table, with the labels of the person's row. Its digest is the sum of those of
its parts, so that equal choices have equal digests. A person stays if every choice is shared by k persons who stay. The largest such set is
found by leaving out persons with a rare choice, again and again. At coarser levels it is no smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from core.relational.histories import number_profiles
from core.relational.kernels import Lanes

Integers = NDArray[np.int64]
BYTES_EACH = 80
"""What a choice takes while choices are counted, about."""


def number_of_choices(starts: Sequence[Integers], most: int) -> int:
    """Return the number of choices of at most ``most`` rows of each table, over all persons.

    Args:
        starts: Of each table, shape (persons + 1,), where the rows of each person begin.
        most: Rows of a choice of each table.
    """
    total = np.ones(len(starts[0]) - 1, np.float64) if starts else np.ones(1)
    for one in starts:
        sizes = np.diff(one)
        ways = np.array(
            [sum(comb(size, chosen) for chosen in range(most + 1)) for size in range(int(sizes.max(initial=0)) + 1)], np.float64
        )
        total *= ways[sizes]
    return int(min(total.sum(), 2.0**62))


def kept_persons(of_unit: Lanes, tables: Sequence[tuple[Integers, Lanes]], most: int, k: int) -> NDArray[np.bool_]:
    """Return a mask of the largest set of persons whose choices are all shared by k of them.

    The mask has the shape (persons,).

    Args:
        of_unit: Shape (persons, 2), the digest of the labels of each person's row.
        tables: Of each table where the rows of each person begin, shape (persons + 1,), and the digests of rows in the order of persons.
        most: Rows of a choice of each table.
        k: Persons who must share a choice.
    """
    persons, digests = np.arange(len(of_unit)), of_unit
    for starts, rows in tables:
        mine, own = _choices_of_table(starts, rows, most)
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
