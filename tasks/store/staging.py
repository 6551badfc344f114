"""Staging in a target: where a release is made complete before one rename publishes it, and the pointer to it before another."""

from __future__ import annotations

import shutil

from schemas.errors.folders import FolderError
from schemas.job.job import Job
from tasks.store.keys import fingerprint_of

CURRENT = "CURRENT"
"""The file of a target that names its newest release."""


def clear_staging(job: Job) -> None:
    """Removes what a killed run of this job left in the target."""
    for left in job.target_path.glob(f"{staging_prefix(job)}*"):
        # Whoever may write in the target may have laid a link there: it goes, and what it leads to stays.
        if left.is_symlink() or left.is_file():
            left.unlink(missing_ok=True)
        shutil.rmtree(left, ignore_errors=True)


def check_pointer(job: Job) -> None:
    """Refuses a target in which a folder stands where the pointer to the newest release goes, before any work is done.

    Raises:
        FolderError: it does.
    """
    if job.target_address is None and (pointer := job.target_path / CURRENT).is_dir() and not pointer.is_symlink():
        raise FolderError.pointer_is_a_folder(str(job.target_path))


def staging_prefix(job: Job) -> str:
    """Returns what the names of all that a job's runs stage begin with."""
    # The run folder is locked, so whatever staging carries its mark is nobody else's.
    return f".staging-{fingerprint_of(job.work_location)[:8]}-"
