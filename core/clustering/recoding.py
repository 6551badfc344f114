"""Recodings of single records: each record's class, and the labels and losses of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.data_parallel import AT_A_TIME, each_in_parallel
from core.columns.domains import Domain
from core.columns.numbers import is_numerical
from core.hierarchies.hierarchy import Hierarchy
from core.recoding.classes import QidLabels, Sets
from core.recoding.ends import Ends
from core.recoding.generalisation import generalise
from core.recoding.labels import SUPPRESSED_VALUE, Style, label_qid, same_labels
from core.recoding.recoding import SUPPRESSED, Treatment
from core.units.losses import c_avg, dm, sum_of_squares
from core.units.persons import EVERY_RECORD
from core.units.unit import Unit
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
        style: How labels are written.
        ends: Where ranges of each QID may end, None for the values of a class; empty where that goes for all.
        ways: How each QID is published, None for the usual way; empty where the style goes for all.
    """

    k: int
    treatment: Treatment = "drop"
    style: Style = field(default_factory=Style)
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
        ends, codes, domain, hierarchy = (
            publication.ends[qid] if publication.ends else None,
            records[:, qid],
            domains[qid],
            hierarchies[qid],
        )
        if publication.ways:
            return generalise(publication.ways[qid], codes, sets, domain, hierarchy, publication.style.intervals, ends)
        return label_qid(codes, sets, domain, hierarchy, publication.style, least, ends)

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
