"""Phase 3: every chunk is joined to the recoding, and the records are gathered class by class into the files of the release.

A chunk becomes a *run*: its released records as class numbers and payload, apart by output file. An output file takes its part of every run
and is put in canonical order. What reaches the release is a function of the set of records, not of files, chunks, threads or row order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.composition.contents import contents_of
from core.order.release_order import assign_files, first_files, in_canonical_order
from core.persons.set_tree import withhold
from core.recoding.recoding import SUPPRESSED, Assigner, Recoding, take_labels
from schemas.errors.base import SourceError
from schemas.job.job import Job
from schemas.release.manifest import MASK
from tasks.counting.coding import CellCoder, Coding
from tasks.counting.domains import qid_names
from tasks.lattice.kept_recodings import RecodingArtifacts, Withheld, load_recoding, load_withheld
from tasks.pseudonyms.pseudonyms import read_published
from tasks.source.chunks import Chunk, Source
from tasks.store.keys import Key, Step, fingerprint_of
from tasks.store.store import Artifact, Store
from tasks.writing.files import published_schema, write_release
from tasks.writing.members import Part, keep_members
from tasks.writing.people import Assigned, Beside, digests_in, keep_people
from tasks.writing.runs import RunWriter, gathered, write_run

RUNS, FILES, MEMBERS = Step("runs", __name__), Step("files", __name__), Step("members", __name__)
ROUND_SHARE = 6
"""Which part of the memory the records of chunks take before they are set apart, all that are worked on at a time together."""


def output_files(recoding: Recoding, rows_per_file: int) -> int:
    """Returns how many files the release is laid out over; some may turn out empty."""
    first, spread = first_files(recoding.sizes, rows_per_file)
    return int((first + spread).max(initial=0))


def run_key(job: Job, coding: Coding, artifacts: RecodingArtifacts, source: Source, chunk: Chunk) -> Key:
    """Returns the key of a chunk's run."""
    return RUNS.key(chunk.key, coding.key, artifacts.digests, source.payload_key, source.file_rows(job))


def members_key(coding: Coding, artifacts: RecodingArtifacts, chunk: Chunk) -> Key:
    """Returns the key of the classes of a chunk's records."""
    return MEMBERS.key(chunk.key, coding.key, artifacts.digests)


def rewrite_chunk(
    job: Job, coding: Coding, artifacts: RecodingArtifacts, source: Source, chunk: Chunk, store: Store, most: int
) -> Artifact:
    """Assigns the records of a chunk to classes and sets them apart by output file, ``most`` bytes of them at a time.

    Raises:
        SourceError: the file changed since phase 1.
        PseudonymError: a key is missing or not that of the run, or values do not fit their treatment.
        StorageError: an artefact is not what its step promises.
    """

    key = run_key(job, coding, artifacts, source, chunk)

    def write(path: Path) -> int:
        recoding = load_recoding(job, coding, artifacts, store)
        first, spread = first_files(recoding.sizes, source.file_rows(job))
        found: list[Assigned] = []
        with RunWriter(path, int((first + spread).max(initial=0)), most, source.own_texts) as run:
            for classes, payload in _assigned(job, coding, recoding, source, chunk, load_withheld(artifacts, store)):
                released = classes[classes >= 0]
                found.append((classes, published_beside(job, source, recoding.labels, released, payload) if job.columns.person else {}))
                published = _withheld(job, source, recoding.labels, released, payload)
                run.add(released, published, assign_files(released, first, spread, published.columns))
        keep_members(chunk, members_key(coding, artifacts, chunk), lambda: np.concatenate([classes for classes, _ in found]), store)
        if job.columns.person:
            keep_people(job, chunk, key, lambda: _together(found), store)
        return run.rows

    return store.make("runs", key, ".arrow", write)


def people_of_chunk(job: Job, coding: Coding, artifacts: RecodingArtifacts, source: Source, chunk: Chunk, store: Store) -> Artifact:
    """Returns who is in which class of a chunk's records; kept when they were assigned, and made anew only if it is gone.

    Raises:
        SourceError: the file changed since phase 1.
        FolderError: the disk is full, or more memory is needed than there is.
        PseudonymError: a key is missing or not that of the run, or values do not fit their treatment.
        StorageError: an artefact is not what its step promises.
    """

    def assigned() -> Assigned:
        recoding, found = load_recoding(job, coding, artifacts, store), []
        for classes, payload in _assigned(job, coding, recoding, source, chunk, load_withheld(artifacts, store)):
            found.append((classes, published_beside(job, source, recoding.labels, classes[classes >= 0], payload)))
        return _together(found)

    return keep_people(job, chunk, run_key(job, coding, artifacts, source, chunk), assigned, store)


def members_of_chunk(job: Job, coding: Coding, artifacts: RecodingArtifacts, source: Source, chunk: Chunk, store: Store) -> Part:
    """Returns the class of each record of a chunk; kept when they were assigned, and made anew only if it is gone.

    Raises:
        SourceError: the file changed since phase 1.
        FolderError: the disk is full, or more memory is needed than there is.
        PseudonymError: a key is missing or not that of the run, or values do not fit their treatment.
        StorageError: an artefact is not what its step promises.
    """

    def assigned() -> NDArray[np.int32]:
        recoding = load_recoding(job, coding, artifacts, store)
        batches = _assigned(job, coding, recoding, source, chunk, load_withheld(artifacts, store))
        return np.concatenate([classes for classes, _ in batches])

    return keep_members(chunk, members_key(coding, artifacts, chunk), assigned, store)


def published_beside(job: Job, source: Source, labels: pa.Table, classes: NDArray[np.int32], payload: pa.RecordBatch) -> Beside:
    """Returns what released records publish beside labels: linking pseudonyms, and digests of untreated, sensitive and treated columns.

    Args:
        job: Names the columns, and says whether suppressed records are masked.
        source: Says what is published.
        labels: What each class publishes.
        classes: Shape (n,), of the records.
        payload: What else the records publish.
    """
    published = _withheld(job, source, labels, classes, payload)
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


def _together(found: Sequence[Assigned]) -> Assigned:
    """Puts the classes of the batches of a chunk together, and what is published beside them."""
    names = list(found[0][1]) if found else []
    whole = {name: pa.chunked_array([beside[name] for _, beside in found]).unify_dictionaries() for name in names}
    plain = {name: pa.concat_arrays(column.chunks) for name, column in whole.items()}
    return np.concatenate([np.empty(0, np.int32), *(classes for classes, _ in found)]), plain


def _assigned(
    job: Job, coding: Coding, recoding: Recoding, source: Source, chunk: Chunk, withheld: Withheld | None
) -> Iterator[tuple[NDArray[np.int32], pa.RecordBatch]]:
    """Yields the class of each record of a chunk, batch by batch, and the payload of the released ones."""
    digests, start = (None if withheld is None else digests_in(job, chunk)), 0
    stages = [(CellCoder.at(coding, stage.node), stage.assigner) for stage in recoding.stages]
    names = qid_names(job)
    try:
        for batch in read_published(job, source, chunk, [*names, *source.payload], source.own_texts):
            assigned = assign(stages, batch.columns[: len(names)])
            if withheld is not None and digests is not None:
                withhold(assigned, digests[start : start + len(assigned)], withheld["person"], withheld["class"], int(SUPPRESSED))
                start += len(assigned)
            # Without payload a batch would not know how many records it has.
            kept = batch.select([len(names) + place for place in range(len(source.payload))])
            yield assigned, kept.filter(pa.array(assigned >= 0)) if source.payload else kept
    except LookupError:
        raise SourceError.changed(chunk.name) from None


def assign(stages: Sequence[tuple[CellCoder, Assigner]], columns: Sequence[pa.Array]) -> NDArray[np.int32]:
    """Returns the class of each record, shape (n,), from the first stage that has its cell, or SUPPRESSED.

    Raises:
        LookupError: a value is not in its domain.
    """
    (coder, assigner), *later = stages
    classes = assigner.assign(coder.cells(columns))
    for coder, assigner in later:
        left = np.flatnonzero(classes == SUPPRESSED)
        if not len(left):
            break
        rows = pa.array(left)
        classes[left] = assigner.assign(coder.cells([column.take(rows) for column in columns]))
    return np.maximum(classes, SUPPRESSED)


def set_apart(
    path: Path,
    job: Job,
    source: Source,
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
    payload = _withheld(job, source, labels, classes, payload)
    first, spread = first_files(sizes, source.file_rows(job))
    return write_run(path, classes, payload, assign_files(classes, first, spread, payload.columns))


def _withheld(job: Job, source: Source, labels: pa.Table, classes: NDArray[np.int32], payload: pa.RecordBatch) -> pa.RecordBatch:
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


def file_keys(step: Step, artifacts: RecodingArtifacts, source: Source, runs: Sequence[Artifact]) -> Callable[[int], Key]:
    """Returns what gives an output file its key, by its number."""
    read = fingerprint_of(sorted(run.sha256 for run in runs))
    return lambda number: step.key(read, number, artifacts.classes.sha256, source.payload_key)


def write_file(labels: pa.Table, source: Source, runs: Sequence[Artifact], number: int, key: Key, store: Store) -> Artifact:
    """Gathers one output file from all runs, orders it and writes it as Parquet, without statistics or source metadata.

    Raises:
        ValuesError: equal records share values so long that no reader could unpack the file.
    """
    paths = [store.path(run) for run in runs]
    return store.make("files", key, ".parquet", lambda path: write_part(path, labels, source, paths, number))


def write_part(path: Path, labels: pa.Table, source: Source, runs: Sequence[Path], number: int) -> int:
    """Gathers the records of one output file from all runs, orders them and writes them; returns how many there are.

    Args:
        path: The file.
        labels: What each class publishes, in the order of the release.
        source: Says which other columns are published.
        runs: What ``write_run`` wrote.
        number: Of the output file.

    Raises:
        ValuesError: equal records share values so long that no reader could unpack the file.
    """
    classes, payload = gathered(runs, number, len(source.payload))
    # Runs come chunk by chunk: without this order the file would tell which records stood together in the source.
    classes, payload = in_canonical_order(classes, payload)
    columns = take_labels(labels, classes) | dict(zip(source.payload, payload, strict=True))
    return write_release(path, columns, published_schema(labels, source))
