"""A mask that is no safe class by itself, made safe by classes that are given back to it.

What stars and rounds leave may hold k records and yet not k persons. Then none of it could be published, though a few records of others
among it would do. So classes that stars or rounds made are masked too, ``*`` in every QID, until the mask is safe; those first that lose
least by it, and one that does it alone before several. It happens only where the mask publishes at least as many records as it takes from
classes: never for the want of k records alone. Where a job asks for more than k it does not happen, for it would tell who lacks what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.local_suppression.combinations import Combinations, Integers, PeopleCombinations, Pools
from core.local_suppression.rest import joined_members
from core.privacy.models import Spread
from core.privacy.promise import Promise

MOST_TRIED = 4096
"""Classes that are tried alone, those first that lose least."""


@dataclass(frozen=True, eq=False)
class Lenders:
    """Classes that may be masked.

    Attributes:
        cells: The published combinations of one part.
        classes: Shape (combinations,), int64, dense from 0: the class of each.
        gains: Shape (combinations,), float64: what masking a record takes away, over all QIDs.
    """

    cells: Combinations
    classes: Integers
    gains: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Number of classes."""
        return int(self.classes.max(initial=-1)) + 1


class Masks(Protocol):
    """Counts what masks hold: what is left, and classes of lenders."""

    def of(self, groups: Integers, size: int) -> tuple[Integers, dict[str, Spread]]:
        """Returns what a privacy model counts of each mask, shape (size,), and how sensitive values are spread over masks.

        Args:
            groups: Shape (classes of all lenders,): the mask to which each is given, each with all that is left; negative for none.
            size: How many masks there are.
        """
        ...


def give_back(left: Combinations, lenders: Sequence[Lenders], promise: Promise) -> list[NDArray[np.bool_]] | None:
    """Returns which combinations of each part are masked together with what is left, or None if no mask is safe that is worth it.

    Args:
        left: What is not published.
        lenders: The parts whose classes may be given back.
        promise: What the mask must satisfy.
    """
    pools, losses = [lender.cells.pooled(lender.classes, lender.size) for lender in lenders], _losses(lenders)
    counts, records = np.concatenate([np.empty(0, np.int64), *(pool.records for pool in pools)]), int(left.counts.sum())
    order = np.argsort(losses, kind="stable")
    # What a mask takes from classes must not be more than what it saves.
    order = order[np.cumsum(counts[order]) <= records]
    if not len(order) or not records:
        return None
    masks: Masks = _Masks(left, pools) if not isinstance(left, PeopleCombinations) else _PeopleMasks(left, lenders)

    def fails(groups: Integers, size: int) -> NDArray[np.bool_]:
        return promise.fails(*masks.of(groups, size))

    def given(chosen: Integers) -> list[NDArray[np.bool_]]:
        marks = np.zeros(len(counts), np.bool_)
        marks[chosen] = True
        return [marks[start + lender.classes] for start, lender in zip(_starts(lenders), lenders, strict=False)]

    def first(size: int) -> Integers:
        groups = np.full(len(counts), -1)
        groups[order[:size]] = 0
        return groups

    alone = np.full(len(counts), -1)
    tried = order[:MOST_TRIED]
    alone[tried] = np.arange(len(tried))
    if len(safe := np.flatnonzero(~fails(alone, len(tried)))):
        return given(tried[safe[:1]])
    low, high = 1, len(order)
    if fails(first(high), 1)[0]:
        return None
    # Bisected: every model is asked of a union of all that is masked, and each question counts it anew.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(first(middle), 1)[0] else (low, middle)
    return given(order[:high])


def _starts(lenders: Sequence[Lenders]) -> Integers:
    """Returns the number of the first class of each part, and how many classes there are."""
    return np.cumsum([0, *(lender.size for lender in lenders)])


def _losses(lenders: Sequence[Lenders]) -> NDArray[np.float64]:
    """Returns what masking each class of all parts takes away."""
    lost = [np.bincount(lender.classes, weights=lender.gains * lender.cells.counts, minlength=lender.size) for lender in lenders]
    return np.concatenate([np.empty(0), *lost])


class _Masks:
    """Counts records, which add up.

    Args:
        left: What is not published.
        pools: The classes of each part.
    """

    def __init__(self, left: Combinations, pools: Sequence[Pools]) -> None:
        whole = left.pooled(np.zeros(len(left.counts), np.int64), 1)
        self._mine, self._whole = whole.records, whole.spreads
        self._counts = np.concatenate([pool.records for pool in pools])
        numbered = list(zip(pools, np.cumsum([0, *(len(pool.records) for pool in pools)]), strict=False))
        self._spreads = {
            name: _joined([replace(pool.spreads[name], owners=pool.spreads[name].owners + start) for pool, start in numbered])
            for name in whole.spreads
        }

    def of(self, groups: Integers, size: int) -> tuple[Integers, dict[str, Spread]]:
        """Returns what each mask holds; arguments as for ``Masks``."""
        kept = groups >= 0
        joined = np.bincount(groups[kept], weights=self._counts[kept], minlength=size).astype(np.int64) + self._mine[0]
        return joined, {name: _added(self._whole[name], spread, groups, size) for name, spread in self._spreads.items()}


class _PeopleMasks:
    """Counts persons, who may be in what is left and in classes too: a class adds those who are new.

    Args:
        left: What is not published.
        lenders: The parts whose classes may be given back.
    """

    def __init__(self, left: PeopleCombinations, lenders: Sequence[Lenders]) -> None:
        self._left = left.pooled(np.zeros(len(left.counts), np.int64), 1)
        parts = [left.cells(np.zeros(len(left.counts), np.int64))]
        for start, lender in zip(_starts(lenders), lenders, strict=False):
            assert isinstance(lender.cells, PeopleCombinations)
            parts.append(lender.cells.cells(lender.classes + start + 1))
        joined = joined_members(parts)
        self._visits, owners, self._values = joined.merged()
        self._before, self._classes = owners == 0, owners - 1

    def of(self, groups: Integers, size: int) -> tuple[Integers, dict[str, Spread]]:
        """Returns what each mask holds; arguments as for ``Masks``."""
        # What is left is the class before the first.
        mine = np.append(groups, -1)[self._classes]
        persons = self._left.persons[0] + self._visits.besides(np.zeros(len(mine), np.int64), self._before, mine, size)
        return persons, {name: self._spread(name, mine, size) for name in self._values}

    def _spread(self, name: str, mine: Integers, size: int) -> Spread:
        codes, whole = self._values[name]
        found, entries = np.unique(np.where(mine < 0, -1, mine * len(whole) + codes), return_inverse=True)
        first = int(found[0] < 0) if len(found) else 0
        new = self._visits.besides(codes, self._before, entries - first, len(found) - first)
        added = Spread(found[first:] // len(whole), found[first:] % len(whole), new, whole)
        return _added(self._left.spreads[name], added, np.arange(size), size)


def _joined(spreads: Sequence[Spread]) -> Spread:
    owners, values, counts = (
        np.concatenate(arrays) for arrays in zip(*((one.owners, one.values, one.counts) for one in spreads), strict=True)
    )
    return Spread(owners, values, counts, spreads[0].whole)


def _added(left: Spread, classes: Spread, groups: Integers, size: int) -> Spread:
    """Returns the spreads of masks, each of what is left and the classes that are added to it."""
    values, mine = len(left.whole), groups[classes.owners]
    kept = mine >= 0
    common = np.repeat(np.arange(size), len(left.values)) * values + np.tile(left.values, size)
    key = np.concatenate([common, mine[kept] * values + classes.values[kept]])
    found, inverse = np.unique(key, return_inverse=True)
    counts = np.bincount(inverse, weights=np.concatenate([np.tile(left.counts, size), classes.counts[kept]])).astype(np.int64)
    there = counts > 0
    return Spread(found[there] // values, found[there] % values, counts[there], left.whole)
