"""Whatever the source is, every step after this one reads Parquet: what is something else is converted once, into the run's store."""

from __future__ import annotations

from schemas.job.formats import FORMATS
from schemas.job.job import Job
from tasks.source.locations import Located, Readable
from tasks.store.store import Store


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
