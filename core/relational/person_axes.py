"""Axes that persons are cut by: their own values, numbers of rows, and values of their rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.hierarchies.hierarchy import Hierarchy
from core.relational.person_cuts import PersonAxis

Integers = NDArray[np.int64]
NO_ROW = -1
"""The rank of persons without rows, below all others."""


def leaf_ranks(hierarchy: Hierarchy) -> Integers:
    """Return the rank of each code in the order of the hierarchy's leaves, shape (codes,).

    The values of each group are neighbours. Groups are numbered by first appearance, so that numbers and dates ascend.
    """
    order = np.lexsort(hierarchy.groups)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def value_axis(hierarchy: Hierarchy, penalties: list[NDArray[np.float64]], ranks: Integers, weight: float) -> PersonAxis:
    """Build the axis of persons' ranks in a hierarchy's leaf order.

    Args:
        hierarchy: That of the column.
        penalties: What each code costs, level by level.
        ranks: Shape (persons,), of ``leaf_ranks``, or ``NO_ROW``.
        weight: How much the axis counts.
    """
    order = np.argsort(leaf_ranks(hierarchy))
    groups, costs = list[NDArray[np.uint32]](), list[NDArray[np.float64]]()
    for level in range(hierarchy.least, hierarchy.levels):
        steps = np.diff(hierarchy.groups[level][order].astype(np.int64)) != 0
        # Whoever has no row is a group of its own below the last level.
        apart = level < hierarchy.levels - 1
        groups.append(np.concatenate([[0], [apart], steps]).cumsum().astype(np.uint32))
        costs.append(np.append(penalties[level][order[:1]], penalties[level][order]))
    return PersonAxis(ranks + 1, groups, costs, weight)


def row_count_axis(rows: Integers, weight: float) -> PersonAxis:
    """Build the axis of persons' numbers of rows; ``rows`` has the shape (persons,)."""
    values, ranks = np.unique(rows, return_inverse=True)
    size = len(values)
    lost = float(values[-1] - values[0]) / 2 if size else 0.0
    return PersonAxis(ranks, [np.arange(size, dtype=np.uint32), np.zeros(size, np.uint32)], [np.zeros(size), np.full(size, lost)], weight)


def rank_profiles(persons: Integers, ranks: Integers, person_count: int) -> Integers:
    """Return the least, greatest and most frequent rank of each person's rows, shape (3, total).

    Persons without rows have ``NO_ROW``. Of equally frequent ranks the least counts.

    Args:
        persons: Shape (rows,), whose row each is.
        ranks: Shape (rows,), from 0.
        person_count: How many persons there are.
    """
    found = np.full((3, person_count), NO_ROW, np.int64)
    if not len(persons):
        return found
    size = int(ranks.max()) + 1
    keys, counts = np.unique(persons * size + ranks, return_counts=True)
    whose, rank = keys // size, keys % size
    firsts = np.flatnonzero(np.append(True, np.diff(whose) != 0))
    found[0, whose[firsts]] = rank[firsts]
    found[1, whose[firsts]] = rank[np.append(firsts[1:], len(rank)) - 1]
    order = np.lexsort((rank, -counts, whose))
    found[2, whose[firsts]] = rank[order[firsts]]
    return found
