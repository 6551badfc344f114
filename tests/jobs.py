"""Small sources and jobs, and a plain reading of their hierarchies to check releases against."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

Label = Callable[[Any], Any]

QIDS = ["sex", "age", "zip", "height", "smoker", "born"]
PAYLOAD = ["disease", "note", "score", "visits"]

JOB: dict[str, Any] = {
    "version": 1,
    "name": "people",
    "source": {"path": "people/*.parquet"},
    "columns": {
        "identifiers": ["person"],
        "quasi_identifiers": [
            {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m", "x"]}}},
            {"name": "age", "hierarchy": {"widths": [1, 5, 10, 40]}},
            {"name": "zip", "hierarchy": {"prefix": [3, 1]}},
            {"name": "height", "hierarchy": {"widths": [0.5, 10], "origin": 150}},
            {"name": "smoker", "hierarchy": {"csv": "smoker.csv"}},
            {"name": "born", "hierarchy": {"date": ["month", "year", "decade"]}},
        ],
        "sensitive": ["disease"],
        "insensitive": ["note", "score", "visits"],
    },
    "privacy": {"k": 5},
    "suppression": {"limit": 0.05},
    "method": {"name": "skald"},
    "memory": "256MB",
    "target": "releases",
}
"""The job of ``people``: one QID of each kind of hierarchy, every type of column."""

WAYS = {"note": "shared", "score": {"microaggregate": 12}, "visits": {"top": 5}}
PUBLISHED = JOB["columns"] | {"sensitive": ["disease", *({"name": name, "publish": way} for name, way in WAYS.items())], "insensitive": []}
"""The columns of ``JOB``, some of them with ``publish``."""

CSV_TYPES = {"person": "integer", "age": "integer", "height": "decimal(4,1)", "smoker": "boolean", "born": "date"}
CSV_TYPES |= {"score": "double", "visits": "integer"}


def people(rows: int, seed: int = 0) -> pa.Table:
    """Return records with nulls in every column but the identifier; values are skewed, so that some records are rare."""
    random = np.random.default_rng(seed)

    def some(values: Sequence[Any], nulls: float = 0.03) -> list[Any]:
        picked = (random.beta(1, 3, rows) * len(values)).astype(int)
        return [None if null else values[index] for index, null in zip(picked, random.random(rows) < nulls, strict=True)]

    columns = {
        "person": pa.array(range(rows), pa.int64()),
        "sex": pa.array(some(["f", "m", "x"]), pa.string()),
        "age": pa.array(some(range(18, 60)), pa.int64()),
        "zip": pa.array(some([f"{number:05d}" for number in range(1000, 40000, 3111)]), pa.string()),
        "height": pa.array(some([Decimal(1500 + 5 * step) / 10 for step in range(60)]), pa.decimal128(4, 1)),
        "smoker": pa.array(some([False, True]), pa.bool_()),
        "born": pa.array(some([date(1960, 1, 1) + timedelta(days=97 * step) for step in range(100)]), pa.date32()),
        "disease": pa.array(some(["flu", "gout", "cough", "measles"]), pa.string()),
        "note": pa.array(some([f"note {number}" for number in range(max(rows // 3, 1))]), pa.string()),
        "score": pa.array(some([number / 7 for number in range(50)]), pa.float64()),
        "visits": pa.array(some(range(9)), pa.int64()),
    }
    return pa.table(columns)


def write_parquet(folder: Path, table: pa.Table, *, files: int = 1, row_group: int = 1000) -> None:
    """Write a table as one or more files of about equal length."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        first, last = len(table) * number // files, len(table) * (number + 1) // files
        pq.write_table(table.slice(first, last - first), folder / f"{number:03d}.parquet", row_group_size=row_group)


def write_csv(path: Path, table: pa.Table, delimiter: str = ",") -> None:
    """Write a table as CSV, nulls as empty fields; compressed if the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow(["" if value is None else str(value).lower() if value in (True, False) else value for value in row.values()])


def write_job(folder: Path, job: Mapping[str, Any]) -> Path:
    """Write a job file, and the one hierarchy file that ``JOB`` needs beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "smoker.csv").write_text("true;*\nfalse;*\n")
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(dict(job), sort_keys=False))
    return path


def job_of(**parts: Any) -> dict[str, Any]:
    """Return ``JOB`` with whole parts replaced; a part that is None is left out."""
    return {key: part for key, part in (deepcopy(JOB) | parts).items() if part is not None}


def people_job(folder: Path, table: pa.Table | None = None, *, files: int = 1, row_group: int = 1000, **parts: Any) -> Path:
    """Write ``people`` and its job into a folder and return the job file."""
    write_parquet(folder / "people", people(400) if table is None else table, files=files, row_group=row_group)
    return write_job(folder, job_of(**parts))


def two_column_job(folder: Path, table: pa.Table, hierarchy: Mapping[str, Any], **parts: Any) -> Path:
    """Write a job with the one QID ``q`` and the one sensitive column ``s``."""
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": hierarchy}], "sensitive": ["s"]}
    given: dict[str, Any] = {"columns": columns, "suppression": {"limit": 0}} | parts
    return people_job(folder, table, **given)


def data_files(release: Path) -> list[Path]:
    """Return the data files of a release."""
    return sorted((release / "data").glob("*.parquet"))


def released(release: Path) -> pl.DataFrame:
    """Read a release."""
    return pl.concat([pl.read_parquet(path) for path in data_files(release)])


def digests(release: Path) -> list[str]:
    """Return the SHA-256 of the data files as they are on disk."""
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in data_files(release)]


def class_sizes(frame: pl.DataFrame, qids: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """Count the equivalence classes record by record."""
    return Counter(frame.select(qids).rows())


def bin_of(width: int, origin: int = 0) -> Label:
    """Return the label of a whole number's bin."""

    def label(value: int) -> str:
        low = (value - origin) // width * width + origin
        return f"[{low} - {low + width - 1}]"

    return label


def decimal_bin_of(width: str, origin: str) -> Label:
    """Return the label of a decimal's bin."""

    def label(value: Decimal) -> str:
        low = (value - Decimal(origin)) // Decimal(width) * Decimal(width) + Decimal(origin)
        return f"[{low} - {low + Decimal(width)})"

    return label


def star(value: Any) -> str:
    """The last level."""
    return "*"


LEVELS: dict[str, list[Label]] = {
    "sex": [lambda value: value, star],
    "age": [lambda value: value, bin_of(5), bin_of(10), bin_of(40), star],
    "zip": [lambda value: value, lambda value: value[:3] + "**", lambda value: value[:1] + "****", star],
    "height": [lambda value: value, decimal_bin_of("0.5", "150"), decimal_bin_of("10", "150"), star],
    "smoker": [lambda value: value, star],
    "born": [
        lambda value: value,
        lambda value: f"{value:%Y-%m}",
        lambda value: f"{value:%Y}",
        lambda value: f"{value:%Y}"[:3] + "0s",
        star,
    ],
}
"""What each level of ``JOB`` publishes for a value that is not null."""


def generalise(table: pa.Table, node: Sequence[int], qids: Sequence[str] = QIDS) -> list[tuple[Any, ...]]:
    """Return the published QIDs of every record at a node, read off the hierarchies value by value."""
    columns = []
    for qid, level in zip(qids, node, strict=True):
        label, top = LEVELS[qid][level], level == len(LEVELS[qid]) - 1
        columns.append([label(value) if value is not None or top else None for value in table[qid].to_pylist()])
    return list(zip(*columns, strict=True))
