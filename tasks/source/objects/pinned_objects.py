"""Objects of a store as DuckDB reads them: in ranges, through the same library as everybody else, and only as they were listed.

DuckDB's own reader of object stores is an extension that it would fetch from the network, and knows nothing of what was listed.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from fsspec import AbstractFileSystem

from tasks.source.object_store import PINNED, object_at
from tasks.source.objects.pinned import open_pinned, pinned

SMALL, HELD = 1_000_000, 32_000_000
"""Bytes of an object that is read in one request, and of all such objects that are held at a time.

DuckDB asks for the end, the footer and each column of a file by itself, and again in every statement. For a small object a request costs
more than its bytes do.
"""


class _SmallObject(io.RawIOBase):
    """A small object as a file. Its bytes are those that its file system holds, or are read again.

    Args:
        objects: The file system.
        place: The object's place.
    """

    def __init__(self, objects: PinnedObjects, place: str) -> None:
        super().__init__()
        self._objects, self._place, self._at = objects, place, 0

    def readable(self) -> bool:
        """Tells that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tells that it can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to a place; reads nothing."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._objects.size_of(self._place)}[whence]
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        """Returns the place."""
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Reads a range of the object, which is the one that was listed, or raises."""
        content = self._objects.content_of(self._place)
        end = len(content) if size is None or size < 0 else self._at + size
        found = content[self._at : end]
        self._at += len(found)
        return found

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class PinnedObjects(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects whose places ``place_of`` makes; for reading alone."""

    protocol = PINNED
    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    def open(self, path: str, _mode: str = "rb", **_: Any) -> Any:
        """Opens an object as it was when it was listed.

        Raises:
            SourceError: it is another one by now, or gone.
            ObjectStoreError: it cannot be read.
        """
        place = self._strip_protocol(path)
        return _SmallObject(self, place) if self.size_of(place) <= SMALL else open_pinned(*object_at(place))

    def size_of(self, place: str) -> int:
        """Returns how many bytes an object has, as it was listed."""
        return int(object_at(place)[1][0])

    def content_of(self, place: str) -> bytes:
        """Returns all bytes of a small object, read once as long as there is room for it beside others.

        Raises:
            SourceError: it is another one than was listed, or gone.
            ObjectStoreError: it cannot be read.
        """
        with self._lock:
            if (held := self._held.get(place)) is not None:
                self._held.move_to_end(place)
                return held
        with pinned(*object_at(place)) as file:
            content = file.read()
        with self._lock:
            self._held[place] = content
            while len(self._held) > 1 and sum(map(len, self._held.values())) > HELD:
                self._held.popitem(last=False)
        return content

    def glob(self, path: str, **_: Any) -> list[str]:
        """Returns the place itself: names of objects may hold the marks of patterns."""
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Returns what was listed of an object."""
        return {"name": path, "size": object_at(self._strip_protocol(path))[1][0], "type": "file"}

    def modified(self, path: str) -> datetime:
        """Returns when an object was changed, as it was listed: whatever the store has now, another one is never read."""
        return datetime.fromtimestamp(object_at(self._strip_protocol(path))[1][1] / 1e9, UTC)
