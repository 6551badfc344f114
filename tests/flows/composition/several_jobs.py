"""Jobs of one folder over the same people, whose releases bear the number of each record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from tests.jobs import JOB, QIDS, job_of, people, write_job, write_parquet

COLUMNS: Mapping[str, Any] = JOB["columns"] | {"insensitive": ["number", *JOB["columns"]["insensitive"]]}


def numbered(table: pa.Table, first: int = 0) -> pa.Table:
    """Return a table with the number of each record; without those that are alike in all that records are known by."""
    known = list(zip(*(table[name].to_pylist() for name in (*QIDS, "disease")), strict=True))
    once = sorted({content: place for place, content in enumerate(known)}.values())
    return table.take(once).append_column("number", pa.array(range(first, first + len(once))))


TABLE = numbered(people(420))
LATER = numbered(people(60, seed=11), first=10_000)


def job_in(folder: Path, table: pa.Table = TABLE, *, files: int = 1, **parts: Any) -> Path:
    """Write a source and a job whose releases bear the number of each record."""
    write_parquet(folder / "people", table, files=files)
    return write_job(folder, job_of(**{"columns": COLUMNS} | parts))


def other_job(folder: Path, name: str, **parts: Any) -> Path:
    """Write another job of the same folder."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job_of(**{"name": name, "columns": COLUMNS, "target": f"other/{name}"} | parts), sort_keys=False))
    return path
