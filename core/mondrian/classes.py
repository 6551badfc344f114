"""Mondrian's classes: those of cells, what the persons of a class hold, and leaves whose equal labels make one class of them.

A union of classes that keep k persons and so many values keeps them too. Entropy, recursive diversity and closeness with everybody counted
once for each of their values do not: two classes that share the people of a rare value make one in which it is too rare.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.histograms.histogram import Histogram
from core.mondrian.partition import Partition
from core.mondrian.people import RowPeople
from core.mondrian.recoding import Codes, Cutting, Published, publish
from core.persons.spreads import spread_of_people
from core.privacy.class_tables import without_sensitive
from core.privacy.models import Spreads
from core.recoding.recoding import Recoding

Numbers = NDArray[np.int64]


def of_people(cutting: Cutting, codes: Codes, people: RowPeople) -> Cutting:
    """Returns the same cutting with the persons of all rows by sensitive value in the place of the records, and what follows for a model.

    Args:
        cutting: How rows are cut.
        codes: Shape (rows, QIDs and sensitive columns), all rows of the source.
        people: Whose they are.
    """
    rules, sensitive = cutting.rules, enumerate(cutting.rules.wholes, start=len(cutting.axes))
    wholes = tuple(people.visits.count(codes[:, column].astype(np.int64), len(whole)) for column, whole in sensitive)
    promise = rules.promise.of_people(dict(zip(rules.columns, wholes, strict=True)), people.size)
    return replace(cutting, rules=replace(rules, wholes=wholes, promise=promise))


def promised(cutting: Cutting, codes: Codes, people: RowPeople, owners: Numbers, classes: int) -> tuple[Numbers, Spreads]:
    """Returns what a privacy model counts of classes: persons, shape (classes,), and how their values are spread.

    Args:
        cutting: Names the sensitive columns.
        codes: Shape (rows, QIDs and sensitive columns).
        people: Whose the rows are.
        owners: Shape (rows,), the class of each.
        classes: How many there are.
    """
    qids, rules = len(cutting.axes), cutting.rules
    spreads = {
        column: spread_of_people(people.visits, owners, codes[:, qids + number].astype(np.int64), whole)
        for number, (column, whole) in enumerate(zip(rules.columns, rules.wholes, strict=True))
    }
    return people.visits.count(owners, classes), spreads


def whole_keeps(cutting: Cutting, codes: Codes, people: RowPeople) -> bool:
    """Tells whether all rows as one class keep the rules; arguments as of ``promised``."""
    return not cutting.rules.promise.fails(*_whole(cutting, codes, people))[0]


def column_held(cutting: Cutting, codes: Codes, people: RowPeople) -> str | None:
    """Returns the column of which too many persons hold one value, if all rows as one class break the rules by nothing else.

    Then they may still be cut: in each of two halves there may be few enough. Arguments as of ``promised``.
    """
    return cutting.rules.promise.column_held(*_whole(cutting, codes, people))


def _whole(cutting: Cutting, codes: Codes, people: RowPeople) -> tuple[Numbers, Spreads]:
    return promised(cutting, codes, people, np.zeros(len(codes), np.int64), 1)


def cut_and_publish(cutting: Cutting, codes: Codes, weights: Numbers, people: RowPeople | None) -> tuple[Partition, Published]:
    """Cuts rows and labels their classes; leaves that would fail as one class, for their labels are equal, are merged with neighbours.

    Args:
        cutting: How.
        codes: Shape (rows, QIDs and sensitive columns); all of them together must keep the rules, but for who holds a value: if they are
            one class in the end, that is still to be asked.
        weights: Shape (rows,), records per row.
        people: Whose these are; None where every record counts.
    """
    made = cutting.cut(codes, weights, people)
    published = publish(cutting, codes, weights, made)
    if people is None or cutting.rules.promise.closed:
        return made, published
    while made.classes > 1 and (failing := _failing(cutting, codes, people, made, published)).any():
        made = _merged(made, failing[published.numbers])
        published = publish(cutting, codes, weights, made)
    return made, published


def recode_cells(cutting: Cutting, cells: Histogram, people: RowPeople | None = None) -> tuple[Recoding, Published]:
    """Runs strict Mondrian on cells.

    Args:
        cutting: How; not relaxed.
        cells: At full resolution; after the QIDs the sensitive columns that the rules name. All of them together must keep the rules.
        people: Whose their records are; None where every record counts.
    """
    made, published = cut_and_publish(cutting, cells.codes, cells.counts, people)
    plain = without_sensitive(cells, cutting.hierarchies)
    classes = published.numbers[made.of_rows()].astype(np.int32)
    if plain is not cells:
        qids = cells.codes[:, : len(cutting.axes)]
        # Strict cuts never part equal QIDs, so that the first cell of a combination speaks for all.
        classes = classes[np.append(True, (qids[1:] != qids[:-1]).any(axis=1))]
    return Recoding(plain.node, plain.packing, plain.words, classes, published.labels, published.sizes), published


def _failing(cutting: Cutting, codes: Codes, people: RowPeople, made: Partition, published: Published) -> NDArray[np.bool_]:
    """Returns which of the published classes fail."""
    return cutting.rules.promise.fails(*promised(cutting, codes, people, published.numbers[made.of_rows()], len(published.sizes)))


def _merged(made: Partition, leaves: NDArray[np.bool_]) -> Partition:
    """Returns a partition with each of the marked leaves merged with the next one, which the last cut between them took it from.

    The last leaf of all is merged with the one before.
    """
    kept = np.append(True, ~leaves)
    kept[-2] &= kept[-1]
    kept[0] = kept[-1] = True
    return Partition(made.order, made.starts[kept])
