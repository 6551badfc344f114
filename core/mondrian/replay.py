"""Classes of rows that Mondrian cuts, and the replay of an earlier partition on other records.

A replay keeps the cuts. Classes that no longer keep the rules are suppressed.

Leaves with equal labels make one class.

A union of classes that keep k persons and enough distinct values keeps them too. Entropy, recursive diversity and closeness do not, where a
person is counted once for each of their values. Two classes that share the persons of a rare value make one class in which it is too rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.coding import codes_in
from core.columns.domains import Domain
from core.columns.sorting import run_starts
from core.histograms.histogram import Histogram
from core.mondrian.fragments import CutTree
from core.mondrian.partition import Partition, Rules
from core.mondrian.ranks import CutAxis
from core.mondrian.recoding import Codes, Cutting, PublishedClasses, label_partition, total_losses
from core.privacy.models import Spread
from core.recoding.labels import SUPPRESSED_VALUE
from core.recoding.recoding import SUPPRESSED, Recoding, Treatment
from core.units.class_table import ClassTable, first_of_classes, without_sensitive
from core.units.losses import c_avg
from core.units.unit import Records, Unit
from schemas.job.privacy import SUPPRESSIONS

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowTable:
    """Rows that Mondrian cuts, with their records and their unit of counting.

    Attributes:
        codes: Shape (rows, QIDs and the sensitive columns of the rules).
        weights: Shape (rows,), records per row.
        unit: What k counts in them.
    """

    codes: Codes
    weights: Numbers
    unit: Unit

    @classmethod
    def of(cls, codes: Codes, weights: Numbers, unit: Unit | None = None) -> RowTable:
        """Return a table of rows; k counts records where no unit is given."""
        return cls(codes, weights, Records(weights) if unit is None else unit)

    def values(self, rules: Rules) -> list[tuple[str, Numbers]]:
        """Return name and codes, shape (rows,), of each sensitive column under a privacy model."""
        first = self.codes.shape[1] - len(rules.columns)
        return [(column, self.codes[:, first + number].astype(np.int64)) for number, column in enumerate(rules.columns)]

    def classes(self, rules: Rules, owners: Numbers, size: int) -> ClassTable:
        """Return the class table of rows that are assigned to classes.

        Args:
            rules: Name the sensitive columns.
            owners: Shape (rows,), the class of each; -1 for one that is in none.
        """
        spreads: dict[str, Spread] = {
            column: self.unit.spread(owners, codes, whole)
            for (column, codes), whole in zip(self.values(rules), rules.source_counts, strict=True)
        }
        return ClassTable(Records(self.weights).count(owners, size), self.unit.count(owners, size), spreads)

    def one_class_table(self, rules: Rules) -> ClassTable:
        """Return the class table (records, persons, sensitive values) of all rows as a single class."""
        return self.classes(rules, np.zeros(len(self.codes), np.int64), 1)


def cutting_by_persons(cutting: Cutting, rows: RowTable) -> Cutting:
    """Return a cutting whose rules count persons by sensitive value; the same one where records count.

    Its promise gets holder conditions where a person has several values. Without a person column, the same cutting is returned.

    Args:
        rows: All rows of the source.
    """
    rules, figures = cutting.rules, rows.unit.figures()
    if figures is None:
        return cutting
    wholes = tuple(rows.unit.count(codes, len(whole)) for (_, codes), whole in zip(rows.values(rules), rules.source_counts, strict=True))
    promise = rules.promise.of_people(dict(zip(rules.columns, wholes, strict=True)), figures[0])
    return replace(cutting, rules=replace(rules, source_counts=wholes, promise=promise))


def one_class_keeps(cutting: Cutting, rows: RowTable) -> bool:
    """Return whether all rows together, as one class, keep the rules."""
    return not rows.one_class_table(cutting.rules).failing(cutting.rules.promise)[0]


def column_broken_by_holders(cutting: Cutting, rows: RowTable) -> str | None:
    """Return the column whose too widely held value alone makes one class of all rows fail; else None.

    All rows are looked at as one class. They may still be cut: in each of two halves there may be few enough holders.
    """
    whole = rows.one_class_table(cutting.rules)
    return cutting.rules.promise.column_broken_by_holders(whole.units, whole.spreads)


def cut_and_publish(cutting: Cutting, rows: RowTable) -> tuple[Partition, PublishedClasses]:
    """Cut rows that together keep the rules into classes; return the partition and labelled classes.

    Leaves with equal labels make one class for readers. Leaves that would fail as such a class are merged with neighbours.

    Args:
        cutting: How.
        rows: All of them together must keep the rules, but for who holds a value: if they are one class in the end, that is still to be
            asked.
    """
    rules, made = cutting.rules, cutting.cut(rows.codes, rows.weights, rows.unit)
    published = label_partition(cutting, rows.codes, rows.weights, made)
    if rows.unit.adds_up or rules.promise.is_closed_under_union:
        return made, published
    while made.classes > 1:
        failing = rows.classes(rules, published.numbers[made.of_rows()], len(published.sizes)).failing(rules.promise)
        if not failing.any():
            break
        made = _merged(made, failing[published.numbers])
        published = label_partition(cutting, rows.codes, rows.weights, made)
    return made, published


def recode_cells(cutting: Cutting, cells: Histogram, unit: Unit | None = None) -> tuple[Recoding, PublishedClasses]:
    """Cut cells, which together keep the rules, by strict Mondrian; return the recoding and the classes.

    Args:
        cutting: How; not relaxed.
        cells: At full resolution; after the QIDs the sensitive columns that the rules name. All of them together must keep the rules.
        unit: What k counts in them; their records if left out.
    """
    made, published = cut_and_publish(cutting, RowTable.of(cells.codes, cells.counts, unit))
    plain = without_sensitive(cells, cutting.hierarchies)
    classes = published.numbers[made.of_rows()].astype(np.int32)
    if plain is not cells:
        # Strict cuts never part equal QIDs, so that the first cell of a combination speaks for all.
        classes = classes[first_of_classes(cells.codes, len(cutting.axes))]
    return Recoding(plain.node, plain.packing, plain.words, classes, published.labels, published.sizes), published


def _merged(made: Partition, leaves: NDArray[np.bool_]) -> Partition:
    """Merge each marked leaf of a partition with the next leaf in the order of rows.

    The last leaf of all is merged with the one before.
    """
    kept = np.append(True, ~leaves)
    kept[-2] &= kept[-1]
    kept[0] = kept[-1] = True
    return Partition(made.order, made.starts[kept])


def union_of_domains(one: Domain, other: Domain) -> Domain:
    """Return the union of two domains with the counts of the first one.

    The order of siblings is learnt from these counts.
    """
    values = pc.unique(pa.concat_arrays([one.values, other.values]))
    ordered = values.take(pc.sort_indices(values))
    counts = np.zeros(len(ordered), np.int64)
    counts[pc.index_in(one.values, value_set=ordered).to_numpy()] = one.counts
    return Domain(one.qid, ordered, counts, int(one.nulls > 0 or other.nulls > 0))


def ranks_of_new_values(old: Domain, old_axis: CutAxis, new: Domain, both: Domain, axis: CutAxis) -> NDArray[np.int64]:
    """Return each new value's rank on an old axis, that of the nearest old one before it; -1 for none.

    Args:
        old: The domain in whose ranks the cuts were made.
        old_axis: Its axis.
        new: The domain of the other records.
        both: The values of both domains.
        axis: Their axis, which orders the old ones as theirs does.

    Returns:
        Shape (new.size,), -1 for a value before all old ones.
    """
    known = np.empty(old.size, np.int64)
    known[old_axis.ranks] = axis.ranks[codes_in(old, both)]
    found: NDArray[np.int64] = np.searchsorted(known, axis.ranks[codes_in(new, both)], side="right") - 1
    return found


@dataclass(frozen=True, eq=False)
class ReplayedPartition:
    """Recoding, losses and counts of an earlier partition replayed on other records.

    Attributes:
        recoding: Of the cells; those in classes that fail are suppressed.
        loss: Losses by name.
        penalties: NCP of each QID, suppressed records counting as 1.
        suppressed: Records in classes that fail.
        masked: How many of them are published with ``*``.
        partitions: Regions that hold records and keep the rules.
        failing: Regions that hold records and do not.
    """

    recoding: Recoding
    loss: Mapping[str, int | float]
    penalties: Mapping[str, float]
    suppressed: int
    masked: int
    partitions: int
    failing: int


def replay_cells(
    cutting: Cutting, cells: Histogram, leaves: NDArray[np.int64], treatment: Treatment, unit: Unit | None = None
) -> ReplayedPartition:
    """Recode cells by the leaves of an earlier tree, each a class; failing classes are suppressed.

    Only those that are too few are masked. That a class of k and more is masked would disclose that its values break l or t.

    Args:
        cutting: What classes must keep, and how they are published.
        cells: At full resolution; after the QIDs the sensitive columns that the rules name.
        leaves: Shape (cells,), the leaf of each cell.
        treatment: ``drop`` or ``mask``; a mask that is no safe class itself is dropped, and so are classes that break l or t.
        unit: What k counts in the cells; their records if left out.
    """
    rules, rows = cutting.rules, RowTable.of(cells.codes, cells.counts, unit)
    promise = rules.promise
    _, owners = np.unique(leaves, return_inverse=True)
    classes = rows.classes(rules, owners, int(owners.max(initial=-1)) + 1)
    counts, rare, failing = classes.records, promise.too_few(classes.units), classes.failing(promise)
    published, numbers = _published(cutting, cells, owners, ~failing)
    while not (rows.unit.adds_up or promise.is_closed_under_union) and (lost := _failing_together(rules, rows, owners, numbers)).any():
        failing |= lost
        published, numbers = _published(cutting, cells, owners, ~failing)
    suppressed, few, masks = int(counts[failing].sum()), int(counts[rare].sum()), SUPPRESSIONS[treatment].masks
    starred = rare[owners] | _starred(published, numbers)
    mask = rows.classes(rules, np.where(starred, 0, -1), 1) if masks and few else None
    masked = few if mask is not None and not mask.failing(promise)[0] else 0
    labels, sizes = published.labels, published.sizes
    # Whether or not anything is masked: the types of a release follow from the job alone.
    if masks:
        labels = labels.cast(pa.schema([(name, pa.string()) for name in labels.column_names]))
    if masked:
        numbers[rare[owners]] = len(sizes)
        labels = pa.concat_tables([labels, pa.table({name: [SUPPRESSED_VALUE] for name in labels.column_names})])
        sizes = np.append(sizes, masked)
    # The mask is no class of its own here, and what is in no class is counted in none.
    of_cells = np.where(numbers < len(published.sizes), numbers, SUPPRESSED).astype(np.int64)
    units = rows.unit.count(of_cells, len(published.sizes))
    plain = without_sensitive(cells, cutting.hierarchies)
    if plain is not cells:
        # A leaf is a matter of QIDs alone: the first cell of a combination speaks for all.
        numbers = numbers[first_of_classes(cells.codes, len(cutting.axes))]
    listed = np.flatnonzero(numbers != SUPPRESSED)
    words = tuple(word[listed] for word in plain.words)
    recoding = Recoding(plain.node, plain.packing, words, numbers[listed], labels, sizes)
    records = int(counts.sum())
    loss = _losses(published, len(cutting.axes), promise.k, records, suppressed)
    loss["c_avg"] = c_avg(int(units.sum()), len(published.sizes), promise.k)
    penalties = {qid: (penalty + suppressed) / records for qid, penalty in published.penalties.items()}
    return ReplayedPartition(recoding, loss, penalties, suppressed, masked, int((~failing).sum()), int(failing.sum()))


def _failing_together(rules: Rules, rows: RowTable, owners: NDArray[np.int64], numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return a mask of leaves that fail as one class with other leaves of equal labels, shape (leaves,)."""
    failing = rows.classes(rules, numbers.astype(np.int64), int(numbers.max(initial=-1)) + 1).failing(rules.promise)
    lost = np.zeros(int(owners.max(initial=-1)) + 1, np.bool_)
    # Of what is suppressed already nothing is asked.
    lost[owners[np.append(failing, False)[numbers]]] = True
    return lost


def _starred(published: PublishedClasses, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return a mask of the cells whose class label equals a suppressed record's, shape (cells,).

    Readers cannot distinguish the two.
    """
    stars = np.ones(len(published.sizes) + 1, np.bool_)
    for column in published.labels.columns:
        stars[:-1] &= pc.fill_null(pc.equal(column.cast(pa.string()), SUPPRESSED_VALUE), fill_value=False).to_numpy()
    # The last entry is that of suppressed cells.
    stars[-1] = False
    return stars[numbers]


def _published(
    cutting: Cutting, cells: Histogram, owners: NDArray[np.int64], keeps: NDArray[np.bool_]
) -> tuple[PublishedClasses, NDArray[np.int32]]:
    """Label the classes that keep the rules and return the published class number of each cell."""
    rows = np.flatnonzero(keeps[owners])
    _, mine = np.unique(owners[rows], return_inverse=True)
    order = np.argsort(mine, kind="stable")
    starts = np.append(run_starts(mine[order]), len(order))
    made = Partition(order.astype(np.int32), starts.astype(np.int64))
    published = label_partition(cutting, cells.codes[rows], cells.counts[rows], made)
    numbers = np.full(cells.cells, SUPPRESSED, np.int32)
    numbers[rows] = published.numbers[mine]
    return published, numbers


def _losses(published: PublishedClasses, qids: int, k: int, records: int, suppressed: int) -> dict[str, int | float]:
    """Return the losses of a replay, its suppressed records included.

    A suppressed record is withheld in every QID. It is confused with all records (DM) or with the suppressed ones (DM*).
    """
    lost = suppressed * qids
    sums = dict(published.losses) | {name: published.losses[name] + lost for name in ("ncp", "ncp_set", "ncp_distinct")}
    loss = total_losses([sums], qids, k, records)
    return loss | {
        "dm": int(sums["dm"]) + suppressed * records,
        "dm_star": int(sums["dm"]) + suppressed * suppressed,
        "dm_partitions": int(sums["dm_partitions"]) + suppressed * records,
        "c_avg": c_avg(records - suppressed, int(sums["classes"]), k),
        "suppression_rate": suppressed / records,
    }


def leaves_of(tree: CutTree, codes: NDArray[np.unsignedinteger[Any]], old_ranks: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the leaf of each cell, shape (cells,), from codes and ranks on the old axes.

    ``codes`` has the shape (cells, QIDs or more), ``old_ranks`` one array of ranks per QID.
    """
    ranks = np.stack([place[codes[:, qid]] for qid, place in enumerate(old_ranks)], axis=1)
    return tree.leaf_of(ranks)
