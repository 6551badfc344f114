"""Classes of rows that Mondrian cuts: their tables, labels and merges.

Leaves with equal labels make one class.

A union of classes that keep k persons and enough distinct values keeps them too. Entropy, recursive diversity and closeness do not, where a
person is counted once for each of their values. Two classes that share the persons of a rare value make one class in which it is too rare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.histograms.histogram import Histogram
from core.mondrian.partition import Partition, Rules
from core.mondrian.recoding import Codes, Cutting, PublishedClasses, label_partition
from core.privacy.models import Spread
from core.recoding.recoding import Recoding
from core.units.class_table import ClassTable, without_sensitive
from core.units.unit import Records, Unit

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
            size: How many classes there are.
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
        cutting: How rows are cut.
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
        qids = cells.codes[:, : len(cutting.axes)]
        # Strict cuts never part equal QIDs, so that the first cell of a combination speaks for all.
        classes = classes[np.append(True, (qids[1:] != qids[:-1]).any(axis=1))]
    return Recoding(plain.node, plain.packing, plain.words, classes, published.labels, published.sizes), published


def _merged(made: Partition, leaves: NDArray[np.bool_]) -> Partition:
    """Merge each marked leaf of a partition with the next leaf in the order of rows.

    The last leaf of all is merged with the one before.
    """
    kept = np.append(True, ~leaves)
    kept[-2] &= kept[-1]
    kept[0] = kept[-1] = True
    return Partition(made.order, made.starts[kept])
