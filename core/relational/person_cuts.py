"""Mondrian over persons: the axes they are cut by, and classes of k persons or more.

Compiled by numba.

The axes of a person are the ranks of values in the order of the leaves of their hierarchy, so that those of a group are neighbours. The
axis with the largest gain is cut (LeFevre and others, ICDE 2006). The gain is the cost of its label, in proportion to the occurring groups
one level below, times its weight. The cut is between these groups, as near to the median as k allows. It is between finer groups where no
such cut keeps k on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.sorting import run_starts
from core.compiling.compiled import compiler
from core.hierarchies.hierarchy import Hierarchy

kernel = compiler("relational.person_cuts")

Integers = NDArray[np.int64]
Numbers = NDArray[np.uint32]
Splits = Callable[[Integers, Integers], NDArray[np.bool_]]
"""Returns a mask of cuts, given persons and the cuts as of ``PersonCutTree``, which share no person."""


@dataclass(frozen=True)
class PersonAxis:
    """Axis by which persons are cut: ranks, groups and penalties.

    Attributes:
        ranks: Shape (persons,), the rank of each person, from 0.
        groups: The group of each rank, level after level from the finest, each ascending; the last level has one group.
        penalties: What a value costs that is published at that level, by rank, laid out like ``groups``.
        weight: How much it counts.
    """

    ranks: NDArray[np.integer[Any]]
    groups: Sequence[Numbers]
    penalties: Sequence[NDArray[np.float64]]
    weight: float


class PersonCutTree(NamedTuple):
    """Persons in the order of their classes, with the cuts that made these.

    Attributes:
        members: Shape (n,), the persons.
        cuts: Shape (cuts, 3): where the persons that are cut begin, where their right half begins, and where they end. Each cut comes
            after the one that made its persons.
    """

    members: Integers
    cuts: Integers

    @property
    def classes(self) -> list[Integers]:
        """The numbers of the persons in each class, an array per class."""
        return np.split(self.members, np.sort(self.cuts[:, 1]))


def allowed_classes(trees: Sequence[PersonCutTree], splits: Splits) -> list[Integers]:
    """Return the person numbers of each class if ``splits`` permits only some cuts, from the root cuts on.

    Args:
        trees: Of different persons.
        splits: Says of the cuts of persons that are not yet cut which ones are made.
    """
    begins = np.cumsum([0, *(len(tree.members) for tree in trees)]).tolist()
    members = np.concatenate([np.zeros(0, np.int64), *(tree.members for tree in trees)])
    cuts = [(tree.cuts + begin).tolist() for tree, begin in zip(trees, begins, strict=False)]
    halves = {(first, end): middle for of_tree in cuts for first, middle, end in of_tree}
    waiting, made = list(pairwise(begins)), begins[1:-1]
    # The cuts of one depth share no person, so that all trees are asked at once.
    while asked := [(first, halves[first, end], end) for first, end in waiting if (first, end) in halves]:
        waiting = []
        for (first, middle, end), split in zip(asked, splits(members, np.array(asked)), strict=True):
            if split:
                made.append(middle)
                waiting += [(first, middle), (middle, end)]
    return np.split(members, sorted(made))


class PersonCutAxes(NamedTuple):
    """Axes of persons as arrays for kernels.

    Attributes:
        groups: Groups of ranks, axis after axis, level after level.
        penalties: Laid out like ``groups``.
        starts: Shape (axes,), where those of each axis begin.
        sizes: Shape (axes,), ranks of each.
        weights: Shape (axes,).
    """

    groups: Numbers
    penalties: NDArray[np.float64]
    starts: Integers
    sizes: Integers
    weights: NDArray[np.float64]


@kernel
def _label_level(axis: int, low: int, high: int, axes: PersonCutAxes) -> int:
    """Return the finest level at which two ranks have the same label."""
    level, place, size = 0, axes.starts[axis], axes.sizes[axis]
    while axes.groups[place + low] != axes.groups[place + high]:
        level += 1
        place += size
    return level


@kernel
def _gain(axis: int, low: int, high: int, axes: PersonCutAxes) -> float:
    """Return the possible gain from cutting an axis whose ranks go from ``low`` to ``high``."""
    level = _label_level(axis, low, high, axes)
    if not level:
        return 0.0
    size = axes.sizes[axis]
    above = axes.starts[axis] + level * size
    here, first, last = above - size, low, high
    while first and axes.groups[above + first - 1] == axes.groups[above + low]:
        first -= 1
    while last + 1 < size and axes.groups[above + last + 1] == axes.groups[above + low]:
        last += 1
    there = axes.groups[here + high] - axes.groups[here + low]
    whole = axes.groups[here + last] - axes.groups[here + first]
    fine, coarse = axes.penalties[here + low], axes.penalties[above + low]
    return float(axes.weights[axis] * (fine + (coarse - fine) * there / whole))


@kernel
def _boundary(ranks: Numbers, order: Integers, axis: int, low: int, high: int, k: int, axes: PersonCutAxes, counts: Integers) -> int:
    """Return the rank at which the right half of a cut begins; -1 if no cut keeps k in both halves."""
    size = axes.sizes[axis]
    for rank in range(low, high + 1):
        counts[rank] = 0
    for person in order:
        counts[ranks[person, axis]] += 1
    level = _label_level(axis, low, high, axes) - 1
    while level >= 0:
        place = axes.starts[axis] + level * size
        best, left, found = order.shape[0] + 1, 0, -1
        for rank in range(low, high):
            left += counts[rank]
            right = order.shape[0] - left
            if axes.groups[place + rank] != axes.groups[place + rank + 1] and left >= k and right >= k and abs(right - left) < best:
                best, found = abs(right - left), rank + 1
        if found >= 0:
            return found
        level -= 1
    return -1


@kernel
def _cut(ranks: Numbers, order: Integers, k: int, axes: PersonCutAxes) -> Integers:
    """Sort persons by class, cutting as long as allowed; return the cuts, as of ``PersonCutTree``."""
    width = ranks.shape[1]
    counts, aside = np.zeros(max(axes.sizes.max(), 1), np.int64), np.empty(order.shape[0], np.int64)
    cuts, size = np.zeros((order.shape[0] // k + 1, 3), np.int64), 0
    waiting = [(0, order.shape[0])]
    lows, highs, gains = np.zeros(width, np.int64), np.zeros(width, np.int64), np.zeros(width)
    while waiting:
        first, end = waiting.pop()
        mine = order[first:end]
        begin = -1
        if end - first >= 2 * k:
            for axis in range(width):
                lows[axis] = highs[axis] = ranks[mine[0], axis]
            for person in mine:
                for axis in range(width):
                    lows[axis], highs[axis] = min(lows[axis], ranks[person, axis]), max(highs[axis], ranks[person, axis])
            for axis in range(width):
                gains[axis] = _gain(axis, lows[axis], highs[axis], axes) if lows[axis] < highs[axis] else 0.0
            while begin < 0 and gains.max() > 0.0:
                axis = int(gains.argmax())
                begin = _boundary(ranks, mine, axis, lows[axis], highs[axis], k, axes, counts)
                gains[axis] = 0.0
        if begin < 0:
            continue
        left, right = 0, 0
        for person in mine:
            if ranks[person, axis] < begin:
                mine[left] = person
                left += 1
            else:
                aside[right] = person
                right += 1
        mine[left:] = aside[:right]
        cuts[size, 0], cuts[size, 1], cuts[size, 2] = first, first + left, end
        size += 1
        waiting.append((first + left, end))
        waiting.append((first, first + left))
    return cuts[:size]


def cut_persons(axes: Sequence[PersonAxis], persons: Integers, k: int) -> PersonCutTree:
    """Cut persons into classes of k or more by Mondrian; return persons by class, with all cuts.

    Args:
        axes: What persons are cut by.
        persons: The persons to cut, k of them or more.
        k: The fewest persons of a class.
    """
    if not axes:
        return PersonCutTree(persons, np.zeros((0, 3), np.int64))
    lengths = [len(axis.groups) * len(axis.groups[0]) for axis in axes]
    laid_out = PersonCutAxes(
        np.concatenate([level for axis in axes for level in axis.groups]).astype(np.uint32, copy=False),
        np.concatenate([level for axis in axes for level in axis.penalties]).astype(np.float64, copy=False),
        np.cumsum([0, *lengths])[:-1].astype(np.int64),
        np.array([len(axis.groups[0]) for axis in axes], np.int64),
        np.array([axis.weight for axis in axes], np.float64),
    )
    ranks = np.stack([axis.ranks[persons] for axis in axes], axis=1).astype(np.uint32)
    order = np.arange(len(persons))
    cuts = _cut(np.ascontiguousarray(ranks), order, k, laid_out)
    return PersonCutTree(persons[order], cuts)


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
    """
    found = np.full((3, person_count), NO_ROW, np.int64)
    if not len(persons):
        return found
    size = int(ranks.max()) + 1
    keys, counts = np.unique(persons * size + ranks, return_counts=True)
    whose, rank = keys // size, keys % size
    firsts = run_starts(whose)
    found[0, whose[firsts]] = rank[firsts]
    found[1, whose[firsts]] = rank[np.append(firsts[1:], len(rank)) - 1]
    order = np.lexsort((rank, -counts, whose))
    found[2, whose[firsts]] = rank[order[firsts]]
    return found
