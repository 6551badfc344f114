"""Spellings of one value: told of where a model counts them, and one value where the job says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.job.columns import Columns
from tests.conftest import CommandLine
from tests.jobs import released, write_job

SPELLINGS = ["HIV", "hiv", "HIV ", " HIV", "N/A", ""]
EVERY = ["case", "space", "empty"]
JOB: dict[str, Any] = {
    "version": 1,
    "name": "t",
    "source": {"path": "p.parquet"},
    "columns": {"person": "none", "quasi_identifiers": [{"name": "h", "hierarchy": {"tree": {"*": ["a", "b"]}}}], "sensitive": ["dx"]},
    "privacy": {"k": 3, "l": {"dx": {"distinct": 3}}},
    "suppression": {"limit": 0},
    "method": {"name": "skald"},
    "memory": "256MB",
    "target": "out",
}


def job_of(folder: Path, dx: list[str | None], h: list[str] | None = None, **columns: Any) -> Path:
    folder.mkdir(exist_ok=True)
    pl.DataFrame({"h": h or ["a"] * len(dx), "dx": dx}).write_parquet(folder / "p.parquet")
    privacy = columns.pop("privacy", JOB["privacy"])
    return write_job(folder, JOB | {"columns": JOB["columns"] | columns, "privacy": privacy})


def sensitive(*steps: str) -> dict[str, Any]:
    return {"sensitive": [{"name": "dx", "normalise": list(steps)}]}


def test_spellings_that_a_model_counts_are_told_of_by_counts(direct: CommandLine, tmp_path: Path) -> None:
    done = direct("run", job_of(tmp_path / "j", SPELLINGS * 3))
    assert done.returncode == 0
    assert "'dx' has 3 values that differ from another only in case or blanks and 2 values that say that nothing is known" in done.stderr
    assert "HIV" not in done.stderr


WHOSE = {"person": "who", "identifiers": ["who"]}


@pytest.mark.parametrize("chunk_rows", [1000, 2])
def test_persons_that_differ_only_in_spelling_are_told_of_by_counts(direct: CommandLine, tmp_path: Path, chunk_rows: int) -> None:
    job = job_of(tmp_path / "j", ["x"] * 6, privacy={"k": 3}, **WHOSE)
    who = ["Canary", "canary ", "Other", "other", " ", "-"]
    pl.DataFrame({"h": ["a"] * 6, "dx": ["x"] * 6, "who": who}).write_parquet(tmp_path / "j" / "p.parquet")
    told = direct("plan", job, "--set", f"chunk_rows={chunk_rows}")
    assert told.returncode == 0, told.stderr
    assert "Column 'who' has 2 values that differ from another only in case or blanks and 2 values that say that nothing is" in told.stderr
    assert "anary" not in told.stderr


def test_persons_of_one_spelling_each_and_numbers_are_not_told_of(direct: CommandLine, tmp_path: Path) -> None:
    job = job_of(tmp_path / "j", ["x"] * 6, privacy={"k": 3}, **WHOSE)
    for who in (["a", "A b", "A bc", "ab", None, "a"], [1, 2, 3, 4, 5, 5]):
        pl.DataFrame({"h": ["a"] * 6, "dx": ["x"] * 6, "who": who}).write_parquet(tmp_path / "j" / "p.parquet")
        told = direct("plan", job)
        assert (told.returncode, "Note" in told.stderr) == (0, False), told.stderr


def test_spellings_that_are_one_value_are_one_to_l(direct: CommandLine, tmp_path: Path) -> None:
    done = direct("run", job_of(tmp_path / "j", SPELLINGS * 3, **sensitive(*EVERY)))
    assert done.returncode == 3
    assert not (tmp_path / "j" / "out" / "CURRENT").exists()


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("chunk_rows", [1000, 4])
def test_what_is_published_is_what_is_read(direct: CommandLine, tmp_path: Path, chunk_rows: int) -> None:
    job = job_of(tmp_path / "j", ["HIV", "hiv ", "Flu", "N/A", "gout", None] * 3, **sensitive(*EVERY))
    done = direct("run", job, "--set", f"chunk_rows={chunk_rows}")
    assert done.returncode == 0, done.stderr
    assert "Note" not in done.stderr
    [release] = [path.parent for path in (tmp_path / "j" / "out").glob("*/manifest.json")]
    assert direct("verify", release, "--job", job).returncode == 0
    found = released(release)["dx"].to_list()
    assert sorted(map(str, found)) == sorted([*["hiv"] * 6, *["flu"] * 3, *["gout"] * 3, *["None"] * 6])


def test_a_quasi_identifier_is_read_without_case_and_blanks_too(direct: CommandLine, tmp_path: Path) -> None:
    qid = {"name": "h", "normalise": ["case", "space"], "hierarchy": {"tree": {"*": ["a", "b"]}}}
    job = job_of(tmp_path / "j", ["x", "y", "z"] * 4, ["A", "a ", " a", "B", "b", "B "] * 2, quasi_identifiers=[qid])
    done = direct("run", job)
    assert done.returncode == 0, done.stderr
    [release] = [path.parent for path in (tmp_path / "j" / "out").glob("*/manifest.json")]
    assert set(released(release)["h"].to_list()) == {"a", "b"}


def test_numbers_are_not_normalised(direct: CommandLine, tmp_path: Path) -> None:
    job = job_of(tmp_path / "j", ["x"] * 6, **sensitive("case"))
    pl.DataFrame({"h": ["a"] * 6, "dx": [1, 2, 3] * 2}).write_parquet(tmp_path / "j" / "p.parquet")
    done = direct("run", job)
    assert done.returncode == 2
    assert "cannot be normalised" in done.stderr


def test_a_job_that_normalises_is_another_job() -> None:
    """And one that does not is the job that it was."""
    plain, spelled, bare = ({**JOB["columns"], "sensitive": [one]} for one in ("dx", sensitive("case")["sensitive"][0], {"name": "dx"}))
    read = [Columns.model_validate(columns) for columns in (plain, spelled, bare)]
    assert [one.sensitive for one in read] == [["dx"]] * 3
    assert [one.normalised for one in read] == [{}, {"dx": ["case"]}, {}]
    assert read[0].canonical() == read[2].canonical() != read[1].canonical()


@pytest.mark.parametrize("steps", [["cases"], ["case", "case"], "case"])
def test_steps_that_are_none_are_faults(direct: CommandLine, tmp_path: Path, steps: object) -> None:
    done = direct("run", job_of(tmp_path / "j", ["x"] * 6, sensitive=[{"name": "dx", "normalise": steps}]))
    assert done.returncode == 2
    assert "normalise" in done.stderr
