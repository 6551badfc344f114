"""DuckDB as this project uses it: bounded memory, spill inside the run folder, nothing installed or fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from schemas.job import Job

SHARE_OF_MEMORY = 2


def quote(name: str) -> str:
    """Returns a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Returns a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def connect(job: Job, spill: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens an in-memory database that takes at most half the job's memory and spills into ``spill``."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{job.memory // SHARE_OF_MEMORY}B",
        "temp_directory": str(spill),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if job.threads:
        settings["threads"] = job.threads
    connection = duckdb.connect(config=settings)
    try:
        connection.execute("SET enable_progress_bar = false")
        yield connection
    finally:
        connection.close()
