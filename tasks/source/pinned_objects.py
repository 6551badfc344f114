"""Objects of a store as DuckDB reads them: in ranges, through fsspec, and only as they were listed.

DuckDB's own reader of object stores is an extension that it would fetch from the network, and knows nothing of what was listed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock, local
from typing import Any

from fsspec import AbstractFileSystem

from schemas.errors.base import SkaldError
from tasks.source.listing import PINNED, Stat, parse_scan_address
from tasks.source.pinned import SMALL, PinnedFile, content_of, open_pinned, read_stretches
from tasks.store.database import FILE_FAULTS


class _SharedFile(io.RawIOBase):
    """An object as a file with a position for each thread.

    Threads of DuckDB share one file, and each seeks before it reads.

    Args:
        size: Bytes of the object.
        read: Returns so many bytes from a position on, or fewer at the end; raises if the object has changed.
    """

    def __init__(self, size: int, read: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size, self._read, self._thread = size, read, local()

    def readable(self) -> bool:
        """Return that the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return that the file can be read from any position."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move this thread to a position without reading."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._thread.at = begin + offset
        return begin + offset

    def readinto(self, buffer: Any) -> int:
        """Read from this thread's position into a buffer, or raise an error."""
        at = self._at
        with _faults_kept():
            found = self._read(at, len(buffer))
        buffer[: len(found)] = found
        self._thread.at = at + len(found)
        return len(found)

    @property
    def _at(self) -> int:
        return getattr(self._thread, "at", 0)


def _shared_file(address: str, stat: Stat) -> _SharedFile:
    """Open an object as it was listed, a small one from memory; raise if it has changed."""
    if stat[0] <= SMALL:
        return _SharedFile(stat[0], lambda at, size: content_of(address, stat)[at : at + size])
    opened, lock = list[PinnedFile](), Lock()

    def ask(at: int, size: int) -> bytes:
        # Each statement opens all objects, and what it wants of them may be held.
        if not opened:
            opened.append(open_pinned(address, stat))
        opened[0].seek(at)
        return opened[0].read(size)

    def read(at: int, size: int) -> bytes:
        # Threads that want one stretch wait for one request.
        with lock:
            return read_stretches(address, stat, at, size, ask)

    return _SharedFile(stat[0], read)


@contextmanager
def _faults_kept() -> Iterator[None]:
    """Keep an error raised in the block for where DuckDB raises its own in its stead."""
    try:
        yield
    except SkaldError as error:
        FILE_FAULTS.append(error)
        raise


class PinnedObjects(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """A read-only file system of the objects that ``scan_address`` names."""

    protocol = PINNED
    cachable = False

    def open(self, path: str, _mode: str = "rb", **_: Any) -> Any:
        """Open an object as a read-only file, as it was when it was listed; raise if it has changed."""
        with _faults_kept():
            return _shared_file(*parse_scan_address(self._strip_protocol(path)))

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the path itself in a list: names of objects may hold characters of patterns."""
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return name, size and type of an object as it was listed."""
        return {"name": path, "size": parse_scan_address(self._strip_protocol(path))[1][0], "type": "file"}

    def modified(self, path: str) -> datetime:
        """Return the time of change of an object as it was listed."""
        return datetime.fromtimestamp(parse_scan_address(self._strip_protocol(path))[1][1] / 1e9, UTC)
