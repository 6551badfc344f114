"""A mask that is no safe class by itself, made safe by classes that are given back to it.

What stars and rounds leave may hold k records and yet not k persons. Then none of it could be published, though a few records of others
among it would do. So classes that stars or rounds made are masked too, ``*`` in every QID, until the mask is safe; those first that lose
least by it, and one that does it alone before several. It happens only where the mask publishes at least as many records as it takes from
classes: never for the want of k records alone. Where a job asks for more than k it does not happen, for it would tell who lacks what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.local_suppression.combinations import Integers, RareCombinations
from core.privacy.promise import Promise
from core.units.members import joined_members
from core.units.unit import Records

MOST_TRIED = 4096
"""Classes that are tried alone, those first that lose least."""
UnitsOf = Callable[[Integers, int], Integers]
"""Returns the units of each mask, shape (size,), given the mask to which each class of all lenders is given, each with all that is left,
negative for none; and how many masks there are."""


@dataclass(frozen=True, eq=False)
class Lenders:
    """Classes that may be masked.

    Attributes:
        cells: The published combinations of one part.
        classes: Shape (combinations,), int64, dense from 0: the class of each.
        gains: Shape (combinations,), float64: what masking a record takes away, over all QIDs.
    """

    cells: RareCombinations
    classes: Integers
    gains: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Number of classes."""
        return int(self.classes.max(initial=-1)) + 1


def give_back(left: RareCombinations, lenders: Sequence[Lenders], promise: Promise) -> list[NDArray[np.bool_]] | None:
    """Returns which combinations of each part are masked together with what is left, or None if no mask is safe that is worth it.

    Args:
        left: What is not published.
        lenders: The parts whose classes may be given back.
        promise: Says how many units the mask must have; nothing is given back for the sake of sensitive values.
    """
    sizes = [Records(lender.cells.counts).count(lender.classes, lender.size) for lender in lenders]
    counts, records, losses = np.concatenate([np.empty(0, np.int64), *sizes]), int(left.counts.sum()), _losses(lenders)
    order = np.argsort(losses, kind="stable")
    # What a mask takes from classes must not be more than what it saves.
    order = order[np.cumsum(counts[order]) <= records]
    if not len(order) or not records:
        return None
    units = _units_of(left, lenders, counts)

    def fails(groups: Integers, size: int) -> NDArray[np.bool_]:
        return promise.too_few(units(groups, size))

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
    # Bisected: each question counts anew who is in a union of all that is masked.
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


def _units_of(left: RareCombinations, lenders: Sequence[Lenders], counts: Integers) -> UnitsOf:
    """Returns what counts the units of masks.

    Args:
        left: What is not published.
        lenders: The parts whose classes may be given back.
        counts: Shape (classes of all lenders,), their records.
    """
    mine = left.classes.union(np.ones(len(left.counts), np.bool_)).units
    if left.members is None:
        return lambda groups, size: mine + Records(counts).count(groups, size)
    parts = [left.members_of(np.zeros(len(left.counts), np.int64))]
    for start, lender in zip(_starts(lenders), lenders, strict=False):
        parts.append(lender.cells.members_of(lender.classes + start + 1))
    # Who is in what is left and in a class too is counted once: what is left is the class before the first.
    joined = joined_members(parts).merged()
    before, classes, persons = joined.owners == 0, joined.owners - 1, joined.whose.persons
    return lambda groups, size: mine + persons.besides(before, np.append(groups, -1)[classes], size)
