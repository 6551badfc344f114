"""What becomes of the records that the node of all suppresses: further rounds, then stars, a mask, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.coding import Words
from core.histograms.histogram import Histogram, count_cells
from core.histograms.rollups import packing_of, roll_up
from core.lattice.lattice import Lattice
from core.lattice.search import Found
from core.local_suppression.local_transformation import Level, Leveller, Lost, anonymise_again
from core.local_suppression.losses import costs_of, measured
from core.local_suppression.recoding import Part, recode_parts
from core.local_suppression.remainders import treat
from core.privacy.models import PrivacyModel
from core.recoding.labels import STAR
from schemas.job.job import Job
from schemas.job.method import full_domain
from schemas.release.manifest import Round
from tasks.counting.chunk_cells import whole_cells
from tasks.counting.coding import Coding
from tasks.lattice.node_recodings import Local, Made
from tasks.lattice.optimum import examine_left
from tasks.lattice.promises import most_suppressed
from tasks.store.store import Artifact, Store

BYTES_PER_LEFT_CELL = 128


def recode_locally(
    job: Job, coding: Coding, model: PrivacyModel, found: Found, counted: Histogram, parts: Sequence[Artifact], store: Store
) -> Made:
    """Makes the recoding of a node and of what it suppresses.

    Args:
        job: The job.
        coding: Domains and hierarchies.
        model: What every class must satisfy.
        found: The node.
        counted: Histogram of a root below it.
        parts: Histograms of the chunks.
        store: Where these are.

    Raises:
        StorageError: artefacts are gone.
    """
    leveller = Leveller(coding.hierarchies, coding.sensitive, model)
    first = leveller.at(counted, found.node)
    left = _left(job, coding, leveller, first, counted, parts, store)
    levels, left = anonymise_again(first, left, job.suppression.rounds, leveller, lambda rest: examine_left(job, coding, model, rest))
    treated = treat(levels, left, job.suppression.treatment, leveller, coding.domains)
    recoding = recode_parts(treated.parts, coding.hierarchies)
    classes = np.concatenate([recoding.classes, *(stage.classes for stage in recoding.later)])
    costs = costs_of(treated.parts, classes, coding.domains, coding.hierarchies, job.privacy.k, treated.unpublished)
    objective, dropped = full_domain(job.method).objective, costs.suppressed - costs.masked
    costs.loss.update(measured(objective, treated.parts, coding.domains, coding.hierarchies, dropped))
    ncp = {hierarchy.qid: penalty for hierarchy, penalty in zip(coding.hierarchies, costs.ncp, strict=True)}
    local = Local(
        records=found.loss.suppressed,
        dm_star=found.loss.dm_star,
        rounds=tuple(_round(part) for part in treated.parts[1 : len(levels)]),
        starred=costs.starred,
        stars=costs.stars,
        least=treated.least,
        stages=tuple(stage.node for stage in recoding.later),
        withheld={name: _records_with(STAR, recoding.labels[name], recoding.sizes) for name in recoding.labels.column_names},
    )
    return Made(recoding, costs.suppressed, costs.masked, costs.loss, ncp, {}, local)


def _round(part: Part) -> Round:
    """Tells what a round published, without what was masked of it afterwards."""
    kept = part.cells.counts[~part.starred.any(axis=1)]
    return Round(node=part.cells.node, records=int(kept.sum()), classes=len(kept))


def _records_with(label: str, labels: pa.ChunkedArray, sizes: NDArray[np.int64]) -> int:
    return int(sizes[pc.fill_null(pc.equal(labels, label), fill_value=False).to_numpy()].sum())


def _left(
    job: Job, coding: Coding, leveller: Leveller, first: Level, counted: Histogram, parts: Sequence[Artifact], store: Store
) -> Histogram:
    """Returns the cells of what the node suppresses: where there are rounds, at the finest node that may be published, if they fit."""
    fits = most_suppressed(job, coding.records) * BYTES_PER_LEFT_CELL <= job.memory // 2
    finest = Lattice.allowed(coding.axes).root
    if not job.suppression.rounds or not fits or counted.node == finest:
        return leveller.rest(counted, first)
    # A round may choose levels finer than the first root, so it starts from the chunks' own cells.
    lost, packing = Lost(first, coding.finest, coding.hierarchies), packing_of(coding.finest, coding.axes)
    words: list[Words] = []
    counts: list[NDArray[np.int64]] = []
    for part in parts:
        cells, records = whole_cells(coding, part, store)
        rows = lost.among(packing.unpack(cells))
        words.append(tuple(word[rows] for word in cells))
        counts.append(records[rows])
    joined = tuple(np.concatenate(word) for word in zip(*words, strict=True))
    left = Histogram(coding.finest, packing, *count_cells(joined, packing.product, np.concatenate(counts)))
    return left if finest == coding.finest else roll_up(left, finest, coding.axes)
