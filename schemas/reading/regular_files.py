"""Files that a job names are read whole, so that only those are opened that have an end: no device, no pipe, none that is too large."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MOST_BYTES, MOST_TEXT, BLOCK = 1_000_000_000, 100_000_000, 1 << 20


def open_regular(path: Path, most: int = MOST_BYTES) -> BinaryIO:
    """Opens a regular file for reading.

    Args:
        path: The file, or a link to it.
        most: How many bytes it may have.

    Raises:
        OSError: it cannot be opened, is no regular file, or is larger; ``strerror`` says so.
    """
    # A named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Of what was opened, because the name may lead elsewhere by now.
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a device or a pipe, and only regular files are read", str(path))
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most // 1_000_000:,} MB", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def content_of(path: Path, most: int = MOST_BYTES) -> bytes:
    """Returns what a regular file holds; raises as ``open_regular``."""
    with open_regular(path, most) as file:
        # It may have grown since. Not as much as is allowed, for which room would be made at once.
        content = file.read(min(most, os.fstat(file.fileno()).st_size) + 1)
        while 0 < len(content) <= most and (more := file.read(BLOCK)):
            content += more
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // 1_000_000:,} MB", str(path))
    return content


def read_text(path: Path) -> tuple[str, list[str]]:
    """Returns the file's text, or why there is none."""
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
