"""Arrow IPC files and streams (Feather) become Parquet once, with their types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from schemas.job.job import Job
from tasks.source.batches import kept_schema, write_batches
from tasks.source.bounds.arrow_messages import MAGIC, batch_sizes
from tasks.source.locations import Located, Readable
from tasks.store.keys import Step
from tasks.store.store import Artifact, Store

STEP = Step("arrow", __name__)
BATCH_SHARE = 2
"""Which part of the memory a batch may take, which Arrow unpacks as a whole."""


def arrow_as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Converts an Arrow file of the source, once for its content.

    Raises:
        SourceError: As for ``convert``.
    """
    assert file.path is not None
    made = convert_arrow(file.path, file.name, file.digest, store, job.memory)
    return Readable(store.path(made), file.digest, file.stat, converted=made.sha256, made=made)


def convert_arrow(path: Path, name: str, digest: str, store: Store, memory: int) -> Artifact:
    """Converts one file to Parquet, in the order of its rows.

    Args:
        path: The file; Arrow's file or stream format, which its first bytes tell.
        name: What the user calls it.
        digest: Its digest.
        store: Gets the Parquet file.
        memory: Bytes that the job may take.

    Raises:
        SourceError: the file is no Arrow file, is cut off, has columns that Parquet cannot hold, or a batch or a value is larger than is
            read.
    """

    def write(part: Path) -> int:
        _check_batches(path, name, memory)
        try:
            with _opened(path) as (schema, batches):
                return write_batches(part, kept_schema(schema), batches, name)
        except pa.ArrowException:
            raise SourceError.unreadable(name, "arrow") from None

    return store.make("converted", STEP.key(digest), ".parquet", write)


def _check_batches(path: Path, name: str, memory: int) -> None:
    """Refuses a file of which a batch is unpacked to more than memory has room for.

    Raises:
        SourceError: there is such a batch, or what stands in the file are no batches.
    """
    try:
        with path.open("rb") as file:
            largest = max(batch_sizes(file), default=0)
    except (ValueError, OSError):
        raise SourceError.unreadable(name, "arrow") from None
    if largest > memory // BATCH_SHARE:
        raise ValuesError.large_batch(name, largest, memory // BATCH_SHARE)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    # Not mapped: a file that is cut short while it is read would end the process.
    with pa.OSFile(str(path)) as opened:
        if opened.read(len(MAGIC)) == MAGIC:
            file = ipc.open_file(opened)
            yield file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            opened.seek(0)
            stream = ipc.open_stream(opened)
            yield stream.schema, iter(stream)
