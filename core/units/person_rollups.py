"""Roll-ups that count persons: records of each class of a node, and whether it has k persons.

Three sums over cells go along with every roll-up: records; the most persons there can be, cell by cell; and the fewest, for which every
person counts in one cell only. They decide most classes. Classes that they leave open are counted exactly, from the person–cell pairs.

A histogram that is kept on the way keeps such pairs too, but only those to cells with fewer than k persons, and of persons who are in more
than one of these. A class that contains any other cell keeps k, because persons never become fewer when classes are merged. Persons in one
cell are never counted twice. So the coarser a histogram, the fewer are left. The same goes for the root where there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.columns.kernels import add_numbers, entries_at
from core.hierarchies.hierarchy import Hierarchy
from core.histograms.cells import Cells, fits_array, narrow_counts, number_coarser, packing_of, radix_weights
from core.histograms.histogram import Histogram
from core.histograms.rollups import Decided, RollUps, pays_to_cache
from core.privacy.models import Spread
from core.units.kernels import add_weights, drop_person_cells, merge_person_cells, weigh_cells
from core.units.persons import CellPersons
from core.units.unit import Counts, Integers, spread_of_keys

RECORDS, LEAST, MOST = range(3)
PAIRS_PER_CELL = 4
"""Pairs of person and cell that take as much memory as a cell of a kept histogram."""
SHRINK_OF_PEOPLE = 5
"""As ``SHRINK``: to read all pairs of the root is dear, so that what is made of them should serve more nodes."""


class CachedPersonCounts(NamedTuple):
    """Bounds and exact counts of the persons in the cells of a cached histogram.

    Attributes:
        weights: Shape (cells, 3): records, and fewest and most persons. Of a cell with k persons or more, the fewest are no fewer.
        persons: Those of the cells with fewer, which are exact.
    """

    weights: Integers
    persons: CellPersons


@dataclass(frozen=True, eq=False)
class PersonClasses:
    """The classes of a node with their records and persons.

    Attributes:
        node: Level of each axis.
        records: Shape (classes,), int64.
        persons: Shape (classes,), int64: below k if there are fewer than k, and then no fewer than there are; else k or more. Exact where
            the root was rolled up.
        base: The cells that they were rolled up from.
        numbers: Shape (cells,), the number of the class of each of these cells.
        there: Shape (classes,), ascending: the number of each class; other numbers have no class.
    """

    node: Node
    records: Counts
    persons: Counts
    base: Cells
    numbers: NDArray[np.int32]
    there: NDArray[np.intp]

    @property
    def owners(self) -> Counts:
        """The class of each cell of ``base``, by its position, shape (cells,)."""
        places = np.zeros(int(self.there[-1]) + 1 if len(self.there) else 0, np.int64)
        places[self.there] = np.arange(len(self.there))
        return places[self.numbers]


class PersonRollUps(RollUps[Cells]):
    """Cache of histograms from which a node's records and persons are counted, as exactly as k needs.

    Args:
        root: The root histogram.
        hierarchies: One per axis.
        capacity: As for ``RollUps``.
        decided: As for ``RollUps``.
        persons: Of the root's cells, in their order.
        k: Fewest persons of a class.
        qids: How many axes make up a class; those after them are of sensitive columns. All if left out.
        exact: Whether the root keeps all its persons, so that they can be counted exactly.
    """

    def __init__(
        self, root: Histogram, hierarchies: Sequence[Hierarchy], capacity: int, decided: Decided, persons: CellPersons, k: int,
        qids: int | None = None, *, exact: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(Cells(root.node, root.codes, narrow_counts(root)), hierarchies, capacity, decided)
        self._k, self._qids = k, len(hierarchies) if qids is None else qids
        # Fewest persons are at most as many as records, and k more for each k persons of a cell.
        self._weight = np.int32 if root.records < 1 << 30 else np.int64
        few = persons.per_cell < k
        # Values of sensitive columns are counted among all persons; and what is left must not take the room of what is rolled up.
        if not exact and self._qids == len(hierarchies) and int(persons.per_cell[few].sum()) <= capacity * PAIRS_PER_CELL // 2:
            persons = CellPersons(persons.per_cell, [drop_person_cells(share, few) for share in persons.shares])
            least = np.where(few, persons.least(), k)
        else:
            least = persons.least()
        weights = np.stack([root.counts, least, persons.per_cell], axis=1)
        self._people = {root.node: CachedPersonCounts(weights.astype(self._weight), persons)}

    def classes(self, node: Node, *, keep: bool = False, from_root: bool = False) -> PersonClasses:
        """Return a node's classes; their persons are exact, or an upper bound on the same side of k.

        Args:
            node: Level of each axis.
            keep: As for ``counts``.
            from_root: Whether to roll up the root itself and to count persons exactly. The root knows all persons where there are sensitive
                columns, or where it was made ``exact``.
        """
        base = self._kept[0] if from_root else self._base(node)
        numbers, sums = self._sums(base, node, self._qids)
        there = np.flatnonzero(sums[:, RECORDS])
        if base.node != node:
            self.made += 1
            if keep and self._qids == len(node) and pays_to_cache(len(base.counts), len(there)):
                base = self._keep(base, node)
                there, sums = np.arange(len(base.counts)), self._people[node].weights
                numbers = there.astype(np.int32)
        records, least, most = sums[there].T.astype(np.int64)
        persons = np.maximum(least, np.minimum(records, most))
        open_ = np.flatnonzero(np.minimum(records, most) > least if from_root else (persons >= self._k) & (least < self._k))
        if len(open_):
            asked = np.full(len(sums), -1, np.int32)
            asked[there[open_]] = np.arange(len(open_))
            persons[open_] = most[open_] - self._people[base.node].persons.count_repeated_pairs(numbers, asked, len(open_))
        return PersonClasses(node, records, persons, base, numbers, there)

    def spread(self, classes: PersonClasses, axis: int, source_counts: Counts, *, exact: bool) -> Spread:
        """Count the persons of each class by sensitive value; counts are upper bounds unless ``exact``.

        Each person counts once for each value.

        Args:
            classes: Rolled up from the root if counts are to be exact.
            axis: Of the column.
            source_counts: Shape (values,), persons of the whole source by value.
            exact: Whether counts matter. Which values occur is always exact; counts that are not are no fewer than there are.
        """
        people, values = self._people[classes.base.node], classes.base.codes[:, axis].astype(np.int64)
        if exact:
            return people.persons.spread(classes.owners, values, source_counts)
        found, pairs = np.unique(classes.owners * len(source_counts) + values, return_inverse=True)
        counts = np.zeros(len(found), np.int64)
        add_numbers(pairs, people.weights[:, MOST].astype(np.int64), counts)
        return spread_of_keys(found, counts, source_counts)

    def source_value_counts(self, column: str, axis: int, value_count: int) -> Counts:
        """Return source persons by sensitive value: stored counts, else counted from the root, (values,)."""
        return self._people[self._kept[0].node].persons.source_value_counts(
            column, self._kept[0].codes[:, axis].astype(np.int64), value_count
        )

    def _sums(self, base: Cells, node: Node, axes: int) -> tuple[NDArray[np.int32], Integers]:
        """Return the class of each cell of a cached histogram, and the weights of each class.

        Some class numbers may have no cell.
        """
        hierarchies, weights = self._hierarchies[:axes], self._people[base.node].weights
        packing = packing_of(node[:axes], hierarchies)
        if fits_array(packing, len(base.counts)):
            class_of = np.empty(len(base.counts), np.int32)
            sums: Integers = np.zeros((packing.product, 3), self._weight)
            weigh_cells(base.codes[:, :axes], *radix_weights(base.node, node[:axes], packing, hierarchies), weights, class_of, sums)
            return class_of, sums
        numbers, size = number_coarser(base, node[:axes], hierarchies)
        sums = np.zeros((size, 3), self._weight)
        add_weights(numbers, weights, sums)
        return numbers.astype(np.int32), sums

    def _keep(self, base: Cells, node: Node) -> Cells:
        packing = packing_of(node, self._hierarchies)
        class_of, sums = self._sums(base, node, len(node))
        there = np.flatnonzero(sums[:, RECORDS])
        # In an array the number of a class says which groups it is of; what was numbered as it came must be looked up.
        in_array = fits_array(packing, len(base.counts))
        codes = packing.unpack((there,)).astype(base.codes.dtype, copy=False) if in_array else self._codes(base, node, class_of, len(sums))
        if len(there) < len(sums):
            numbers = np.full(len(sums), -1, np.int32)
            numbers[there] = np.arange(len(there))
            class_of, sums = entries_at(numbers, class_of), sums[there]
        made = Cells(node, codes, sums[:, RECORDS].astype(self._kept[0].counts.dtype))
        self._people[node] = self._rolled(self._people[base.node].persons, class_of, sums)
        self.made += 1
        self._put(made, base)
        return made

    def _codes(self, base: Cells, node: Node, class_of: Integers, classes: int) -> NDArray[np.unsignedinteger[Any]]:
        rows = np.empty(classes, np.int64)
        rows[class_of] = np.arange(len(class_of))
        groups = [hierarchy.rolled(low, level) for hierarchy, low, level in zip(self._hierarchies, base.node, node, strict=False)]
        return np.stack([to[base.codes[rows, axis]] for axis, to in enumerate(groups)], axis=1).astype(base.codes.dtype)

    def _rolled(self, known: CellPersons, class_of: NDArray[np.int32], sums: Integers) -> CachedPersonCounts:
        """Return the bounds and counts of persons in coarser cells, each of which has records."""
        few, repeats = sums[:, LEAST] < self._k, np.zeros(len(sums), np.int64)
        merged = [merge_person_cells(share, class_of, few, np.full(len(sums), -1, np.int32), repeats) for share in known.shares]
        persons = sums[:, MOST] - repeats
        few &= persons < self._k
        left = CellPersons(persons, [drop_person_cells(share, few) for share in merged])
        least = np.where(few, left.least(), np.maximum(sums[:, LEAST], self._k))
        return CachedPersonCounts(np.stack([sums[:, RECORDS], least, persons], axis=1).astype(self._weight), left)

    def _put(self, made: Cells, base: Cells) -> None:
        super()._put(made, base)
        # What was just made is used once, even if there is no room for it.
        there = {made.node, *(kept.node for kept in self._kept)}
        self._people = {node: people for node, people in self._people.items() if node in there}

    def _most_between(self, base: Cells) -> int:
        return max(super()._most_between(base), len(base.counts) // SHRINK_OF_PEOPLE)

    def _room(self, kept: Cells) -> int:
        return len(kept.counts) + sum(map(len, self._people[kept.node].persons.shares)) // PAIRS_PER_CELL
