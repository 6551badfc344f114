"""Of a release with more quasi-identifiers than one statement looks up, every column is held against the source beside all others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from tasks.recount.original import original_of
from tasks.recount.recount import recount
from tests.conftest import Anonymise
from tests.jobs import data_files, people_job, released

COUNT, ROWS = 36, 240
"""More columns than are looked up at once, twice over."""
NAMES = [f"q{number:02d}" for number in range(COUNT)]


def table() -> pa.Table:
    """People of six kinds: each column is one of three numbers in a wide bin, and tells the kinds apart in its own way."""
    kinds, random = np.arange(ROWS) % 6, np.random.default_rng(2)
    columns = {name: 10 * ((kinds * (number + 1) // 2) % 3) + random.integers(0, 10, ROWS) for number, name in enumerate(NAMES)}
    return pa.table({**columns, "s": [f"illness {kind % 4}" for kind in kinds.tolist()]})


@pytest.fixture(scope="module")
def job(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide")
    qids = [{"name": name, "hierarchy": {"widths": [10]}} for name in NAMES]
    given = {"columns": {"quasi_identifiers": qids, "sensitive": ["s"]}, "suppression": {"limit": 0}}
    path = people_job(folder, table(), method={"name": "skald", "node": [1] * COUNT}, **given)
    anonymise(path)
    return path


def recounted(job: Path, folder: Path, moved: Sequence[str]) -> str:
    """Return what is wrong with the release when some columns are given to other records."""
    release = next((job.parent / "releases").glob("people-*"))
    frame = released(release).with_columns(pl.col(list(moved)).reverse()) if moved else released(release)
    path = folder / "data" / "moved.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table(frame.to_arrow()).cast(pq.read_schema(data_files(release)[0])), path)
    loaded = load_job(job)
    try:
        found = recount(loaded, [path], folder / "spill", "it", original_of(loaded))
    except VerificationError as error:
        return "\n".join(error.faults)
    assert (found.records, found.source) == (ROWS, ROWS)
    return ""


@pytest.mark.ci
def test_a_release_of_many_columns_is_of_its_source(job: Path, tmp_path: Path) -> None:
    assert recounted(job, tmp_path, ()) == ""


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("moved", [["s"], NAMES[:3], NAMES[15:17], NAMES[-2:]], ids=["beside", "first", "between", "last"])
def test_columns_of_other_records_are_noticed_wherever_they_stand(job: Path, tmp_path: Path, moved: list[str]) -> None:
    assert "together as no record of the source does" in recounted(job, tmp_path, moved)
