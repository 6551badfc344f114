"""Objects of a store as DuckDB reads them: in ranges, through the same library as everybody else, and only as they were listed.

DuckDB's own reader of object stores is an extension that it would fetch from the network, and knows nothing of what was listed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem

from tasks.source.object_store import PINNED, object_at
from tasks.source.objects.pinned import open_pinned


class PinnedObjects(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects whose places ``place_of`` makes; for reading alone."""

    protocol = PINNED
    cachable = False

    def open(self, path: str, _mode: str = "rb", **_: Any) -> Any:
        """Opens an object as it was when it was listed.

        Raises:
            SourceError: it is another one by now, or gone.
            ObjectStoreError: it cannot be read.
        """
        return open_pinned(*object_at(self._strip_protocol(path)))

    def glob(self, path: str, **_: Any) -> list[str]:
        """Returns the place itself: names of objects may hold the marks of patterns."""
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Returns what was listed of an object."""
        return {"name": path, "size": object_at(self._strip_protocol(path))[1][0], "type": "file"}

    def modified(self, path: str) -> datetime:
        """Returns when an object was changed, as it was listed: whatever the store has now, another one is never read."""
        return datetime.fromtimestamp(object_at(self._strip_protocol(path))[1][1] / 1e9, UTC)
