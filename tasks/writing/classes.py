"""What becomes of records whose classes are known: what they publish, in which output file, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.composition.contents import contents_of
from core.order.release_order import assign_files, first_files, in_canonical_order
from core.recoding.recoding import SUPPRESSED, Assigner, take_labels
from schemas.job.job import Job
from schemas.release.manifest import MASK
from tasks.counting.coding import CellCoder
from tasks.source.chunks import ChunkedSource
from tasks.writing.files import published_schema, write_release
from tasks.writing.people import AdditionalCounts
from tasks.writing.runs import gathered, write_run


def count_additional_columns(
    job: Job, source: ChunkedSource, labels: pa.Table, classes: NDArray[np.int32], payload: pa.RecordBatch
) -> AdditionalCounts:
    """Returns what released records publish beside labels: linking pseudonyms, and digests of untreated, sensitive and treated columns.

    Args:
        job: Names the columns, and says whether suppressed records are masked.
        source: Says what is published.
        labels: What each class publishes.
        classes: Shape (n,), of the records.
        payload: What else the records publish.
    """
    published = without_masked(job, source, labels, classes, payload)
    by_name = dict(zip(source.payload, published.columns, strict=True)) if source.payload else {}
    kinds = {
        "insensitive": [name for name in by_name if name not in source.treatments and name not in job.columns.sensitive],
        "sensitive": [name for name in by_name if name in job.columns.sensitive],
        "pseudonyms": [name for name in by_name if name in source.treatments],
    }
    digests = {kind: _contents([by_name[name] for name in names], len(classes)) for kind, names in kinds.items() if names}
    return {f"link_{number}": by_name[name] for number, name in enumerate(job.columns.linking)} | digests


def _contents(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    # What is not a number is a value of its own here, and no null.
    marks = [pc.fill_null(pc.is_nan(column), False) for column in columns if pa.types.is_floating(column.type)]
    return pa.array(contents_of([*columns, *marks], rows))


def assign(stages: Sequence[tuple[CellCoder, Assigner]], columns: Sequence[pa.Array]) -> NDArray[np.int32]:
    """Returns the class of each record, shape (n,), from the first stage that has its cell, or SUPPRESSED."""
    (coder, assigner), *later = stages
    classes = assigner.assign(coder.cells(columns))
    for coder, assigner in later:
        left = np.flatnonzero(classes == SUPPRESSED)
        if not len(left):
            break
        rows = pa.array(left)
        classes[left] = assigner.assign(coder.cells([column.take(rows) for column in columns]))
    return np.maximum(classes, SUPPRESSED)


def write_class_records(
    path: Path,
    job: Job,
    source: ChunkedSource,
    labels: pa.Table,
    sizes: NDArray[np.int64],
    classes: NDArray[np.int32],
    payload: pa.RecordBatch,
) -> int:
    """Writes the records of some classes apart by output file, without the pseudonyms that they may not publish.

    Args:
        path: The file.
        job: Says whether suppressed records are masked.
        source: Says what is published.
        labels: What each class publishes.
        sizes: Shape (classes,), records per class in the whole release.
        classes: Shape (n,), of the records.
        payload: What else the records publish.
    """
    payload = without_masked(job, source, labels, classes, payload)
    first, spread = first_files(sizes, source.file_rows(job))
    return write_run(path, classes, payload, assign_files(classes, first, spread, payload.columns))


def without_masked(
    job: Job, source: ChunkedSource, labels: pa.Table, classes: NDArray[np.int32], payload: pa.RecordBatch
) -> pa.RecordBatch:
    """Takes the pseudonyms of records with ``*`` in every quasi-identifier away: a masked record would be linked by them all the same."""
    if not source.treatments or not job.suppression.masks:
        return payload
    starred = np.ones(len(labels), np.bool_)
    for column in labels.columns:
        starred &= pc.fill_null(pc.equal(column.cast(pa.string()), MASK), False).to_numpy()
    masked = pa.array(starred[classes])
    columns = [
        pc.if_else(masked, pa.scalar(None, column.type), column) if name in source.treatments else column
        for name, column in zip(source.payload, payload.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=payload.schema)


def write_part(path: Path, labels: pa.Table, source: ChunkedSource, runs: Sequence[Path], number: int) -> int:
    """Gathers the records of one output file from all runs, orders them and writes them; returns how many there are.

    Args:
        path: The file.
        labels: What each class publishes, in the order of the release.
        source: Says which other columns are published.
        runs: What ``write_run`` wrote.
        number: Of the output file.
    """
    classes, payload = gathered(runs, number, len(source.payload))
    # Runs come chunk by chunk: without this order the file would tell which records stood together in the source.
    classes, payload = in_canonical_order(classes, payload)
    columns = take_labels(labels, classes) | dict(zip(source.payload, payload, strict=True))
    return write_release(path, columns, published_schema(labels, source))
