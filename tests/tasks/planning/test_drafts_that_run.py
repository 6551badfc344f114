"""A draft says that it does not run yet where it does not, and runs everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.errors.base import SkaldError
from schemas.job.job import load_job
from schemas.relational.tables_job import load_tables_job
from tasks.planning.draft import draft_job
from tasks.planning.open_sources import SourceOptions
from tasks.planning.plan import make_plan
from tasks.relational.draft import draft_tables
from tasks.relational.plan import plan_tables

ROWS = 30
NAMES = [f"Nobody {row}" for row in range(ROWS)]
CODES: Mapping[str, Any] = {"name": NAMES, "token": [f"T{row:05d}" for row in range(ROWS)]}
NO_COLUMN, TOO_FEW = "It does not run yet: no column seems", "It does not run yet: k = 5 cannot be met by "


def written(folder: Path, columns: Mapping[str, Any]) -> Path:
    """Write a table of one file into a folder."""
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "0.parquet")
    return folder


@pytest.mark.parametrize(
    ("columns", "known"),
    [
        pytest.param({"age": [33] * ROWS, "dx": ["flu"] * ROWS}, {"age", "dx"}, id="one value each"),
        pytest.param({**CODES, "age": pa.array([33, None] * (ROWS // 2))}, {"age"}, id="one value and null"),
        pytest.param({"age": [33] * ROWS, "dx": ["flu", "gout"] * (ROWS // 2)}, {"dx"}, id="of two values before of one"),
    ],
)
def test_a_column_of_one_value_is_taken_for_known_where_there_is_no_other(tmp_path: Path, columns: dict[str, Any], known: set[str]) -> None:
    drafted = draft_job(SourceOptions((str(written(tmp_path / "in", columns)),)), tmp_path / "job.yaml")
    job = load_job(tmp_path / "job.yaml")
    assert {qid.name for qid in job.columns.quasi_identifiers} == known
    assert drafted.obstacle == ""
    assert "# It runs as it is." in (tmp_path / "job.yaml").read_text()
    assert make_plan(job).records == ROWS
    # 1/12 and 1/6 are more than 0.08 and 0.16.
    assert f"the risk of each is at most 1 in {job.privacy.k}" in (tmp_path / "job.yaml").read_text()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        pytest.param(CODES, NO_COLUMN, id="names and codes alone"),
        pytest.param({"age": [33, 33, 34, 34]}, f"{TOO_FEW}4 records", id="too few records"),
        pytest.param({"patient_id": [1, 1, 2, 2, 3, 3] * 20, "age": [33, 34] * 60}, "", id="enough records"),
    ],
)
def test_a_draft_says_that_it_does_not_run_yet_exactly_where_it_does_not(tmp_path: Path, columns: dict[str, Any], sentence: str) -> None:
    drafted = draft_job(SourceOptions((str(written(tmp_path / "in", columns)),)), tmp_path / "job.yaml")
    assert (drafted.obstacle or "It runs as it is.") in (tmp_path / "job.yaml").read_text()
    assert drafted.obstacle.startswith(sentence)
    if sentence:
        with pytest.raises(SkaldError, match=r"quasi_identifiers|k = 5 cannot be met"):
            make_plan(load_job(tmp_path / "job.yaml"))
    else:
        assert drafted.obstacle == ""
        make_plan(load_job(tmp_path / "job.yaml"))


def visits(rows: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of visits, one for each person."""
    return {"visit_id": range(rows), "person_id": range(rows), **columns}


@pytest.mark.parametrize(
    ("person", "visit", "known"),
    [
        pytest.param({"token": CODES["token"]}, {"ward": ["a", "b"] * (ROWS // 2)}, ("visit", "ward"), id="in the other table"),
        pytest.param({"score": [1] * ROWS}, {"lab": ["a", "b"] * (ROWS // 2)}, ("visit", "lab"), id="of two values before of one"),
        pytest.param({"score": [1] * ROWS}, {"token": CODES["token"]}, ("person", "score"), id="one value"),
    ],
)
def test_a_draft_of_several_tables_without_a_column_that_is_surely_known_runs(
    tmp_path: Path, person: dict[str, Any], visit: dict[str, Any], known: tuple[str, str]
) -> None:
    folders = [written(tmp_path / "person", {"person_id": range(ROWS), **person}), written(tmp_path / "visit", visits(ROWS, visit))]
    drafted = draft_tables(folders, tmp_path / "job.yaml")
    job = load_tables_job(tmp_path / "job.yaml")
    assert [(name, qid.name) for name, table in job.tables.items() for qid in table.columns.quasi_identifiers] == [known]
    assert drafted.obstacle == ""
    # A text that can only be kept or withheld has the remark that it has in a draft of one table.
    assert ("kept or withheld; groups by: skald hierarchy draft" in (tmp_path / "job.yaml").read_text()) == (known[0] == "visit")
    assert plan_tables(job, quick=True).persons == ROWS


@pytest.mark.parametrize(
    ("rows", "person", "sentence"),
    [
        pytest.param(ROWS, {"token": CODES["token"]}, NO_COLUMN, id="codes alone"),
        pytest.param(ROWS, {}, NO_COLUMN, id="keys alone"),
        pytest.param(3, {"age": [33] * 3}, f"{TOO_FEW}3 persons", id="too few persons"),
    ],
)
def test_a_draft_of_several_tables_says_that_it_does_not_run_yet(tmp_path: Path, rows: int, person: dict[str, Any], sentence: str) -> None:
    folders = [written(tmp_path / "person", {"person_id": range(rows), **person}), written(tmp_path / "visit", visits(rows, {}))]
    drafted = draft_tables(folders, tmp_path / "job.yaml")
    assert drafted.obstacle.startswith(sentence)
    text = (tmp_path / "job.yaml").read_text()
    assert f"# {drafted.obstacle} " in text
    assert yaml.safe_load(text)["version"] == 2
