"""The last phase for recodings of single records: a chunk's records take the class that was kept for their place in the source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from core.order.release_order import first_files
from schemas.errors.base import SourceError
from schemas.job.job import Job
from tasks.counting.coding import Coding
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.pseudonyms.pseudonyms import read_published
from tasks.records.recodings import assigned, load_classes
from tasks.source.chunks import Chunk, Source
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store
from tasks.writing.classes import published_beside, set_apart
from tasks.writing.members import Part, keep_members
from tasks.writing.people import Assigned, keep_people

RUNS, FILES, MEMBERS = Step("runs", __name__), Step("files", __name__), Step("members", __name__)


class Place(BaseModel):
    """A chunk and its number in the source, which tells chunks of equal content apart."""

    model_config = ConfigDict(frozen=True)

    chunk: Chunk
    number: int


def record_output_files(job: Job, coding: Coding, artifacts: RecodingArtifacts, source: Source, store: Store) -> int:
    """Returns how many files the release is laid out over; some may turn out empty.

    Raises:
        StorageError: an artefact is not what its step promises.
    """
    first, spread = first_files(load_classes(job, coding, artifacts, store).sizes, source.file_rows(job))
    return int((first + spread).max(initial=0))


def record_run_key(job: Job, source: Source, artifacts: RecodingArtifacts, place: Place) -> Key:
    """Returns the key of a chunk's run."""
    return RUNS.key(place.chunk.key, place.number, artifacts.digests, source.payload_key, source.file_rows(job))


def rewrite_records_of(job: Job, coding: Coding, artifacts: RecodingArtifacts, source: Source, place: Place, store: Store) -> Artifact:
    """Gives the records of a chunk their classes and sets them apart by output file.

    Raises:
        SourceError: the file changed since it was coded.
        PseudonymError: a key is missing or not that of the run, or values do not fit their treatment.
        StorageError: an artefact is not what its step promises.
    """

    def write(path: Path) -> int:
        classes, payload = _published(job, assigned(artifacts, place.number, store), source, place.chunk)
        labels, sizes = load_classes(job, coding, artifacts, store)
        return set_apart(path, job, source, labels, sizes, classes, payload)

    return store.make("runs", record_run_key(job, source, artifacts, place), ".arrow", write)


def people_of_place(job: Job, coding: Coding, artifacts: RecodingArtifacts, source: Source, place: Place, store: Store) -> Artifact:
    """Keeps who is in which class of a chunk's records.

    Raises:
        SourceError: the file changed since it was coded.
        PseudonymError: a key is missing or not that of the run, or values do not fit their treatment.
        StorageError: an artefact is not what its step promises.
    """

    def linked() -> Assigned:
        classes = assigned(artifacts, place.number, store)
        if not source.payload:
            return classes, {}
        labels = load_classes(job, coding, artifacts, store).labels
        return classes, published_beside(job, source, labels, *_published(job, classes, source, place.chunk))

    return keep_people(job, place.chunk, record_run_key(job, source, artifacts, place), linked, store)


def record_members_key(artifacts: RecodingArtifacts, place: Place) -> Key:
    """Returns the key of the classes of a chunk's records."""
    return MEMBERS.key(place.chunk.key, place.number, artifacts.digests)


def members_of_place(artifacts: RecodingArtifacts, place: Place, store: Store) -> Part:
    """Keeps the class of each record of a chunk.

    Raises:
        StorageError: the disk is full, or more memory is needed than there is.
    """
    key = record_members_key(artifacts, place)
    return keep_members(place.chunk, key, lambda: assigned(artifacts, place.number, store), store)


def _published(job: Job, classes: NDArray[np.int32], source: Source, chunk: Chunk) -> tuple[NDArray[np.int32], pa.RecordBatch]:
    """Returns the class and the payload of the released records of a chunk."""
    kept = classes >= 0
    if not source.payload:
        return classes[kept], pa.RecordBatch.from_arrays([], names=[])
    table = pa.Table.from_batches(read_published(job, source, chunk, list(source.payload))).unify_dictionaries()
    # Classes were kept when the records were coded, and only the place of a record ties it to its class.
    if len(table) != len(classes):
        raise SourceError.changed(chunk.name)
    released = table.filter(pa.array(kept)).combine_chunks()
    return classes[kept], released.to_batches()[0] if len(released) else pa.RecordBatch.from_pylist([], schema=released.schema)
