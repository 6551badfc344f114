"""Staging in a target: where a release is made complete before one rename publishes it, and the pointer to it before another."""

from __future__ import annotations

import shutil

from schemas.job.job import Job
from tasks.store.keys import fingerprint_of


def clear_staging(job: Job) -> None:
    """Removes what a killed run of this job left in the target."""
    for left in job.target_path.glob(f"{staging_prefix(job)}*"):
        # Whoever may write in the target may have laid a link there: it goes, and what it leads to stays.
        if left.is_symlink() or left.is_file():
            left.unlink(missing_ok=True)
        shutil.rmtree(left, ignore_errors=True)


def staging_prefix(job: Job) -> str:
    """Returns what the names of all that a job's runs stage begin with."""
    # The run folder is locked, so whatever staging carries its mark is nobody else's.
    return f".staging-{fingerprint_of(job.work_place)[:8]}-"
