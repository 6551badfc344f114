"""Objects of a store as DuckDB reads them: in ranges, through fsspec, and only as they were listed.

DuckDB's own reader of object stores is an extension that it would fetch from the network, and knows nothing of what was listed.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem

from tasks.source.listing import PINNED, Stat, parse_scan_address
from tasks.source.pinned import SMALL, content_of, open_pinned


class _SmallObject(io.RawIOBase):
    """A small object as a file, whose bytes are cached or read again.

    Args:
        address: Of the object.
        stat: What the listing said of it.
    """

    def __init__(self, address: str, stat: Stat) -> None:
        super().__init__()
        self._address, self._stat, self._at = address, stat, 0

    def readable(self) -> bool:
        """Return that the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return that the file can be read from any position."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position without reading."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._stat[0]}[whence]
        self._at = begin + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read a range of the object as it was listed into a buffer, or raise an error."""
        found = content_of(self._address, self._stat)[self._at : self._at + len(buffer)]
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


class PinnedObjects(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """A read-only file system of the objects that ``scan_address`` names."""

    protocol = PINNED
    cachable = False

    def open(self, path: str, _mode: str = "rb", **_: Any) -> Any:
        """Open an object as a read-only file, as it was when it was listed; raise if it has changed."""
        address, stat = parse_scan_address(self._strip_protocol(path))
        return _SmallObject(address, stat) if stat[0] <= SMALL else open_pinned(address, stat)

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the path itself in a list: names of objects may hold characters of patterns."""
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return name, size and type of an object as it was listed."""
        return {"name": path, "size": parse_scan_address(self._strip_protocol(path))[1][0], "type": "file"}

    def modified(self, path: str) -> datetime:
        """Return the time of change of an object as it was listed."""
        return datetime.fromtimestamp(parse_scan_address(self._strip_protocol(path))[1][1] / 1e9, UTC)
