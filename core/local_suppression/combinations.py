"""The combinations whose records fail at a node, and what pools of them hold: records, and persons where these count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.local_suppression.rest import Level, Members
from core.persons.spreads import spread_of_people
from core.persons.visits import Visits
from core.privacy.models import Spread

Integers = NDArray[np.int64]


class Pools(NamedTuple):
    """What pools hold.

    Attributes:
        records: Shape (pools,), int64.
        persons: Shape (pools,), int64: what a privacy model counts; records where no person is named.
        spreads: By sensitive column.
    """

    records: Integers
    persons: Integers
    spreads: dict[str, Spread]


@dataclass(frozen=True, eq=False)
class Combinations:
    """Combinations whose records fail at a node.

    Attributes:
        codes: Shape (combinations, QIDs), the group of each QID; no two rows are equal.
        counts: Shape (combinations,), int64, records.
        spreads: By sensitive column, how its values are spread over the combinations.
        gains: Shape (combinations, QIDs), float64: what a star adds to the penalty of a record (1 − NCP of its group).
    """

    codes: NDArray[np.unsignedinteger]
    counts: Integers
    spreads: dict[str, Spread]
    gains: NDArray[np.float64]

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Returns some of the combinations, ascending by row."""
        spreads = {name: _owned(one, self._renumbered(rows)) for name, one in self.spreads.items()}
        return replace(self, codes=self.codes[rows], counts=self.counts[rows], spreads=spreads, gains=self.gains[rows])

    def pooled(self, pools: Integers, size: int) -> Pools:
        """Returns what each pool holds.

        Args:
            pools: Shape (combinations,), from 0.
            size: How many pools there are.
        """
        counts = np.bincount(pools, weights=self.counts, minlength=size).astype(np.int64)
        return Pools(counts, counts, {name: _owned(one, pools) for name, one in self.spreads.items()})

    def _renumbered(self, rows: NDArray[np.intp]) -> Integers:
        numbers = np.full(len(self.counts), -1)
        numbers[rows] = np.arange(len(rows))
        return numbers


def _owned(spread: Spread, owners: Integers) -> Spread:
    """Gives the entries of a spread other owners, those of a negative one to nobody, and adds up what is equal then."""
    key = owners[spread.owners] * len(spread.whole) + spread.values
    kept = key >= 0
    found, inverse = np.unique(key[kept], return_inverse=True)
    counts = np.bincount(inverse, weights=spread.counts[kept], minlength=len(found)).astype(np.int64)
    return Spread(found // len(spread.whole), found % len(spread.whole), counts, spread.whole)


@dataclass(frozen=True, eq=False)
class PeopleCombinations(Combinations):
    """Combinations where persons count, who may be in several of them, so that a pool has not as many as they have together.

    Attributes:
        visits: To cells that tell apart the combinations and their sensitive values.
        owners: Shape (cells,), the combination of each.
        values: By sensitive column, shape (cells,), its code; and shape (values,), persons of the whole source by value.
        members: The cells of the level that the combinations are of.
        places: Shape (combinations,), which of these each is.
    """

    visits: Visits
    owners: Integers
    values: dict[str, tuple[Integers, Integers]]
    members: Members
    places: Integers

    @classmethod
    def of(cls, level: Level, members: Members, gains: NDArray[np.float64]) -> PeopleCombinations:
        """Returns all cells of a level.

        Args:
            level: The level.
            members: Who is in them.
            gains: As of the combinations.
        """
        visits, owners, values = members.merged()
        cells, spreads = level.cells, dict(level.spreads)
        return cls(cells.codes, cells.counts, spreads, gains, visits, owners, values, members, np.arange(cells.cells))

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Returns some of the combinations, ascending by row."""
        numbers = self._renumbered(rows)[self.owners]
        kept = np.flatnonzero(numbers >= 0)
        values = {name: (codes[kept], whole) for name, (codes, whole) in self.values.items()}
        return replace(super().take(rows), visits=self.visits.taken(kept), owners=numbers[kept], values=values, places=self.places[rows])

    def pooled(self, pools: Integers, size: int) -> Pools:
        """Returns what each pool holds; arguments as of all combinations."""
        counts, mine = np.bincount(pools, weights=self.counts, minlength=size).astype(np.int64), pools[self.owners]
        spreads = {name: spread_of_people(self.visits, mine, *value) for name, value in self.values.items()}
        return Pools(counts, self.visits.count(mine, size), spreads)

    def cells(self, numbers: Integers) -> Members:
        """Returns the cells of the source that make up the combinations, each with a number that is given to its combination.

        Args:
            numbers: Shape (combinations,).
        """
        given = np.full(int(self.members.owners.max(initial=-1)) + 1, -1)
        given[self.places] = numbers
        return self.members.owned(given)
