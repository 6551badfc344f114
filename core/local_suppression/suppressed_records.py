"""Treatment of suppressed records: further passes, suppressed cells, a mask, or dropping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import Packing, single_word
from core.columns.domains import Domain
from core.histograms.histogram import Histogram
from core.local_suppression.cell_suppression import Bools, CellSuppression, choose_suppressed_cells
from core.local_suppression.local_transformation import NodeEvaluator, unsafe_cells
from core.local_suppression.recoding import RecodedPart
from core.local_suppression.residual import Integers, RareCombinations, Residual, ResidualLevel
from core.privacy.promise import Promise
from core.recoding.recoding import Treatment
from core.units.class_table import joined_members
from core.units.losses import group_penalties
from core.units.unit import Records
from schemas.job.privacy import SUPPRESSIONS

MOST_TRIED = 4096
"""Classes that are tried alone, those first that lose least."""
UnitsOf = Callable[[Integers, int], Integers]
"""Returns the units of each mask, shape (size,), given the mask to which each class of all lenders is given, each with all that is left,
negative for none; and how many masks there are."""


@dataclass(frozen=True, eq=False)
class MaskableClasses:
    """Published classes of one part that may be masked together with suppressed records.

    Attributes:
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


def classes_to_mask(unpublished: RareCombinations, maskable: Sequence[MaskableClasses], promise: Promise) -> list[NDArray[np.bool_]] | None:
    """Return by part what to mask so that the mask has k units; None if none is safe and worth its loss.

    What a part is to have masked is a mask of its published combinations.

    Args:
        unpublished: What is not published.
        maskable: Classes that may be masked, part by part.
        promise: Says how many units the mask must have; no class is masked for the sake of sensitive values.
    """
    sizes = [Records(lender.cells.counts).count(lender.classes, lender.size) for lender in maskable]
    counts, records, losses = np.concatenate([np.empty(0, np.int64), *sizes]), int(unpublished.counts.sum()), _losses(maskable)
    order = np.argsort(losses, kind="stable")
    # What a mask takes from classes must not be more than what it saves.
    order = order[np.cumsum(counts[order]) <= records]
    if not len(order) or not records:
        return None
    units = _units_of(unpublished, maskable, counts)

    def fails(groups: Integers, size: int) -> NDArray[np.bool_]:
        return promise.too_few(units(groups, size))

    def given(chosen: Integers) -> list[NDArray[np.bool_]]:
        marks = np.zeros(len(counts), np.bool_)
        marks[chosen] = True
        return [marks[start + lender.classes] for start, lender in zip(_starts(maskable), maskable, strict=False)]

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


def _starts(lenders: Sequence[MaskableClasses]) -> Integers:
    """Return the number of each part's first class, and last the number of all classes."""
    return np.cumsum([0, *(lender.size for lender in lenders)])


def _losses(lenders: Sequence[MaskableClasses]) -> NDArray[np.float64]:
    """Return the loss of masking each class of all parts."""
    lost = [np.bincount(lender.classes, weights=lender.gains * lender.cells.counts, minlength=lender.size) for lender in lenders]
    return np.concatenate([np.empty(0), *lost])


def _units_of(left: RareCombinations, lenders: Sequence[MaskableClasses], counts: Integers) -> UnitsOf:
    """Return a function that counts the units of masks.

    Args:
        left: What is not published.
        lenders: Classes that may be masked, part by part.
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
    before, classes, persons = joined.owners == 0, joined.owners - 1, joined.selected_persons.persons
    return lambda groups, size: mine + persons.persons_not_before(before, np.append(groups, -1)[classes], size)


@dataclass(frozen=True, eq=False)
class TreatedRecords:
    """Result of a treatment: the published parts and the unpublished records.

    Attributes:
        parts: The node of all, one for each further pass, and the other records with suppressed or masked cells.
        unpublished: Shape (cells,), records of the cells that are in no part.
        least: Fewest suppressed cells of the last part; None if that is not known.
        uneven: Records of classes that are large enough and fail, which are left out with all they hold. Other records that are dropped or
            masked lack k at the node of all.
        dropped: By node, the cells of such classes, whose records later parts must not take up.
    """

    parts: list[RecodedPart]
    unpublished: NDArray[np.int64]
    least: int | None
    uneven: int = 0
    dropped: tuple[Histogram, ...] = ()


def treat_suppressed(
    levels: Sequence[ResidualLevel], left: Residual, treatment: Treatment, evaluator: NodeEvaluator, domains: Sequence[Domain]
) -> TreatedRecords:
    """Suppress cells of, mask or drop records too rare after all passes; return all published parts.

    Suppressed cells are chosen by k alone, and so are masked records. A pool, or the mask, that turns out to break l or t is left out
    completely.

    Args:
        levels: The node of all, and that of each further pass.
        left: What is too rare at the last of them.
        treatment: ``drop``, ``mask`` or ``cell``. Records that no set of suppressed cells but all of them brings into a class are masked.
        evaluator: Looks at nodes.
        domains: One per QID.
    """
    parts = [RecodedPart.of(level, ~level.failing) for level in levels]
    rest, cells, stars = _starred(levels, left, evaluator, domains, SUPPRESSIONS[treatment].stars)
    over = np.flatnonzero(~stars.published)
    if SUPPRESSIONS[treatment].masks and len(over):
        # With l or t no class is given back: which ones there are follows from sensitive values.
        lends = not evaluator.promise.models
        lenders = [_lenders(combinations_of(level, evaluator, domains), ~level.failing, None) for level in levels[1:] if lends]
        lenders += [_lenders(cells, stars.published, stars.suppressed_cells)] if lends else []
        given = masked_with(cells.take(over), lenders, evaluator.promise.of_size)
        if given is not None:
            parts, stars = _masked(parts, given), _all_masked(stars, over, given[-1] if lends else np.zeros(0, np.bool_))
    enough = stars.published
    broken = enough & _broken(cells, stars, evaluator)
    if broken.any():
        stars = replace(stars, published=stars.published & ~broken, least=None)
    dropped = tuple(level.dropped for level in levels)
    records = np.concatenate([one.counts for one in dropped])
    treated = _with_rest(parts, rest, stars, records, evaluator)
    # Pools break the promise by themselves, or together with other classes that publish the same.
    pooled = sum(part.cells.records for part in treated.parts[len(parts) :])
    return replace(treated, uneven=int(records.sum() + cells.counts[enough].sum()) - pooled, dropped=dropped)


def _broken(cells: RareCombinations, stars: CellSuppression, evaluator: NodeEvaluator) -> Bools:
    """Return a mask of the published combinations in pools that break the promise, shape (combinations,)."""
    broken, rows = np.zeros(len(stars.published), np.bool_), np.flatnonzero(stars.published)
    # Without models a pool was made large enough, perhaps by classes of other parts, which are not looked at here.
    if len(rows) and evaluator.promise.models:
        mine = cells.take(rows)
        pools = _classes(mine.codes, stars.suppressed_cells[rows])
        broken[rows] = mine.classes.grouped(pools, int(pools.max()) + 1).failing(evaluator.promise)[pools]
    return broken


def _masked(parts: Sequence[RecodedPart], given: Sequence[Bools]) -> list[RecodedPart]:
    """Suppress all QIDs of the given combinations in the later parts."""
    later = [replace(part, suppressed_cells=part.suppressed_cells | marks[:, None]) for part, marks in zip(parts[1:], given, strict=False)]
    return [*parts[:1], *later, *parts[1 + len(later) :]]


def _all_masked(stars: CellSuppression, over: NDArray[np.intp], given: Bools) -> CellSuppression:
    """Suppress all QIDs of unpublished and given combinations, so that all are published."""
    starred = stars.suppressed_cells.copy()
    starred[np.flatnonzero(stars.published)[: len(given)][given]] = True
    starred[over] = True
    return CellSuppression(starred, np.ones(len(starred), np.bool_), None)


def _with_rest(
    parts: Sequence[RecodedPart], rest: ResidualLevel, stars: CellSuppression, dropped: Integers, evaluator: NodeEvaluator
) -> TreatedRecords:
    """Add the treated residual records to the parts.

    Classes are left out that would be unsafe together with others of equal labels.
    """
    published, least = stars.published.copy(), stars.least
    while published.any():
        last = RecodedPart.of(rest, published, stars.suppressed_cells)
        failing = unsafe_cells([*parts, last], evaluator.promise, evaluator.hierarchies)[-1]
        if not failing.any():
            return TreatedRecords([*parts, last], np.append(dropped, rest.cells.counts[~published]), least)
        published[np.flatnonzero(published)[failing]], least = False, None
    return TreatedRecords(list(parts), np.append(dropped, rest.cells.counts), least)


def masked_with(unpublished: RareCombinations, maskable: Sequence[MaskableClasses], promise: Promise) -> list[Bools] | None:
    """Return by part what to mask with suppressed records, nothing if they are k; None if none is safe."""
    whole = unpublished.classes.union(np.ones(len(unpublished.counts), np.bool_))
    if not promise.too_few(whole.units)[0]:
        return [np.zeros(len(lender.classes), np.bool_) for lender in maskable]
    return classes_to_mask(unpublished, maskable, promise)


def combinations_of(level: ResidualLevel, evaluator: NodeEvaluator, domains: Sequence[Domain]) -> RareCombinations:
    """Return all cells of a level as combinations, with the NCP that suppressing each QID would add."""
    codes = level.cells.codes
    penalties = [
        group_penalties(hierarchy, domain, one)[codes[:, qid]]
        for qid, (hierarchy, domain, one) in enumerate(zip(evaluator.hierarchies, domains, level.node, strict=True))
    ]
    return RareCombinations.of(level, 1 - np.stack(penalties, axis=1))


def _starred(
    levels: Sequence[ResidualLevel], left: Residual, evaluator: NodeEvaluator, domains: Sequence[Domain], stars: bool
) -> tuple[ResidualLevel, RareCombinations, CellSuppression]:
    """Suppress cells of the residual records at the node where it costs least.

    Ties go to the first node.
    """
    tried = []
    for level in levels if stars else levels[-1:]:
        rest = evaluator.at(left, level.node)
        cells = combinations_of(rest, evaluator, domains)
        nothing = CellSuppression(np.zeros(cells.codes.shape, np.bool_), np.zeros(len(cells.counts), np.bool_), None)
        tried.append((rest, cells, choose_suppressed_cells(cells, evaluator.promise.of_size) if stars else nothing))
    # min takes the first of equals, which is the node of all before any round.
    return min(tried, key=lambda one: one[2].cost(one[1]))


def _lenders(cells: RareCombinations, published: NDArray[np.bool_], starred: NDArray[np.bool_] | None) -> MaskableClasses:
    """Return the published combinations of a part as classes that may be masked."""
    rows = np.flatnonzero(published)
    mine = cells.take(rows)
    if starred is None:
        return MaskableClasses(mine, np.arange(len(rows)), mine.gains.sum(axis=1))
    return MaskableClasses(mine, _classes(mine.codes, starred[rows]), np.where(starred[rows], 0.0, mine.gains).sum(axis=1))


def _classes(codes: NDArray[np.unsignedinteger], starred: NDArray[np.bool_]) -> Integers:
    """Return the class of each combination by its labels; a suppressed cell is a group of its own."""
    if not len(codes):
        return np.empty(0, np.int64)
    packing = Packing(tuple(int(size) + 2 for size in codes.max(axis=0)))
    groups = np.where(starred, np.array(packing.sizes) - 1, codes)
    return np.unique(single_word(packing.pack(tuple(groups.T))), return_inverse=True)[1].astype(np.int64)
