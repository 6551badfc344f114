"""Forecast of the information loss of one node and of Mondrian, measured on samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.columns.coding import PackedWords
from core.columns.domains import Domain, Node
from core.histograms.cells import packing_of, roll_up
from core.histograms.histogram import Histogram, count_cells
from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.lattice import LARGEST, Lattice
from core.lattice.objectives import prices_of
from core.lattice.search import Search, SearchResult
from core.mondrian.fragments import sample_mask
from core.mondrian.partition import Rules, Score
from core.mondrian.recoding import total_losses
from core.mondrian.replay import recode_cells
from core.privacy.promise import Promise
from core.units.class_table import table_at, without_sensitive
from core.units.losses import certainty_penalty
from schemas.job.job import Job
from schemas.job.record_methods import MondrianMethod
from schemas.reading.model import FrozenModel
from tasks.counting.coding import Coding, cells_in_source_coding
from tasks.lattice.promises import promise_of, searched_axes
from tasks.mondrian.cells import cutting_of
from tasks.store.store import Artifact, Store

Way = Literal["least DM*", "least GCP", "mondrian", "mondrian, score: ncp"]
WRITE: dict[Way, str] = {
    "least DM*": "method: {name: skald, objective: dm_star}",
    "least GCP": "method: {name: skald}",
    "mondrian": "method: {name: mondrian}",
    "mondrian, score: ncp": "method: {name: mondrian, score: ncp}",
}
"""The line of a job that asks for it."""
SAMPLES, MOST_CELLS, EFFORT = 3, 10_000, 500


class Expected(FrozenModel):
    """Expected GCP of one method, and the largest deviation of a sample from it.

    Attributes:
        way: How it chooses.
        gcp: GCP of what it would publish, mean of the samples.
        error: How far the samples are from that at most.
    """

    way: Way
    gcp: float
    error: float


class Forecast(FrozenModel):
    """Expected GCP of several methods by k alone, and the number of records it was measured on.

    Attributes:
        records: How many the samples have on average; those of the source if all were taken.
        whole: Whether all records were taken.
        ways: One entry per way, in a fixed order.
        needs_levels: Whether the job's suppression needs a method that chooses levels.
    """

    records: int
    whole: bool
    ways: tuple[Expected, ...]
    needs_levels: bool = False


def forecast_ways(job: Job) -> tuple[Way, ...]:
    """Return the methods whose loss is forecast: best node, best cuts, and the job's own if different."""
    method = job.method
    own: tuple[Way, ...] = ()
    if getattr(method, "objective", None) == "dm_star":
        own = ("least DM*",)
    elif isinstance(method, MondrianMethod) and method.score != "ncp":
        own = ("mondrian",)
    return (*own, "least GCP", "mondrian, score: ncp")


def forecast_of(job: Job, coding: Coding, chunk_histograms: Sequence[Artifact], store: Store) -> Forecast | None:
    """Return the expected GCP of each way by k; None if persons count, or samples have under k records.

    The more records, the less every method loses: of all records less than of a sample.

    Args:
        chunk_histograms: Histograms of the chunks at the finest node.

    Returns:
        None where persons count, who are not in the sample as they are in the source, and where a sample has fewer than k records.
    """
    if job.columns.person:
        return None
    cells = sum(part.rows for part in chunk_histograms)
    samples = SAMPLES if cells > SAMPLES * MOST_CELLS else 1
    drawn = _drawn(coding, chunk_histograms, MOST_CELLS / cells if samples > 1 else 1.0, samples, store)
    if not all(sample.records >= job.privacy.k for sample in drawn):
        return None
    ways = tuple(_expected(way, [expected_gcp(job, coding, way, sample) for sample in drawn]) for way in forecast_ways(job))
    return Forecast(
        records=round(fmean(sample.records for sample in drawn)), whole=samples == 1, ways=ways, needs_levels=job.suppression.is_local
    )


def _expected(way: Way, values: list[float]) -> Expected:
    mean = fmean(values)
    return Expected(way=way, gcp=mean, error=max(abs(value - mean) for value in values))


def _drawn(coding: Coding, parts: Sequence[Artifact], share: float, samples: int, store: Store) -> list[Histogram]:
    """Draw samples of the QIDs' cells, reading every chunk once; return one histogram per sample."""
    kept: list[list[tuple[PackedWords, NDArray[np.int64]]]] = [[] for _ in range(samples)]
    for part in parts:
        words, counts = cells_in_source_coding(coding, part, store)
        # Cells of all samples first, so that most are hashed once.
        drawn = sample_mask(words, share * samples, samples)
        words, counts = tuple(word[drawn] for word in words), counts[drawn]
        for seed, pieces in enumerate(kept):
            # Of what the ones before left: what they have in common would make them differ too little.
            rows = sample_mask(words, 1 / (samples - seed), seed)
            pieces.append((tuple(word[rows] for word in words), counts[rows]))
            words, counts = tuple(word[~rows] for word in words), counts[~rows]
    return [without_sensitive(_added(coding, pieces), coding.hierarchies) for pieces in kept]


def _added(coding: Coding, pieces: list[tuple[PackedWords, NDArray[np.int64]]]) -> Histogram:
    words = tuple(np.concatenate(word) for word in zip(*(words for words, _ in pieces), strict=True))
    counts = np.concatenate([counts for _, counts in pieces])
    packing = packing_of(coding.finest, coding.axes)
    return Histogram(coding.finest, packing, *count_cells(words, packing.product, counts))


def expected_gcp(job: Job, coding: Coding, way: Way, sample: Histogram) -> float:
    """Return the GCP of the records in a sample of cells if released by a method.

    Args:
        sample: The records' cells: with axes of sensitive columns by k and all models of these, else by k alone.
    """
    if way in {"least DM*", "least GCP"}:
        return _of_node(job, coding, "dm_star" if way == "least DM*" else "gcp", sample)
    score: Score = "ncp" if way == "mondrian, score: ncp" else "representativity"
    cutting = cutting_of(job, coding, score)
    if not _sensitive(coding, sample):
        cutting = replace(cutting, rules=Rules(Promise(job.privacy.k)))
    published = recode_cells(cutting, sample)[1]
    return float(total_losses([published.losses], len(coding.hierarchies), job.privacy.k, sample.records)["gcp"])


def _sensitive(coding: Coding, sample: Histogram) -> tuple[Domain, ...]:
    """Return the domains of the sensitive columns that are axes of some cells."""
    return coding.sensitive if len(sample.node) > len(coding.hierarchies) else ()


def _promise(job: Job, coding: Coding, sample: Histogram) -> Promise:
    return promise_of(job, coding) if _sensitive(coding, sample) else Promise(job.privacy.k)


def _of_node(job: Job, coding: Coding, objective: str, sample: Histogram) -> float:
    """Return the GCP of the best node; 1 if no node passes within the job's levels."""
    plain = without_sensitive(sample, coding.hierarchies)
    found = _best_node(job, coding, objective, plain)
    if found is not None and plain is not sample and _lost_at(job, coding, sample, found.node)[1] > found.loss.suppressed:
        # No node that keeps the models loses less than the best one by k, so that this is the best one unless it breaks a model.
        found = _best_node(job, coding, objective, sample)
    return 1.0 if found is None else _lost_at(job, coding, sample, found.node)[0]


def _best_node(job: Job, coding: Coding, objective: str, sample: Histogram) -> SearchResult | None:
    sensitive = _sensitive(coding, sample)
    axes = searched_axes(job, coding)[: len(sample.node)]
    promise, most = _promise(job, coding, sample), floor(Fraction(job.suppression.limit) * sample.records)
    # What may not be published is finer than this.
    root = roll_up(sample, Lattice.allowed(axes).root, coding.axes[: len(axes)])
    prices = prices_of(objective, coding.hierarchies, coding.domains, len(sensitive), left=root)
    if Lattice.allowed(axes).nodes > LARGEST:
        return BranchAndBound(Evaluations(root, axes, promise, most, objective, effort=EFFORT, sensitive=sensitive, prices=prices)).run()
    return Search(root, axes, promise, most, objective, sensitive=sensitive, prices=prices).run()


def _lost_at(job: Job, coding: Coding, sample: Histogram, node: Node) -> tuple[float, int]:
    """Return the GCP of a node, and how many records it suppresses."""
    at, classes = table_at(sample, node, coding.hierarchies, _sensitive(coding, sample), None)
    kept = ~classes.failing(_promise(job, coding, sample))
    suppressed = sample.records - int(at.counts[kept].sum())
    lost = [
        certainty_penalty(hierarchy, domain, level, codes[kept], at.counts[kept], suppressed)
        for hierarchy, domain, level, codes in zip(
            coding.hierarchies, coding.domains, node[: len(coding.hierarchies)], at.groups, strict=True
        )
    ]
    return fmean(lost), suppressed
