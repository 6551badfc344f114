"""Classes of single records that keep l and t, merged from k-anonymous classes.

Merges depend on quasi-identifiers and disclose no sensitive value.

To merge each failing class with the nearest one would reveal to a reader who knows the algorithm which of the two it was, and with it the
one value of all its persons. So classes are the leaves of a tree built from the medoids of classes alone, halved again and again by
distance (a VP-tree). From the root on, a node is split into its halves if both keep the model; else all of it is one class. That discloses
no more than the class does, for a node is not even tried where a refusal would disclose more (``core.privacy.refusals``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Points
from core.clustering.nearest import medoids, nearest
from core.clustering.vptree import VantageTree
from core.privacy.kernels import Demands, demands_of, is_compiled
from core.privacy.promise import Promise
from core.privacy.refusals import disclosing_refusals
from core.recoding.classes import records_by_class
from core.recoding.recoding import SUPPRESSED
from core.units.class_table import ClassTable
from core.units.persons import EVERY_RECORD
from core.units.unit import Records, Unit

Fails = Callable[[NDArray[np.int32]], NDArray[np.bool_]]
"""Returns which classes fail, given the class of each record (dense from 0, negative for records that are in none)."""


@dataclass(frozen=True, eq=False)
class Criteria:
    """Privacy criteria that every class must keep, with the sensitive values of the records.

    Attributes:
        promise: What is promised.
        values: Shape (n,) per sensitive column that the promise looks at: the code of each record.
        source_counts: Shape (values,) per column: how often each value occurs in the whole source.
    """

    promise: Promise
    values: Mapping[str, NDArray[np.integer]]
    source_counts: Mapping[str, NDArray[np.int64]]
    unit: Unit = EVERY_RECORD

    def failing(self, classes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return a mask of the classes that fail the promise, shape (classes,)."""
        return self._table(classes).failing(self.promise)

    def column_broken_by_holders(self) -> str | None:
        """Return the column whose too widely held value alone makes one class of all records fail; else None."""
        records = len(next(iter(self.values.values()), ()))
        if not records:
            return None
        whole = self._table(np.zeros(records, np.int32))
        return self.promise.column_broken_by_holders(whole.units, whole.spreads)

    def _table(self, classes: NDArray[np.int32]) -> ClassTable:
        """Return the class table of records that are assigned to classes."""
        spreads = {name: self.unit.spread(classes, codes.astype(np.int64), self.source_counts[name]) for name, codes in self.values.items()}
        return ClassTable(Records().per_class(classes), self.unit.per_class(classes), spreads)


def smaller_than(k: int, unit: Unit = EVERY_RECORD) -> Fails:
    """Return a function that marks classes of fewer than k persons, or k records where none are named."""
    return lambda classes: Promise(k).too_few(unit.per_class(classes))


def merge_failing(points: Points, classes: NDArray[np.int32], fails: Fails) -> tuple[NDArray[np.int32], int]:
    """Merge failing classes into the nearest until none fails or one is left; return also how many failed.

    All that fail in one pass are merged at once, so that the outcome does not depend on where one begins. Classes that are nearest to one
    another become one. Of equally near classes the one with the lower number is taken.

    Args:
        points: The records.
        classes: Shape (n,), int32, dense from 0; SUPPRESSED for records that are in none.
        fails: What a class must not do.

    Returns:
        Classes in the same form, and how many failed. A single one stays as it is, even if it fails.
    """
    merged = 0
    while True:
        failing = np.flatnonzero(fails(classes))
        order, ends = records_by_class(classes)
        if not len(failing) or len(ends) <= 2:
            return classes, merged
        merged += len(failing)
        # Medoids and not means: categories have no mean, and a medoid is found in whole numbers.
        centres = points.take(medoids(points, order, ends))
        target = np.arange(len(ends) - 1)
        target[failing] = nearest(centres.take(failing), centres, failing.astype(np.int64))
        # Two that point at one another would follow each other for ever: the lower number stays. Longer rings cannot be.
        pair = target[target] == np.arange(len(target))
        target = np.where(pair, np.minimum(target, np.arange(len(target))), target)
        while not np.array_equal(target, target[target]):
            target = target[target]
        classes = dense(np.where(classes >= 0, target[classes], SUPPRESSED).astype(np.int32))


def without_failing(classes: NDArray[np.int32], fails: Fails) -> NDArray[np.int32]:
    """Return classes with the records of failing ones SUPPRESSED and the others numbered from 0."""
    # SUPPRESSED is -1 and reads the last entry: what is in no class stays in none.
    failing = np.append(fails(classes), True)
    return dense(np.where(failing[classes], SUPPRESSED, classes))


def dense(classes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return classes renumbered from 0 without gaps, in the same order; SUPPRESSED stays."""
    used = np.bincount(classes[classes >= 0]) > 0
    numbers = np.append(np.cumsum(used) - 1, SUPPRESSED).astype(np.int32)
    return numbers[classes]


Segments = NDArray[np.int64]
HALVES = VantageTree(1, "median", "farthest")


def merge_unsafe_classes(points: Points, classes: NDArray[np.int32], criteria: Criteria) -> tuple[NDArray[np.int32], int]:
    """Merge classes until each keeps what all records as one class keep; return them and how many merged.

    Args:
        points: The records.
        classes: Shape (n,), int32, dense from 0; SUPPRESSED for records that are in none.
        criteria: What every class must keep.

    Returns:
        Classes in the same form, and how many of those before are no class by themselves now.
    """
    order, ends = records_by_class(classes)
    centres = points.take(medoids(points, order, ends))
    made, finished = np.arange(centres.size, dtype=np.int64), []
    segments, distances = np.array([[0, centres.size]], np.int64)[: centres.size], np.zeros(centres.size, np.int64)
    while len(segments):
        single = segments[:, 1] - segments[:, 0] < 2
        finished.append(segments[single])
        segments = segments[~single]
        # No draws: what a node is split by must depend on nothing but its own classes.
        cuts = segments[:, 0] + HALVES.halved(centres, made, segments, np.zeros((len(segments), 2)), distances)
        halves = np.stack([np.stack([segments[:, 0], cuts], 1), np.stack([cuts, segments[:, 1]], 1)], 1)
        split = _harmless(halves, made, classes, criteria)
        finished.append(segments[~split])
        segments = halves[split].reshape(-1, 2)
    last = np.sort(np.concatenate([np.empty(0, np.int64), *(part[:, 1] for part in finished)]))
    numbers = np.empty(centres.size + 1, np.int32)
    numbers[made] = np.searchsorted(last, np.arange(centres.size), side="right")
    numbers[-1] = SUPPRESSED
    sizes = np.bincount(numbers[:-1])
    # SUPPRESSED is -1 and reads the last entry.
    return numbers[classes], int(sizes[sizes > 1].sum())


def _harmless(halves: Segments, made: NDArray[np.int64], classes: NDArray[np.int32], criteria: Criteria) -> NDArray[np.bool_]:
    """Return a mask of nodes to split: both halves keep the model, and a refusal discloses no value.

    Args:
        halves: Shape (nodes, 2, 2), where both halves of each begin and end.
        made: Shape (classes,), the classes by their places.
        classes: Shape (n,), the class of each record.
    """
    if not len(halves):
        return np.zeros(0, np.bool_)
    parts = halves.reshape(-1, 2)
    sizes = parts[:, 1] - parts[:, 0]
    # Nodes of one level share no place: each place belongs to one half at most.
    places = np.repeat(parts[:, 0] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(sizes.sum())
    of_class = np.full(len(made) + 1, SUPPRESSED, np.int32)
    of_class[made[places]] = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
    mine = of_class[classes]
    kept = ~criteria.failing(mine).reshape(-1, 2).any(axis=1)
    return kept & ~_telling(mine, len(halves), criteria)


def _telling(parts: NDArray[np.int32], nodes: int, criteria: Criteria) -> NDArray[np.bool_]:
    """Return a mask of nodes whose refusal would disclose a person's value, shape (nodes,).

    Args:
        parts: Shape (n,), the half of each record, two for each node one after the other; SUPPRESSED for none.
        criteria: The model.
    """
    telling = np.zeros(nodes, np.bool_)
    if not is_compiled(criteria.promise):
        return telling
    rows = np.flatnonzero(parts >= 0)
    sizes = np.bincount(parts[rows], minlength=2 * nodes).reshape(-1, 2)
    persons = criteria.unit.per_class(parts).reshape(-1, 2)
    demands: Demands = demands_of(criteria.promise, list(criteria.values), list(criteria.source_counts.values()))
    for column, (name, codes) in enumerate(criteria.values.items()):
        values = len(criteria.source_counts[name])
        found, totals = np.unique(parts[rows].astype(np.int64) // 2 * values + codes[rows], return_counts=True)
        telling |= disclosing_refusals(found // values, found % values, totals, sizes, persons, column, demands)
    return telling
