"""Verdict on a release from its counts, wherever they were made: comparison with job and source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.classes import Recount, class_size_faults
from core.recount.groups import Groups, TogetherCount, value_groups
from core.recount.labels.allowed_labels import count_disallowed_bounds, count_disallowed_labels
from core.recount.labels.label_spans import pair_labels
from core.recount.labels.published_values import counted_at_sql
from core.recount.labels.value_scales import texts_with_nulls, value_scale
from core.recount.linked import (
    LinkCount,
    malformed_pseudonym_groups,
    mismatched_pseudonym_faults,
    pseudonym_faults,
    pseudonyms_are_compared,
    shared_sql,
)
from core.recount.people import person_condition_sql
from core.recount.shared_ends import unexpected_ends
from core.recount.shares import ShareClasses
from core.recount.truth import label_groups
from schemas.errors.base import counted, listed, verb_of
from schemas.job.columns import QuasiIdentifier
from schemas.job.identifiers import Identifier
from schemas.job.job import Job
from schemas.release.figures import Kind
from schemas.release.manifest import ClaimedLevels, has_class_ranges, published_columns, published_qids
from tasks.recount.original import Original, fetch_columns, with_source_types
from tasks.recount.people import columns_of_job, combined_pairs, count_combinations, not_counted
from tasks.recount.people_of_source import Fitting
from tasks.recount.published_values import column_losses, passed_columns
from tasks.recount.rows import ReleaseRows
from tasks.recount.spreads import has_source, model_faults, uncounted_without_source
from tasks.recount.truth import Truth, compare_with_source
from tasks.store.database import quote

BLOCK = 1 << 16
"""Labels that are texts at a time."""


def endpoint_faults(job: Job, rows: ReleaseRows, original: Original | None, shared_by: int = 0) -> list[str]:
    """Return faults for ranges whose ends fewer than k people share; none without source or shared ends.

    Args:
        shared_by: How many people share each range end, as the release says. If that is more than k, k share them too, though at
            other places than k would have.
    """
    if original is None or not job.shared_ends:
        return []
    faults, k = [], max(job.privacy.k, shared_by)
    for qid in job.columns.quasi_identifiers:
        if not has_class_ranges(job, qid) or qid.name not in original.columns.names:
            continue
        values, people = _values(job, rows, original, qid.name)
        if not len(values) or value_scale(values) is None:
            continue
        if unexpected := unexpected_ends(values, people, qid.hierarchy, k, _labels(job, rows, original, qid)):
            end = "ends" if unexpected == 1 else "end"
            faults.append(f"{counted(unexpected, 'range')} of '{qid.name}' {end} where fewer than {k:,} people do")
    return faults


def distinct_labels(job: Job, rows: ReleaseRows, qid: QuasiIdentifier) -> Groups:
    """Return groups (an SQL statement to be run) that list the distinct labels of a quasi-identifier."""
    return replace(label_groups(rows.release, list(map(quote, published_columns(job, qid)))), counts=())


def _labels(job: Job, rows: ReleaseRows, original: Original, qid: QuasiIdentifier) -> Iterator[str | None]:
    """Yield the distinct labels of a quasi-identifier as texts, a block at a time."""
    columns = fetch_columns(rows.connection, f"FROM {rows.grouped('release', distinct_labels(job, rows, qid))}")
    published = [with_source_types(columns[f"label_{number}"], original, qid.name) for number in range(len(published_columns(job, qid)))]
    for first in range(0, len(published[0]), BLOCK):
        texts = [texts_with_nulls(column.slice(first, BLOCK), -1) for column in published]
        yield from texts[0] if len(texts) == 1 else pair_labels(list(zip(*texts, strict=True)), includes_high=True, is_one_level=False)


def _values(job: Job, rows: ReleaseRows, original: Original, name: str) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return a column's source values, ascending, and the number of people with each.

    A person counts once, at the value of one record.
    """
    column, persons = quote(name), original.person_types(job)
    if persons:
        own = [f"p{place}" for place in range(len(persons))]
        named = ", ".join(f"{person} AS {mine}" for person, mine in zip(persons, own, strict=True))
        somebody = f"{person_condition_sql(original.persons(job))} AND {column} IS NOT NULL"
        records = f"(SELECT {column} AS value, {named} FROM {rows.source} WHERE {somebody})"
        every = f"FROM ({counted_at_sql(records, dict(zip(own, persons.values(), strict=True)))})"
        # A value at which nobody counts is a value all the same.
        every += f" UNION ALL SELECT DISTINCT {column}, 0 FROM {rows.source}"
        counted = rows.relation_of_query(f"SELECT value, sum(people)::BIGINT AS records FROM ({every}) GROUP BY value", "source")
    else:
        counted = rows.grouped("source", value_groups(rows.source, column))
    found = fetch_columns(rows.connection, f"SELECT value, records AS people FROM {counted} WHERE value IS NOT NULL ORDER BY value")
    values, people = with_source_types(found["value"], original, name), found["people"].to_numpy()
    if not pt.is_timestamp(values.type):
        return values, people
    order = np.argsort(np.asarray(values.cast(pa.int64())), kind="stable")
    return values.take(pa.array(order)), people[order]


class CrossClassCounts(NamedTuple):
    """Counts that need all classes at once: links, population, combined columns, values of few.

    Attributes:
        population: Rows of the population, and classes by the rows that they fit.
        few: Faults of columns whose published values fewer than k people have.
    """

    linked: tuple[LinkCount, ...] = ()
    population: tuple[int, Fitting] | None = None
    together: Mapping[Kind, TogetherCount] = {}
    few: tuple[str, ...] = ()


class RecountBasis(NamedTuple):
    """What a recount knows besides files and source: claimed levels, range ends, reasons of gaps.

    Attributes:
        unproved: Why the records are not to be held against the source, if they are not.
        shared_by: How many people share the ends of ranges by what the release says, if that is more than k.
        claim: The levels that labels are said to be of, where they are of any.
        uncounted: Why it is not known who is in which class, where it is not.
        untreated: Whether columns that are published untreated are counted too, where records of the source are not published.
        ranged: The quasi-identifiers with ranges that end at values of the data, by the manifest; None without a manifest.
    """

    unproved: str = ""
    shared_by: int = 0
    claim: ClaimedLevels | None = None
    uncounted: str = ""
    untreated: bool = False
    ranged: Collection[str] | None = None


def verdict_of(
    job: Job, rows: ReleaseRows, classes: ShareClasses, additional: CrossClassCounts, original: Original | None, basis: RecountBasis
) -> tuple[Recount, list[str]]:
    """Compare counts with job and source; return the completed recount and all faults; raise none."""
    counts, linked, unproved = classes.counts, additional.linked, basis.unproved
    by_people, with_source = bool(counts.persons), has_source(original)
    spread, measured, unspread = model_faults(job, classes, by_people=by_people, with_source=with_source)
    _expect(job, rows)
    hidden = hidden_label_faults(job, rows)
    hidden += [] if unproved else endpoint_faults(job, rows, original, basis.shared_by)
    hidden += _pseudonym_faults(job, rows, original if with_source else None)
    of_records = count_combinations(rows, columns_of_job(job, rows), published_qids(job), job.privacy.k)
    together, unexpected = combined_pairs(of_records, additional.together, by_people=by_people)
    records, truth = (None, Truth([])) if unproved else _truth(job, rows, original, counts.records, basis.claim)
    unheld = f"Whether the records are those of the source was not checked: {unproved}."
    told = [unheld, *_unchecked(job, original, basis.ranged)] if unproved else []
    unverified = not_counted(unspread, basis.uncounted) if job.columns.person and not by_people else []
    unverified += [] if with_source else uncounted_without_source(job, by_people=by_people)
    found = replace(counts, measured=measured, source=records, linked=linked, population=additional.population, together=together)
    found = replace(found, unproved=tuple(told), unverified=tuple(unverified), sampled=truth.sampled)
    if original:
        # Where all records are published as they are, what was counted of the source is what the files hold.
        is_other = found.records < (records or found.records) or bool(job.columns.ways)
        passed = passed_columns(job, rows) if basis.untreated and is_other else {}
        found = replace(found, losses=column_losses(job, rows, original), passed=passed)
    return found, class_size_faults(job, found) + mismatched_pseudonym_faults(linked) + unexpected + spread + hidden + truth.faults


def _expect(job: Job, rows: ReleaseRows) -> None:
    """Announce all counts of single columns of the files, so that one scan can serve them."""
    asked = [qid for qid in job.columns.quasi_identifiers if qid.hides or (job.shared_ends and has_class_ranges(job, qid))]
    labels = [distinct_labels(job, rows, qid) for qid in asked]
    rows.expect("release", [*labels, *(_forms(job, rows, one) for one in job.columns.pseudonyms)])


def _forms(job: Job, rows: ReleaseRows, one: Identifier) -> Groups:
    return malformed_pseudonym_groups(rows.release, [quote(name) for name in published_qids(job)], quote(one.name), one)


def hidden_label_faults(job: Job, rows: ReleaseRows) -> list[str]:
    """Return faults for labels that disclose values the job hides."""
    faults = []
    for qid in job.columns.quasi_identifiers:
        if not qid.hides:
            continue
        names = published_columns(job, qid)
        labels = rows.connection.execute(f"FROM {rows.grouped('release', distinct_labels(job, rows, qid))}").fetchall()
        told = (
            count_disallowed_labels(qid, (label for (label,) in labels), job.folder)
            if len(names) == 1
            else count_disallowed_bounds(qid, labels)
        )
        if told:
            faults.append(f"{counted(told, 'label')} of '{qid.name}' {verb_of(told, 'tell')} values that the job hides")
    return faults


def _truth(job: Job, rows: ReleaseRows, original: Original | None, released: int, claim: ClaimedLevels | None) -> tuple[int | None, Truth]:
    """Count the source and compare the files with it; return its records and that, None without it."""
    if original is None:
        return None, Truth([])
    records = rows.records("source")
    if released > records:
        return records, Truth([f"the data files hold {counted(released, 'record')}, more than the {records:,} of the source"])
    return records, compare_with_source(job, rows, original, claim)


def _unchecked(job: Job, original: Original | None, ranged: Collection[str] | None) -> list[str]:
    """Return sentences on the checks that were not made without the source.

    Without a manifest (``ranged`` is None) and the source's types, any column may have ranges.
    """
    told = []
    names = [qid.name for qid in job.columns.quasi_identifiers if job.shared_ends and has_class_ranges(job, qid)]
    if unchecked := [name for name in names if ranged is None or name in ranged]:
        told.append(f"Where the ranges of {listed(unchecked)} end was not checked.")
    if original is None and (names := [one.name for one in job.columns.pseudonyms if pseudonyms_are_compared(one)]):
        told.append(f"Whether pseudonyms of {listed(names)} are values of the source was not checked.")
    return told


def _pseudonym_faults(job: Job, rows: ReleaseRows, original: Original | None) -> list[str]:
    """Return faults for pseudonyms of a wrong form, in masked records, or equal to source values."""
    faults, masks, known = [], job.suppression.masks, original.columns.names if original is not None else ()
    for one in job.columns.pseudonyms:
        column = quote(one.name)
        [counts] = rows.connection.execute(f"FROM {rows.grouped('release', _forms(job, rows, one))}").fetchall()
        shared = None
        if pseudonyms_are_compared(one) and one.name in known:
            same = rows.relation_of_query(shared_sql(rows.release, rows.source, column), "release", "source")
            [shared] = rows.connection.execute(f"FROM {same}").fetchall()
        faults += pseudonym_faults(one, masks, counts, shared)
    return faults
