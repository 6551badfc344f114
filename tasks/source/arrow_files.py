"""Arrow IPC files and streams (Feather) become Parquet once, with their types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from schemas.errors.base import SourceError
from schemas.job.job import Job
from tasks.source.batches import kept_schema, write_batches
from tasks.source.locations import Located, Readable
from tasks.store.keys import Step
from tasks.store.store import Artifact, Store

STEP = Step("arrow", __name__)
MAGIC = b"ARROW1"


def arrow_as_parquet(_job: Job, file: Located, store: Store) -> Readable:
    """Converts an Arrow file of the source, once for its content.

    Raises:
        SourceError: As for ``convert``.
    """
    assert file.path is not None
    made = convert_arrow(file.path, file.name, file.digest, store)
    return Readable(store.path(made), file.digest, file.stat, converted=made.sha256, made=made)


def convert_arrow(path: Path, name: str, digest: str, store: Store) -> Artifact:
    """Converts one file to Parquet, in the order of its rows.

    Args:
        path: The file; Arrow's file or stream format, which its first bytes tell.
        name: What the user calls it.
        digest: Its digest.
        store: Gets the Parquet file.

    Raises:
        SourceError: the file is no Arrow file, is cut off, or has columns that Parquet cannot hold.
    """

    def write(part: Path) -> int:
        try:
            with _opened(path) as (schema, batches):
                return write_batches(part, kept_schema(schema), batches)
        except pa.ArrowException:
            raise SourceError.unreadable(name, "arrow") from None

    return store.make("converted", STEP.key(digest), ".parquet", write)


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
