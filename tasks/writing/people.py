"""Who is in which class of a release: what the recount counts people from, kept in the run folder and never published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.histograms.histogram import count_cells
from core.persons.digests import Digests, digests_of
from schemas.job.job import Job
from tasks.source.chunks import Chunk
from tasks.source.reading import read_chunk
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP = Step("people", __name__)


class KeptPeople(NamedTuple):
    """Who is in which class of a release, in parts, and what the classes publish; nothing where no person is named.

    Attributes:
        people: Tables of ``class``, ``person`` and ``records``.
        classes: Tables of what the classes publish: one with a row for each, or several that name them in ``class``.
    """

    people: tuple[Artifact, ...] = ()
    classes: tuple[Artifact, ...] = ()


NONE_KEPT = KeptPeople()
"""Of a job that names no person."""


def people_key(job: Job, run: Key) -> Key:
    """Returns the key of who is in the classes of a chunk's run."""
    return STEP.key(run, job.columns.person)


def digests_in(job: Job, chunk: Chunk) -> Digests:
    """Returns the digest of the person of each record of a chunk, as the source names them.

    Raises:
        SourceError: the file cannot be read to its end, or a column of text holds bytes that are no UTF-8; they are counted to the
            end of the chunk before it is raised.
        ValuesError: the file cannot be read to its end, or a column of text holds bytes that are no UTF-8; they are counted to the
            end of the chunk before it is raised.
    """
    person = job.columns.person
    return np.concatenate([np.empty(0, np.uint64), *(digests_of(batch.columns, batch.num_rows) for batch in read_chunk(chunk, person))])


def keep_people(job: Job, chunk: Chunk, run: Key, classes: Callable[[], NDArray[np.int32]], store: Store) -> Artifact:
    """Keeps the persons of each class of a chunk's records, with their records; those of nobody too.

    Args:
        job: Names the person.
        chunk: Whose records they are.
        run: Key of the chunk's run.
        classes: Returns the class of each record of the chunk, shape (n,), negative for one that is not released.
        store: Gets them.

    Raises:
        SourceError: the file cannot be read to its end, or a column of text holds bytes that are no UTF-8; they are counted to the
            end of the chunk before it is raised.
        ValuesError: the file cannot be read to its end, or a column of text holds bytes that are no UTF-8; they are counted to the
            end of the chunk before it is raised.
    """

    def write(path: Path) -> int:
        return write_people(path, people_table(classes(), digests_in(job, chunk)))

    return store.make("people", people_key(job, run), ".parquet", write)


def people_table(classes: NDArray[np.int32], digests: Digests) -> pa.Table:
    """Returns who is in which class with how many records, from the class of each record, negative for none, and its person's digest."""
    kept = np.flatnonzero(classes >= 0)
    known, numbers = np.unique(digests[kept], return_inverse=True)
    (key,), records = count_cells((classes[kept].astype(np.int64) * len(known) + numbers,), 1 << 62)
    return pa.table({"class": key // max(len(known), 1), "person": known[key % max(len(known), 1)], "records": records})


def write_people(path: Path, table: pa.Table) -> int:
    """Writes such a table and returns its number of rows."""
    pq.write_table(table, path, compression="lz4", write_statistics=False)
    return len(table)
