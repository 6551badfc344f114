"""Mondrian's settings, and the labels, sizes and losses of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.data_parallel import AT_A_TIME, each_in_parallel
from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.mondrian.partition import Mode, Partition, Rules, Score, partition
from core.mondrian.ranks import CutAxis, ranks_of, scale_of_fragment
from core.mondrian.rows import CutLabelPrices
from core.recoding.classes import QidLabels, Sets
from core.recoding.ends import Ends
from core.recoding.labels import same_labels
from core.recoding.price_kernels import KIND, RANGE, SECOND, SET, SIDE
from core.recoding.prices import LabelPrices, generalise, label_prices
from core.recoding.recoding import Intervals
from core.units.losses import c_avg, sum_of_squares
from core.units.persons import EVERY_RECORD
from core.units.unit import Unit
from schemas.job.record_methods import Generalisation

SHARE = 0.2
"""How much of a price is that of the label; the rest is that of the values that a class holds. By labels alone a cut is worth nothing until
both halves have another label, and the first cuts are made blindly. By values alone cuts are made for values that are not published."""


def cut_label_prices(labels: Sequence[LabelPrices], axes: Sequence[CutAxis]) -> CutLabelPrices:
    """Return the price that a class's label adds to a cut, for each QID and rank.

    Args:
        labels: One per QID: what classes publish.
        axes: One per QID.
    """
    prices, places, _ = label_prices(labels, label_weight=1, class_value_weight=0)
    ends = np.cumsum([place.shape[1] for place in places])
    of_ranks, shares = [], []
    for label, axis, place, column in zip(labels, axes, places, ends - 1, strict=True):
        mine = np.empty((axis.size, 2), np.int32)
        mine[axis.ranks] = place[:, [0, -1]]
        of_ranks.append(mine)
        kind, paired = prices.terms[column, KIND], prices.terms[column, SIDE] == SECOND
        # Ranges with the ends of the class, and sets, tell what a class holds.
        same = kind == SET or (kind == RANGE and label.ends is None)
        shares.append(0.0 if same and (kind == SET or paired or not axis.nulls) else SHARE)
    return CutLabelPrices(np.array(shares), np.concatenate(of_ranks), (ends - 1).astype(np.int64), prices.terms, prices.numbers)


Codes = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Cutting:
    """Settings of Mondrian: how rows are cut and how their classes are published.

    Attributes:
        axes: One per QID.
        domains: One per QID.
        hierarchies: One per QID.
        ways: How each QID is published; None for the usual way.
        score: What chooses the QID of a cut.
        mode: How equal values are cut.
        intervals: ``text`` or ``bounds``.
        of_fragment: Whether spans are relative to the rows at hand.
        ends: Where intervals of each QID may end, None for the values of a class; empty where that goes for all.
    """

    axes: tuple[CutAxis, ...]
    domains: tuple[Domain, ...]
    hierarchies: tuple[Hierarchy, ...]
    rules: Rules
    ways: tuple[Generalisation | None, ...]
    score: Score = "representativity"
    mode: Mode = "strict"
    intervals: Intervals = "text"
    of_fragment: bool = False
    ends: tuple[Ends | None, ...] = ()

    @property
    def label_prices_of_cuts(self) -> CutLabelPrices | None:
        """Prices (losses) of labels for the score ``ncp``; None for other scores."""
        if self.score != "ncp":
            return None
        ends = self.ends or (None,) * len(self.axes)
        return cut_label_prices(
            [LabelPrices(*label) for label in zip(self.ways, self.domains, self.hierarchies, ends, strict=True)], self.axes
        )

    def ranks(self, codes: Codes) -> Codes:
        """Convert domain codes to ranks in cutting order, a new array of shape (rows, QIDs)."""
        return ranks_of(codes, self.axes)

    def cut(self, codes: Codes, weights: NDArray[np.int64], unit: Unit = EVERY_RECORD) -> Partition:
        """Cut rows into classes by Mondrian; return row order and class starts, and leave the inputs as is.

        Args:
            codes: Shape (rows, QIDs and sensitive columns of the rules), codes of the domains.
            weights: Shape (rows,), records per row.
            unit: Whose these are, for rules that are of persons.
        """
        ranks = self.ranks(codes)
        sensitive = codes[:, len(self.axes) :].astype(np.int32) if self.rules.columns else None
        scale = scale_of_fragment(self.axes, ranks) if self.of_fragment else None
        rules, mode, cut_prices = self.rules, self.mode, self.label_prices_of_cuts
        return partition(
            ranks, weights.copy(), self.axes, rules, self.score,
            mode=mode, sensitive=sensitive, scale=scale, unit=unit, cut_prices=cut_prices,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PublishedClasses:
    """Labels, sizes and losses of the published classes of a partition.

    Attributes:
        numbers: Shape (classes of the partition,): row of ``labels``.
        labels: One row per published class, in the order of what they publish; no two are equal.
        sizes: Shape (published classes,), records.
        losses: Sums over the records by name, which add up over fragments.
        penalties: Sum over the records of the NCP of each QID, by name.
        figures: What else was counted on the way, by name.
    """

    numbers: NDArray[np.int64]
    labels: pa.Table
    sizes: NDArray[np.int64]
    losses: Mapping[str, int | float]
    penalties: Mapping[str, float]
    figures: Mapping[str, int] = field(default_factory=dict)


def label_partition(cutting: Cutting, codes: Codes, weights: NDArray[np.int64], made: Partition) -> PublishedClasses:
    """Label the classes of a partition, merge classes of equal labels, and sum their losses.

    Args:
        codes: Shape (rows, QIDs, …).
        weights: Shape (rows,), records per row.
    """
    order = made.order.astype(np.int64)
    # reduceat gives an empty range the value at its start; no class is empty.
    records = np.add.reduceat(weights[order], made.starts[:-1])
    sets = Sets(order, made.starts[:-1]).in_order

    def labelled(position: int) -> tuple[QidLabels, float]:
        domain, mine = cutting.domains[position], codes[:, position][order]
        ends = cutting.ends[position] if cutting.ends else None
        labels = generalise(cutting.ways[position], mine, sets, domain, cutting.hierarchies[position], cutting.intervals, ends)
        values = sets.distinct(mine, domain.size)
        return labels, float(np.dot(np.where(values > 1, values / domain.size, 0.0), records))

    each = each_in_parallel(labelled, range(len(cutting.domains)), AT_A_TIME)
    found, distinct = [labels for labels, _ in each], sum(share for _, share in each)
    reach = sum(float(np.dot(labels.covered, records)) for labels in found)
    # Who reads a release cannot tell apart classes of the same labels, so sizes and DM are those of what is left.
    numbers, firsts = same_labels(found)
    sizes = np.bincount(numbers, weights=records, minlength=len(firsts)).astype(np.int64)
    columns = {name: column.take(pa.array(firsts)) for label in found for name, column in label.columns.items()}
    penalties = {domain.qid: float(np.dot(label.penalties, records)) for domain, label in zip(cutting.domains, found, strict=True)}
    losses = {
        "dm": sum_of_squares(sizes),
        "dm_partitions": sum_of_squares(records),
        "partitions": made.classes,
        "classes": len(sizes),
        "ncp": sum(penalties.values()),
        "ncp_set": reach,
        "ncp_distinct": distinct,
    }
    return PublishedClasses(numbers, pa.table(columns), sizes, losses, penalties)


def total_losses(parts: Sequence[Mapping[str, int | float]], qid_count: int, k: int, record_count: int) -> dict[str, int | float]:
    """Return the losses of a dataset (DM, NCP, GCP, C_avg) from the loss sums of its fragments.

    See papers/distributed-mondrian.txt, section 6.

    Returns:
        ``dm`` and ``dm_star`` (nothing is suppressed) of classes as readers of each fragment see them. Where two fragments publish the
        same, `core.units.losses.united_losses` corrects them. ``dm_partitions`` of the classes that were cut; ``ncp`` (eq. 4) of what is
        published, and ``gcp``, its mean per record and QID; ``gcp_held`` as if ranges and sets of the own values were published;
        ``ncp_distinct`` takes distinct values over the domain for every QID, also for numbers; ``c_avg``.
    """
    sums = {name: sum(part[name] for part in parts) for name in parts[0]}
    return {
        "dm": sums["dm"],
        "dm_star": sums["dm"],
        "dm_partitions": sums["dm_partitions"],
        "ncp": sums["ncp"],
        "ncp_distinct": sums["ncp_distinct"],
        "gcp": sums["ncp"] / (qid_count * record_count),
        "gcp_held": sums["ncp_set"] / (qid_count * record_count),
        "c_avg": c_avg(record_count, int(sums["classes"]), k),
        "suppression_rate": 0.0,
    }
