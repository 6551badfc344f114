"""The independent recount: what written files must keep, knowing only the job.

Nothing of the search, the hierarchies or the recoding is used here: the equivalence classes are whatever combinations of published
QID values the files hold (nulls included), counted by DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.errors import counted, listed
from schemas.job import Job
from schemas.release import Manifest, published_payload, published_qids


@dataclass(frozen=True)
class Recount:
    """What was counted in the files.

    Attributes:
        records: Number of records.
        classes: Number of equivalence classes.
        min_class: Records in the smallest class; 0 if there is none.
        failing: Classes with fewer than k records.
        exposed: Records in these.
        masked: Records with ``*`` in every QID.
    """

    records: int
    classes: int
    min_class: int
    failing: int
    exposed: int
    masked: int


def recount_sql(files: Sequence[str], qids: Sequence[str], k: int) -> str:
    """Returns the statement that counts the equivalence classes of the files.

    It is right because GROUP BY takes nulls as equal, so a class is exactly the records that share one published combination.

    Args:
        files: Quoted paths.
        qids: Quoted names of the published QID columns.
        k: What a class must reach.
    """
    columns = ", ".join(qids)
    starred = " AND ".join(f"{qid}::VARCHAR IS NOT DISTINCT FROM '*'" for qid in qids)
    return f"""
        WITH classes AS (
            SELECT count(*) AS records, bool_and({starred}) AS masked
            FROM read_parquet([{", ".join(files)}]) GROUP BY {columns}
        )
        SELECT coalesce(sum(records), 0)::BIGINT, count(*), coalesce(min(records), 0), count(*) FILTER (records < {k:d}),
            coalesce(sum(records) FILTER (records < {k:d}), 0)::BIGINT, coalesce(sum(records) FILTER (masked), 0)::BIGINT
        FROM classes
    """


def column_faults(job: Job, columns: Sequence[str]) -> list[str]:
    """Returns what is wrong with the columns of a data file."""
    qids, payload = published_qids(job), published_payload(job)
    faults = []
    if raw := [name for name in columns if name in job.columns.identifiers]:
        faults.append(f"{listed(raw)} is an identifier and must not be published")
    if lacking := [name for name in [*qids, *(payload or job.columns.sensitive)] if name not in columns]:
        faults.append(f"{listed(lacking)} is missing from the data files")
    if payload is not None and (more := [name for name in columns if name not in {*qids, *payload, *job.columns.identifiers}]):
        faults.append(f"{listed(more)} is published, but the job does not say so")
    # Bounds take the place of the column itself, so that the raw column beside them would be a leak.
    if raw := [qid.name for qid in job.columns.quasi_identifiers if qid.name not in qids and qid.name in columns]:
        faults.append(f"{listed(raw)} is published beside its bounds")
    return faults


def promise_faults(job: Job, recount: Recount) -> list[str]:
    """Returns which promises of the job the counted files break."""
    if not recount.records:
        return ["the data files hold no record"]
    if recount.failing:
        return [
            f"{recount.failing:,} of {recount.classes:,} classes have fewer than k = {job.privacy.k:,} records: "
            f"{counted(recount.exposed, 'record')} exposed, {recount.min_class:,} in the smallest class"
        ]
    return []


def suppression_faults(job: Job, suppressed: int, records: int) -> list[str]:
    """Returns whether more records were suppressed than the limit allows."""
    if suppressed > job.suppression.limit * records:
        return [f"{counted(suppressed, 'record')} of {records:,} are suppressed, more than the limit of {job.suppression.limit}"]
    return []


def manifest_faults(job: Job, manifest: Manifest, recount: Recount) -> list[str]:
    """Returns where a manifest and the counted files disagree, and whether the suppression limit was kept."""
    claims = {
        "released": (manifest.released, recount.records),
        "classes": (manifest.classes, recount.classes),
        "min_class": (manifest.min_class, recount.min_class),
        "masked": (manifest.masked, min(manifest.masked, recount.masked)),
    }
    faults = [f"the manifest says {name} = {said:,}, the files hold {found:,}" for name, (said, found) in claims.items() if said != found]
    if manifest.records - recount.records != manifest.suppressed - manifest.masked:
        faults.append("the manifest's records, released, suppressed and masked do not add up")
    return faults + suppression_faults(job, manifest.suppressed, manifest.records)
