"""Recoding of single records: the algorithm is run, and its classes are labelled and written.

The class of each record is stored in the order of the source. Fragments of records that do not fit the memory are anonymised alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from core.clustering.gower import gower_points
from core.clustering.merged_classes import (
    ClassPublication,
    Criteria,
    RecordRecoding,
    merge_failing,
    merge_unsafe_classes,
    recode_records,
    without_failing,
)
from core.mondrian.recoding import PublishedClasses
from core.recoding.classes import Sets
from core.recoding.recoding import SUPPRESSED, Treatment, release_columns
from core.recoding.release_order import number_combinations, record_hashes
from core.units.digests import Digests
from schemas.errors.base import PrivacyError, SourceError
from schemas.errors.methods import FragmentsError
from schemas.job.job import Job
from schemas.job.record_methods import Fragments
from tasks.counting.coding import Coding, DomainTable
from tasks.counting.source_domains import ends_of
from tasks.counting.source_sizes import Sizes
from tasks.engine.runs import Run
from tasks.engine.steps import remote_takes_all_chunks, run_for_item
from tasks.lattice.kept_recodings import OF_CELLS, RecodingArtifacts, read_recoding_artifacts, write_search_outcome
from tasks.lattice.promises import (
    check_intervals,
    check_promise,
    class_settings,
    most_suppressed,
    no_class_error,
    promise_of,
    source_value_counts,
)
from tasks.records.coding import JobRecords, bytes_of_records, gather_records
from tasks.records.outcomes import LocalOutcome
from tasks.records.partitions import Partitioned, generalisations_of_qids, partition_by_method
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.step import FilesStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import read_table, write_undeclared_table
from tasks.writing.people import Assigned, WrittenPersons
from tasks.writing.pseudonyms import read_published
from tasks.writing.rewriting import ChunkPosition, LabelledClasses, Rewriting, additional_columns, rewrite, write_class_records

OF_RECORDS = OF_CELLS | {"cells": "assigned"}
"""The steps of a recoding of single records."""


def _recode(given: DomainTable, parts: Sequence[Artifact]) -> RecodingArtifacts:
    """Run the job's algorithm on all records and store the recoding.

    Args:
        given: The domain table; its store gets the recoding.
        parts: The coded chunks, in the order of the source.

    Returns:
        The outcome, the class of each record in the order of the source (as ``cells``), and the classes.
    """
    job, coding, store, key = given.job, given.coding, given.store, RECODE.key(given, parts)
    if kept := read_recoding_artifacts(store, key, OF_RECORDS):
        return kept
    records = gather_records(job, coding, parts, store)
    made, found = recode_with_method(job, coding, records)
    most = most_suppressed(job, coding.records)
    if made.suppressed > most:
        raise PrivacyError.too_many_suppressed(made.suppressed, most)
    if not made.sizes.sum():
        raise no_class_error(job, coding)
    outcome = _outcome(made, found, Sizes.of(records.unit.per_class(number_combinations(records.codes))), records.unit.figures())
    return RecodingArtifacts(
        outcome=write_search_outcome(store, key, outcome),
        cells=store.make(OF_RECORDS["cells"], key, ".arrow", lambda path: _write_assigned(path, made.classes, records)),
        classes=store.make(OF_RECORDS["classes"], key, ".parquet", lambda path: _write_classes(path, made)),
    )


RECODE = FilesStep(
    "recode",
    make=_recode,
    # Not sorted: classes are kept by where a record stands, chunk after chunk.
    reads=lambda _given, parts: [part.sha256 for part in parts],
    settings=lambda given: class_settings(given.job, given.coding),
)
"""The classes that the job's algorithm makes of all records."""


def recode_all_records(run: Run, domain: Artifact, coded_chunks: Sequence[Artifact]) -> RecodingArtifacts:
    """Return the artefacts of the job's recoding of all records, stored or made as a step of the run."""
    return run_for_item(run, RECODE, DomainTable.of(run, domain), coded_chunks, run.job.method.name, elsewhere=remote_takes_all_chunks(run))


def recode_with_method(job: Job, coding: Coding, records: JobRecords) -> tuple[RecordRecoding, Partitioned]:
    """Partition records, merge classes failing models, label; return recoding and partition, or raise.

    Classes that fail the job's privacy models are merged first.
    """
    criteria, unit = _criteria(job, coding, records), records.unit
    found = satisfy_models(partition_by_method(job, records.codes, coding, unit), records, coding, criteria)
    while True:
        if (found.classes < 0).all():
            raise no_class_error(job, coding, criteria.column_broken_by_holders() if criteria else None)
        treatment, ways = _treatment(job, found.classes, criteria), generalisations_of_qids(job, coding)
        how = ClassPublication(job.privacy.k, treatment, job.intervals, ends_of(job, coding), ways)
        made = recode_records(records.codes, found.classes, coding.domains, coding.hierarchies, how, found.least, unit)
        published = np.where(found.classes < 0, SUPPRESSED, made.classes).astype(np.int32)
        if unit.adds_up or criteria is None or not criteria.failing(published).any():
            return made, found
        # Safe classes that publish the same are one, which with persons need not be safe: those with a rare value may be in each of them.
        found = satisfy_models(replace(found, classes=published, least=None), records, coding, criteria)


def satisfy_models(partition: Partitioned, records: JobRecords, coding: Coding, criteria: Criteria | None) -> Partitioned:
    """Return the partition with unsafe classes merged, and suppressed where they fail even so."""
    if criteria is None:
        return partition
    points = gower_points(records.codes, coding.domains, hierarchies=coding.hierarchies)
    pool = partial(merge_unsafe_classes, criteria=criteria) if criteria.values else partial(merge_failing, fails=criteria.failing)
    classes, merged = pool(points, partition.classes)
    # Pooled classes have other numbers, and no level of their own.
    least = None if merged else partition.least
    merged += partition.figures.get("not_accepted", 0)
    return Partitioned(without_failing(classes, criteria.failing), {**partition.figures, "not_accepted": merged}, least)


def _criteria(job: Job, coding: Coding, records: JobRecords) -> Criteria | None:
    """Return the requirements of classes besides k; None if there are none.

    Every algorithm ensures k, but k persons are counted once more.
    """
    if not coding.sensitive and records.unit.adds_up:
        return None
    names = [domain.qid for domain in coding.sensitive]
    wholes = dict(zip(names, records.source_counts, strict=True))
    promise, unit = promise_of(job, coding), records.unit
    if (whose := unit.figures()) is not None:
        promise = promise.of_people(wholes, whose[0])
    return Criteria(promise, dict(zip(names, records.sensitive, strict=True)), wholes, unit)


def _treatment(job: Job, classes: NDArray[np.int32], criteria: Criteria | None) -> Treatment:
    """Return how suppressed records are treated; masks that would be no safe class are dropped."""
    if criteria is None or not job.suppression.masks or (classes >= 0).all():
        return job.suppression.treatment
    mask = np.where(classes < 0, 0, SUPPRESSED).astype(np.int32)
    return "drop" if criteria.failing(mask).any() else "mask"


def _outcome(recoded: RecordRecoding, found: Partitioned, before: Sizes, people: tuple[int, int] | None) -> LocalOutcome:
    return LocalOutcome(
        suppressed=recoded.suppressed,
        masked=recoded.masked,
        loss=dict(recoded.loss),
        ncp=dict(recoded.ncp),
        search=dict(found.figures),
        before=before,
        people=people,
    )


def _write_assigned(path: Path, classes: NDArray[np.int32], records: JobRecords) -> int:
    """Write the class of each record in the order of the source, one batch per chunk."""
    in_source = np.empty(len(classes), np.int32)
    in_source[records.order] = classes
    schema = pa.schema([("class", pa.int32())])
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        for part in np.split(in_source, np.cumsum(records.chunks)[:-1]):
            writer.write_batch(pa.RecordBatch.from_arrays([pa.array(part)], schema=schema))
    return len(classes)


def _write_classes(path: Path, recoded: RecordRecoding) -> int:
    labels = {f"label_{number}": column for number, column in enumerate(recoded.labels.columns)}
    return write_undeclared_table(pa.table({"records": recoded.sizes} | labels), path)


def read_record_classes(artifacts: RecodingArtifacts, number: int, store: Store) -> NDArray[np.int32]:
    """Return the class of each record of a chunk, shape (rows,), negative for suppressed ones."""
    with pa.memory_map(str(store.path(artifacts.cells))) as mapped:
        classes: NDArray[np.int32] = ipc.open_file(mapped).get_batch(number).column(0).to_numpy()
    return classes


def load_classes(job: Job, coding: Coding, artifacts: RecodingArtifacts, store: Store) -> LabelledClasses:
    """Return labels and sizes of the classes, read from the store once and then cached."""

    def read() -> LabelledClasses:
        table = read_table(store, artifacts.classes)
        labels = table.drop_columns(["records"]).rename_columns(release_columns(coding.hierarchies, job.intervals))
        return LabelledClasses(labels, table["records"].to_numpy())

    return store.load("classes", (*coding.key, artifacts.classes.sha256, job.intervals), read)


@dataclass(frozen=True)
class RecordRewriting(Rewriting):
    """Rewriter of chunks into release files by a recoding of single records."""

    @property
    def published(self) -> LabelledClasses:
        """Return the labels and sizes of the release's classes."""
        return load_classes(self.job, self.coding, self.recoding, self.store)

    def class_inputs(self, position: ChunkPosition) -> list[object]:
        """Return the keys of the inputs that determine the classes of a chunk's records."""
        return [position.chunk.key, position.number, self.recoding.digests]

    def classes(self, position: ChunkPosition) -> NDArray[np.int32]:
        """Return the class of each record of a chunk, shape (rows,), negative if it is not released."""
        return read_record_classes(self.recoding, position.number, self.store)

    def classes_and_digests(self, position: ChunkPosition) -> Assigned:
        """Return the classes of a chunk's records and the additional columns of the released ones."""
        classes = self.classes(position)
        if not self.source.payload:
            return classes, {}
        return classes, additional_columns(self.job, self.source, self.labels, *_published(self, classes, position.chunk))

    def write_run(self, position: ChunkPosition, path: Path) -> int:
        """Write a chunk's released records grouped by output file to ``path``; return their number."""
        classes, payload = _published(self, self.classes(position), position.chunk)
        return write_class_records(path, self.job, self.source, self.labels, self.sizes, classes, payload)


def rewrite_records(
    run: Run, source: ChunkedSource, domain: Artifact, recoding: RecodingArtifacts
) -> tuple[list[Artifact], WrittenPersons]:
    """Write a release's files by a recoding of records; return them and the classes' persons."""
    return rewrite(run, RecordRewriting(run.job, domain, run.store, run.spill, source, recoding))


def _published(given: RecordRewriting, classes: NDArray[np.int32], chunk: Chunk) -> tuple[NDArray[np.int32], pa.RecordBatch]:
    """Return the class and the payload of the released records of a chunk."""
    kept, source = classes >= 0, given.source
    if not source.payload:
        return classes[kept], pa.RecordBatch.from_arrays([], names=[])
    table = pa.Table.from_batches(read_published(given.job, source, chunk, list(source.payload))).unify_dictionaries()
    # Classes were kept when the records were coded, and only the place of a record ties it to its class.
    if len(table) != len(classes):
        raise SourceError.changed(chunk.name)
    released = table.filter(pa.array(kept)).combine_chunks()
    return classes[kept], released.to_batches()[0] if len(released) else pa.RecordBatch.from_pylist([], schema=released.schema)


def need_fragments(job: Job, coding: Coding) -> bool:
    """Return whether records must be divided into fragments; raise if promise or memory forbid a run."""
    check_promise(job, coding)
    check_intervals(coding, generalisations_of_qids(job, coding))
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
