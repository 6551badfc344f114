"""Whatever the source is, every step after this one reads Parquet: what is something else is converted once, into the run's store."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from schemas.job.formats import FORMATS
from schemas.job.job import Job
from tasks.source.locations import Located
from tasks.source.object_store import Stat
from tasks.store.store import Store


class Readable(NamedTuple):
    """A Parquet file to read, and what tells its content apart.

    Attributes:
        path: The file.
        digest: Of its rows in their order; what is counted of them is kept under it.
        stat: What changes when the user's file does; None for rows of a database, which are kept as they were.
        content: Of its rows in any order, where they come in none.
    """

    path: Path
    digest: str
    stat: Stat | None
    content: str | None = None


def as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Returns a file of the source, or the rows of a query, as Parquet.

    Raises:
        SourceError: it cannot be read or does not fit the job.
    """
    convert = FORMATS[job.source.format].convert
    if convert is None:
        assert file.path is not None
        return Readable(file.path, file.digest, file.stat)
    read: Readable = convert(job, file, store)
    return read
