"""A mask that is no safe class by itself, made safe by classes that are given back to it.

What stars and rounds leave may hold k records and yet fail: where every class needs two sensitive values, what is left at the end has but
one. Then none of it could be published, though a few records of another kind among it would do. So classes that stars or rounds made are
masked too, ``*`` in every QID, until the mask is safe; those first that lose least by it, and one that does it alone before several. It
happens only where the mask publishes at least as many records as it takes from classes: never for the want of k records alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.local_suppression.stars import Combinations, Integers
from core.privacy.models import PrivacyModel, Spread

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


def give_back(left: Combinations, lenders: Sequence[Lenders], model: PrivacyModel) -> list[NDArray[np.bool_]] | None:
    """Returns which combinations of each part are masked together with what is left, or None if no mask is safe that is worth it.

    Args:
        left: What is not published.
        lenders: The parts whose classes may be given back.
        model: What the mask must satisfy.
    """
    counts, spreads, losses = _classes(lenders)
    order = np.argsort(losses, kind="stable")
    # What a mask takes from classes must not be more than what it saves.
    order = order[np.cumsum(counts[order]) <= int(left.counts.sum())]
    mine, whole = left.pooled(np.zeros(len(left.counts), np.int64), 1)

    def fails(groups: Integers, size: int) -> NDArray[np.bool_]:
        """Tells which masks fail, given to which each class is added; negative for none."""
        joined = np.bincount(groups[groups >= 0], weights=counts[groups >= 0], minlength=size).astype(np.int64) + mine[0]
        return model.fails(joined, {name: _added(whole[name], spreads[name], groups, size) for name in spreads})

    def given(chosen: Integers) -> list[NDArray[np.bool_]]:
        marks = np.zeros(len(counts), np.bool_)
        marks[chosen] = True
        starts = np.cumsum([0, *(lender.size for lender in lenders)])
        return [marks[start + lender.classes] for start, lender in zip(starts, lenders, strict=False)]

    def first(size: int) -> Integers:
        groups = np.full(len(counts), -1)
        groups[order[:size]] = 0
        return groups

    if not len(order) or not mine[0]:
        return None
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


def _classes(lenders: Sequence[Lenders]) -> tuple[Integers, dict[str, Spread], NDArray[np.float64]]:
    """Returns records, spreads and losses of the classes of all parts, numbered one part after the other."""
    counts, losses, spreads, start = [np.empty(0, np.int64)], [np.empty(0)], dict[str, list[Spread]](), 0
    for lender in lenders:
        mine, spread = lender.cells.pooled(lender.classes, lender.size)
        counts.append(mine)
        lost = np.bincount(lender.classes, weights=lender.gains * lender.cells.counts, minlength=lender.size)
        losses.append(lost.astype(np.float64))
        for name, one in spread.items():
            spreads.setdefault(name, []).append(Spread(one.owners + start, one.values, one.counts, one.whole))
        start += lender.size
    return np.concatenate(counts), {name: _joined(each) for name, each in spreads.items()}, np.concatenate(losses)


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
    return Spread(found // values, found % values, counts, left.whole)
