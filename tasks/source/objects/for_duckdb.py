"""Lets DuckDB read objects of a store, which its own reader, fetched from the network, would read whatever they are by now."""

from __future__ import annotations

import duckdb

from tasks.source.object_store import PINNED


def let_read(connection: duckdb.DuckDBPyConnection, relation: str) -> None:
    """Let a database read the objects that a relation names, if it does."""
    if f"'{PINNED}://" in relation and not connection.filesystem_is_registered(PINNED):
        # fsspec, which files can do without.
        from tasks.source.objects.pinned_objects import PinnedObjects  # noqa: PLC0415

        connection.register_filesystem(PinnedObjects())
