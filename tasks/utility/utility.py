"""What a release is worth to its analysts, measured against the source of its job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from core.columns.numbers import as_numbers
from core.evaluation.accuracy import FOLDS, accuracy, majority
from core.evaluation.utility import SANITY, draw_queries, generalised, relative_errors, total_variation
from schemas.errors.methods import UtilityError
from schemas.job.job import Job
from tasks.counting.coding import Coding, load_coding
from tasks.counting.phases import count_domains, merge_domains
from tasks.release.files import data_files, layout_of, relation_of
from tasks.release.manifest import read_manifest
from tasks.source.objects.for_duckdb import let_read
from tasks.source.opening import open_run
from tasks.source.sources import read_source
from tasks.store.database import connect
from tasks.utility.labels import labels_of
from tasks.utility.side_by_side import Attribute, SideBySide

MOST_CLASSES = 100
MOST_CATEGORIES = 1000


class ColumnUtility(BaseModel):
    """One QID: mean NCP of the records in the files, and total variation between its values before and after, spread evenly."""

    model_config = ConfigDict(frozen=True)

    generalised: float
    marginal: float


class QueryErrors(BaseModel):
    """Relative errors of random count queries; a count below ``sanity`` records is divided by that."""

    model_config = ConfigDict(frozen=True)

    queries: int
    seed: int
    sanity: float
    mean: float
    median: float


class Accuracy(BaseModel):
    """Shares of records whose ``target`` a classifier tells rightly from the QIDs; ``majority`` is that of the most frequent value."""

    model_config = ConfigDict(frozen=True)

    target: str
    source: float
    release: float
    majority: float
    source_records: int
    release_records: int


class Utility(BaseModel):
    """What a release is worth; figures only."""

    model_config = ConfigDict(frozen=True)

    release: str
    records: int
    released: int
    suppressed: int | None
    columns: dict[str, ColumnUtility]
    queries: QueryErrors
    classifier: Accuracy | None = None


def measure(job: Job, release: Path, queries: int, seed: int, target: str | None) -> Utility:
    """Measures a release against the source of its job.

    Args:
        job: The job.
        release: A release folder; of another tool too, if its labels are those of the job's hierarchies, ranges or sets of values.
        queries: Random count queries.
        seed: Of queries, samples and classifier.
        target: Column that a classifier tells from the QIDs; none if left out.

    Raises:
        UtilityError: the target cannot be told.
        StorageError: the folder is no release, or publishes what is not in the job's hierarchies.
        SkaldError: whatever is wrong with the source.
    """
    # Asked for without importing it, and before minutes of counting.
    if target is not None and find_spec("sklearn") is None:
        raise UtilityError.not_installed()
    files, manifest = data_files(release), read_manifest(release)
    with open_run(job) as run:
        source = read_source(run)
        # What is published treated has other values than the source, so that nothing could be told of it from both sides.
        others = [name for name in source.payload if name not in source.treatments]
        if target is not None and target not in others:
            raise UtilityError.no_target(target, others)
        coding = load_coding(job, merge_domains(run, source, count_domains(run, source)), run.store)
        layout = layout_of(files, manifest.columns if manifest else {})
        with connect(job, run.spill) as connection:
            let_read(connection, source.relation)
            bench = SideBySide(connection, source.relation, relation_of(connection, files, layout))
            qids = list(_qids(bench, job, coding, manifest.levels_of_all if manifest else None, release))
            categories = [bench.category(len(qids) + source.payload.index(name), name) for name in job.columns.sensitive]
            # Queries draw pairs of columns, and a pair's table can have a row for each two values.
            asked = [*qids, *(one for one in categories if one.domain.size <= MOST_CATEGORIES)]
            told = bench.category(len(qids) + source.payload.index(target), target) if target else None
            return Utility(
                release=release.name,
                records=source.records,
                released=int(qids[0].counts.sum()),
                suppressed=manifest.suppressed if manifest else None,
                columns={one.domain.qid: _column(one) for one in qids},
                queries=_query_errors(bench, asked, queries, seed),
                classifier=_accuracy(bench, qids, told, seed) if told else None,
            )


def _column(one: Attribute) -> ColumnUtility:
    wide = generalised(one.meaning, one.counts)
    return ColumnUtility(generalised=wide, marginal=total_variation(one.weights, one.meaning.spread(one.counts)))


def _qids(bench: SideBySide, job: Job, coding: Coding, levels: dict[str, int] | None, release: Path) -> Iterator[Attribute]:
    for labels in labels_of(bench, job, coding, levels):
        meaning = labels.meaning(release)
        bench.register(labels.number, labels.domain)
        yield Attribute(labels.number, labels.domain, labels.names, f"labels_{labels.number}", meaning, labels.counts)


def _query_errors(bench: SideBySide, attributes: Sequence[Attribute], queries: int, seed: int) -> QueryErrors:
    numbers = [place for place, one in enumerate(attributes) if as_numbers(one.domain.values) is not None]
    drawn = draw_queries(numbers, [one.weights for one in attributes], queries, seed)
    pairs = {(first.attribute, second.attribute) for first, second in drawn}
    tables = {(first, second): bench.contingencies(attributes[first], attributes[second]) for first, second in sorted(pairs)}
    true, estimated = np.zeros(queries), np.zeros(queries)
    for place, (first, second) in enumerate(drawn):
        there, published = tables[first.attribute, second.attribute]
        one, other = attributes[first.attribute], attributes[second.attribute]
        chosen, also = first.chosen(one.domain.size), second.chosen(other.domain.size)
        true[place] = there.total(chosen, also)
        estimated[place] = published.total(one.meaning.share(chosen), other.meaning.share(also))
    records = int(attributes[0].weights.sum())
    errors = relative_errors(true, estimated, records)
    mean, median = float(errors.mean()), float(np.median(errors))
    return QueryErrors(queries=queries, seed=seed, sanity=max(SANITY * records, 1.0), mean=mean, median=median)


def _accuracy(bench: SideBySide, qids: Sequence[Attribute], told: Attribute, seed: int) -> Accuracy:
    if not 2 <= len(told.domain.values) <= MOST_CLASSES:
        raise UtilityError.no_classes(told.domain.qid, len(told.domain.values), MOST_CLASSES)
    there, published = bench.samples(qids, told, seed)
    if min(len(there[-1]), len(published[-1])) < FOLDS:
        raise UtilityError.too_few_records(told.domain.qid, FOLDS)
    places = [one.meaning.mean_code[codes] for one, codes in zip(qids, published[:-1], strict=True)]
    return Accuracy(
        target=told.domain.qid,
        source=accuracy(np.stack(there[:-1], axis=1).astype(np.float64), there[-1], seed),
        release=accuracy(np.stack(places, axis=1), published[-1], seed),
        majority=majority(there[-1]),
        source_records=len(there[-1]),
        release_records=len(published[-1]),
    )
