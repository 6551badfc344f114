"""Mondrian with COF (Kara and Eyüpoğlu 2023; papers/rayden.txt, Related work): strict Mondrian's classes, RAYDEN's outlier step.

The outlier step knows partitions as class numbers only; what makes them is anything that cuts rows, group by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.mondrian.partition import Rules, partition
from core.mondrian.ranks import CutAxis, ranks_of
from core.privacy.promise import Promise
from core.units.rows import EVERY_RECORD
from core.units.unit import Unit


@dataclass(frozen=True, eq=False)
class MondrianCut:
    """Strict Mondrian on single records.

    Attributes:
        records: Shape (n, QIDs), the code of each value.
        axes: One per QID.
        k: Least number of persons, or records, on both sides of a cut.
        unit: Whose the records are.
    """

    records: NDArray[np.integer]
    axes: Sequence[CutAxis]
    k: int
    unit: Unit = EVERY_RECORD

    @cached_property
    def _ranks(self) -> NDArray[np.unsignedinteger[Any]]:
        return ranks_of(self.records, self.axes)

    def partition(self) -> NDArray[np.int32]:
        """Returns the class of each record, shape (n,), int32, dense from 0."""
        return self._cut(np.arange(len(self.records)))

    def __call__(self, rows: NDArray[np.intp], groups: NDArray[np.int32]) -> NDArray[np.int32]:
        """Cuts some records, each group by itself.

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
        weights = np.ones(len(rows), np.int64)
        mine = self.unit.take(rows).dense()
        return partition(np.ascontiguousarray(self._ranks[rows]), weights, self.axes, Rules(Promise(self.k)), unit=mine).of_rows()
