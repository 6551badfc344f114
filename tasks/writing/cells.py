"""Writing of a release from a recoding of cells: each record takes the class of its cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.recoding.recoding import SUPPRESSED, Recoding
from core.recoding.release_order import assign_files
from core.units.set_tree import withhold
from schemas.errors.base import SourceError
from tasks.counting.coding import CellCoder
from tasks.engine.runs import Run
from tasks.lattice.kept_recodings import RecodingArtifacts, load_recoding, load_withheld
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.store import Artifact
from tasks.writing.people import AdditionalColumns, Assigned, WrittenPersons, digests_in, write_members, write_people_of
from tasks.writing.pseudonyms import read_published
from tasks.writing.rewriting import (
    MEMBERS,
    PEOPLE,
    ChunkPosition,
    Rewriting,
    additional_columns,
    assign_classes,
    rewrite,
    without_masked_pseudonyms,
)
from tasks.writing.runs import RunWriter

ROUND_SHARE = 6
"""Which part of the memory the records of chunks take before they are set apart, all that are worked on at a time together."""


@dataclass(frozen=True)
class CellRewriting(Rewriting):
    """Rewriter of chunks into release files by a recoding of cells.

    Attributes:
        most: Bytes of a chunk's records that are held before they are grouped by file.
    """

    most: int

    @property
    def published(self) -> Recoding:
        """Load the recoding that gives each cell's class and each class's labels and size."""
        return load_recoding(self.job, self.coding, self.recoding, self.store)

    def class_inputs(self, position: ChunkPosition) -> list[object]:
        """Return the keys of the inputs that determine the classes of a chunk's records."""
        return [position.chunk.key, self.coding.key, self.recoding.digests]

    def classes(self, position: ChunkPosition) -> NDArray[np.int32]:
        """Return the class of each record of a chunk, shape (rows,), negative if it is not released."""
        return np.concatenate([classes for classes, _ in _assigned(self, position.chunk)])

    def classes_and_digests(self, position: ChunkPosition) -> Assigned:
        """Return the classes of a chunk's records and the additional columns of the released ones."""
        return _together([(classes, _beside(self, classes, payload)) for classes, payload in _assigned(self, position.chunk)])

    def write_run(self, position: ChunkPosition, path: Path) -> int:
        """Write a chunk's released records by output file to ``path``, save their classes; return how many.

        Also keeps their classes and, where the job names persons, the persons of each class.
        """
        (first, spread), found = self.files, list[Assigned]()
        with RunWriter(path, self.file_count, self.most, self.source.own_texts) as run:
            for classes, payload in _assigned(self, position.chunk):
                released = classes[classes >= 0]
                found.append((classes, _beside(self, classes, payload) if self.job.columns.person else {}))
                published = without_masked_pseudonyms(self.job, self.source, self.labels, released, payload)
                run.add(released, published, assign_files(released, first, spread, published.columns))
        MEMBERS.save_artifact(self, position, lambda path: write_members(path, np.concatenate([classes for classes, _ in found])))
        if self.job.columns.person:
            PEOPLE.save_artifact(self, position, lambda path: write_people_of(self.job, position.chunk, _together(found), path))
        return run.rows


def rewrite_cells(run: Run, source: ChunkedSource, domain: Artifact, recoding: RecodingArtifacts) -> tuple[list[Artifact], WrittenPersons]:
    """Write a release's files (phase 3), set ``run.recoded``; return files and the classes' persons."""
    # All records of a combination share a class, with stars and rounds too: so releases can be compared by combinations.
    run.recoded = domain, recoding
    # Where there is room for one task only, its reader takes most of the room.
    most = run.job.task_memory // (ROUND_SHARE * max(run.workers, 2))
    return rewrite(run, CellRewriting(run.job, domain, run.store, run.spill, source, recoding, most))


def _beside(given: CellRewriting, classes: NDArray[np.int32], payload: pa.RecordBatch) -> AdditionalColumns:
    """Return the additional columns of a batch's released records."""
    return additional_columns(given.job, given.source, given.labels, classes[classes >= 0], payload)


def _together(found: Sequence[Assigned]) -> Assigned:
    """Concatenate the classes and additional columns of a chunk's batches."""
    # A chunk has a record, and so a batch.
    whole = {name: pa.chunked_array([beside[name] for _, beside in found]).unify_dictionaries() for name in found[0][1]}
    plain = {name: pa.concat_arrays(column.chunks) for name, column in whole.items()}
    return np.concatenate([classes for classes, _ in found]), plain


def _assigned(given: CellRewriting, chunk: Chunk) -> Iterator[tuple[NDArray[np.int32], pa.RecordBatch]]:
    """Yield the class of each record of a chunk, batch by batch, and the payload of the released ones."""
    job, source, withheld = given.job, given.source, load_withheld(given.recoding, given.store)
    digests, start = (None if withheld is None else digests_in(job, chunk)), 0
    stages = [(CellCoder.at(given.coding, stage.node), stage.assigner) for stage in given.published.stages]
    names = [qid.name for qid in job.columns.quasi_identifiers]
    try:
        for batch in read_published(job, source, chunk, [*names, *source.payload], source.own_texts):
            assigned = assign_classes(stages, batch.columns[: len(names)])
            if withheld is not None and digests is not None:
                withhold(assigned, digests[start : start + len(assigned)], withheld["person"], withheld["class"], int(SUPPRESSED))
                start += len(assigned)
            # Without payload a batch would not know how many records it has.
            kept = batch.select([len(names) + place for place in range(len(source.payload))])
            yield assigned, kept.filter(pa.array(assigned >= 0)) if source.payload else kept
    except LookupError:
        raise SourceError.changed(chunk.name) from None
