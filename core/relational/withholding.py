"""Withheld rows: the fewest rows of failing persons to withhold so that k share each history.

The digest of a history is a sum, so that of a history without some rows is a difference. All choices of few rows are tried. A choice whose
resulting history k persons share already is taken first, then choices of several persons that result in one history. Which rows are
withheld follows from quasi-identifiers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from core.relational.histories import Lanes, number_profiles

Integers = NDArray[np.int64]
MOST_ROWS = 4
"""Rows that a choice withholds, at most, unless it withholds all."""
MOST_CHOICES, MOST_ENTRIES = 2_000, 1_000_000
"""Choices of rows of a person that are tried, and all choices of all persons in one pass."""
NONE = -1


@dataclass(frozen=True)
class FailingRows:
    """Rows right below the failing persons, in the order of persons.

    Attributes:
        starts: Shape (persons + 1,), where the rows of each person begin, and the number of rows.
        digests: Shape (rows, 2).
        weights: Shape (rows, tables), how many rows of each table a row takes with it, itself among them.
    """

    starts: Integers
    digests: Lanes
    weights: Integers


@dataclass(frozen=True)
class Choices:
    """Choices of rows to withhold, with the histories that result.

    Attributes:
        persons: Shape (choices,), ascending.
        rows: Shape (choices, width), numbers of rows, ``NONE`` where there are fewer.
        histories: Shape (choices, 2), the digest of the history that is left.
        weights: Shape (choices, tables), rows of each table that are withheld.
    """

    persons: Integers
    rows: Integers
    histories: Lanes
    weights: Integers


def rows_to_withhold(histories: Lanes, rows: FailingRows, shared: Lanes, k: int, budget: Integers) -> tuple[NDArray[np.bool_], Integers]:
    """Return a mask of failing persons who are saved, shape (persons,), and the rows to withhold for it.

    Args:
        histories: Shape (persons, 2), the histories of the persons who fail.
        rows: Their rows.
        shared: Shape (shared, 2), the histories that k persons share.
        k: How many must.
        budget: Shape (tables,), rows of each table that may be withheld.
    """
    saved, withheld, left = np.zeros(len(histories), np.bool_), list[Integers](), budget.copy()
    for most in (*range(1, MOST_ROWS + 1), None):
        while True:
            taken = _taken(_choices(histories, rows, np.flatnonzero(~saved), most), shared, k, left)
            if not len(taken.persons):
                break
            saved[taken.persons] = True
            left = left - taken.weights.sum(axis=0)
            withheld.append(taken.rows[taken.rows != NONE])
            shared = np.concatenate([shared, taken.histories])
    return saved, np.concatenate([np.zeros(0, np.int64), *withheld])


def _choices(histories: Lanes, rows: FailingRows, persons: Integers, most: int | None) -> Choices:
    """Return the choices of at most ``most`` rows of each person, the empty choice among them.

    With None, they are the choice of all rows and the empty choice.
    """
    width = max(most or int(np.diff(rows.starts).max(initial=0)), 1)
    parts = [_of_rows(histories, rows, persons, np.full((len(persons), width), NONE))]
    if most is None:
        sizes = np.diff(rows.starts)[persons]
        table = rows.starts[persons][:, None] + np.arange(width)
        parts.append(_of_rows(histories, rows, persons, np.where(np.arange(width) < sizes[:, None], table, NONE)))
    else:
        parts += [_of_rows(histories, rows, *chosen) for chosen in _combined(rows, persons, most)]
    whole = [
        np.concatenate(arrays) for arrays in zip(*((part.persons, part.rows, part.histories, part.weights) for part in parts), strict=True)
    ]
    order = np.argsort(whole[0], kind="stable")
    return Choices(*(array[order] for array in whole))


def _combined(rows: FailingRows, persons: Integers, most: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield persons with each choice of 1 to ``most`` of their rows, grouped by number of rows."""
    sizes, entries = np.diff(rows.starts)[persons], 0
    for size in np.unique(sizes).tolist():
        mine = persons[sizes == size]
        for chosen in range(1, min(most, size) + 1):
            entries += comb(size, chosen) * len(mine)
            if comb(size, chosen) > MOST_CHOICES or entries > MOST_ENTRIES:
                break
            ways = np.array(list(combinations(range(size), chosen)), np.int64)
            table = np.full((len(mine), len(ways), most), NONE)
            table[:, :, :chosen] = rows.starts[mine][:, None, None] + ways
            yield np.repeat(mine, len(ways)), table.reshape(-1, most)


def _of_rows(histories: Lanes, rows: FailingRows, persons: Integers, table: Integers) -> Choices:
    """Return choices that withhold the rows of a table, one choice per line."""
    # One more row that is nobody's, for the places that hold none.
    digests = np.concatenate([rows.digests, np.zeros((1, 2), np.uint64)])
    weights = np.concatenate([rows.weights, np.zeros((1, rows.weights.shape[1]), np.int64)])
    left, lost = histories[persons], np.zeros((len(persons), rows.weights.shape[1]), np.int64)
    for place in range(table.shape[1]):
        left = left - digests[table[:, place]]
        lost += weights[table[:, place]]
    return Choices(persons, table, left, lost)


def _taken(choices: Choices, shared: Lanes, k: int, budget: Integers) -> Choices:
    """Select the choices to apply, at most one for each person."""
    numbers = number_profiles(np.concatenate([choices.histories, shared])).numbers.astype(np.int64)
    ours, theirs = numbers[: len(choices.persons)], numbers[len(choices.persons) :]
    is_shared = np.zeros(int(numbers.max(initial=0)) + 1, np.bool_)
    is_shared[theirs] = True
    cost = choices.weights.sum(axis=1)
    if (known := np.flatnonzero(is_shared[ours])).size:
        best = _best_of_each(choices.persons, (ours, cost), known)
        return _within(choices, best, np.arange(len(best)), budget)
    # As many persons as can meet there, each counted once: two choices of one person may lead to one history.
    pairs = np.unique(choices.persons * len(is_shared) + ours)
    meeting = np.bincount(pairs % len(is_shared), minlength=len(is_shared))
    best = _best_of_each(choices.persons, (ours, cost, -meeting[ours]), np.arange(len(ours)))
    together = np.bincount(ours[best], minlength=len(is_shared))
    return _within(choices, (met := best[together[ours[best]] >= k]), ours[met], budget)


def _best_of_each(persons: Integers, keys: tuple[Integers, ...], some: Integers) -> Integers:
    """Return one choice for each person: the first when sorted by the last key, then by earlier keys."""
    order = some[np.lexsort((*(key[some] for key in keys), persons[some]))]
    first = np.concatenate([np.ones(min(len(order), 1), np.bool_), persons[order][1:] != persons[order][:-1]])
    found: Integers = order[first]
    return found


def _within(choices: Choices, chosen: Integers, groups: Integers, budget: Integers) -> Choices:
    """Return the chosen choices that fit the budget, complete groups only, the cheapest first."""
    _, group = np.unique(groups, return_inverse=True)
    size = int(group.max(initial=-1)) + 1
    weights = np.zeros((size, choices.weights.shape[1]), np.int64)
    np.add.at(weights, group, choices.weights[chosen])
    order = np.argsort(weights.sum(axis=1), kind="stable")
    fits = np.zeros(size, np.bool_)
    fits[order] = (np.cumsum(weights[order], axis=0) <= budget).all(axis=1)
    kept = chosen[fits[group]]
    return Choices(choices.persons[kept], choices.rows[kept], choices.histories[kept], choices.weights[kept])
