"""Whatever the source is, every step after this one reads Parquet: what is something else is converted once, into the run's store."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from schemas.job.job import Job
from tasks.source import arrow_files, csv_files
from tasks.source.extracts import extract_duckdb, extract_postgresql
from tasks.source.locations import Located, source_digest
from tasks.source.object_store import Stat
from tasks.store.keys import fingerprint_of
from tasks.store.store import Artifact, Store


class Readable(NamedTuple):
    """A Parquet file to read, and what tells its content apart.

    Attributes:
        path: The file.
        digest: Of its rows in their order; what is counted of them is kept under it.
        stat: What changes when the user's file does; None for rows of a database, which are kept as they were.
        content: Of its rows in any order, where they come in none.
        converted: Of the Parquet file, where the user's was converted: what it became depends on the job, and on how it was done.
    """

    path: Path
    digest: str
    stat: Stat | None
    content: str | None = None
    converted: str | None = None


def as_parquet(job: Job, file: Located, store: Store) -> Readable:
    """Returns a file of the source as Parquet.

    Raises:
        SourceError: it cannot be read or does not fit the job.
    """
    if file.path is None:
        asked = extract_postgresql(job, store)
        return Readable(store.path(asked.artifact), asked.artifact.sha256, None, asked.content)
    match job.source.format:
        case "csv":
            return _converted(file, csv_files.convert(job, file.path, file.digest, store), store)
        case "arrow":
            return _converted(file, arrow_files.convert(file.path, file.name, file.digest, store), store)
        case "duckdb":
            # What was committed since the last checkpoint is in a log beside the file.
            log = file.path.with_name(f"{file.path.name}.wal")
            digest = fingerprint_of(file.digest, source_digest(log)) if log.exists() else file.digest
            read = extract_duckdb(job, file.path, file.name, digest, store)
            return Readable(store.path(read.artifact), read.artifact.sha256, None, read.content)
        case _:
            return Readable(file.path, file.digest, file.stat)


def _converted(file: Located, made: Artifact, store: Store) -> Readable:
    return Readable(store.path(made), file.digest, file.stat, converted=made.sha256)
