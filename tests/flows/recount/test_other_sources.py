"""A source that is not what a release was made of accuses no honest one, and is told apart however alike it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from schemas.job.job import load_job
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import people, people_job, two_column_job, write_parquet

CHANGED = "Whether the records are those of the source was not checked: the source is not what it was when the release was made."


@pytest.mark.ci
def test_from_another_source_no_t_is_measured(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.table({"q": ["a", "a", "b", "b"] * 5, "s": ["flu", "gout"] * 10})
    job = two_column_job(tmp_path, table, {"prefix": [1]}, privacy={"k": 5, "t": {"s": {"t": 0.1}}})
    release = anonymise(job).folder
    assert verify_release(load_job(job), release)[0].measured["t"] == {"s": 0}
    write_parquet(tmp_path / "people", table.slice(0, 1))
    found, _ = verify_release(load_job(job), release)
    assert "t" not in found.measured
    assert (found.unproved, found.unverified) == ((CHANGED,), ("t-closeness of 's' was not counted: it is measured from the source.",))


@pytest.mark.ci
def test_of_two_files_of_equal_content_none_may_be_missing(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, people(200))
    path = tmp_path / "people" / "000.parquet"
    shutil.copyfile(path, path.with_stem("001"))
    release = anonymise(job).folder
    found, _ = verify_release(load_job(job), release)
    assert (found.source, found.unproved) == (400, ())
    path.unlink()
    found, _ = verify_release(load_job(job), release)
    assert (found.source, found.unproved) == (None, (CHANGED,))
