"""Reading of regular files of limited size, and of jobs that a program passes as text.

Other persons may name or write these files. So devices, pipes and files that are too large are refused.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from io import BufferedReader
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TextIO

from schemas.errors.base import JobError

MOST_BYTES, MOST_TEXT, MOST_HEADER, BLOCK = 1_000_000_000, 100_000_000, 16_000_000, 1 << 20
"""Bytes of a file that is read whole, of a text, of the names in the first line of a table, and of what is read at a time."""


def open_regular(path: Path, most_bytes: int, *, may_be_link: bool = True) -> BufferedReader:
    """Open a regular file for reading bytes; raise OSError for other kinds and too large files.

    Args:
        path: The file, or a link to it.
        most_bytes: How many bytes it may have.
        may_be_link: Whether it may be a link; not where others can write, and what they name would be taken for theirs.
    """
    # A named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if may_be_link else os.O_NOFOLLOW))
    try:
        # Of what was opened, because the name may lead elsewhere by now.
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a device or a pipe, and only regular files are read", str(path))
        if status.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {most_bytes // 1_000_000:,} MB", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def content_of(path: Path, most_bytes: int = MOST_BYTES, *, may_be_link: bool = True) -> bytes:
    """Return the bytes of a regular file; raise OSError for other kinds and too large files."""
    with open_regular(path, most_bytes, may_be_link=may_be_link) as file:
        # It may have grown since. Not as much as is allowed, for which room would be made at once.
        content = file.read(min(most_bytes, os.fstat(file.fileno()).st_size) + 1)
        while 0 < len(content) <= most_bytes and (more := file.read(BLOCK)):
            content += more
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes // 1_000_000:,} MB", str(path))
    return content


def header_lines(text: TextIO) -> Iterator[str]:
    """Yield the lines of an open text file; raise ValueError beyond ``MOST_HEADER`` characters in total.

    A line need not have an end.
    """
    left = MOST_HEADER
    while line := text.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise ValueError
        yield line


def read_text(path: Path) -> tuple[str, list[str]]:
    """Return a file's text, or an empty text and the reasons why it cannot be read."""
    try:
        return content_of(path, MOST_TEXT).decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        return "", [f"the file is not UTF-8 text (byte {error.start:,}); save it as UTF-8"]
    except FileNotFoundError:
        return "", ["there is no such file; check the path"]
    except IsADirectoryError:
        return "", ["this is a folder; give the job file inside it"]
    except OSError as error:
        return "", [f"the file cannot be read ({error.strerror})"]


@dataclass(frozen=True)
class GivenJob:
    """The text and base folder of a job that has no file.

    Attributes:
        text: YAML. Not in what the object shows of itself: there may be cell values in a tree.
        folder: To which its paths are relative.
        called: How it is called in messages.
        scratch: Whether what it makes is counted or handed over, and removed again. Only our own programs say so: no job file does, and
            no look at folders, in which others may write.
    """

    text: str
    folder: Path
    called: str = "The job given"
    scratch: bool = False

    def __str__(self) -> str:
        return self.called

    def __repr__(self) -> str:
        return "GivenJob(…)"


def given_job(data: Mapping[str, Any], folder: Path) -> GivenJob:
    """Convert plain Python data to a job for the YAML reader; raise for data that no job can hold.

    Args:
        data: What the YAML would say.
        folder: To which its paths are relative.
    """
    return GivenJob(_written(data, "The job given"), folder.absolute())


def scratch_job(job: Path | GivenJob) -> GivenJob:
    """Read a job, or raise ``JobError``; return it as one whose release is temporary.

    Its release is neither registered nor compared with other releases.
    """
    if isinstance(job, GivenJob):
        return replace(job, scratch=True)
    text, faults = read_text(job)
    if faults:
        raise JobError(str(job), faults)
    return GivenJob(text, job.parent, str(job), scratch=True)


SETTINGS = "The settings given"


def setting_texts(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Convert settings by dotted key to texts for ``--set``; raise for values that no job can hold."""
    if not isinstance(settings, Mapping):
        raise JobError(SETTINGS, ["they must be a dict of dotted keys, as in {'privacy.k': 10}"])
    return tuple(f"{key}={_written(value, SETTINGS)}" for key, value in settings.items())


def _written(data: object, where: str) -> str:
    """Return data as JSON text, or raise a JobError that names ``where``."""
    # JSON is YAML; its escapes of characters beyond the first plane are not, so that they stay as they are.
    try:
        return json.dumps(_plain(data), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    raise JobError(where, ["it must hold mappings, lists, texts, numbers, true, false and None alone, and not itself"])


def _plain(value: object) -> object:
    """Convert data to types that JSON can hold; leave other values for JSON to refuse."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(part) for key, part in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_plain(part) for part in value]
    if isinstance(value, Decimal):
        # A number that only looks like another one would change a width; as text it is refused where a number is asked for.
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, date):
        return value.isoformat()
    # Numbers of NumPy.
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value


def _key(key: object) -> str:
    """Return the key of a mapping as text; raise TypeError for keys other than int and str."""
    # Whole numbers and texts: of what else a key could be, YAML's own spelling is no agreement.
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise TypeError
    return str(key)
