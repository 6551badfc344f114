"""Files and folders of the store and of releases: private unless opened up, whole if they exist, on the disk before they are named."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from threading import get_ident

from schemas.errors.base import StorageError

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600


def file_digest(path: Path) -> str:
    """Returns the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def private_folder(path: Path) -> Path:
    """Makes a folder that only its owner can enter, and returns it.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        path.chmod(PRIVATE_FOLDER)
    except OSError as error:
        raise StorageError.not_writable(str(path), error.strerror or "unknown reason") from None
    return path


def write_whole(path: Path, write: Callable[[Path], int], mode: int = PRIVATE_FILE) -> int:
    """Lets ``write`` fill a temporary name and renames it, so that ``path`` exists only when it is complete.

    Returns:
        What ``write`` returns: the number of rows.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    # Two equal files of a source have equal artefacts, which two threads may make at a time.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}.part")
    try:
        rows = write(temporary)
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        raise StorageError.not_writable(str(path.parent), error.strerror or "unknown reason") from None
    finally:
        temporary.unlink(missing_ok=True)
    return rows


def owner_only() -> None:
    """Makes every file that this process creates from here on private to its owner, unless it is opened up on purpose."""
    os.umask(0o077)


def open_up(*paths: Path) -> None:
    """Gives a release's files the mode that the user's umask asks for: they are anonymous, unlike artefacts."""
    for path in paths:
        path.chmod((0o777 if path.is_dir() else 0o666) & ~USER_UMASK)


def _user_umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


USER_UMASK = _user_umask()


def flush(path: Path) -> None:
    """Waits until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
