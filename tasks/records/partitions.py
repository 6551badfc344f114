"""The partitioning algorithms for single records, as jobs call them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.clustering.gower import Points, gower_points
from core.clustering.outlier_step import Cut, MondrianCut, OutlierStep, separate_outliers
from core.clustering.semantic import Clustering
from core.clustering.vptree import VantageTree, canon_partition
from core.columns.numbers import is_numerical
from core.kmember.partition import FEW, Effort, RecordsToGroup
from core.recoding.prices import LabelPrices
from core.units.unit import Unit
from schemas.errors.base import SourceError
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.job.record_methods import (
    CanonMethod,
    ClusteringMethod,
    Generalisation,
    Generalising,
    KMemberMethod,
    MondrianCofMethod,
    RaydenMethod,
)
from tasks.counting.coding import Coding
from tasks.counting.source_domains import ends_of
from tasks.records.coding import axes_of

Codes = NDArray[np.unsignedinteger]
FAR_LARGER = 4
"""Times k, or the records of the class in the middle by size, from which on a class is far larger than others."""
MANY_EXCHANGED = 1_000
"""Records of a block of finished classes where there are many."""


@dataclass(frozen=True, eq=False)
class Partitioned:
    """The class of each record by an algorithm, with the algorithm's counts.

    Attributes:
        classes: Shape (n,), int32, dense from 0; negative for suppressed records.
        figures: The algorithm's counts, by name.
        least: Shape (classes,), the finest level that a class may publish for categorical QIDs; None for any.
    """

    classes: NDArray[np.int32]
    figures: Mapping[str, int]
    least: NDArray[np.int64] | None = None


def partition_by_method(job: Job, codes: Codes, coding: Coding, unit: Unit) -> Partitioned:
    """Return the classes of records by the job's method; raise ``TypeError`` for one on cells.

    Args:
        codes: Shape (n, QIDs), in the order that decides ties; n ≥ k.
        coding: Domains and hierarchies.
        unit: The unit that k counts; there are at least k of it.
    """
    entry = METHODS[job.method.name]
    by = entry.partition
    if by is None:
        # No job's fault: only flows of methods whose entry has a partition come here.
        msg = f"method '{job.method.name}' does not recode single records"
        raise TypeError(msg)
    made: Partitioned = by(job, codes, coding, unit) if entry.counts_persons else by(job, codes, coding)
    return _exchanged(job, codes, coding, unit, made) if getattr(job.method, "exchange", False) else made


def _exchanged(job: Job, codes: Codes, coding: Coding, unit: Unit, made: Partitioned) -> Partitioned:
    """Improve finished classes by moving and swapping records while the loss falls.

    Suppressed records stay so. Classes far larger than others stay as they are: they hold equal records, or one person's, and the time for
    them grows with their square.

    Args:
        codes: Shape (n, QIDs).
        coding: Domains and hierarchies.
        unit: The unit that k counts.
    """
    published = made.classes[made.classes >= 0]
    sizes = np.bincount(published)
    small = sizes <= FAR_LARGER * max(job.privacy.k, float(np.median(sizes[sizes > 0]))) if len(published) else sizes > 0
    rows = np.flatnonzero((made.classes >= 0) & np.append(small, False)[made.classes])
    if not len(rows):
        return made
    members = RecordsToGroup(codes[rows], axes_of(job, coding), _labels(job, coding), job.privacy.k, unit.take(rows))
    numbers = np.unique(made.classes[rows], return_inverse=True)[1].astype(np.int32)
    effort = Effort.of(len(rows), job.privacy.k, 1, MANY_EXCHANGED if len(rows) > FEW else None)
    found, steps = members.clustered(effort, numbers)
    # Those that stay come after those that were bettered.
    count = int(found.max()) + 1
    classes = np.append(count + np.cumsum(~small) - 1, -1)[made.classes].astype(made.classes.dtype)
    classes[rows] = found
    return Partitioned(classes, {**made.figures, "partitions": count + int(np.count_nonzero(sizes[~small])), **steps})


def _labels(job: Job, coding: Coding) -> list[LabelPrices]:
    """Return the label prices of classes, QID by QID."""
    ways = generalisations_of_qids(job, coding)
    ends = ends_of(job, coding) or (None,) * len(ways)
    return [LabelPrices(*label) for label in zip(ways, coding.domains, coding.hierarchies, ends, strict=True)]


def partition_by_rayden(job: Job, codes: Codes, coding: Coding, unit: Unit) -> Partitioned:
    """Return classes from a VP-tree on Gower distance, outliers treated apart (RAYDEN).

    See papers/rayden.txt, Algorithms 1 to 3.
    """
    method = job.method
    assert isinstance(method, RaydenMethod)
    points = _points(codes, coding, method)
    tree = VantageTree(job.privacy.k, method.split, method.vantage, method.seed)
    classes = tree.partition(points, people=unit.people)

    def cut(rows: NDArray[np.intp], groups: NDArray[np.int32]) -> NDArray[np.int32]:
        return tree.partition(points.take(rows), groups, unit.take(rows).people)

    return _without_outliers(job, points, classes, method, cut, unit)


def partition_by_canon(job: Job, codes: Codes, coding: Coding, unit: Unit) -> Partitioned:
    """Return classes from a VP-tree on distances of numerical QIDs; raise ``SourceError`` without any."""
    method = job.method
    assert isinstance(method, CanonMethod)
    if not any(map(is_numerical, coding.domains)):
        raise SourceError.no_numbers(method.name)
    return _counted(
        canon_partition(codes, coding.domains, VantageTree(job.privacy.k, method.split, method.vantage, method.seed), unit.people)
    )


def partition_by_mondrian_cof(job: Job, codes: Codes, coding: Coding, unit: Unit) -> Partitioned:
    """Return classes from Mondrian cuts, with outliers taken out and the others cut again."""
    method = job.method
    assert isinstance(method, MondrianCofMethod)
    cut = MondrianCut(codes, axes_of(job, coding), job.privacy.k, unit)
    return _without_outliers(job, _points(codes, coding, method), cut.partition(), method, cut, unit)


def partition_by_clustering(job: Job, codes: Codes, coding: Coding, unit: Unit) -> Partitioned:
    """Return classes from hierarchical clustering, level by level (papers/semantic-clustering.txt)."""
    method = job.method
    assert isinstance(method, ClusteringMethod)
    clustering = Clustering(job.privacy.k, method.start, method.distance == "scaled")
    blocks = clustering.blocks(codes, coding.domains, coding.hierarchies, unit)
    least = blocks.levels if method.generalisation == "level" else None
    return Partitioned(blocks.classes, {"partitions": len(blocks.levels), "levels": int(blocks.levels.max()) + 1}, least)


def partition_by_kmember(job: Job, codes: Codes, coding: Coding, unit: Unit) -> Partitioned:
    """Return classes from greedy k-member clustering and local exchange, priced by the labels."""
    method = job.method
    assert isinstance(method, KMemberMethod)
    # In the order that cuts learn: they are what it is measured by.
    members = RecordsToGroup(codes, axes_of(job, coding, "ends"), _labels(job, coding), job.privacy.k, unit)
    classes, figures = members.clustered(Effort.of(len(codes), job.privacy.k, method.effort, method.block))
    return _counted(classes, figures)


def generalisations_of_qids(job: Job, coding: Coding) -> tuple[Generalisation | None, ...]:
    """Return how the classes of a job's method publish each QID, None for the usual way."""
    method = job.method
    if isinstance(method, Generalising):
        return tuple(method.way_of(qid.name) for qid in job.columns.quasi_identifiers)
    as_set = getattr(method, "generalisation", "hierarchy") == "set"
    # Of numbers ranges are published all the same, and what may not be published as it is goes by its hierarchy.
    hidden = (is_numerical(domain) or hierarchy.least for domain, hierarchy in zip(coding.domains, coding.hierarchies, strict=True))
    return tuple("set" if as_set and not unfit else None for unfit in hidden)


def _points(codes: Codes, coding: Coding, method: RaydenMethod | MondrianCofMethod) -> Points:
    return gower_points(codes, coding.domains, method.missing, coding.hierarchies if method.categories == "hierarchy" else None)


def _without_outliers(
    job: Job, points: Points, classes: NDArray[np.int32], method: RaydenMethod | MondrianCofMethod, cut: Cut, unit: Unit
) -> Partitioned:
    step = OutlierStep(job.privacy.k, float(method.alpha), method.chaining, method.outliers, method.pool)
    handled = separate_outliers(points, classes, step, cut, unit)
    figures = {"outliers": handled.detected, "left": handled.records_left, "recovered": handled.recovered, "merged": handled.merged}
    return _counted(handled.classes, figures)


def _counted(classes: NDArray[np.int32], figures: Mapping[str, int] | None = None) -> Partitioned:
    return Partitioned(classes, {"partitions": int(classes.max()) + 1, **(figures or {})})
