"""Fragments of records that do not fit the memory, each anonymised alone by the job's algorithm.

They are made as in distributed Mondrian.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.mondrian.recoding import PublishedClasses
from core.recoding.classes import Sets
from core.recoding.release_order import record_hashes
from core.units.digests import Digests
from schemas.errors.base import PrivacyError
from schemas.errors.methods import FragmentsError
from schemas.job.job import Job
from schemas.job.record_methods import Fragments
from tasks.counting.coding import Coding
from tasks.lattice.promises import check_intervals, check_promise, source_value_counts
from tasks.records.coding import JobRecords, bytes_of_records
from tasks.records.partitions import generalisations_of_qids
from tasks.records.recodings import recode_with_method


def need_fragments(job: Job, coding: Coding) -> bool:
    """Return whether records must be divided into fragments; raise if promise or memory forbid a run."""
    check_promise(job, coding)
    check_intervals(coding, generalisations_of_qids(job))
    needed = bytes_of_records(job, coding, coding.records)
    asked = getattr(job.method, "fragments", Fragments()).count > 1
    if getattr(job.method, "pool", "join") == "suppress":
        if asked:
            raise FragmentsError.of_one_merged_class(job.method.name)
        if needed > job.memory:
            raise PrivacyError.too_many_records(job.method.name, coding.records, needed)
    return asked or needed > job.memory


def published_fragment(
    job: Job, coding: Coding, codes: NDArray[np.unsignedinteger], payload: pa.RecordBatch, digests: Digests | None
) -> tuple[PublishedClasses, NDArray[np.int32]]:
    """Recode a fragment by the job's method; return labelled classes and the class of each record.

    Args:
        coding: Domains of the complete source, to which distances and losses are relative.
        codes: Shape (records, axes), the QIDs and the sensitive columns that a privacy model looks at.
        payload: The records' other published columns.
        digests: Shape (records,), the digests of their persons; None where the job has no person column.

    Returns:
        The labelled classes, with losses that add up over fragments, and the class of each record, shape (records,).
    """
    # A promise that asks for the persons of the whole source is kept only where one fragment holds them all.
    wholes = None if digests is not None else tuple(source_value_counts(coding, position) for position in range(len(coding.sensitive)))
    records = JobRecords.of(coding, list(codes.T), record_hashes(payload.columns, len(codes)), digests, (len(codes),), wholes)
    made, found = recode_with_method(job, coding, records)
    sets = Sets.of(found.classes)
    distinct = 0.0
    for position, domain in enumerate(coding.domains):
        values = sets.distinct(records.codes[:, position], domain.size)
        distinct += float(np.dot(np.where(values > 1, values / domain.size, 0.0), sets.sizes))
    cells = records.codes.size
    losses = {
        "dm": made.loss["dm"],
        "dm_partitions": made.loss["dm_partitions"],
        "partitions": found.figures["partitions"],
        "classes": len(made.sizes),
        "ncp": made.loss["gcp"] * cells,
        "ncp_set": made.loss["gcp_held"] * cells,
        "ncp_distinct": distinct,
    }
    classes = np.empty(len(codes), np.int32)
    classes[records.order] = made.classes
    penalties = {qid: penalty * len(codes) for qid, penalty in made.ncp.items()}
    return PublishedClasses(np.arange(len(made.sizes)), made.labels, made.sizes, losses, penalties, found.figures), classes
