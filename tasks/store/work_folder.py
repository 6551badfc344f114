"""Work folder of a job and folder of its releases, marked as ours; other folders never change.

A folder that carries the mark, is empty, or holds nothing but what an earlier version left is ours: its mode is made private, and what we
made in it is removed by name. Every other folder stays as it is, whatever a job calls it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import NamedTuple

from schemas.errors.base import StorageError
from schemas.errors.folders import FolderError, WorkError
from schemas.job.job import Job
from schemas.job.source import is_address
from tasks.store.files import PRIVATE_FILE, clear_temporary_folders, private_folder, real_path, temporary_folder
from tasks.store.keys import fingerprint_of
from tasks.store.place import Place, target_of, work_of
from tasks.store.store import Store

MARK, LOCK = ".skald-work", "run.lock"
FOLDERS = ("artifacts", "results", "spill", "outbox", "comparison", "vaults", "registry")
UNTOLD = "untold.json"
"""What the last run found out that its release does not tell."""
FILES = (LOCK, "secret", MARK, UNTOLD)
SPILL_FOLDER = re.compile(r"(verify|reveal|source)-\d+(-[0-9a-f]{16})?")
"""What a command that is no run spills to, by the number of its process and a random one: machines that share it number alike."""
CONTENT_WORDS = "SKALD keeps here what it counted, raw values among it. 'skald clean JOB' removes it.\n"


class CleanOutcome(NamedTuple):
    """Bytes freed by ``skald clean``, entries that are not ours, and folders in use.

    Attributes:
        freed: Bytes.
        files_left: Entries of the folder that are none of ours.
        at_work: Folders of commands that are at work, which take these away themselves.
    """

    freed: int
    files_left: int
    at_work: int


@dataclass(frozen=True)
class FolderWork:
    """A job's work folder with its lock held, and the store in it.

    The system drops the lock with the process, and no other run takes it over before.
    """

    store: Store
    folder: Path

    def keep(self) -> None:
        """Do nothing, as files of a work folder stay; a bucket's work uploads changes here."""

    @property
    def generation(self) -> int:
        """Always 0: how often another run took over the work."""
        return 0

    def check(self) -> None:
        """Do nothing, as no other run can take over a locked folder."""

    def raise_if_lost(self) -> None:
        """Do nothing, as no other run can take over a locked folder."""


def make_work_folder(job: Job) -> Path:
    """Create a job's work folder, private and marked as ours; return it; raise if it is another's."""
    check_own_work_folder(job.work_path)
    work = private_folder(job.work_path)
    _mark(work)
    return work


def _mark(work: Path) -> None:
    try:
        # Whoever makes the mark first has made it; a link of its name is never followed.
        descriptor = os.open(work / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    except FileExistsError:
        return
    except OSError as error:
        raise StorageError.not_writable(str(work), error.strerror or "unknown reason") from None
    with os.fdopen(descriptor, "w") as mark:
        mark.write(CONTENT_WORDS)


def restore_mark(work: Path) -> None:
    """Mark a folder again that was removed during a run and holds only what the run still wrote."""
    with suppress(OSError, StorageError):
        if all(map(_is_known, os.listdir(work))):  # noqa: PTH208 - names are all that is asked
            _mark(work)


def check_own_work_folder(work: Path) -> None:
    """Raise ``FolderError`` if a work folder exists with content that is not ours."""
    try:
        names = os.listdir(work)  # noqa: PTH208 - names are all that is asked
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageError.not_writable(str(work), error.strerror or "unknown reason") from None
    if not _is_ours(work, names):
        raise FolderError.not_ours(str(work))


def _is_ours(work: Path, names: Sequence[str]) -> bool:
    if MARK in names:
        return _is_plain(work / MARK)
    # Folders of earlier versions have no mark. Many a folder of a user's holds "results" alone, so the lock must be there, too.
    return all(map(_is_known, names)) and (_is_plain(work / LOCK) or all(map(SPILL_FOLDER.fullmatch, names)))


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _is_known(name: str) -> bool:
    return name in FOLDERS or name in FILES or SPILL_FOLDER.fullmatch(name) is not None


def check_folders_disjoint(job: Job) -> None:
    """Raise if a job's work contains its inputs or outputs, or lies in its target."""
    work, target = work_of(job), target_of(job)
    for location, words in _locations(job, target):
        if work.contains(location):
            raise _overlap(work, words)
    if target.contains(work.location if work.folder is None else str(real_path(work.folder))):
        raise _overlap(work, "the target") if work.folder is None else FolderError.work_in_target(work.location)


def _overlap(work: Place, words: str) -> StorageError:
    return WorkError.overlaps(work.location, words) if work.folder is None else FolderError.work_holds(work.location, words)


def _locations(job: Job, target: Place) -> Iterator[tuple[str, str]]:
    """Yield the paths and addresses that must not lie in the work, each with its words."""
    yield str(real_path(job.folder)), "the folder of the job file"
    yield target.location if target.folder is None else str(real_path(target.folder)), "the target"
    for pattern in job.source.path:
        if is_address(pattern):
            yield re.split(r"[*?\[]", pattern, maxsplit=1)[0], "the source"
        else:
            yield str(real_path(job.resolve(_fixed(Path(pattern))))), "the source"
    for qid in job.columns.quasi_identifiers:
        if qid.hierarchy.listed_in:
            path = job.resolve(getattr(qid.hierarchy, qid.hierarchy.listed_in))
            yield str(real_path(path)), f"the hierarchy of '{qid.name}'"


def _fixed(pattern: Path) -> Path:
    """Return the part of a path pattern before its first wildcard."""
    wild = next((place for place, part in enumerate(pattern.parts) if has_magic(part)), len(pattern.parts))
    return Path(*pattern.parts[:wild])


def remove_own_work(work: Path) -> CleanOutcome:
    """Remove our files in a locked work folder; return bytes freed and entries that stay."""
    freed, left, at_work = 0, 0, 0
    for path in sorted(work.iterdir()):
        if path.name in (MARK, LOCK):
            continue
        if not _is_known(path.name):
            left += 1
            continue
        size, is_spill = _size(path), SPILL_FOLDER.fullmatch(path.name)
        if is_spill:
            clear_temporary_folders(work, re.compile(re.escape(path.name)))
        is_folder = path.is_dir() and not path.is_symlink()
        # One that is still there is held: a command is at work in it, or a file system without locks does not tell.
        if is_spill and is_folder:
            at_work += 1
            continue
        freed += size
        # A link is removed, and what it leads to is not.
        if is_folder:
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (work / LOCK).unlink(missing_ok=True)
    if not left and not at_work:
        # The mark goes last, so that a folder that is left half way is still known.
        (work / MARK).unlink(missing_ok=True)
    return CleanOutcome(freed, left, at_work)


def _size(path: Path) -> int:
    return sum(one.lstat().st_size for one in (path, *path.rglob("*")) if _is_plain(one))


@contextmanager
def temporary_folder_of(job: Job, command: str) -> Iterator[Path]:
    """Yield a temporary folder in a job's work for a command without a run; remove it after.

    Folders that killed commands left are removed first.
    """
    work = job.work_path
    check_own_work_folder(work)
    clear_temporary_folders(work, SPILL_FOLDER)
    made = [folder for folder in (work, work.parent) if not folder.exists()]
    try:
        with temporary_folder(work / f"{command}-{os.getpid()}-{secrets.token_hex(8)}") as spill:
            yield spill
    finally:
        for folder in made:
            # Whoever only looks at a release leaves no trace, unless a run has begun meanwhile.
            with suppress(OSError):
                folder.rmdir()


CURRENT = "CURRENT"
"""The file of a target that names its newest release."""


def clear_staging(job: Job) -> None:
    """Remove the staging files and folders of a job's killed runs from its target."""
    for left in job.target_path.glob(f"{staging_prefix(job)}*"):
        # Whoever may write in the target may have laid a link there: it goes, and what it leads to stays.
        if left.is_symlink() or left.is_file():
            left.unlink(missing_ok=True)
        shutil.rmtree(left, ignore_errors=True)


def check_pointer(job: Job) -> None:
    """Raise ``FolderError`` if a folder of the target has the name of the pointer ``CURRENT``."""
    target = target_of(job).folder
    if target and (pointer := target / CURRENT).is_dir() and not pointer.is_symlink():
        raise FolderError.pointer_is_a_folder(str(target))


def staging_prefix(job: Job) -> str:
    """Return the prefix of the names of all files that a job's runs stage."""
    # The run folder is locked, so whatever staging carries its mark is nobody else's.
    return f".staging-{fingerprint_of(job.work_location)[:8]}-"
