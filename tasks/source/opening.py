"""A run over a job's source, from its lock to the answers of its database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from schemas.job.job import Job
from tasks.engine.runs import Run, locked_run
from tasks.source.extracts import asked_once


@contextmanager
def open_run(job: Job, *, goes_on: bool = False) -> Iterator[Run]:
    """Locks the run folder, clears away what a killed run left, and keeps to what a database once answered until the block ends.

    Args:
        job: The job.
        goes_on: Whether another step of the same command goes on with what this one read of a database.

    Raises:
        StorageError: another run is at work, or the folder cannot be written.
        PolicyError: the job stands below the policy, or that cannot be read.
    """
    with locked_run(job) as run, asked_once(job, run.store, goes_on=goes_on):
        yield run
