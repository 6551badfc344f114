"""Chunk by chunk: by what the records of a source are known again in another release, and whose they are; never published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.composition.contents import contents_of
from core.persons.digests import digests_of
from schemas.job.job import Job
from tasks.counting.chunk_people import person_key
from tasks.source.chunks import Chunk
from tasks.source.reading import read_chunk
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP = Step("contents", __name__)


def known_by(job: Job) -> list[str]:
    """Returns the columns by which records are known again, in an order that does not depend on the job's: what a release is about.

    That is the quasi-identifiers and the sensitive columns. Identifiers are renamed and other columns change from one extract to the next,
    and somebody who was looked for would be overlooked.
    """
    return sorted({*(qid.name for qid in job.columns.quasi_identifiers), *job.columns.sensitive})


def contents_key(job: Job, columns: pa.Schema, names: Sequence[str], chunk: Chunk) -> Key:
    """Returns the key of the contents of a chunk's records in some columns."""
    return STEP.key(chunk.key, list(names), person_key(job, columns))


def keep_contents(job: Job, columns: pa.Schema, names: Sequence[str], chunk: Chunk, store: Store) -> Artifact:
    """Keeps the digest of what each record of a chunk holds in some columns and, where the job names persons, of whose it is.

    Raises:
        SourceError: the file changed since it was digested, or cannot be read to its end.
        StorageError: the disk is full, or more memory is needed than there is.
    """

    def write(path: Path) -> int:
        table = contents_table(job, names, chunk)
        pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
        return len(table)

    return store.make("contents", contents_key(job, columns, names, chunk), ".parquet", write)


def contents_table(job: Job, names: Sequence[str], chunk: Chunk) -> pa.Table:
    """Returns ``content`` and, where the job names persons, ``person`` of each record of a chunk, in their order.

    Raises:
        SourceError: the file changed since it was digested, or cannot be read to its end.
        ObjectStoreError: the source is in a store that cannot be read.
    """
    person = job.columns.person
    found, whose = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for batch in read_chunk(chunk, [*names, *(name for name in person if name not in names)], plain=person):
        found.append(contents_of([batch.column(name) for name in names], batch.num_rows))
        if person:
            whose.append(digests_of([batch.column(name) for name in person], batch.num_rows))
    columns = {"content": np.concatenate(found)}
    return pa.table(columns | ({"person": np.concatenate(whose)} if person else {}))
