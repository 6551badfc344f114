"""``skald hierarchy``: files that only their owner reads, counts on the screen, and a job that runs with them."""

from __future__ import annotations

import csv
import stat
from copy import deepcopy
from pathlib import Path

import pyarrow as pa
import pytest

from tests.conftest import CommandLine
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables
from tests.jobs import people_job, two_column_job, write_csv, write_parquet

CANARY = "canary-7f3"
TABLE = pa.table({"q": ["Cook", "Cook", "Nurse", "Nurse", CANARY] * 40, "s": ["x", "y"] * 100})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter=";"))


@pytest.mark.ci
def test_a_draft_is_private_tells_counts_alone_and_serves_a_job(direct: CommandLine) -> None:
    write_parquet(direct.folder / "people", TABLE)
    done = direct("hierarchy", "draft", "people", "--column", "q", "--out", "q.csv")
    assert done.returncode == 0, done.stderr
    assert "3 values of 200 records" in done.stdout
    assert CANARY not in done.stdout + done.stderr
    assert mode(direct.folder / "q.csv") == 0o600
    assert {row[0] for row in rows(direct.folder / "q.csv")} == {"Cook", "Nurse", CANARY}
    two_column_job(direct.folder, TABLE, {"csv": "q.csv"})
    assert direct("run", "job.yaml").returncode == 0
    again = direct("hierarchy", "draft", "people", "--column", "q", "--out", "q.csv")
    assert again.returncode == 2
    assert "stays as it is" in again.stderr


def test_a_draft_of_csv_is_that_of_parquet(direct: CommandLine) -> None:
    table = pa.table({"age": list(range(100)), "zip": [f"{number:05d}" for number in range(100)]})
    write_parquet(direct.folder / "people", table)
    write_csv(direct.folder / "people.csv", table)
    for column in ("age", "zip"):
        for source, out in (("people", "a"), ("people.csv", "b")):
            assert direct("hierarchy", "draft", source, "--column", column, "--out", f"{column}-{out}.csv").returncode == 0
        assert rows(direct.folder / f"{column}-a.csv") == rows(direct.folder / f"{column}-b.csv")


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_what_is_missing_is_added_at_the_end_and_the_job_runs_then(direct: CommandLine, end: str) -> None:
    two_column_job(direct.folder, TABLE, {"csv": "q.csv"})
    before = f"Cook;Food;*{end or chr(10)}Nurse;Health;*{end}"
    (direct.folder / "q.csv").write_text(before, newline="")
    (direct.folder / "q.csv").chmod(0o644)
    lacking = direct("run", "job.yaml")
    assert lacking.returncode == 2
    assert "skald hierarchy complete" in lacking.stderr
    done = direct("hierarchy", "complete", "job.yaml", "--column", "q")
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert "1 line added at the end, for 40 records" in done.stdout
    assert mode(direct.folder / "q.csv") == 0o600
    assert (direct.folder / "q.csv").read_bytes().decode().startswith(before)
    assert rows(direct.folder / "q.csv")[-1] == [CANARY, "other", "*"]
    assert direct("run", "job.yaml").returncode == 0
    again = direct("hierarchy", "complete", "job.yaml", "--column", "q")
    assert "Nothing was changed" in again.stdout


def test_a_file_that_is_read_without_groups_is_not_completed(direct: CommandLine) -> None:
    two_column_job(direct.folder, TABLE, {"csv": "q.csv"})
    before = "Cook,Food,*\nNurse,Health,*\n"
    (direct.folder / "q.csv").write_text(before)
    done = direct("hierarchy", "complete", "job.yaml", "--column", "q")
    assert done.returncode == 2
    assert "check the delimiter that the job gives" in done.stderr
    assert (direct.folder / "q.csv").read_text() == before


def test_all_files_that_cannot_be_read_are_told_at_once(direct: CommandLine) -> None:
    qids = [{"name": name, "hierarchy": {"csv": f"{name}.csv"}} for name in "qs"]
    people_job(direct.folder, TABLE, columns={"quasi_identifiers": qids})
    for command in ("run", "plan"):
        done = direct(command, "job.yaml")
        assert done.returncode == 2
        assert all(f"hierarchy file '{name}.csv' does not exist" in done.stderr.replace("\n", " ") for name in "qs"), done.stderr


def test_a_picture_is_private_and_writes_no_value(direct: CommandLine) -> None:
    (direct.folder / "q.csv").write_text(f"Cook;Food;*\nNurse;Health;*\n{CANARY};Health;*\n")
    two_column_job(direct.folder, TABLE, {"csv": "q.csv"})
    done = direct("hierarchy", "show", "job.yaml", "--column", "q", "--to", "q.svg")
    assert done.returncode == 0, done.stderr
    picture = (direct.folder / "q.svg").read_text()
    assert mode(direct.folder / "q.svg") == 0o600
    assert "Food" in picture
    assert "120 records" in picture
    assert CANARY not in picture + done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("draft", "people", "--column", "r", "--out", "x.csv"), "no column 'r'"),
        (("complete", "job.yaml", "--column", "s"), "is no quasi-identifier"),
        (("complete", "job.yaml", "--column", "q"), "adds to CSV files"),
        (("show", "job.yaml", "--column", "r"), "is no quasi-identifier"),
    ],
)
def test_what_cannot_be_done_is_told(direct: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    two_column_job(direct.folder, TABLE, {"prefix": [1]})
    done = direct("hierarchy", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.ci
def test_what_is_missing_in_one_of_several_tables_is_added_and_the_job_runs_then(direct: CommandLine) -> None:
    of_tables = deepcopy(JOB["tables"])
    of_tables["visit"]["columns"]["quasi_identifiers"][0]["hierarchy"] = {"csv": "ward.csv"}
    hospital_job(direct.folder, hospital_tables(150, 3), tables=of_tables)
    (direct.folder / "ward.csv").write_text("a;inner;*\nb;inner;*\n")
    refused = direct("run", "job.yaml")
    assert (refused.returncode, "'ward': 1 of 3 values" in refused.stderr) == (2, True), refused.stderr
    unknown = direct("hierarchy", "complete", "job.yaml", "--column", "ward")
    assert (unknown.returncode, "(did you mean 'visit.ward'?): write" in unknown.stderr, "person, visit, condition" in unknown.stderr) == (
        2,
        True,
        True,
    )
    done = direct("hierarchy", "complete", "job.yaml", "--column", "visit.ward")
    assert (done.returncode, "1 line added at the end" in done.stdout) == (0, True), done.stderr
    assert [row[0] for row in rows(direct.folder / "ward.csv")] == ["a", "b", "c"]
    drawn = direct("hierarchy", "show", "job.yaml", "--column", "visit.ward", "--to", "ward.svg")
    assert (drawn.returncode, (direct.folder / "ward.svg").exists()) == (0, True), drawn.stderr
    assert direct("run", "job.yaml").returncode == 0


@pytest.mark.ci
def test_what_the_hierarchy_of_closeness_lacks_is_added_and_the_job_runs_then(direct: CommandLine) -> None:
    close = {"t": 1, "distance": "hierarchical", "hierarchy": {"csv": "s.csv"}}
    two_column_job(direct.folder, TABLE, {"tree": {"*": ["Cook", "Nurse", CANARY]}}, privacy={"k": 2, "t": {"s": close}})
    (direct.folder / "s.csv").write_text("x;one;*\nz;other;*\n")
    refused = direct("run", "job.yaml")
    assert (refused.returncode, "skald hierarchy complete" in refused.stderr) == (2, True), refused.stderr
    done = direct("hierarchy", "complete", "job.yaml", "--column", "s")
    assert (done.returncode, "1 line added at the end" in done.stdout) == (0, True), done.stderr
    assert [row[0] for row in rows(direct.folder / "s.csv")] == ["x", "z", "y"]
    assert direct("run", "job.yaml").returncode == 0
