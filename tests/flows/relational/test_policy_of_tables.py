"""The floors of a policy hold of every table: what is never published, and how much may be taken out."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.tables import tables
from schemas.errors.refusals import PolicyError
from schemas.relational.tables_job import load_tables_job
from tasks.relational.making.reading import open_tables, read_tables
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables

pytestmark = pytest.mark.ci
HASH = {"identifiers": [{"name": "person_id", "treatment": {"hash": {"key": {"env": "KEY"}}}}]}


def job_under(folder: Path, monkeypatch: pytest.MonkeyPatch, policy: dict[str, Any], columns: dict[str, Any], **parts: Any) -> Path:
    """Write a job of which some tables have other columns, and put a policy in force."""
    spec = deepcopy(JOB["tables"])
    for name, roles in columns.items():
        spec[name]["columns"] |= roles
    (folder / "policy.yaml").write_text(yaml.safe_dump({"version": 1} | policy))
    monkeypatch.setenv("SKALD_POLICY", str(folder / "policy.yaml"))
    monkeypatch.setenv("KEY", "0123456789abcdef" * 4)
    return hospital_job(folder / "job", hospital_tables(20, 1), tables=spec, **parts)


def faults(path: Path) -> list[str]:
    """Return the points in which a job is below the policy, those of its sources' columns too."""
    job = load_tables_job(path)
    try:
        with open_tables(job) as run:
            read_tables(run, job)
    except PolicyError as error:
        assert error.exit_code == 2
        return list(error.faults)
    return []


@pytest.mark.parametrize(("columns", "banned", "named"), [
    ({"person": HASH}, ["person_id"], ["person_id"]),
    ({"person": HASH}, ["PERSON*", "visit_id"], ["person_id"]),
    ({"person": HASH}, ["visit_id"], []),
    ({}, ["person_id", "visit_id"], []),
    ({}, ["age"], ["age"]),
    ({}, ["ward", "icd", "nights"], ["ward", "nights", "icd"]),
    ({"visit": {"insensitive": "rest"}}, ["Night?"], ["nights"]),
    ({"visit": {"insensitive": "rest"}, "condition": {"sensitive": [], "insensitive": "rest"}}, ["icd", "nights"], ["nights", "icd"]),
    ({"visit": {"insensitive": [], "withheld": ["nights"]}}, ["nights"], []),
], ids=lambda value: "-".join(value) if isinstance(value, list | dict) else value)  # fmt: skip
def test_what_is_never_published_has_no_place_in_any_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any], banned: list[str], named: list[str]
) -> None:
    path = job_under(tmp_path, monkeypatch, {"never_published": banned}, columns)
    found = faults(path)
    assert [fault.split("'")[1] for fault in found] == named
    assert all("is never to be published" in fault for fault in found)
    assert all("leave the treatment of the unit's key out" in fault for fault in found if "'person_id'" in fault)


def test_a_reference_that_bears_lasting_pseudonyms_is_banned_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = hospital_tables(20, 1)
    source["visit"] = source["visit"].rename_columns({"person_id": "ssn"})
    job = job_under(tmp_path, monkeypatch, {"never_published": ["ssn"]}, {"person": HASH})
    spec = yaml.safe_load(job.read_text())["tables"]
    spec["visit"]["references"] = {"ssn": "person"}
    for columns, many in ((HASH, 1), ({"identifiers": []}, 0)):
        spec["person"]["columns"] |= columns
        path = hospital_job(tmp_path / f"of {many}", source, tables=spec)
        assert [fault.split("'")[1] for fault in faults(path)] == ["ssn"] * many


def test_rows_that_may_be_withheld_are_bounded_as_persons_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, suppression = {"suppression": {"limit": 0.05}}, {"limit": 0.05, "rows": 0.05}
    path = job_under(tmp_path, monkeypatch, policy, {}, suppression=suppression)
    assert faults(path) == []
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"suppression": suppression | {"rows": 0.06}}))
    assert faults(path) == ["suppression.rows is 0.06, and the policy allows 0.05 at most"]
    # A bound of rows is a choice of the job, as most_records is for one table.
    bounded = yaml.safe_load(path.read_text()) | {"suppression": suppression}
    bounded["tables"]["visit"]["rows"] = {"most": 1}
    path.write_text(yaml.safe_dump(bounded))
    assert faults(path) == []


def test_every_point_is_told_once_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {"privacy": {"k": 5}, "suppression": {"limit": 0.05}, "never_published": ["person_id", "age", "ward"]}
    path = job_under(tmp_path, monkeypatch, policy, {"person": HASH}, suppression={"limit": 0.3, "rows": 0.3})
    with pytest.raises(PolicyError, match="in 6 points") as refused:
        tables(path, ())
    assert len({*refused.value.faults}) == 6
    assert not (path.parent / ".skald").exists()
    assert not (path.parent / "releases").exists()
