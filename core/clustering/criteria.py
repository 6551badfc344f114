"""Privacy models as acceptance criteria of partitions of single records, as the future work of papers/rayden.txt asks.

A class that fails is merged with the nearest one until none fails. That comes to an end, because every round has fewer classes, and it is
right for any model, because each class is looked at again as it then is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Points
from core.clustering.medoids import medoids
from core.clustering.nearest import nearest
from core.privacy.promise import Promise
from core.recoding.members import members
from core.recoding.recoding import SUPPRESSED
from core.units.class_table import ClassTable
from core.units.rows import EVERY_RECORD
from core.units.unit import Records, Unit

Fails = Callable[[NDArray[np.int32]], NDArray[np.bool_]]
"""Tells which classes fail, given the class of each record (dense from 0, negative for records that are in none)."""


@dataclass(frozen=True, eq=False)
class Criteria:
    """What every class must keep.

    Attributes:
        promise: What is promised.
        values: Shape (n,) per sensitive column that the promise looks at: the code of each record.
        wholes: Shape (values,) per column: how often each value occurs in the whole source.
        unit: Whose the records are.
    """

    promise: Promise
    values: Mapping[str, NDArray[np.integer]]
    wholes: Mapping[str, NDArray[np.int64]]
    unit: Unit = EVERY_RECORD

    def fails(self, classes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Returns which classes fail, shape (classes,)."""
        return self._table(classes).failing(self.promise)

    def column_held(self) -> str | None:
        """Returns the column of which too many persons hold one value, if all records as one class fail by nothing else."""
        records = len(next(iter(self.values.values()), ()))
        if not records:
            return None
        whole = self._table(np.zeros(records, np.int32))
        return self.promise.column_held(whole.units, whole.spreads)

    def _table(self, classes: NDArray[np.int32]) -> ClassTable:
        spreads = {name: self.unit.spread(classes, codes.astype(np.int64), self.wholes[name]) for name, codes in self.values.items()}
        return ClassTable(Records().per_class(classes), self.unit.per_class(classes), spreads)


def smaller_than(k: int, unit: Unit = EVERY_RECORD) -> Fails:
    """Returns what tells the classes of fewer than k persons, or records where no person is named."""
    return lambda classes: Promise(k).too_few(unit.per_class(classes))


def merge_failing(points: Points, classes: NDArray[np.int32], fails: Fails) -> tuple[NDArray[np.int32], int]:
    """Merges every failing class with the nearest one, by the distance of their medoids, until none fails.

    All that fail in a round are merged at once, so that the outcome does not depend on where one begins; those that are nearest to one
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
        order, ends = members(classes)
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
    """Returns classes with the records of those that fail suppressed, dense from 0."""
    # SUPPRESSED is -1 and reads the last entry: what is in no class stays in none.
    failing = np.append(fails(classes), True)
    return dense(np.where(failing[classes], SUPPRESSED, classes))


def dense(classes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns classes numbered without gaps, in the same order; SUPPRESSED stays."""
    used = np.bincount(classes[classes >= 0]) > 0
    numbers = np.append(np.cumsum(used) - 1, SUPPRESSED).astype(np.int32)
    return numbers[classes]
