"""Who is in which class of a release: what the recount counts people from, kept in the run folder and never published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.persons.digests import digests_of
from schemas.job.job import Job
from tasks.source.chunks import Chunk
from tasks.source.reading import read_chunk
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP = Step("people", __name__)


def people_key(job: Job, run: Key) -> Key:
    """Returns the key of who is in the classes of a chunk's run."""
    return STEP.key(run, job.columns.person, job.privacy.columns)


def keep_people(job: Job, chunk: Chunk, run: Key, classes: Callable[[], NDArray[np.int32]], store: Store) -> Artifact:
    """Keeps the persons of each class of a chunk's records with their records, those of nobody too, by the sensitive values of these.

    Args:
        job: Names the person, and promises something of sensitive values.
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
        assigned = classes()
        kept = pa.array(np.flatnonzero(assigned >= 0))
        held = _held_in(job, chunk).append_column("class", pa.array(assigned)).take(kept)
        counted = held.group_by(held.column_names, use_threads=False).aggregate([([], "count_all")])
        pq.write_table(counted.rename_columns({"count_all": "records"}), path, compression="lz4", write_statistics=False)
        return len(counted)

    return store.make("people", people_key(job, run), ".parquet", write)


def _held_in(job: Job, chunk: Chunk) -> pa.Table:
    """Returns the digest of the person of each record of a chunk, as the source names them, and its sensitive values as they are."""
    person, sensitive = job.columns.person, job.privacy.columns
    values = [f"value_{number}" for number in range(len(sensitive))]
    parts = []
    for batch in read_chunk(chunk, list(dict.fromkeys([*person, *sensitive]))):
        digests = digests_of([batch.column(name) for name in person], batch.num_rows)
        # By number: a column of the source may have any name, ours included.
        parts.append(pa.table([pa.array(digests), *map(batch.column, sensitive)], names=["person", *values]))
    return pa.concat_tables(parts).unify_dictionaries()
