"""Recodings of single records: classes, merged where l and t fail, with labels and losses.

Merges depend on quasi-identifiers and disclose no sensitive value.

To merge each failing class with the nearest one would reveal to a reader who knows the algorithm which of the two it was, and with it the
one value of all its persons. So classes are the leaves of a tree built from the medoids of classes alone, halved again and again by
distance (a VP-tree). From the root on, a node is split into its halves if both keep the model; else all of it is one class. That discloses
no more than the class does, for a node is not even tried where a refusal would disclose more (``core.privacy.refusals``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.clustering.gower import Points
from core.clustering.nearest import medoids, nearest
from core.clustering.vptree import VantageTree
from core.columns.data_parallel import AT_A_TIME, each_in_parallel
from core.columns.domains import Domain
from core.columns.numbers import is_numerical
from core.hierarchies.hierarchy import Hierarchy
from core.privacy.kernels import Demands, demands_of, is_compiled
from core.privacy.promise import Promise
from core.privacy.refusals import disclosing_refusals
from core.recoding.classes import QidLabels, Sets, records_by_class
from core.recoding.ends import Ends
from core.recoding.labels import SUPPRESSED_VALUE, same_labels
from core.recoding.prices import generalise
from core.recoding.recoding import SUPPRESSED, Intervals, Treatment
from core.units.class_table import ClassTable
from core.units.losses import c_avg, dm, sum_of_squares
from core.units.persons import EVERY_RECORD
from core.units.unit import Records, Unit
from schemas.job.privacy import SUPPRESSIONS
from schemas.job.record_methods import Generalisation


@dataclass(frozen=True, eq=False)
class RecordRecoding:
    """Class of each record, with the labels, sizes and losses of the classes.

    Attributes:
        classes: Shape (n,), int32: row of ``labels``, or SUPPRESSED for a record that is not published.
        labels: One row per class, in the order of the release: the published columns. No two rows are equal.
        sizes: Shape (classes,), int64: records per class.
        suppressed: Records in no class of the algorithm.
        masked: How many of them are published with ``*``.
        loss: Losses by name.
        ncp: Normalised certainty penalty of each QID, suppressed records counting as 1.
    """

    classes: NDArray[np.int32]
    labels: pa.Table
    sizes: NDArray[np.int64]
    suppressed: int
    masked: int
    loss: Mapping[str, int | float]
    ncp: Mapping[str, float]


@dataclass(frozen=True)
class ClassPublication:
    """Settings for publishing classes: treatment of suppressed records, labels and range ends.

    Attributes:
        k: Least number of records of a class, a mask included.
        treatment: ``drop`` or ``mask`` for suppressed records.
        intervals: ``text``, or ``bounds`` for two columns where the hierarchy has bounds.
        ends: Where ranges of each QID may end, None for the values of a class; empty where that goes for all.
        ways: How each QID is published, None for the usual way; empty where that goes for all.
    """

    k: int
    treatment: Treatment = "drop"
    intervals: Intervals = "text"
    ends: tuple[Ends | None, ...] = ()
    ways: tuple[Generalisation | None, ...] = ()


def recode_records(
    records: NDArray[np.integer],
    classes: NDArray[np.int32],
    domains: Sequence[Domain],
    hierarchies: Sequence[Hierarchy],
    publication: ClassPublication,
    least: NDArray[np.int64] | None = None,
    unit: Unit = EVERY_RECORD,
) -> RecordRecoding:
    """Label classes of single records, merge equal ones, mask or drop suppressed records, measure losses.

    Masked records form a class of ``*``. A mask of fewer than k would reveal them, so they are dropped.

    Args:
        records: Shape (n, QIDs), the code of each value.
        classes: Shape (n,), int32, dense from 0; SUPPRESSED for records that are in none.
        domains: One per QID.
        hierarchies: One per QID.
        publication: How classes are published.
        least: Shape (classes,), the finest level that may be published for categorical QIDs, -1 for any; any if left out.
        unit: Whose the records are: C_avg is of persons where they are named.
    """
    sets = Sets.of(classes)

    def labelled(qid: int) -> QidLabels:
        way = publication.ways[qid] if publication.ways else None
        ends = publication.ends[qid] if publication.ends else None
        return generalise(way, records[:, qid], sets, domains[qid], hierarchies[qid], publication.intervals, ends, least)

    found = each_in_parallel(labelled, range(len(domains)), AT_A_TIME)
    # Who reads a release cannot tell classes of the same labels apart.
    numbers, firsts = same_labels(found)
    sizes = np.bincount(numbers, weights=sets.sizes, minlength=len(firsts)).astype(np.int64)
    columns = {name: column.take(pa.array(firsts)) for label in found for name, column in label.columns.items()}
    labels, recoded = pa.table(columns), np.append(numbers, SUPPRESSED).astype(np.int32)[classes]
    suppressed = len(classes) - int(sets.sizes.sum())
    masked = suppressed if SUPPRESSIONS[publication.treatment].masks and suppressed >= publication.k else 0
    averages = (
        c_avg(int(unit.per_class(recoded).sum()), len(sizes), publication.k),
        c_avg(int(unit.per_class(classes).sum()), len(sets.sizes), publication.k),
    )
    loss = _losses(found, sets, sizes, suppressed, averages) | _clustering_losses(found, sets, domains)
    if masked:
        recoded[recoded == SUPPRESSED] = len(sizes)
        labels = pa.concat_tables([labels, pa.table({name: [SUPPRESSED_VALUE] for name in labels.column_names})])
        sizes = np.append(sizes, masked)
    lost = [_mean(label.penalties, sets, suppressed) for label in found]
    ncp = {hierarchy.qid: penalty for hierarchy, penalty in zip(hierarchies, lost, strict=True)}
    return RecordRecoding(recoded, labels, sizes, suppressed, masked, loss, ncp)


def _losses(
    found: Sequence[QidLabels], sets: Sets, sizes: NDArray[np.int64], suppressed: int, averages: tuple[float, float]
) -> dict[str, int | float]:
    """Return the losses of published classes as readers see them, and of the algorithm's partitions.

    Several partitions may publish the same. ``gcp`` is that of the labels. ``gcp_held`` counts the values that a class holds, whatever its
    label covers besides.
    """
    records = int(sets.sizes.sum()) + suppressed
    return {
        "dm": dm(sizes, suppressed, records),
        "dm_star": sum_of_squares(sizes) + suppressed * suppressed,
        "dm_partitions": dm(sets.sizes, suppressed, records),
        "gcp": float(np.mean([_mean(label.penalties, sets, suppressed) for label in found])),
        "gcp_held": float(np.mean([_mean(label.covered, sets, suppressed) for label in found])),
        "c_avg": averages[0],
        "c_avg_partitions": averages[1],
        "suppression_rate": suppressed / records,
    }


def _mean(penalties: NDArray[np.float64], sets: Sets, suppressed: int) -> float:
    """Return the mean penalty per record; a suppressed record counts as 1."""
    total = float(np.dot(penalties, sets.sizes)) + suppressed
    return total / (int(sets.sizes.sum()) + suppressed)


def _clustering_losses(found: Sequence[QidLabels], sets: Sets, domains: Sequence[Domain]) -> dict[str, int | float]:
    """Return the three losses of papers/semantic-clustering.txt (Algorithms 11 to 13).

    They are taken over published records.

    Numerical: the relative ranges of a record's numerical QIDs, *summed*, on average over the records; so it may pass 1. Categorical:
    leaves under the label over leaves under the root, on average over QIDs and records; a value by itself costs one leaf. Leaves are
    observed values. Total: the mean of both.
    """
    numerical = categorical = 0.0
    named = 0
    for label, domain in zip(found, domains, strict=True):
        if is_numerical(domain):
            numerical += _mean(label.penalties, sets, 0)
        else:
            named += 1
            leaves = np.where(label.penalties > 0, label.penalties, 1 / max(domain.size, 1))
            categorical += _mean(leaves, sets, 0)
    categorical /= max(named, 1)
    return {"numerical_loss": numerical, "categorical_loss": categorical, "total_loss": (numerical + categorical) / 2}


Fails = Callable[[NDArray[np.int32]], NDArray[np.bool_]]
"""Returns which classes fail, given the class of each record (dense from 0, negative for records that are in none)."""


@dataclass(frozen=True, eq=False)
class Criteria:
    """Privacy criteria that every class must keep, with the sensitive values of the records.

    Attributes:
        promise: What is promised.
        values: Shape (n,) per sensitive column that the promise looks at: the code of each record.
        source_counts: Shape (values,) per column: how often each value occurs in the whole source.
    """

    promise: Promise
    values: Mapping[str, NDArray[np.integer]]
    source_counts: Mapping[str, NDArray[np.int64]]
    unit: Unit = EVERY_RECORD

    def failing(self, classes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return a mask of the classes that fail the promise, shape (classes,)."""
        return self._table(classes).failing(self.promise)

    def column_broken_by_holders(self) -> str | None:
        """Return the column whose too widely held value alone makes one class of all records fail; else None."""
        records = len(next(iter(self.values.values()), ()))
        if not records:
            return None
        whole = self._table(np.zeros(records, np.int32))
        return self.promise.column_broken_by_holders(whole.units, whole.spreads)

    def _table(self, classes: NDArray[np.int32]) -> ClassTable:
        """Return the class table of records that are assigned to classes."""
        spreads = {name: self.unit.spread(classes, codes.astype(np.int64), self.source_counts[name]) for name, codes in self.values.items()}
        return ClassTable(Records().per_class(classes), self.unit.per_class(classes), spreads)


def smaller_than(k: int, unit: Unit = EVERY_RECORD) -> Fails:
    """Return a function that marks classes of fewer than k persons, or k records where none are named."""
    return lambda classes: Promise(k).too_few(unit.per_class(classes))


def merge_failing(points: Points, classes: NDArray[np.int32], fails: Fails) -> tuple[NDArray[np.int32], int]:
    """Merge failing classes into the nearest until none fails or one is left; return also how many failed.

    All that fail in one pass are merged at once, so that the outcome does not depend on where one begins. Classes that are nearest to one
    another become one. Of equally near classes the one with the lower number is taken.

    Args:
        points: The records.
        classes: Shape (n,), int32, dense from 0; SUPPRESSED for records that are in none.
        fails: What a class must not do.

    Returns:
        Classes in the same form, and how many failed. A single one stays as it is, even if it fails.
    """
    merged = 0
    while True:
        failing = np.flatnonzero(fails(classes))
        order, ends = records_by_class(classes)
        if not len(failing) or len(ends) <= 2:
            return classes, merged
        merged += len(failing)
        # Medoids and not means: categories have no mean, and a medoid is found in whole numbers.
        centres = points.take(medoids(points, order, ends))
        target = np.arange(len(ends) - 1)
        target[failing] = nearest(centres.take(failing), centres, failing.astype(np.int64))
        # Two that point at one another would follow each other for ever: the lower number stays. Longer rings cannot be.
        pair = target[target] == np.arange(len(target))
        target = np.where(pair, np.minimum(target, np.arange(len(target))), target)
        while not np.array_equal(target, target[target]):
            target = target[target]
        classes = dense(np.where(classes >= 0, target[classes], SUPPRESSED).astype(np.int32))


def without_failing(classes: NDArray[np.int32], fails: Fails) -> NDArray[np.int32]:
    """Return classes with the records of failing ones SUPPRESSED and the others numbered from 0."""
    # SUPPRESSED is -1 and reads the last entry: what is in no class stays in none.
    failing = np.append(fails(classes), True)
    return dense(np.where(failing[classes], SUPPRESSED, classes))


def dense(classes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return classes renumbered from 0 without gaps, in the same order; SUPPRESSED stays."""
    used = np.bincount(classes[classes >= 0]) > 0
    numbers = np.append(np.cumsum(used) - 1, SUPPRESSED).astype(np.int32)
    return numbers[classes]


Segments = NDArray[np.int64]
HALVES = VantageTree(1, "median", "farthest")


def merge_unsafe_classes(points: Points, classes: NDArray[np.int32], criteria: Criteria) -> tuple[NDArray[np.int32], int]:
    """Merge classes until each keeps what all records as one class keep; return them and how many merged.

    Args:
        points: The records.
        classes: Shape (n,), int32, dense from 0; SUPPRESSED for records that are in none.

    Returns:
        Classes in the same form, and how many of those before are no class by themselves now.
    """
    order, ends = records_by_class(classes)
    centres = points.take(medoids(points, order, ends))
    made, finished = np.arange(centres.size, dtype=np.int64), []
    segments, distances = np.array([[0, centres.size]], np.int64)[: centres.size], np.zeros(centres.size, np.int64)
    while len(segments):
        single = segments[:, 1] - segments[:, 0] < 2
        finished.append(segments[single])
        segments = segments[~single]
        # No draws: what a node is split by must depend on nothing but its own classes.
        cuts = segments[:, 0] + HALVES.halved(centres, made, segments, np.zeros((len(segments), 2)), distances)
        halves = np.stack([np.stack([segments[:, 0], cuts], 1), np.stack([cuts, segments[:, 1]], 1)], 1)
        split = _harmless(halves, made, classes, criteria)
        finished.append(segments[~split])
        segments = halves[split].reshape(-1, 2)
    last = np.sort(np.concatenate([np.empty(0, np.int64), *(part[:, 1] for part in finished)]))
    numbers = np.empty(centres.size + 1, np.int32)
    numbers[made] = np.searchsorted(last, np.arange(centres.size), side="right")
    numbers[-1] = SUPPRESSED
    sizes = np.bincount(numbers[:-1])
    # SUPPRESSED is -1 and reads the last entry.
    return numbers[classes], int(sizes[sizes > 1].sum())


def _harmless(halves: Segments, made: NDArray[np.int64], classes: NDArray[np.int32], criteria: Criteria) -> NDArray[np.bool_]:
    """Return a mask of nodes to split: both halves keep the model, and a refusal discloses no value.

    Args:
        halves: Shape (nodes, 2, 2), where both halves of each begin and end.
        made: Shape (classes,), the classes by their places.
        classes: Shape (n,), the class of each record.
    """
    if not len(halves):
        return np.zeros(0, np.bool_)
    parts = halves.reshape(-1, 2)
    sizes = parts[:, 1] - parts[:, 0]
    # Nodes of one level share no place: each place belongs to one half at most.
    places = np.repeat(parts[:, 0] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(sizes.sum())
    of_class = np.full(len(made) + 1, SUPPRESSED, np.int32)
    of_class[made[places]] = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
    mine = of_class[classes]
    kept = ~criteria.failing(mine).reshape(-1, 2).any(axis=1)
    return kept & ~_telling(mine, len(halves), criteria)


def _telling(parts: NDArray[np.int32], nodes: int, criteria: Criteria) -> NDArray[np.bool_]:
    """Return a mask of nodes whose refusal would disclose a person's value, shape (nodes,).

    Args:
        parts: Shape (n,), the half of each record, two for each node one after the other; SUPPRESSED for none.
        criteria: The model.
    """
    telling = np.zeros(nodes, np.bool_)
    if not is_compiled(criteria.promise):
        return telling
    rows = np.flatnonzero(parts >= 0)
    sizes = np.bincount(parts[rows], minlength=2 * nodes).reshape(-1, 2)
    persons = criteria.unit.per_class(parts).reshape(-1, 2)
    demands: Demands = demands_of(criteria.promise, list(criteria.values), list(criteria.source_counts.values()))
    for column, (name, codes) in enumerate(criteria.values.items()):
        values = len(criteria.source_counts[name])
        found, totals = np.unique(parts[rows].astype(np.int64) // 2 * values + codes[rows], return_counts=True)
        telling |= disclosing_refusals(found // values, found % values, totals, sizes, persons, column, demands)
    return telling
