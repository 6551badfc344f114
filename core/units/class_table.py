"""Tables of classes: how many records and units each has, and how sensitive values are spread over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.privacy.models import Failing, Spread, Spreads
from core.privacy.promise import Promise
from core.units.members import ClassMembers
from core.units.unit import Counts, Integers, Records, spread_of_keys, summed

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Classes as a promise asks about them.

    Attributes:
        records: Shape (classes,), int64.
        units: Shape (classes,), int64: what k counts; records where no person is named.
        spreads: By sensitive column.
        members: Who is in them; None where units add up, and where no classes are put together.
    """

    records: Counts
    units: Counts
    spreads: Spreads
    members: ClassMembers | None = None

    @classmethod
    def of_members(cls, records: Counts, members: ClassMembers) -> ClassTable:
        """Returns the table of classes that have some members.

        Args:
            records: Shape (classes,).
            members: Who is in them.
        """
        return cls(records, members.count(len(records)), members.spreads(), members)

    def failing(self, promise: Promise) -> Failing:
        """Returns which classes break a promise, shape (classes,)."""
        return promise.fails(self.units, self.spreads)

    def grouped(self, owners: Integers, size: int) -> ClassTable:
        """Returns the table of coarser classes.

        Args:
            owners: Shape (classes,), the coarser class of each; -1 for one that is left out.
            size: How many there are.
        """
        records = Records(self.records).count(owners, size)
        if self.members is not None:
            return ClassTable.of_members(records, self.members.relabelled(owners))
        units = records if self.units is self.records else Records(self.units).count(owners, size)
        return ClassTable(records, units, {name: regrouped(spread, owners) for name, spread in self.spreads.items()})

    def union(self, mask: Bools) -> ClassTable:
        """Returns the table of the one class that the marked classes make together."""
        return self.grouped(np.where(mask, 0, -1), 1)

    def take(self, rows: NDArray[np.intp]) -> ClassTable:
        """Returns some of the classes, ascending."""
        numbers = np.full(len(self.records), -1)
        numbers[rows] = np.arange(len(rows))
        spreads = {name: regrouped(spread, numbers) for name, spread in self.spreads.items()}
        members = self.members and self.members.owned(numbers).settled()
        return ClassTable(self.records[rows], self.units[rows], spreads, members)


def regrouped(spread: Spread, owners: Integers) -> Spread:
    """Gives the entries of a spread other owners, those of a negative one to nobody, and adds up what is equal then."""
    mine = owners[spread.owners]
    return spread_of_keys(
        *summed(np.where(mine < 0, -1, mine * len(spread.source_counts) + spread.values), spread.counts), spread.source_counts
    )
