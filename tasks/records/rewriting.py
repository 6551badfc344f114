"""Writing of a release from a recoding of single records: each record takes its stored class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.errors.base import SourceError
from tasks.engine.runs import Run
from tasks.lattice.kept_recodings import RecodingArtifacts
from tasks.records.recodings import LabelledClasses, load_classes, read_record_classes
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.store import Artifact
from tasks.writing.people import Assigned, WrittenPersons
from tasks.writing.pseudonyms import read_published
from tasks.writing.rewriting import ChunkPosition, Rewriting, additional_columns, rewrite, write_class_records


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
