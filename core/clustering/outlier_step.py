"""RAYDEN's outlier step on partitions of any method (papers/rayden.txt, Algorithms 2 and 3).

See also Kara and Eyüpoğlu 2023 for Mondrian with COF.

Outliers leave their partitions and are partitioned among themselves. The paper publishes the other records of a partition even where fewer
than k stay, and so breaks its own promise. Here such a partition is merged with the nearest one and cut again if both together reach 2k. In
the bounded variant, outliers leave only while k records stay.

Cuts by rank leave no fragment below k, so that k outliers or more are all recovered. Fewer join the partitions nearest to their records or
are suppressed.

With a person column, k counts persons everywhere. They do not add up over partitions: those of a union are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.clustering.cof import Chaining, outlier_factors, outliers
from core.clustering.gower import Points, kernel
from core.clustering.merged_classes import dense, merge_failing, smaller_than, without_failing
from core.clustering.nearest import medoids, nearest
from core.mondrian.partition import Rules, partition
from core.mondrian.ranks import CutAxis, ranks_of
from core.privacy.promise import Promise
from core.recoding.classes import records_by_class
from core.recoding.recoding import SUPPRESSED
from core.units.persons import EVERY_RECORD
from core.units.unit import Unit

Leave = Literal["bounded", "freely"]
Pool = Literal["join", "suppress"]

Cut = Callable[[NDArray[np.intp], NDArray[np.int32]], NDArray[np.int32]]
"""Cuts records, given as ascending rows, each with the number of its group (dense from 0), group by group into classes (dense from 0)."""


@dataclass(frozen=True)
class OutlierStep:
    """Settings of the outlier step: k, threshold, weights of COF, leaving, and treatment of small pools.

    Attributes:
        k: Least number of persons, or records, of a published class, and of neighbours in COF.
        alpha: Standard deviations above the mean of the partition from which a record is an outlier.
        chaining: The weights of COF.
        leave: Whether outliers leave freely, or only while k records stay (those with the highest factors first).
        pool: What becomes of an outlier pool that is too small for a class.
    """

    k: int
    alpha: float = 2.0
    chaining: Chaining = "paper"
    leave: Leave = "freely"
    pool: Pool = "join"


@dataclass(frozen=True, eq=False)
class OutlierResult:
    """Classes after the outlier step, with counts of outliers and merged partitions.

    Attributes:
        classes: Shape (n,), int32, dense from 0; SUPPRESSED for records that are not published.
        detected: Records above the threshold of their partition.
        records_left: How many of them left it.
        recovered: How many of these are published in a class of k or more.
        merged: Partitions that fell below k and were merged.
    """

    classes: NDArray[np.int32]
    detected: int
    records_left: int
    recovered: int
    merged: int

    @property
    def suppressed(self) -> int:
        """Number of records that are not published."""
        return int(np.count_nonzero(self.classes == SUPPRESSED))


def separate_outliers(points: Points, classes: NDArray[np.int32], step: OutlierStep, cut: Cut, unit: Unit = EVERY_RECORD) -> OutlierResult:
    """Move outliers into classes of their own; merge or suppress classes below k; return all classes.

    Args:
        points: The records, in the order that decides ties.
        classes: Shape (n,), int32, dense from 0, each partition of k or more.
        step: What becomes of outliers.
        cut: The algorithm that made the partitions.
        unit: Whose the records are; ``cut`` knows it too.
    """
    factors = outlier_factors(points, classes, step.k, step.chaining)
    detected = outliers(factors, classes, step.alpha)
    leaving = _within_bounds(detected, factors, classes, step.k, unit) if step.leave == "bounded" else detected
    kept = np.where(leaving, SUPPRESSED, classes)
    small, again = smaller_than(step.k, unit), partial(_cut_again, k=step.k, cut=cut, unit=unit)
    normal, merged = merge_failing(points, dense(kept), small)
    normal = again(normal, kept)
    pool = np.flatnonzero(leaving)
    if not Promise(step.k).too_few(unit.take(pool).count(np.zeros(len(pool), np.int32), 1))[0]:
        recovered = cut(pool, np.zeros(len(pool), np.int32))
        normal[pool] = recovered + normal.max(initial=-1) + 1
        # Where the normal records were too few for any class, they go to the nearest recovered one.
        normal = again(merge_failing(points, normal, small)[0], normal)
    elif len(pool) and step.pool == "join":
        normal = again(_joined(points, normal, pool), normal)
    normal = without_failing(normal, small)
    return OutlierResult(normal, int(detected.sum()), len(pool), int(np.count_nonzero(normal[pool] != SUPPRESSED)), merged)


def _within_bounds(
    detected: NDArray[np.bool_], factors: NDArray[np.float64], classes: NDArray[np.int32], k: int, unit: Unit
) -> NDArray[np.bool_]:
    """Return a mask of outliers that leave while k records or persons stay in each partition.

    The highest factors leave first, then the first record.
    """
    found = np.flatnonzero(detected)
    # lexsort is stable: of equal factors the first record leaves.
    found = found[np.lexsort((-factors[found], classes[found]))]
    if unit.people is not None:
        # Nobody is the person of number -1; numbers of a part of the records may be greater than there are records.
        numbers = classes.astype(np.int64) * (int(unit.people.max(initial=-1)) + 2) + unit.people + 1
        pairs, records = np.unique(numbers, return_inverse=True, return_counts=True)[1:]
        return leaving_outliers(found, classes, unit.people, pairs, records, unit.per_class(classes), k)
    counts = np.bincount(classes[found], minlength=int(classes.max(initial=-1)) + 1)
    rank = np.arange(len(found)) - (np.cumsum(counts) - counts)[classes[found]]
    leaving = np.zeros(len(detected), np.bool_)
    leaving[found[rank < np.maximum(np.bincount(classes) - k, 0)[classes[found]]]] = True
    return leaving


@kernel
def leaving_outliers(
    outliers: NDArray[np.int64],
    classes: NDArray[np.int32],
    people: NDArray[np.int32],
    pairs: NDArray[np.int64],
    records: NDArray[np.int64],
    persons: NDArray[np.int64],
    k: int,
) -> NDArray[np.bool_]:
    """Return a mask of outliers that leave while k persons stay; count ``records``, ``persons`` down.

    Args:
        outliers: The outliers, those that are to leave first before the others.
        classes: Shape (n,), the partition of each record.
        people: Shape (n,), the person of each record; negative for none.
        pairs: Shape (n,), the number of its partition and person together.
        records: Shape (pairs,), records of each; counted down.
        persons: Shape (partitions,), persons of each; counted down.
        k: Fewest persons that stay.
    """
    leaving = np.zeros(classes.shape[0], np.bool_)
    for record in outliers:
        last = people[record] >= 0 and records[pairs[record]] == 1
        if persons[classes[record]] - last < k:
            continue
        leaving[record] = True
        records[pairs[record]] -= 1
        persons[classes[record]] -= last
    return leaving


def _cut_again(classes: NDArray[np.int32], before: NDArray[np.int32], k: int, cut: Cut, unit: Unit) -> NDArray[np.int32]:
    """Cut classes that have reached 2k records or more again.

    Args:
        classes: Shape (n,), as they are now.
        before: Shape (n,), as they were before some were merged.
    """
    large = np.bincount(classes[classes >= 0]) >= 2 * k
    if unit.people is not None:
        # Here a class is large because it could not be cut; it is not tried again unless others were merged into it.
        large &= _merged(classes, before, len(large))
    rows = np.flatnonzero(np.append(large, False)[classes])
    cut_again = classes.copy()
    if len(rows):
        numbers = (np.cumsum(large) - 1).astype(np.int32)
        cut_again[rows] = cut(rows, numbers[classes[rows]]) + len(large)
    return dense(cut_again)


def _merged(classes: NDArray[np.int32], before: NDArray[np.int32], size: int) -> NDArray[np.bool_]:
    """Return a mask of classes with records that were in different classes before, shape (classes,)."""
    order, ends = records_by_class(classes)
    if not size:
        return np.zeros(0, np.bool_)
    was = before[order]
    differing: NDArray[np.bool_] = np.minimum.reduceat(was, ends[:-1]) < np.maximum.reduceat(was, ends[:-1])
    return differing


def _joined(points: Points, classes: NDArray[np.int32], pool: NDArray[np.intp]) -> NDArray[np.int32]:
    """Put each outlier into the partition with the nearest medoid.

    Without any partition the outliers become one.
    """
    order, ends = records_by_class(classes)
    joined = classes.copy()
    found = nearest(points.take(pool), points.take(medoids(points, order, ends)))
    joined[pool] = np.maximum(found, 0)
    return joined


@dataclass(frozen=True, eq=False)
class MondrianCut:
    """Records with their axes, k and unit, to be cut by strict Mondrian.

    Attributes:
        records: Shape (n, QIDs), the code of each value.
        axes: One per QID.
        k: Least number of persons, or records, on both sides of a cut.
    """

    records: NDArray[np.integer]
    axes: Sequence[CutAxis]
    k: int
    unit: Unit = EVERY_RECORD

    @cached_property
    def _ranks(self) -> NDArray[np.unsignedinteger[Any]]:
        """Ranks of the records' values, shape (n, QIDs)."""
        return ranks_of(self.records, self.axes)

    def partition(self) -> NDArray[np.int32]:
        """Return the class of each record, shape (n,), int32, dense from 0."""
        return self._cut(np.arange(len(self.records)))

    def __call__(self, rows: NDArray[np.intp], groups: NDArray[np.int32]) -> NDArray[np.int32]:
        """Cut the records of each group by itself and return their classes.

        Args:
            rows: The records, ascending.
            groups: Shape (rows,), the group of each, dense from 0.

        Returns:
            Shape (rows,), int32, dense from 0.
        """
        order = np.argsort(groups, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
        classes, count = np.empty(len(rows), np.int32), 0
        # Groups are the few partitions that others were merged into; all outliers together are one.
        for part in parts:
            found = self._cut(rows[part])
            classes[part] = found + count
            count += int(found.max(initial=-1)) + 1
        return classes

    def _cut(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Cut some records by Mondrian and return the class of each."""
        weights = np.ones(len(rows), np.int64)
        mine = self.unit.take(rows).dense()
        return partition(np.ascontiguousarray(self._ranks[rows]), weights, self.axes, Rules(Promise(self.k)), unit=mine).of_rows()
