"""Access of DuckDB to objects of a store, as they were listed.

Its own reader is fetched from the network, and would read whatever the objects are by now.
"""

from __future__ import annotations

import duckdb

from tasks.source.listing import PINNED


def register_objects(connection: duckdb.DuckDBPyConnection, relation: str) -> None:
    """Register the file system by which DuckDB reads objects if an SQL relation names any."""
    if f"'{PINNED}://" in relation and not connection.filesystem_is_registered(PINNED):
        # fsspec, which files can do without.
        from tasks.source.pinned_objects import PinnedObjects  # noqa: PLC0415

        connection.register_filesystem(PinnedObjects())
