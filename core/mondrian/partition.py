"""Mondrian: partitions of records by recursive cuts of several QIDs.

See papers/distributed-mondrian.txt, Fig. 7, and LeFevre et al. 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.columns.data_parallel import each_in_parallel, threads_here
from core.mondrian import cuts as mondrian_cuts
from core.mondrian import scores as mondrian_scores
from core.mondrian.cuts import cut_all
from core.mondrian.ranks import CutAxis, axes_scale
from core.mondrian.rows import BLOCK, CutBuffers, CutLabelPrices, CutPrices, CutScale, PersonsByRow, Rows, whole
from core.privacy.kernels import Demands, demands_of
from core.privacy.promise import Promise
from core.units.kernels import group
from core.units.persons import EVERY_RECORD, RowPersons
from core.units.unit import Unit


def persons_by_row(unit: Unit, sensitive: NDArray[np.integer[Any]]) -> PersonsByRow | None:
    """Return the persons of each row as arrays for kernels; None where records are counted.

    With None numba does not even compile what looks at persons.

    Args:
        unit: Whose the rows are.
        sensitive: Shape (rows, sensitive columns), the codes of their values.
    """
    if not isinstance(unit, RowPersons):
        return None
    starts, order = group(np.where(unit.numbers < 0, np.int64(-1), unit.row_of_pair), np.arange(len(unit.numbers)), unit.of)
    persons, rows = unit.numbers[order], unit.row_of_pair[order]
    values, most = np.empty((sensitive.shape[1], len(order)), np.int32), 0
    for column in range(len(values)):
        codes = sensitive[rows, column].astype(np.int64)
        # In 64 bits: there may be more pairs of a person and a value than 32 have room for.
        found, values[column] = np.unique(persons.astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        most = max(most, len(found))
    return PersonsByRow(starts, persons, values, np.zeros(unit.size, np.int64), np.zeros(most, np.int64), np.zeros(1, np.int64))


def with_own_marks(persons: PersonsByRow) -> PersonsByRow:
    """Return the same persons by row with scratch arrays of their own, for another thread.

    Another thread looks at other rows at the same time.
    """
    return persons._replace(
        person_marks=np.zeros_like(persons.person_marks), value_marks=np.zeros_like(persons.value_marks), passes=np.zeros(1, np.int64)
    )


Score = Literal["representativity", "entropy", "span", "normalised_span", "ncp"]
SCORES: dict[Score, int] = {
    "representativity": mondrian_scores.REPRESENTATIVITY,
    "entropy": mondrian_scores.ENTROPY,
    "span": mondrian_scores.SPAN,
    "normalised_span": mondrian_scores.NORMALISED_SPAN,
    "ncp": mondrian_scores.NCP,
}

FEW = 1 << 16
"""Rows that one core cuts."""
PARTS = 4
"""Into about how many parts rows are cut for each core, before each part is cut by one."""
WITH_PEOPLE = 2
"""Cores that cut where persons are named: each marks them all in memory of its own."""
SCRATCH = 1 << 27
"""Bytes that the arrays of all cores that cut at a time may take, which are as long as domains are."""
Refused = Literal["stop", "next"]
Mode = Literal["strict", "median", "relaxed"]
MODES: dict[Mode, int] = {"strict": mondrian_cuts.STRICT, "median": mondrian_cuts.MEDIAN, "relaxed": mondrian_cuts.RELAXED}


@dataclass(frozen=True)
class Rules:
    """Privacy rules that every class must keep.

    Attributes:
        promise: What is asked of its size and of its sensitive values.
        columns: The sensitive columns that the promise looks at.
        source_counts: Persons or records of the whole source by sensitive value, one array per column.
        refused: Where a model refuses the best cut that k allows: ``stop``, so that it discloses no more than the class, or
            try the ``next`` best (the paper).
    """

    promise: Promise
    columns: tuple[str, ...] = ()
    source_counts: tuple[NDArray[np.int64], ...] = ()
    refused: Refused = "stop"

    @property
    def kernel_demands(self) -> tuple[Demands | None, Demands | None]:
        """Rules besides k, in the first place if a refusal leads to the next cut, else second; other None."""
        if not self.columns:
            return None, None
        return (self.demands, None) if self.refused == "next" else (None, self.demands)

    @property
    def demands(self) -> Demands:
        """Rules besides k in the form that kernels read."""
        return demands_of(self.promise, self.columns, self.source_counts)


@dataclass(frozen=True)
class Partition:
    """Partition of rows into classes: the order of rows and where each class starts.

    Attributes:
        order: Shape (rows,), int32: the rows, class by class.
        starts: Shape (classes + 1,), int64: where each class starts in ``order``.
    """

    order: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.starts) - 1

    def of_rows(self) -> NDArray[np.int32]:
        """Return the class number of each row, shape (rows,)."""
        classes = np.empty(len(self.order), np.int32)
        classes[self.order] = np.repeat(np.arange(self.classes, dtype=np.int32), np.diff(self.starts))
        return classes


def room_for(axes: Sequence[CutAxis], demands: Demands) -> CutBuffers:
    """Return the scratch arrays (buffers) that Mondrian's kernels write to."""
    qids = len(axes)
    widest = max(axis.size for axis in axes)
    codes = int(demands.sizes.max(initial=0))

    def numbers(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, np.int64)

    return CutBuffers(
        stamps=numbers(sum(axis.size for axis in axes) + 1), lows=numbers(qids), highs=numbers(qids), distinct=numbers(qids),
        most=np.array([axis.size for axis in axes], np.int64),
        scores=np.zeros(qids), values=numbers(widest), sums=numbers(widest),
        counts=numbers(2, codes), present=numbers(2, codes), strays=numbers(2, BLOCK),
    )  # fmt: skip


def prices_for(axes: Sequence[CutAxis], row_count: int, cut_prices: CutLabelPrices | None) -> CutPrices:
    """Return scratch arrays and label prices for the score that prices every cut.

    Without label prices (None), a price follows from the values that classes hold alone.
    """
    widest = max(axis.size for axis in axes)
    return CutPrices(
        np.zeros(row_count, np.int32),
        np.zeros(widest, np.int64),
        np.zeros(widest),
        np.zeros(widest),
        no_label_prices(axes) if cut_prices is None else cut_prices,
    )


def _cores_for(axes: Sequence[CutAxis], score: Score) -> int:
    """Return the number of threads that may cut at a time.

    It is the number of threads available, and fewer where domains are long.
    """
    widest, ranks = max(axis.size for axis in axes), sum(axis.size for axis in axes)
    # Stamps, values and sums; and for prices four arrays more.
    bytes_each = 8 * (ranks + (5 if score == "ncp" else 2) * widest)
    return max(min(threads_here(), SCRATCH // bytes_each), 1)


def no_label_prices(axes: Sequence[CutAxis]) -> CutLabelPrices:
    """Return zero label prices, so that cuts are priced by the values that classes hold alone."""
    places = np.zeros((sum(axis.size for axis in axes), 2), np.int32)
    return CutLabelPrices(np.zeros(len(axes)), places, np.zeros(len(axes), np.int64), np.zeros((1, 8), np.int64), np.zeros(1, np.int32))


def partition(
    ranks: NDArray[np.unsignedinteger[Any]],
    weights: NDArray[np.int64],
    axes: Sequence[CutAxis],
    rules: Rules,
    score: Score = "representativity",
    *,
    mode: Mode = "strict",
    sensitive: NDArray[np.int32] | None = None,
    scale: CutScale | None = None,
    unit: Unit = EVERY_RECORD,
    cut_prices: CutLabelPrices | None = None,
) -> Partition:
    """Cut rows into classes by Mondrian, reordering the inputs; return row order and class starts.

    All rows together must keep the rules.

    Args:
        ranks: Shape (rows, QIDs), uint16 or uint32. Used up: its rows end in the order of their classes.
        weights: Shape (rows,), int64, records per row; all 1 if relaxed. Used up like ``ranks``.
        axes: One per QID.
        rules: What both halves of a cut must keep.
        score: What chooses the QID, or with ``ncp`` the cut.
        mode: ``strict`` keeps equal values together and cuts at the median or just below it, ``median`` at the median alone (the paper),
            ``relaxed`` shares equal values out so that halves are even; those of the first rows go left.
        sensitive: Shape (rows, sensitive columns), int32 codes from 0, used up; None if the rules name no column.
        scale: What spans are relative to; the whole dataset if left out.
        unit: Whose the rows' records are, for rules that are of persons.
        cut_prices: What labels cost, for ``ncp``; None for what classes hold alone.
    """
    rows = len(weights)
    codes = np.empty((rows, 0), np.int32) if sensitive is None else sensitive
    given, demands = Rows(ranks, weights, codes, np.arange(rows, dtype=np.int32)), rules.demands
    measured = axes_scale(axes) if scale is None else scale
    # Read and not written, so that all cores share them.
    cut_prices = no_label_prices(axes) if cut_prices is None and score == "ncp" else cut_prices

    def cut(first: int, end: int, small: int, whose: PersonsByRow | None) -> NDArray[np.int64]:
        mine = Rows(ranks[first:end], weights[first:end], codes[first:end], given.order[first:end])
        room, prices = room_for(axes, demands), prices_for(axes, end - first, cut_prices) if score == "ncp" else None
        how = SCORES[score], MODES[mode], demands.k, *rules.kernel_demands
        starts: NDArray[np.int64] = first + cut_all(mine, whole(small), measured, *how, whose, room, prices)
        return starts

    # What is None is not compiled, which takes seconds.
    whose = persons_by_row(unit, codes)
    threads = _cores_for(axes, score)
    threads = threads if whose is None else min(threads, WITH_PEOPLE)
    if threads == 1 or rows < FEW:
        return Partition(given.order, cut(0, rows, 0, whose))
    # What is cut off first is shared out: each part is cut as it would be in its turn.
    nodes = cut(0, rows, rows // (PARTS * threads), whose)
    scratch: SimpleQueue[PersonsByRow | None] = SimpleQueue()
    for number in range(threads):
        scratch.put(whose if whose is None or number == 0 else with_own_marks(whose))

    def cut_part(bounds: tuple[int, int]) -> NDArray[np.int64]:
        mine = scratch.get()
        try:
            return cut(*bounds, 0, mine)
        finally:
            scratch.put(mine)

    found = each_in_parallel(cut_part, list(pairwise(nodes.tolist())), threads)
    return Partition(given.order, np.append(np.concatenate([starts[:-1] for starts in found]), rows))
