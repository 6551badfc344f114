"""Columns that some files lack, or hold nothing in, come as what the other files say, of every type."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SourceError
from schemas.job.job import load_job
from tasks.source.extracts import open_run
from tasks.source.reading import read_chunk
from tasks.source.sources import read_source
from tests.jobs import write_job

MOMENT = datetime(2024, 2, 29, 12, 30, 1, 5)
COLUMNS = {
    "text": pa.array(["a", "b", None]),
    "distinct": pa.array([f"note {number}" for number in range(3)]),
    "large text": pa.array(["a", "b", None], pa.large_string()),
    "text view": pa.array(["a", "b", None], pa.string_view()),
    "category": pa.array(["a", "b", None]).dictionary_encode(),
    "integer": pa.array([1, 2**53 + 1, None]),
    "small": pa.array([1, 2, None], pa.int8()),
    "unsigned": pa.array([1, 2**64 - 1, None], pa.uint64()),
    "double": pa.array([0.1, 1e300, None]),
    "float": pa.array([0.5, 1.5, None], pa.float32()),
    "decimal": pa.array([Decimal("0.10"), Decimal("12345678901234567890.12"), None], pa.decimal128(30, 2)),
    "boolean": pa.array([True, False, None]),
    "date": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
    "time": pa.array([time(1), time(23, 59), None], pa.time64("us")),
    "timestamp": pa.array([MOMENT, datetime(9999, 12, 31), None], pa.timestamp("us")),
    "nanoseconds": pa.array([1, 2, None], pa.timestamp("ns")),
    "instant": pa.array([MOMENT.replace(tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
    "binary": pa.array([b"a", b"\0", None]),
}
DRIFT = ["freeze", "evolve"]


def job_of(folder: Path, drift: str, *tables: pa.Table) -> Path:
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    columns = {"quasi_identifiers": [{"name": "h", "hierarchy": {"prefix": [1]}}], "insensitive": "rest"}
    parts = {"version": 1, "name": "t", "source": {"path": "*.parquet", "schema": drift}, "columns": columns, "privacy": {"k": 1}}
    return write_job(folder, parts | {"method": {"name": "skald"}, "memory": "64MB", "target": "out"})


def read(job: Path, column: str, plain: tuple[str, ...] = ()) -> list[Any]:
    with open_run(load_job(job)) as run:
        source = read_source(run)
        batches = [batch for chunk in source.chunks for batch in read_chunk(chunk, ["h", column], plain=plain)]
    assert len({str(batch.schema) for batch in batches}) == 1
    return [value for batch in batches for value in batch.column(column).to_pylist()]


@pytest.mark.ci
@pytest.mark.parametrize("plain", [(), ("v",)])
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("first", [0, 1])
def test_a_column_that_a_file_lacks_is_null_there(tmp_path: Path, name: str, first: int, plain: tuple[str, ...]) -> None:
    whole, lacking = pa.table({"h": ["a"] * 3, "v": COLUMNS[name]}), pa.table({"h": ["b"] * 2})
    found = read(job_of(tmp_path, "evolve", *(whole, lacking)[:: 1 if first else -1]), "v", plain)
    assert found == (COLUMNS[name].to_pylist() + [None] * 2 if first else [None] * 2 + COLUMNS[name].to_pylist())


@pytest.mark.ci
@pytest.mark.parametrize("drift", DRIFT)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_holds_nothing_in_a_file_is_read_as_the_others_type(tmp_path: Path, name: str, drift: str) -> None:
    whole, empty = pa.table({"h": ["a"] * 3, "v": COLUMNS[name]}), pa.table({"h": ["b"] * 2, "v": pa.nulls(2)})
    assert read(job_of(tmp_path, drift, empty, whole), "v") == [None] * 2 + COLUMNS[name].to_pylist()


def test_decimals_among_floats_are_the_floats_of_their_digits(tmp_path: Path) -> None:
    """Arrow's cast makes 0.09999999999999999 of 0.1."""
    digits = [Decimal(number) / 10 for number in range(100)]
    decimals = pa.table({"h": ["a"] * 100, "v": pa.array(digits, pa.decimal128(38, 20))})
    floats = pa.table({"h": ["a"], "v": [0.5]})
    assert read(job_of(tmp_path, "evolve", decimals, floats), "v") == [*(number / 10 for number in range(100)), 0.5]


def test_decimals_of_more_digits_than_floats_hold_are_refused(tmp_path: Path) -> None:
    decimals = pa.table({"h": ["a"], "v": pa.array([Decimal("12345678901234567890.5")], pa.decimal128(38, 1))})
    with pytest.raises(SourceError, match=r"'v' of .* double cannot hold exactly"):
        read(job_of(tmp_path, "evolve", decimals, pa.table({"h": ["a"], "v": [0.5]})), "v")


def test_files_that_are_frozen_still_have_the_same_columns(tmp_path: Path) -> None:
    whole = pa.table({"h": ["a"], "v": [1]})
    for other in (pa.table({"h": ["a"]}), pa.table({"h": ["a"], "v": ["1"]}), pa.table({"h": ["a"], "v": [1], "w": [1]})):
        with pytest.raises(SourceError, match="differ in"):
            read(job_of(tmp_path, "freeze", whole, other), "v")
