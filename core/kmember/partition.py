"""k-member clustering in blocks, improved by local search (Byun et al., DASFAA 2007).

Prices are those of the published labels.

Blocks are made by Mondrian's cuts of the records, so that the work grows with the number of records alone. Their edges separate records
that belong together. So the classes are put into other blocks, by cuts of another score, and improved there, as often as the effort says.
Nothing depends on the position of a record or on time: a block's records are taken in the order of a digest of their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.columns.data_parallel import each_in_parallel, parts_in_parallel
from core.columns.sorting import order_of, order_of_digests
from core.kmember.blocks import improve_blocks
from core.kmember.classes import MOST_COSTS
from core.mondrian.partition import Rules, Score, partition
from core.mondrian.ranks import CutAxis, ranks_of
from core.mondrian.recoding import cut_label_prices
from core.mondrian.rows import CutLabelPrices
from core.privacy.promise import Promise
from core.recoding.price_kernels import Numbers, Prices, RankPositions
from core.recoding.prices import LabelPrices, label_prices
from core.units.digests import mixed_numbers
from core.units.persons import EVERY_RECORD
from core.units.unit import Unit

SCORES: tuple[Score, ...] = ("normalised_span", "ncp")
"""By which classes are put into other blocks, in turn; each cuts elsewhere than the other."""
BLOCK, FEW = 2_000, 50_000
"""Records of a block; how many records are few, which are put into blocks once more."""
LEAST_CLASSES = 20
"""Classes of a block."""
MOST_DIVISIONS = 4
"""Further divisions into blocks find little."""
TABLES, BYTES_PER_ENTRY = 1 << 27, 8
"""Bytes that the two tables of costs of all blocks that are worked on at a time may take, and an entry of both."""
NONE: RankPositions = np.empty(0, np.int32)


@dataclass(frozen=True)
class Effort:
    """Effort of k-member clustering: block size, divisions into blocks, and passes.

    Attributes:
        block: About how many records a block has.
        block_divisions: How often classes are put into blocks, the first time included.
        passes: How often a block is looked through for steps, at most.
    """

    block: int
    block_divisions: int
    passes: int

    @classmethod
    def of(cls, record_count: int, k: int, effort: int, block: int | None = None) -> Effort:
        """Return block size, divisions and passes for a job's effort, a number from 1.

        Args:
            record_count: How many there are: few can be looked at once more for the same time.
            k: Records of a class, of which a block has some.
            effort: From 1.
            block: Its records; left to the number of records if None.
        """
        return cls(max(block or effort * BLOCK, LEAST_CLASSES * k), 1 + (record_count <= FEW) + min(effort, MOST_DIVISIONS), 1)


class _Costs(NamedTuple):
    """Prices of labels: all, of published labels alone, and a mask of columns with counted values."""

    prices: Prices
    published: Prices
    counted: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RecordsToGroup:
    """Records to be grouped into classes, with their axes, label prices and unit.

    Attributes:
        codes: Shape (n, QIDs), the code of each value, in an order that depends on nothing but the records.
        axes: One per QID: how it is cut.
        labels: One per QID: what classes publish.
        k: Persons or records of a class.
    """

    codes: NDArray[np.integer[Any]]
    axes: Sequence[CutAxis]
    labels: Sequence[LabelPrices]
    k: int
    unit: Unit = EVERY_RECORD

    def clustered(self, effort: Effort, classes: RankPositions | None = None) -> tuple[RankPositions, dict[str, int]]:
        """Group the records into classes of k persons or more; return each one's class, and counts of steps.

        Without persons, classes have k to 2k - 1 records. Given classes are improved instead, to lower the total loss, by the same steps.

        Args:
            effort: How much is tried.
            classes: Shape (n,), int32, dense from 0, each of k persons or more; None to make them.

        Returns:
            The class of each record, shape (n,), int32, dense from 0, and how many steps of each kind there were.
        """
        prices, places, counted = label_prices(self.labels)
        costs = _Costs(prices, label_prices(self.labels, label_weight=1, class_value_weight=0)[0], counted)
        columns = np.column_stack([place[self.codes[:, qid]] for qid, place in enumerate(places)])
        ranks, figures = ranks_of(self.codes, self.axes), np.zeros(3, np.int64)
        by_digest = order_of_digests(record_digests(self.codes))
        for number in range(effort.block_divisions):
            anew = classes is None
            if classes is None:
                blocks = self._blocks(ranks, effort.block)
                classes = self._cut(ranks, blocks)
            else:
                blocks = self._blocks_of_classes(ranks, classes, effort.block, SCORES[(number - 1) % len(SCORES)])
            # Classes are grown in an order that has nothing to do with those that cuts make.
            groups = blocks if anew else blocks * (int(classes.max()) + 1) + classes
            order = by_digest[order_of(groups[by_digest], int(groups.max()))]
            owners = classes[order] if anew else _ascending(classes[order])
            people = NONE if self.unit.people is None else self.unit.people[order]
            mine, starts = np.ascontiguousarray(columns[order]), np.append(0, np.cumsum(np.bincount(blocks)))
            mine, steps = self._in_blocks(mine, people, starts, owners, costs, effort.passes, anew)
            classes = np.empty(len(order), np.int32)
            classes[order] = mine
            figures += steps
        assert classes is not None
        return classes, dict(zip(("steps", "dissolved", "split"), figures.tolist(), strict=True))

    def _in_blocks(
        self, values: RankPositions, people: RankPositions, starts: Numbers, owners: RankPositions, costs: _Costs, passes: int, anew: bool
    ) -> tuple[RankPositions, Numbers]:
        """Improve the classes of blocks in parallel; arguments are those of ``improve_blocks``.

        Returns:
            The class of each record, shape (n,), int32, dense from 0, and how many steps of each kind there were, shape (3,).
        """

        def of_some(part: slice) -> tuple[RankPositions, Numbers]:
            rows, steps = slice(int(starts[part.start]), int(starts[part.stop])), np.zeros(3, np.int64)
            mine, here = people[rows] if len(people) else people, starts[part.start : part.stop + 1] - rows.start
            made = improve_blocks(
                values[rows], mine, costs.counted, here, owners[rows], self.k, costs.prices, costs.published, passes, anew, steps
            )
            return made, steps

        largest = int(np.diff(starts).max(initial=0))
        entries = min(sum(min(axis.size, largest) for axis in self.axes) * (largest // self.k + 1), MOST_COSTS)
        found = parts_in_parallel(of_some, len(starts) - 1, max(TABLES // max(entries * BYTES_PER_ENTRY, 1), 1), least=1)
        return _one_after_the_other([made for made, _ in found]), np.sum([steps for _, steps in found], axis=0)

    def _blocks(self, ranks: NDArray[np.unsignedinteger[Any]], block: int) -> Numbers:
        """Cut the records into blocks by Mondrian; return the block of each record, shape (n,)."""
        leaves = self._leaves(ranks, np.arange(len(ranks)), max(block // 2, self.k), cut_label_prices(self.labels, self.axes))
        # Persons cannot be shared out by counting records.
        most = block if self.unit.people is None else len(ranks)
        return _shared_out(leaves, np.ones(len(ranks), np.int64), max(most, 2 * self.k), self.k)

    def _cut(self, ranks: NDArray[np.unsignedinteger[Any]], blocks: Numbers) -> RankPositions:
        """Cut each block into classes by Mondrian; return the class of each record, shape (n,).

        The classes of a block are numbered one after the other.
        """
        found, cut_prices = np.empty(len(ranks), np.int32), cut_label_prices(self.labels, self.axes)
        each = np.split(np.argsort(blocks, kind="stable"), np.cumsum(np.bincount(blocks))[:-1])
        leaves = each_in_parallel(lambda rows: self._leaves(ranks, rows, self.k, cut_prices), each)
        found[np.concatenate(each)] = _one_after_the_other(leaves)
        return found

    def _leaves(
        self, ranks: NDArray[np.unsignedinteger[Any]], rows: NDArray[np.intp], least: int, cut_prices: CutLabelPrices
    ) -> RankPositions:
        """Cut some records down to ``least`` persons or records; return each record's leaf, shape (rows,).

        Each cut is the one that saves most.
        """
        ones, rules = np.ones(len(rows), np.int64), Rules(Promise(least))
        return partition(ranks[rows], ones, self.axes, rules, "ncp", unit=self.unit.take(rows), cut_prices=cut_prices).of_rows()

    def _blocks_of_classes(self, ranks: NDArray[np.unsignedinteger[Any]], classes: RankPositions, block: int, score: Score) -> Numbers:
        """Cut classes into blocks by their first records; return the block of each record, shape (n,)."""
        _, firsts, sizes = np.unique(classes, return_index=True, return_counts=True)
        made = partition(ranks[firsts], sizes.copy(), self.axes, Rules(Promise(max(block // 2, self.k))), score)
        found: Numbers = _shared_out(made.of_rows(), sizes, max(block, 2 * self.k), 1)[classes]
        return found


def record_digests(codes: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return a digest of each record's values, shape (n,), by which records are ordered.

    The order has no relation to the values.
    """
    made = np.zeros(len(codes), np.uint64)
    for column in codes.T:
        made = mixed_numbers(made ^ column.astype(np.uint64))
    return made


def _shared_out(leaves: NDArray[np.integer[Any]], weights: Numbers, most: int, least: int) -> Numbers:
    """Split leaves that are much larger than a block into even parts; return the part of each row.

    Few values differ in such leaves.

    Args:
        leaves: Shape (rows,), dense from 0.
        weights: Shape (rows,), records.
        most: Records of a part, about; a leaf of up to twice as many is one.
        least: Rows that each part must have.
    """
    totals, counts = np.bincount(leaves, weights=weights).astype(np.int64), np.bincount(leaves)
    parts = np.clip(totals // most, 1, np.maximum(counts // least, 1))
    parts = np.where(totals > 2 * most, parts, 1)
    order = np.argsort(leaves, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.cumsum(parts) - parts
    made: Numbers = first[leaves] + place * parts[leaves] // counts[leaves]
    return made


def _one_after_the_other(parts: Sequence[RankPositions]) -> RankPositions:
    """Return the classes of all parts, numbered one part after the other.

    The classes of each part are dense from 0.
    """
    counts = [int(part.max(initial=-1)) + 1 for part in parts]
    return np.concatenate(parts) + np.repeat(np.cumsum([0, *counts[:-1]]), [len(part) for part in parts]).astype(np.int32)


def _ascending(owners: RankPositions) -> RankPositions:
    """Return class numbers in the order in which the classes occur.

    The records of a class are neighbours.
    """
    return np.concatenate([[0], np.cumsum(owners[1:] != owners[:-1])]).astype(np.int32)
