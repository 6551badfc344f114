"""Arrow IPC files and streams (Feather), converted to Parquet once, with their types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from schemas.errors.base import SourceError
from schemas.errors.tables import FileError
from schemas.errors.values import ValuesError
from schemas.job.job import Job
from tasks.source.batches import schema_of_columns, write_batches
from tasks.source.bounds.apart import MAGIC, batch_sizes, bytes_behind, run_in_forked_process
from tasks.source.locations import Located, Readable
from tasks.store.keys import StepCode
from tasks.store.store import Artifact, Store

STEP = StepCode("arrow", __name__)
BATCH_SHARE = 2
"""Which part of the memory a batch may take, which Arrow unpacks as a whole."""
STREAM_END = b"\xff\xff\xff\xff" + bytes(4)
ALIGNED = 64
"""Bytes between the end of the messages of a file and its footer, at most."""


def arrow_as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Convert an Arrow file of the source to Parquet, once for its content."""
    assert file.path is not None
    made = convert_arrow(file.path, file.name, file.digest, store, job.memory)
    return Readable(store.path(made), file.digest, file.stat, converted=made.sha256, converted_file=made)


def convert_arrow(path: Path, name: str, digest: str, store: Store, memory: int) -> Artifact:
    """Convert one Arrow file to Parquet, in the order of its rows.

    Args:
        path: The file; Arrow's file or stream format, which its first bytes tell.
        name: What the user calls it.
        digest: Its digest.
        store: Gets the Parquet file.
        memory: Bytes that the job may take.
    """

    return store.make(
        "converted", STEP.key(digest), ".parquet", lambda part: run_in_forked_process(name, _convert, path, name, memory, part)
    )


def _convert(path: Path, name: str, memory: int, part: Path) -> int:
    """Write an Arrow file as Parquet, and return its number of records."""
    _check_batches(path, name, memory)
    try:
        with _opened(path, name) as (schema, batches):
            return write_batches(part, schema_of_columns(schema), batches, name)
    except pa.ArrowException:
        raise SourceError.unreadable(name, "arrow") from None


def _check_batches(path: Path, name: str, memory: int) -> None:
    """Refuse an Arrow file with records that its footer does not list, or with too large a batch."""
    try:
        with path.open("rb") as file:
            largest, behind = max(batch_sizes(file), default=0), bytes_behind(file)
    except (ValueError, OSError):
        raise SourceError.unreadable(name, "arrow") from None
    if behind > ALIGNED:
        # Several files in a row end in the footer of the last one, which knows nothing of the others.
        raise FileError.cut_off(name, "Arrow")
    if largest > memory // BATCH_SHARE:
        raise ValuesError.large_batch(name, largest, memory // BATCH_SHARE)


@contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    # Not mapped: a file that is cut short while it is read would end the process.
    with pa.OSFile(str(path)) as opened:
        if opened.read(len(MAGIC)) == MAGIC:
            file = ipc.open_file(opened)
            yield file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            opened.seek(0)
            stream = ipc.open_stream(opened)
            yield stream.schema, _to_the_end(stream, opened, name)


def _to_the_end(stream: Iterator[pa.RecordBatch], opened: pa.NativeFile, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream, and refuse one that does not end exactly where its file does."""
    yield from stream
    end = opened.tell()
    opened.seek(0)
    # Writers of old begin a message with its length alone, which is 0 at the end.
    mark = STREAM_END if opened.read(4) == STREAM_END[:4] else STREAM_END[4:]
    opened.seek(max(end - len(mark), 0))
    if end != opened.size() or opened.read() != mark:
        raise FileError.cut_off(name, "Arrow")
