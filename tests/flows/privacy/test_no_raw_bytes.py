"""No byte of a value that is not published is in a data file: neither in a page nor in a dictionary nor in the metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import Anonymise
from tests.jobs import data_files, people_job

ROWS = 600
TOWNS = [f"<town {number:03d}>" for number in range(40)]
REGIONS = [f"<region {number}>" for number in range(4)]
NUMBERS = [0x0011223344550000 + 257 * number for number in range(40)]
COLUMNS = {
    "quasi_identifiers": [
        {"name": "town", "hierarchy": {"tree": {region: TOWNS[number::4] for number, region in enumerate(REGIONS)}}},
        {"name": "number", "hierarchy": {"widths": [1, 2570]}},
    ],
    "sensitive": ["note"],
    "insensitive": ["code"],
}


class Uncompressed(pq.ParquetWriter):
    """Writes the pages as they are, so that the test can look into them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **(options | {"compression": "none"}))


def table() -> pa.Table:
    """Records of which some are rare at every level but the last; text comes as dictionaries that all row groups share."""
    random = np.random.default_rng(4)
    picked = (random.beta(0.6, 3, ROWS) * len(TOWNS)).astype(int)
    return pa.table(
        {
            "town": pa.array([TOWNS[number] for number in picked]).dictionary_encode(),
            "number": pa.array([NUMBERS[number] for number in picked], pa.int64()),
            "note": pa.array([f"<note {number:03d}>" for number in range(ROWS)]).dictionary_encode(),
            "code": pa.array([0x0A0B0C0D0E0F0000 + 259 * number for number in range(ROWS)], pa.int64()),
        }
    )


def as_bytes(value: str | int) -> bytes:
    return value.encode() if isinstance(value, str) else value.to_bytes(8, "little")


def values_of(frame: pl.DataFrame) -> set[Any]:
    return {value for column in frame for value in column.drop_nulls().to_list()}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("treatment", ["drop", "mask", "cell"])
@pytest.mark.parametrize(
    ("k", "limit", "node"),
    [(1, 0, (0, 0)), (8, 0.4, (0, 0)), (40, 0.2, None), (200, 0.3, None), (600, 0, (2, 2))],
)
def test_a_file_holds_the_bytes_of_the_values_of_its_own_records_and_of_no_other(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, treatment: str, k: int, limit: float, node: Any
) -> None:
    source = table()
    job = people_job(tmp_path, source, files=2, row_group=90, columns=COLUMNS, name="bytes")
    monkeypatch.setattr(pq, "ParquetWriter", Uncompressed)
    settings = (f"privacy.k={k}", f"suppression.limit={limit}", f"suppression.treatment={treatment}")
    made = anonymise(job, *settings, "rows_per_file=150", "chunk_rows=100")
    assert node in (None, made.manifest.node)
    every = {value for name in source.column_names for value in source[name].to_pylist()}
    files = data_files(made.folder)
    assert len(files) > 2
    for path in files:
        content = path.read_bytes()
        here = values_of(pl.read_parquet(path))
        assert not [value for value in every - here if as_bytes(value) in content]
        # Else the test would look for bytes that are never written.
        assert all(as_bytes(value) in content for value in here & every)
        assert here & every


@pytest.mark.ci
def test_the_cases_cover_suppression_generalisation_and_neither(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, table(), columns=COLUMNS, name="bytes")
    rare = anonymise(job, "privacy.k=8", "suppression.limit=0.4").manifest
    assert (rare.node, rare.suppressed > 0) == ((0, 0), True)
    coarse = anonymise(job, "privacy.k=200", "suppression.limit=0.3").manifest
    assert coarse.node is not None
    assert max(coarse.node) > 0
    assert anonymise(job, "privacy.k=1", "suppression.limit=0").manifest.suppressed == 0
