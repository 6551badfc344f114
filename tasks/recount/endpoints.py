"""Holds the ends of published ranges against the source: k people lie at or beyond each, unless the job wants observed ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from core.recount.groups import Groups
from core.recount.labels.label_spans import pair_labels
from core.recount.labels.value_scales import texts_with_nulls, value_scale
from core.recount.people import somebody_sql
from core.recount.shared_ends import unexpected_ends
from core.recount.truth import distinct_groups, value_groups
from schemas.errors.base import counted
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.release.claimed_levels import in_ranges
from schemas.release.manifest import published_columns
from tasks.recount.original import Original, fetched, with_source_types
from tasks.recount.rows import ReleaseRows
from tasks.store.database import quote

BLOCK = 1 << 16
"""Labels that are texts at a time."""


def endpoint_faults(job: Job, rows: ReleaseRows, original: Original | None, shared_by: int = 0) -> list[str]:
    """Counts the labels of ranges whose ends are not shared by k people; nothing without the source, or where these may be observed.

    Args:
        job: Says where ranges end.
        rows: Of the release and of the source.
        original: The source.
        shared_by: How many people the release says that its ends are shared by. If that is more than k, k share them a fortiori, though
            not at the places that k would have.

    Raises:
        duckdb.Error: the files or the source cannot be read.
    """
    if original is None or not job.shared_ends:
        return []
    faults, k = [], max(job.privacy.k, shared_by)
    for qid in job.columns.quasi_identifiers:
        if not in_ranges(job, qid) or qid.name not in original.columns.names:
            continue
        values, people = _values(job, rows, original, qid.name)
        if not len(values) or value_scale(values) is None:
            continue
        if unexpected := unexpected_ends(values, people, qid.hierarchy, k, _labels(job, rows, original, qid)):
            end = "ends" if unexpected == 1 else "end"
            faults.append(f"{counted(unexpected, 'range')} of '{qid.name}' {end} where fewer than {k:,} people do")
    return faults


def distinct_labels(job: Job, rows: ReleaseRows, qid: QuasiIdentifier) -> Groups:
    """Returns the labels of a quasi-identifier in the release, each once."""
    return distinct_groups(rows.alike(rows.release), list(map(quote, published_columns(job, qid))))


def _labels(job: Job, rows: ReleaseRows, original: Original, qid: QuasiIdentifier) -> Iterator[str | None]:
    """Yields the labels of a quasi-identifier as text, whether they are text, values or pairs of bounds; some at a time, of millions."""
    columns = fetched(rows.connection, f"FROM {rows.grouped('release', distinct_labels(job, rows, qid))}")
    published = [with_source_types(columns[f"label_{number}"], original, qid.name) for number in range(len(published_columns(job, qid)))]
    for first in range(0, len(published[0]), BLOCK):
        texts = [texts_with_nulls(column.slice(first, BLOCK), -1) for column in published]
        yield from texts[0] if len(texts) == 1 else pair_labels(list(zip(*texts, strict=True)), closed=True, levels=False)


def _values(job: Job, rows: ReleaseRows, original: Original, name: str) -> tuple[pa.Array, NDArray[np.int64]]:
    """Returns the values of a column of the source, ascending, with how many people have each: persons once, at their least value."""
    column, persons = quote(name), original.persons(job)
    if persons:
        somebody = somebody_sql(persons)
        every = f"SELECT min({column}) AS value, 1 AS person FROM {rows.source} WHERE {somebody} GROUP BY {', '.join(persons)}"
        # A value that nobody has for the least of theirs is a value all the same.
        every += f" UNION ALL SELECT DISTINCT {column}, 0 FROM {rows.source}"
        counted = rows.counted(f"SELECT value, sum(person)::BIGINT AS records FROM ({every}) GROUP BY value", "source")
    else:
        counted = rows.grouped("source", value_groups(rows.source, column))
    found = fetched(rows.connection, f"SELECT value, records AS people FROM {counted} WHERE value IS NOT NULL ORDER BY value")
    values, people = with_source_types(found["value"], original, name), found["people"].to_numpy()
    if not pt.is_timestamp(values.type):
        return values, people
    order = np.argsort(np.asarray(values.cast(pa.int64())), kind="stable")
    return values.take(pa.array(order)), people[order]
