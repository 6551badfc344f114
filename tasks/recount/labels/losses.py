"""Figures of single columns, as the written files tell them: what quasi-identifiers lost, and what untreated columns tell."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from core.recount.labels.group_levels import rows_of_lists
from core.recount.labels.label_losses import ColumnLoss, Reading, column_loss, released_column
from core.recount.truth import label_groups, passed_sql
from schemas.hierarchies.hierarchy import CsvHierarchy, PrefixHierarchy
from schemas.hierarchies.tree import TreeHierarchy
from schemas.job.columns import QuasiIdentifier
from schemas.job.job import Job
from schemas.release.claimed_levels import in_ranges
from schemas.release.manifest import MASK, published_columns, published_qids
from tasks.recount.original import Original, fetched, with_source_types
from tasks.recount.published_labels import label_texts, way_of
from tasks.recount.rows import ReleaseRows
from tasks.store.database import quote


def column_losses(job: Job, rows: ReleaseRows, original: Original) -> dict[str, ColumnLoss]:
    """Returns what the labels of each quasi-identifier lost, by its name.

    Args:
        job: The job.
        rows: Of the release.
        original: Has the types of the source's columns; none of its values is looked at.

    Raises:
        HierarchyError: the file of a hierarchy cannot be read.
        duckdb.Error: the files cannot be read.
        SkaldError: whatever a task raises.
    """
    known = set(original.columns.names)
    return {qid.name: _lost(job, rows, original, qid) for qid in job.columns.quasi_identifiers if qid.name in known}


def passed_columns(job: Job, rows: ReleaseRows) -> dict[str, tuple[int, int, int]]:
    """Returns what columns tell that are published untreated, by name: different values, records alone with theirs, and those with one.

    Raises:
        duckdb.Error: the files cannot be read.
        SkaldError: whatever a task raises.
    """
    others = {*published_qids(job), *(one.name for one in job.columns.pseudonyms)}
    found = {}
    for name in rows.types("release"):
        if name not in others:
            counted = rows.counted(passed_sql(rows.release, quote(name)), "release")
            [(distinct, alone, values)] = rows.connection.execute(f"FROM {counted}").fetchall()
            found[name] = int(distinct), int(alone), int(values)
    return found


def _lost(job: Job, rows: ReleaseRows, original: Original, qid: QuasiIdentifier) -> ColumnLoss:
    columns = published_columns(job, qid)
    counted = label_groups(rows.alike(rows.release), tuple(map(quote, columns)))
    labels = fetched(rows.connection, f"FROM {rows.grouped('release', counted)}")
    kind, records = original.columns.field(qid.name).type, labels.pop("records").to_numpy()
    reading = _reading(job, qid, kind)
    published = [with_source_types(labels[f"label_{place}"], original, qid.name) for place in range(len(columns))]
    if len(published) == 1 and not _is_text(published[0].type):
        # Of their own type values are published as they are, and they may be millions.
        return released_column(reading, records)
    return column_loss(reading, label_texts(job, qid, kind, published), records)


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pt.is_string, pt.is_large_string))


def _reading(job: Job, qid: QuasiIdentifier, kind: pa.DataType) -> Reading:
    spec, way = qid.hierarchy, way_of(job, qid)
    ranged = in_ranges(job, qid)
    rows = rows_of_lists(qid.name, spec, job.folder) if isinstance(spec, CsvHierarchy | TreeHierarchy) else ()
    if way == "prefix":
        return Reading(kind, rows, mask=MASK)
    if isinstance(spec, PrefixHierarchy) and not (ranged and not _is_text(kind)):
        sparse = "0" * len(spec.beginnings[0]) if spec.beginnings else ""
        return Reading(kind, rows, mask=spec.mask, sparse=sparse, sets=way == "set")
    return Reading(kind, rows, ranged, sets=way == "set")
