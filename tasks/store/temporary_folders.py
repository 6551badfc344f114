"""Folders that last as long as a process: whoever makes one holds its lock, and where nobody does, the process was killed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from schemas.errors.folders import FolderError
from schemas.job.job import Job
from tasks.store.files import PRIVATE_FOLDER
from tasks.store.keys import fingerprint_of

TRIES = 100


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Makes a folder, private to its owner, holds its lock until the end of the block, and removes it then.

    Where it cannot be made the path is yielded all the same: most commands never write there.
    """
    descriptor = _made(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def clear_temporary_folders(folder: Path, names: re.Pattern[str]) -> None:
    """Removes the folders of processes that were killed, of those in a folder whose names are like a pattern; links stay as they are."""
    try:
        found = [path for path in folder.iterdir() if names.fullmatch(path.name)]
    except OSError:
        return
    for path in found:
        descriptor = _opened(path)
        if descriptor is None:
            continue
        try:
            if os.fstat(descriptor).st_uid == os.geteuid() and _locks(descriptor):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)


def _made(path: Path) -> int | None:
    for _ in range(TRIES):
        try:
            path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError:
            return None
        descriptor = _opened(path)
        if descriptor is None:
            continue
        # Between the two somebody may have taken it for one that was left.
        if _locks(descriptor) and _is_still(path, descriptor):
            return descriptor
        os.close(descriptor)
    return None


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Held, or a file system without locks on folders, which tells nobody who is alive: then what is there stays.
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        there = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(there.st_mode) and os.path.samestat(there, os.fstat(descriptor))


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
    """Refuses a target in which a folder stands where the pointer to the newest release goes, before any work is done."""
    if job.target_address is None and (pointer := job.target_path / CURRENT).is_dir() and not pointer.is_symlink():
        raise FolderError.pointer_is_a_folder(str(job.target_path))


def staging_prefix(job: Job) -> str:
    """Returns what the names of all that a job's runs stage begin with."""
    # The run folder is locked, so whatever staging carries its mark is nobody else's.
    return f".staging-{fingerprint_of(job.work_location)[:8]}-"
