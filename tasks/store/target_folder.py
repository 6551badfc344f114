"""Folder of a job's releases: the pointer to the newest one, and what killed runs staged there."""

from __future__ import annotations

import shutil

from schemas.errors.folders import FolderError
from schemas.job.job import Job
from tasks.store.keys import fingerprint_of
from tasks.store.place import target_of

CURRENT = "CURRENT"
"""The file of a target that names its newest release."""


def clear_staging(job: Job) -> None:
    """Remove the staging files of killed runs of a job from its target."""
    for left in job.target_path.glob(f"{staging_prefix(job)}*"):
        # Whoever may write in the target may have laid a link there: it goes, and what it leads to stays.
        if left.is_symlink() or left.is_file():
            left.unlink(missing_ok=True)
        shutil.rmtree(left, ignore_errors=True)


def check_pointer(job: Job) -> None:
    """Refuse a target in which a folder has the name of the pointer to the newest release."""
    target = target_of(job).folder
    if target and (pointer := target / CURRENT).is_dir() and not pointer.is_symlink():
        raise FolderError.pointer_is_a_folder(str(target))


def staging_prefix(job: Job) -> str:
    """Return the prefix of the names of all files that a job's runs stage."""
    # The run folder is locked, so whatever staging carries its mark is nobody else's.
    return f".staging-{fingerprint_of(job.work_location)[:8]}-"
