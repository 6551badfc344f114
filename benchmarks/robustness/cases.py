"""Small jobs of every method over every kind of source and output, and what they leave."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from pyarrow import ipc

from tests.jobs import CSV_TYPES, job_of, people, write_csv, write_job, write_parquet

ROWS = 400
METHODS: dict[str, dict[str, Any]] = {
    "skald": {"name": "skald"},
    "mondrian": {"name": "mondrian"},
    "mondrian in fragments": {"name": "mondrian", "fragments": {"count": 2}},
    "rayden": {"name": "rayden"},
    "canon": {"name": "canon"},
    "mondrian_cof": {"name": "mondrian_cof"},
    "clustering": {"name": "clustering"},
}
TARGETS: dict[str, dict[str, Any]] = {
    "parquet": {},
    "csv": {"format": "csv"},
    "duckdb": {"format": "duckdb"},
    "hive": {"partition_by": ["zip"]},
}
SETTINGS = ("--set", "chunk_rows=80", "--set", "rows_per_file=150", "--set", "privacy.k=4")


def _parquet(folder: Path, table: pa.Table) -> dict[str, Any]:
    write_parquet(folder / "people", table, files=2, row_group=60)
    return {"path": "people/*.parquet"}


def _csv(folder: Path, table: pa.Table) -> dict[str, Any]:
    write_csv(folder / "people.csv", table)
    return {"path": "people.csv", "types": CSV_TYPES}


def _gz(folder: Path, table: pa.Table) -> dict[str, Any]:
    write_csv(folder / "people.csv.gz", table)
    return {"path": "people.csv.gz", "types": CSV_TYPES}


def _hive(folder: Path, table: pa.Table) -> dict[str, Any]:
    for number, part in enumerate((table.slice(0, len(table) // 2), table.slice(len(table) // 2))):
        write_parquet(folder / "people" / f"part={number}", part)
    return {"path": "people/*/*.parquet", "hive": True}


def _arrow(folder: Path, table: pa.Table) -> dict[str, Any]:
    with ipc.new_file(folder / "people.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return {"path": "people.arrow"}


def _duckdb(folder: Path, table: pa.Table) -> dict[str, Any]:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return {"path": "people.duckdb", "table": "people"}


SOURCES: dict[str, Callable[[Path, pa.Table], dict[str, Any]]] = {
    "parquet": _parquet,
    "csv": _csv,
    "csv.gz": _gz,
    "hive": _hive,
    "arrow": _arrow,
    "duckdb": _duckdb,
}


class Case(NamedTuple):
    """A method, a kind of source and a kind of output."""

    method: str
    source: str
    target: str

    def write(self, folder: Path, table: pa.Table | None = None) -> None:
        """Write source and job into a folder."""
        folder.mkdir(parents=True)
        source = SOURCES[self.source](folder, people(ROWS) if table is None else table)
        columns = job_of()["columns"]
        if self.source == "hive":
            columns["identifiers"] = ["person", "part"]
        suppression = {"limit": 0.05} if not self.method.startswith("mondrian") else None
        job = job_of(
            source=source, columns=columns, method=METHODS[self.method], output=TARGETS[self.target] or None, suppression=suppression
        )
        write_job(folder, job)


def drawn(random: Random) -> list[Case]:
    """Return all cases in an order by chance, in which every method, source and target comes early."""
    cases = [Case(*one) for one in product(METHODS, SOURCES, TARGETS)]
    random.shuffle(cases)
    seen, first = set[tuple[str, str]](), []
    for case in cases:
        parts = set(case._asdict().items())
        if not parts <= seen:
            seen |= parts
            first.append(case)
    return first + [case for case in cases if case not in first]


def releases(folder: Path) -> list[Path]:
    """Return the releases of a folder's job."""
    return sorted(path for path in (folder / "releases").glob("people-*") if path.is_dir())


def content(release: Path) -> list[str]:
    """Return the digests of a release's data files; of a database, those of its rows."""
    found = []
    for path in sorted((release / "data").rglob("*")):
        if path.is_file():
            found.append(f"{path.relative_to(release)} {_digest(path)}")
    return found


def _digest(path: Path) -> str:
    if path.suffix != ".duckdb":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with duckdb.connect(str(path), read_only=True) as connection:
        return hashlib.sha256(repr(connection.execute("SELECT * FROM release").fetchall()).encode()).hexdigest()


def left_behind(folder: Path) -> list[str]:
    """Return what no run may leave that ended: spill, halves of files, staging."""
    work = folder / ".skald" / "people"
    found = [*work.glob("spill"), *work.rglob(".*.part"), *work.glob("verify-*"), *(folder / "releases").glob(".staging*")]
    return [str(path.relative_to(folder)) for path in found]
