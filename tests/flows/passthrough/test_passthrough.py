"""What is published untreated is measured and looked at, and never taken in unnamed where it may tell who people are."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from schemas.errors.refusals import PassthroughError
from tests.conftest import Anonymise, CommandLine
from tests.jobs import PAYLOAD, job_of, people, people_job, released

ROWS = 300
MAILS = pa.array([f"canary{number % 30}@example.org" for number in range(ROWS)])


def rest(**more: Any) -> dict[str, Any]:
    return job_of()["columns"] | {"insensitive": "rest"} | more


def with_mails() -> pa.Table:
    return people(ROWS).append_column("contact", MAILS)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("files", "chunk_rows"), [(1, 1_000_000), (7, 1_000_000), (3, 11)])
def test_figures_are_those_of_a_plain_count_whatever_the_chunks(anonymise: Anonymise, tmp_path: Path, files: int, chunk_rows: int) -> None:
    table = people(ROWS)
    made = anonymise(people_job(tmp_path, table, files=files, chunk_rows=chunk_rows))
    assert made.manifest.suppressed
    # A release tells of its own records; whoever ran the job is told of the source.
    for told, holding in ((made.manifest.passthrough, released(made.folder)), (made.untold.passthrough, pl.from_arrow(table))):
        assert list(told) == PAYLOAD
        for name, one in told.items():
            counts = Counter(holding[name].drop_nulls())
            assert (one.distinct, one.unique_records, one.values) == (len(counts), list(counts.values()).count(1), counts.total())
            assert one.looked_at == one.distinct


@pytest.mark.parametrize("last", ["1", "2"])
def test_what_is_not_a_number_is_no_value_whether_records_are_suppressed_or_not(anonymise: Anonymise, tmp_path: Path, last: str) -> None:
    numbers = [math.nan, math.nan, 0.0, -0.0, 1.5, None, 2.0, 2.0, 2.0]
    columns: dict[str, Any] = {"person": "none", "quasi_identifiers": [{"name": "zip", "hierarchy": {"prefix": [1]}}], "insensitive": ["x"]}
    table = pa.table({"zip": [*"11111111", last], "x": numbers})
    made = anonymise(people_job(tmp_path, table, columns=columns, privacy={"k": 2}, suppression={"limit": 0.2}), "method.node=[0]")
    one, dropped = made.manifest.passthrough["x"], int(last == "2")
    assert made.manifest.suppressed == dropped
    assert (one.distinct, one.unique_records, one.values) == (3, 1, 6 - dropped)


def test_figures_of_shared_values_are_those_of_the_files_where_nobody_has_the_rarest(anonymise: Anonymise, tmp_path: Path) -> None:
    """A value of no person is the rest, which k persons must have."""
    values = ["acne"] * 2 + ["gout"] * 4 + ["flu"]
    table = pa.table({"who": [*"abcdef", None], "zip": ["1"] * 7, "s": values})
    columns: dict[str, Any] = {"person": "who", "identifiers": ["who"], "sensitive": [{"name": "s", "publish": "shared"}]}
    columns["quasi_identifiers"] = [{"name": "zip", "hierarchy": {"prefix": [1]}}]
    made = anonymise(people_job(tmp_path, table, columns=columns, privacy={"k": 2}, suppression={"limit": 0}))
    assert Counter(released(made.folder)["s"]) == {"gout": 4, "other": 3}
    one = made.manifest.passthrough["s"]
    assert (one.distinct, one.unique_records, one.values, one.looked_at) == (2, 0, 7, 2)


@pytest.mark.ci
def test_what_is_treated_or_left_out_is_not_among_them(anonymise: Anonymise, tmp_path: Path) -> None:
    columns = job_of()["columns"]
    columns["identifiers"] = ["person", "note"]
    columns["insensitive"] = ["score", "visits"]
    made = anonymise(people_job(tmp_path, columns=columns))
    assert list(made.manifest.passthrough) == ["disease", "score", "visits"]


def test_the_rest_takes_in_neither_identifiers_nor_what_is_nearly_unique(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, with_mails(), columns=rest(identifiers=[]))
    with pytest.raises(PassthroughError) as refused:
        anonymise(job)
    said = str(refused.value)
    assert refused.value.exit_code == 2
    assert "'person': nearly unique" in said
    assert "'contact': e-mail addresses" in said
    assert "canary" not in said
    assert not list((tmp_path / "releases").glob("*"))


def test_plan_refuses_what_a_run_would(direct: CommandLine, tmp_path: Path) -> None:
    people_job(tmp_path, with_mails(), columns=rest())
    for command in ("plan", "run"):
        done = direct(command, "job.yaml")
        assert (done.returncode, "'contact': e-mail addresses" in done.stderr) == (2, True)


@pytest.mark.ci
def test_by_name_it_is_published_with_a_warning_and_no_maximum_risk_is_claimed(direct: CommandLine, tmp_path: Path) -> None:
    columns = job_of()["columns"]
    columns["insensitive"].append("contact")
    columns["accept_untreated"] = True
    people_job(tmp_path, with_mails(), columns=columns, privacy={"k": 12}, suppression={"limit": 1})
    planned = " ".join(direct("plan", "job.yaml").stdout.split())
    assert "contact: 30 values, 0 records alone" in planned
    assert "Column 'contact' is published as it is and looks like: e-mail addresses" in planned
    done = direct("run", "job.yaml", "--json")
    manifest = json.loads(done.stdout)
    assert done.returncode == 0
    assert manifest["passthrough"]["contact"] | {"values": 0} == {
        "distinct": 30, "unique_records": 0, "values": 0, "looked_at": 30, "reasons": ["e-mail addresses"],
    }  # fmt: skip
    assert "Warning: Column 'contact'" in done.stderr
    folder = tmp_path / "releases" / manifest["release"]
    report = json.loads((folder / "report.json").read_text())
    assert report["maximum_risk"] == (
        "No maximum risk is claimed: a column published besides the quasi-identifiers may tell who people are ('contact')."
    )
    [linkability] = [one for one in report["criteria"] if one["name"] == "Linkability"]
    assert not linkability["kept"]
    assert any("'contact'" in figure and "join" in figure for figure in linkability["figures"])
    assert any("'contact'" in warning for warning in report["came_out"]["warnings"])
    page = (folder / "report.html").read_text()
    assert "EMA" not in page
    assert "e-mail addresses" in page
    assert not [path for path in folder.glob("*.*") if "canary" in path.read_text()]
    assert "EMA" not in direct("run", "job.yaml").stdout


@pytest.mark.ci
def test_a_maximum_risk_is_claimed_where_nothing_was_seen(anonymise: Anonymise, tmp_path: Path) -> None:
    columns = job_of()["columns"] | {"accept_untreated": True}
    made = anonymise(people_job(tmp_path, columns=columns, privacy={"k": 12}, suppression={"limit": 1}))
    assert not [name for name, one in made.manifest.passthrough.items() if one.reasons]
    assert "EMA" in json.loads((made.folder / "report.json").read_text())["maximum_risk"]


def test_a_number_that_each_person_keeps_is_refused_where_persons_are_named(anonymise: Anonymise, tmp_path: Path) -> None:
    table = people(ROWS)
    table = table.set_column(0, "person", pa.array([number % 100 for number in range(ROWS)]))
    table = table.append_column("file", pa.array([f"f{number % 100}" for number in range(ROWS)]))
    assert anonymise(people_job(tmp_path / "records", table, columns=rest())).new
    with pytest.raises(PassthroughError, match="'file': nearly unique"):
        anonymise(people_job(tmp_path / "persons", table, columns=rest(person="person")))


@pytest.mark.ci
def test_only_new_files_are_looked_through(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, files=3, chunk_rows=150)
    anonymise(job)
    folder = next(tmp_path.glob(".skald/*/artifacts/values"))
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert len(before) == 3
    people_job(tmp_path / "more", people(100, seed=9))
    (tmp_path / "more" / "people" / "000.parquet").rename(tmp_path / "people" / "new.parquet")
    anonymise(job)
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert len(after) == 4
    assert after | before == after
