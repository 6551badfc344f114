"""What DuckDB lacks is said as what it is, however its rows are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors.base import StorageError
from schemas.job.job import load_job
from tasks.store.database import connect
from tests.jobs import people, people_job

LATE = "SELECT CASE WHEN row = 400000 THEN error('{}') ELSE row END FROM range(500000) AS rows(row)"
"""Fails when most rows were read."""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Out of Memory Error: could not allocate block", "memory"),
        ("IO Error: Could not write file: No space left on device", "No space left on device"),
    ],
)
def test_what_is_lacking_while_rows_are_read_is_told(tmp_path: Path, said: str, told: str) -> None:
    job = load_job(people_job(tmp_path, people(3)))
    with pytest.raises(StorageError, match=told), connect(job, tmp_path / "spill") as database:
        for _ in database.sql(LATE.format(said)).to_arrow_reader(1000):
            pass


def test_errors_of_the_system_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), connect(load_job(people_job(tmp_path, people(3))), tmp_path / "spill"):
        (tmp_path / "nowhere").read_bytes()
