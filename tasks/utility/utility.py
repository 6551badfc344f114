"""Utility of a release for analysts, measured against the source of its job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.columns.numbers import as_numbers
from core.evaluation.accuracy import (
    BANDS,
    FOLDS,
    Examples,
    accuracies,
    band_shares,
    bands_of,
    cramers_v_of_pairs,
    draw_counts,
    estimated_counts,
    exact_counts,
    features_of,
    majority_share,
)
from core.evaluation.utility import SANITY, Floats, draw_queries, exact_meaning, mean_ncp, relative_errors, total_variation
from core.recount.groups import normalised_source_sql
from schemas.errors.base import StorageError, VerificationError, listed
from schemas.errors.methods import UtilityError
from schemas.job.identifiers import ColumnPublication
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from schemas.relational.table_jobs import nearest_of_tables, table_job, tables_with_qids
from schemas.relational.tables_job import TablesJob
from schemas.release.manifest import Manifest, published_qids
from tasks.counting.coding import Coding, load_coding
from tasks.counting.source_domains import count_domains
from tasks.engine.progress import advance
from tasks.release.files import DATA, data_files, file_error, layout_of, relation_of
from tasks.release.manifest import content_or_nothing, read_manifest, tables_manifest_of
from tasks.source.duckdb_objects import register_objects
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tasks.store.database import connect, quote
from tasks.utility.side_by_side import Attribute, Drawn, UtilityComparison, labels_of
from tasks.verification.entries import other_job_note

MOST_CLASSES = 100
MOST_CATEGORIES = 1000
TOGETHER = 20
"""Queries after which progress is reported."""
WIDTHS = (2, 3)
"""Numbers of QIDs in one count query."""


class ColumnUtility(FrozenModel):
    """Loss of one QID: mean NCP, total variation of values, and change of association.

    Attributes:
        generalised: Mean NCP of the records in the files.
        marginal: Total variation between its values before and after, spread evenly.
        association: Mean change of Cramér's V with the other QIDs and the sensitive columns.
    """

    generalised: float
    marginal: float
    association: float = 0.0


class QueryErrors(FrozenModel):
    """Mean and median relative error of random count queries, with their number and seed."""

    queries: int
    seed: int
    sanity: float
    mean: float
    median: float


class Accuracy(FrozenModel):
    """Shares of source records that classifiers, trained on source or release, predict correctly.

    Attributes:
        target: The column.
        source: The share correct after training on the source, mean over the learners.
        release: The share correct after training on the release.
        majority: The share correct for always predicting the most frequent value.
        learners: Both shares by learner, source first.
        held_out: Whether training excluded the tested records, as far as untreated columns show that.
        source_records: Records of the source that were drawn.
        release_records: The same of the release.
    """

    target: str
    source: float
    release: float
    majority: float
    learners: dict[str, tuple[float, float]]
    held_out: bool
    source_records: int
    release_records: int


class Utility(FrozenModel):
    """Utility figures of a release: GCP, per column, query errors, association and accuracy.

    Attributes:
        release: Its id.
        records: Of the source.
        released: In the files.
        suppressed: By the manifest; None of several tables, whose rows are withheld too, and without a manifest.
        gcp: Mean penalty of all records of the source over the QIDs; a record that is not in the files counts 1, as in the manifest.
        queries: Counts of a range and a category.
        counts: Counts over two and over three QIDs, by how many.
        association: Mean change of Cramér's V over all pairs of columns.
        classifier: Accuracy of predicting a column.
        published: Losses of columns that are published with changed values, by the manifest.
    """

    release: str
    records: int
    released: int
    suppressed: int | None
    gcp: float
    columns: dict[str, ColumnUtility]
    queries: QueryErrors
    counts: dict[str, QueryErrors]
    association: float
    classifier: Accuracy | None = None
    published: dict[str, ColumnPublication] = {}


def measure_utility(job: Job, release: Path, queries: int, seed: int, target: str | None) -> Utility:
    """Return a release's utility against its job's source, whose work is locked meanwhile.

    Args:
        release: A release folder; of another tool too, if its labels are those of the job's hierarchies, ranges or sets of values.
        queries: Random count queries.
        seed: Of queries, samples and classifier.
        target: Column that a classifier predicts from the QIDs; None for no classifier.
    """
    _check_installed(target)
    manifest = read_manifest(release)
    said = (manifest.levels_of_all, manifest.suppressed, manifest.published) if manifest else (None, None, {})
    return _measured(job, _Files(release, data_files(release), manifest, *said), queries, seed, target)


def measure_utility_of_tables(job: TablesJob, release: Path, queries: int, seed: int, target: str | None) -> dict[str, Utility]:
    """Return the utility of each table with quasi-identifiers, by name; as ``measure_utility``.

    Args:
        release: A release folder.
        queries: Random count queries of each table.
        seed: As there.
        target: ``TABLE.COLUMN``, a column that a classifier predicts from the QIDs of its table.
    """
    tables = tables_with_qids(job)
    mine = max((name for name in tables if (target or "").startswith(f"{name}.")), key=len, default=None)
    if target and mine is None:
        raise UtilityError.no_table(target, tables, nearest_of_tables(target, job, "sensitive", "insensitive"))
    _check_installed(target)
    listed_files = data_files(release)
    manifest, found = tables_manifest_of(content_or_nothing(release), str(release)), {}
    for name in tables:
        files = [path for path in listed_files if path.parent == release / DATA / name]
        if not files or name not in manifest.tables:
            raise StorageError.not_a_release(str(release), f"it has no {DATA}/{name}/*.parquet")
        one = manifest.tables[name]
        levels = {qid: level for qid, level in one.levels.items() if level is not None}
        told = target.removeprefix(f"{name}.") if target and name == mine else None
        of_table = _Files(release, files, None, levels or None, None, manifest.published.get(name, {}))
        found[name] = _measured(table_job(job, name), of_table, queries, seed, told)
    return found


class _Files(NamedTuple):
    """The data files of a release or of one of its tables, and what its manifest says of them."""

    release: Path
    files: list[Path]
    manifest: Manifest | None
    levels: dict[str, int] | None
    suppressed: int | None
    published: dict[str, ColumnPublication]


def _check_installed(target: str | None) -> None:
    """Raise ``UtilityError`` if a classifier is asked for and its library is not installed."""
    # Asked for without importing it, and before minutes of counting.
    if target is not None and find_spec("sklearn") is None:
        raise UtilityError.not_installed()


def _measured(job: Job, given: _Files, queries: int, seed: int, target: str | None) -> Utility:
    release, files, manifest = given.release, given.files, given.manifest
    with open_run(job) as run:
        source = read_source(run)
        # What is published treated has other values than the source, so that nothing could be told of it from both sides.
        others = [name for name in source.payload if name not in source.treatments]
        if target is not None and target not in others:
            raise UtilityError.no_target(target, others)
        layout = layout_of(files, manifest.columns if manifest else {})
        with connect(job, run.spill) as connection, file_error(f"'{release}'"):
            names = connection.sql(f"FROM {relation_of(connection, files, layout)} LIMIT 0").columns
        _check_columns(job, release, manifest, names, others)
        coding = load_coding(job, count_domains(run, source), run.store)
        with connect(job, run.spill) as connection:
            register_objects(connection, source.relation)
            normalised = {quote(name): steps for name, steps in job.columns.normalised.items()}
            bench = UtilityComparison(
                connection, normalised_source_sql(source.relation, normalised), relation_of(connection, files, layout)
            )
            qids = list(_qids(bench, job, coding, given.levels, release))
            ways, first = job.columns.ways, len(qids)
            categories = [
                bench.category(first + source.payload.index(name), name, otherwise=name in ways) for name in job.columns.sensitive
            ]
            # Queries draw pairs of columns, and a pair's table can have a row for each two values.
            asked = [*qids, *(one for one in categories if one.domain.size <= MOST_CATEGORIES)]
            if target and target not in job.columns.sensitive:
                categories.append(bench.category(first + source.payload.index(target), target, otherwise=target in ways))
            columns = [*qids, *categories]
            told = next((place for place, one in enumerate(columns) if place >= len(qids) and one.domain.qid == target), None)
            drawn = bench.samples(columns, [name for name in others if name != target and name not in ways], seed)
            moved = _moved(columns, drawn)
            released = int(qids[0].counts.sum())
            wide = sum(mean_ncp(one.meaning, one.counts) for one in qids) / len(qids) * released
            return Utility(
                release=release.name,
                records=source.records,
                released=released,
                suppressed=given.suppressed,
                gcp=(wide + source.records - released) / source.records,
                columns={one.domain.qid: _column(one, place, moved) for place, one in enumerate(qids)},
                queries=_query_errors(bench, asked, queries, seed),
                counts={str(width): _count_errors(qids, drawn, (width, queries, seed), source.records) for width in WIDTHS},
                association=float(np.mean(list(moved.values()))) if moved else 0.0,
                published=given.published,
                classifier=None if told is None else _accuracy(columns, told, len(qids), drawn, seed),
            )


def _check_columns(job: Job, release: Path, manifest: Manifest | None, names: Sequence[str], others: Sequence[str]) -> None:
    """Raise ``VerificationError`` if a release lacks columns that the job publishes.

    Args:
        release: The folder, and its manifest.
        manifest: None for a release of another tool, which may have more columns.
        names: The columns of its files.
        others: Columns beside the quasi-identifiers that source and release can be compared by.
    """
    if lacking := [name for name in (*published_qids(job), *dict.fromkeys((*job.columns.sensitive, *others))) if name not in names]:
        note = other_job_note(job, manifest) if manifest else ""
        raise VerificationError(f"'{release}'", [f"{listed(lacking)} is missing from the data files"], note)


def _column(one: Attribute, place: int, moved: Mapping[tuple[int, int], float]) -> ColumnUtility:
    wide = mean_ncp(one.meaning, one.counts)
    mine = [apart for pair, apart in moved.items() if place in pair]
    marginal = total_variation(one.weights, one.meaning.spread(one.counts))
    return ColumnUtility(generalised=wide, marginal=marginal, association=float(np.mean(mine)) if mine else 0.0)


def _moved(columns: Sequence[Attribute], drawn: tuple[Drawn, Drawn]) -> dict[tuple[int, int], float]:
    """Return the absolute change of Cramér's V of every two columns between source and release."""
    bands = [bands_of(one.domain, BANDS) for one in columns]
    found = []
    for side, meanings in zip(drawn, ([exact_meaning(one.domain.size) for one in columns], [one.meaning for one in columns]), strict=True):
        found.append(cramers_v_of_pairs(side.codes, [band_shares(*each) for each in zip(meanings, bands, strict=True)]))
    return {pair: abs(value - found[1][pair]) for pair, value in found[0].items()}


def _count_errors(qids: Sequence[Attribute], drawn: tuple[Drawn, Drawn], asked: tuple[int, int, int], records: int) -> QueryErrors:
    """Return the errors of random count queries over some QIDs.

    ``asked`` is the number of QIDs in a query, the number of queries, and the seed.
    """
    width, queries, seed = asked
    numbers = [place for place, one in enumerate(qids) if as_numbers(one.domain.values) is not None]
    counts = draw_counts(numbers, [one.weights for one in qids], width, queries, seed)
    there, published = drawn
    meanings = [one.meaning for one in qids]
    true, estimated, released = np.zeros(queries), np.zeros(queries), int(qids[0].counts.sum())
    for first in range(0, queries, TOGETHER):
        some = slice(first, first + TOGETHER)
        advance(f"counts over {width}", first, queries)
        true[some] = exact_counts(counts[some], there.codes) * (records / len(there.folds))
        estimated[some] = estimated_counts(counts[some], published.codes, meanings) * (released / len(published.folds))
    advance(f"counts over {width}", queries, queries)
    return _errors(true, estimated, records, seed)


def _errors(true: Floats, estimated: Floats, records: int, seed: int) -> QueryErrors:
    errors = relative_errors(true, estimated, records)
    mean, median = float(errors.mean()), float(np.median(errors))
    return QueryErrors(queries=len(true), seed=seed, sanity=max(SANITY * records, 1.0), mean=mean, median=median)


def _qids(bench: UtilityComparison, job: Job, coding: Coding, levels: dict[str, int] | None, release: Path) -> Iterator[Attribute]:
    for labels in labels_of(bench, job, coding, levels):
        meaning = labels.meaning(release)
        bench.register(labels.number, labels.domain)
        yield Attribute(labels.number, labels.domain, labels.names, f"labels_{labels.number}", meaning, labels.counts)


def _query_errors(bench: UtilityComparison, attributes: Sequence[Attribute], queries: int, seed: int) -> QueryErrors:
    numbers = [place for place, one in enumerate(attributes) if as_numbers(one.domain.values) is not None]
    drawn = draw_queries(numbers, [one.weights for one in attributes], queries, seed)
    pairs = {(first.attribute, second.attribute) for first, second in drawn}
    tables = {(first, second): bench.contingencies(attributes[first], attributes[second]) for first, second in sorted(pairs)}
    true, estimated = np.zeros(queries), np.zeros(queries)
    for place, (first, second) in enumerate(drawn):
        there, published = tables[first.attribute, second.attribute]
        one, other = attributes[first.attribute], attributes[second.attribute]
        true[place] = there.total(first.chosen(one.domain.size), second.chosen(other.domain.size))
        shares = one.meaning.share_of_range(first.first, first.last), other.meaning.share_of_range(second.first, second.last)
        estimated[place] = published.total(*shares)
        if not (place + 1) % TOGETHER or place + 1 == queries:
            advance("count queries", place + 1, queries)
    return _errors(true, estimated, int(attributes[0].weights.sum()), seed)


def _accuracy(columns: Sequence[Attribute], told: int, qids: int, drawn: tuple[Drawn, Drawn], seed: int) -> Accuracy:
    """Train classifiers on source and release and test both on raw records of the source."""
    target = columns[told]
    if not 2 <= len(target.domain.values) <= MOST_CLASSES:
        raise UtilityError.no_classes(target.domain.qid, len(target.domain.values), MOST_CLASSES)
    which = told, len(target.domain.values)
    raw, published = (_examples(columns[:qids], which, one, as_published=bool(side)) for side, one in enumerate(drawn))
    if min(len(raw.target), len(published.target)) < FOLDS:
        raise UtilityError.too_few_records(target.domain.qid, FOLDS)
    own, other = accuracies(raw, raw, seed), accuracies(published, raw, seed)
    return Accuracy(
        target=target.domain.qid,
        source=float(np.mean(list(own.values()))),
        release=float(np.mean(list(other.values()))),
        majority=majority_share(raw.target),
        learners={name: (share, other[name]) for name, share in own.items()},
        held_out=drawn[1].held_out,
        source_records=len(raw.target),
        release_records=len(published.target),
    )


def _examples(qids: Sequence[Attribute], target: tuple[int, int], drawn: Drawn, *, as_published: bool) -> Examples:
    """Return a sample's records with a known target as features, targets and folds."""
    told, classes = target
    meanings = [one.meaning if as_published else exact_meaning(one.domain.size) for one in qids]
    features = [features_of(meaning, one.domain) for meaning, one in zip(meanings, qids, strict=True)]
    known = np.flatnonzero(drawn.codes[told] < classes)
    table = np.concatenate([feature[codes[known]] for feature, codes in zip(features, drawn.codes, strict=False)], axis=1)
    return Examples(table, drawn.codes[told][known], drawn.folds[known])
