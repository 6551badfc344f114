"""Reading of regular files of limited size.

Other persons may name or write these files. So devices, pipes and files that are too large are refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TextIO

MOST_BYTES, MOST_TEXT, MOST_HEADER, BLOCK = 1_000_000_000, 100_000_000, 16_000_000, 1 << 20
"""Bytes of a file that is read whole, of a text, of the names in the first line of a table, and of what is read at a time."""


def open_regular(path: Path, most_bytes: int = MOST_BYTES, *, may_be_link: bool = True) -> BufferedReader:
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


def lines_within(text: TextIO, most_characters: int) -> Iterator[str]:
    """Yield the lines of an open text file; raise ValueError beyond ``most_characters`` in total.

    A line need not have an end.
    """
    while line := text.readline(most_characters + 1):
        most_characters -= len(line)
        if most_characters < 0:
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
