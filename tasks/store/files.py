"""Files and folders of stores and releases: private by default, and complete before they are named."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile, gettempdir

from schemas.errors.base import StorageError
from schemas.errors.folders import BusyError, FolderError
from schemas.reading.regular_files import open_regular

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
MOST_LISTED = 1 << 62
"""Bytes of a file that is read whole, though never held: it may have any number of them."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a regular file in hex; raise ``OSError`` for a link or another kind."""
    with open_regular(path, MOST_LISTED, may_be_link=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def real_path(path: Path) -> Path:
    """Return a path with links followed; a circle of links does not raise."""
    return Path(os.path.realpath(path))


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner can enter, or make it so, and return it."""
    try:
        is_new = not path.exists()
        path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        # mkdir leaves a folder that is there as it is.
        set_mode(path, PRIVATE_FOLDER)
        try:
            check_private(path, path)
        except FolderError:
            if is_new:
                path.rmdir()
            raise
    except OSError as error:
        raise StorageError.not_writable(str(path), error.strerror or "unknown reason") from None
    return path


def set_mode(path: Path | int, mode: int) -> None:
    """Set the mode of a path or descriptor, where its file system keeps modes."""
    try:
        os.chmod(path, mode)  # noqa: PTH101 - of a descriptor, too
    except OSError as error:
        # exFAT, FAT and SMB refuse or pass over what they cannot keep; what must be private is looked at afterwards.
        if error.errno not in {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}:
            raise


def check_private(made: Path | int, folder: Path) -> None:
    """Raise ``FolderError`` if others than its owner can use what was made privately in a folder."""
    if os.stat(made).st_mode & 0o077:  # noqa: PTH116 - of a descriptor, too
        raise FolderError.open_to_others(str(folder))


def write_atomically(path: Path, write: Callable[[Path], int], mode: int = PRIVATE_FILE, prefix: str = ".") -> int:
    """Write a file by ``write`` under a temporary name, then rename it; return what ``write`` returns.

    Args:
        write: Fills the path that it is given.
        mode: Of the file.
        prefix: Of the temporary name, by which whoever may remove it knows what a killed process left.

    Returns:
        What ``write`` returns: the number of rows.
    """
    # Two equal files of a source have equal artefacts, which two threads may make at a time; and in a folder that others may write, nobody
    # can guess the name and lay a link there.
    temporary = path.with_name(f"{prefix}{path.name}.{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        # Not flushed: an artefact is believed by its digest, and one that a power cut spoilt is made again.
        rows = write(temporary)
        set_mode(temporary, mode)
        temporary.replace(path)
    except OSError as error:
        raise StorageError.not_writable(str(path if path.is_dir() else path.parent), error.strerror or "unknown reason") from None
    finally:
        temporary.unlink(missing_ok=True)
    return rows


HANDED_ON = "it lies inside the target, which is handed on"


def check_takes_files(folder: Path, target: Path | None = None) -> None:
    """Raise ``FolderError`` if no file can be created in a folder; folders made by the try are removed.

    Args:
        target: That of a job, where nothing may lie that is for its people alone.
    """
    if target and real_path(folder).is_relative_to(real_path(target)):
        raise FolderError.takes_no_files(str(folder), HANDED_ON)
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FolderError.takes_no_files(str(folder), error.strerror or "unknown reason") from None
    finally:
        for made in missing:
            with suppress(OSError):
                made.rmdir()


def check_takes_file(path: Path, target: Path | None = None) -> None:
    """Raise ``FolderError`` if a path takes no file or is in the target; nothing is left behind."""
    if path.is_dir():
        raise FolderError.takes_no_files(str(path), "it is a folder")
    check_takes_files(path.parent, target)


def clear_partial_files(folder: Path, *, recursive: bool = False) -> None:
    """Remove half-written files of killed processes from a folder, and from its subfolders if recursive."""
    for left in folder.glob("**/.*.part" if recursive else ".*.part"):
        left.unlink(missing_ok=True)


@contextmanager
def locked_file(path: Path, how: int) -> Iterator[None]:
    """Hold a file's ``flock`` for the block, creating the file; raise ``BusyError`` if it is held.

    Args:
        how: As ``fcntl.flock`` takes it.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE_FILE)
    except OSError as error:
        if path.is_symlink():
            raise FolderError.lock_is_link(str(path)) from None
        raise StorageError.not_writable(str(path.parent), error.strerror or "unknown reason") from None
    try:
        opened = os.fstat(descriptor)
        # A file of two names may be somebody else's, and its mode would be changed below.
        if not stat.S_ISREG(opened.st_mode) or opened.st_nlink > 1:
            raise FolderError.lock_is_link(str(path))
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            raise BusyError.at_work(str(path.parent)) from None
        except OSError as error:
            raise FolderError.no_locks(str(path.parent), error.strerror or "unknown reason") from None
        if not _is_named(path, opened):
            # Whoever held it has removed it meanwhile, and the next one may have made another.
            raise BusyError.at_work(str(path.parent))
        set_mode(descriptor, PRIVATE_FILE)
        yield
    finally:
        os.close(descriptor)


def _is_named(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.lstat(), opened)
    except OSError:
        return False


def restrict_new_files() -> None:
    """Set this process's umask so that new files are private to their owner."""
    os.umask(0o077)


def apply_user_umask(*paths: Path) -> None:
    """Set modes of published files and folders by the user's umask, and the group of a shared folder."""
    for path in paths:
        above = path.parent.stat()
        shared = above.st_mode & stat.S_ISGID
        if shared and path.stat().st_gid != above.st_gid:
            # Linked from the work folder.
            with suppress(PermissionError):
                os.chown(path, -1, above.st_gid)
        set_mode(path, (0o777 | shared if path.is_dir() else 0o666) & ~USER_UMASK)


def open_folder(path: Path) -> Path:
    """Create a folder for published files and missing parents in the user's umask; return it.

    Folders that are there keep the mode that their owner gave them.
    """
    # Looked up before any is made.
    missing = [one for one in (path, *path.parents) if not one.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        apply_user_umask(*missing)
    except OSError as error:
        raise StorageError.not_writable(str(path), error.strerror or "unknown reason") from None
    return path


def _user_umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


USER_UMASK = _user_umask()


def flush(path: Path) -> None:
    """Sync a file or folder to disk and wait for it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


TRIES = 100


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Create a private folder, yield it locked, and remove it after the block.

    Where it cannot be made the path is yielded all the same: most commands never write there.
    """
    descriptor = _made(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def random_temporary_folder(kind: str) -> Iterator[Path]:
    """Yield a private temporary folder, removed after; first remove those of killed processes.

    Args:
        kind: What it is for, a part of its name. Nobody can guess the rest and lay something there.
    """
    above = Path(gettempdir()).absolute()
    clear_temporary_folders(above, re.compile(rf"skald-{kind}-[0-9a-f]{{16}}"))
    with temporary_folder(above / f"skald-{kind}-{secrets.token_hex(8)}") as folder:
        yield folder


def clear_temporary_folders(folder: Path, names: re.Pattern[str]) -> None:
    """Remove own, unlocked folders in a folder whose names match a pattern; links stay."""
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
        try:
            check_private(descriptor, path.parent)
        except FolderError:
            os.close(descriptor)
            path.rmdir()
            raise
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
