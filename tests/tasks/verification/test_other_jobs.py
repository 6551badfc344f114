"""A job that a release was not made of is told from it by what differs, and by its digest alone where nothing does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.job.job import Job, load_job
from schemas.relational.tables_job import load_tables_job
from tasks.release.manifest import keyed_job
from tasks.store.keys import FILE, VARIABLE, create_secret
from tasks.verification.entries import DIGESTS_DIFFER, OTHER, SET, other_job_note, other_tables_job_note
from tests.core.recount.test_classes import manifest
from tests.flows.relational.hospital import hospital_job
from tests.jobs import job_of, write_job
from tests.tasks.recount.test_stated_tables import stated


@pytest.fixture(autouse=True)
def no_secret_but_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def job_in(folder: Path, *, keyed: bool = False, hierarchy: dict[str, Any] | None = None, **privacy: Any) -> Job:
    columns = {"quasi_identifiers": [{"name": "q", "hierarchy": hierarchy or {"prefix": [1]}}], "sensitive": ["s"]}
    job = load_job(write_job(folder, job_of(columns=columns, privacy={"k": 5} | privacy)))
    if keyed:
        job.work_path.mkdir(parents=True)
        create_secret(job.work_path / FILE)
    return job


def note(*apart: str) -> str:
    return f"{OTHER}, or the manifest was changed: {'; '.join(apart)}. {SET}."


@pytest.mark.parametrize(
    ("stated", "apart"),
    [
        ({"privacy": {"k": 4}}, ["privacy.k is 4 in the release and 5 in the job"]),
        ({"method": "mondrian", "privacy": {"k": 4}}, ["method.name is mondrian in the release and skald in the job",
                                                       "privacy.k is 4 in the release and 5 in the job"]),
        ({"privacy": {}}, ["privacy.k is in the job alone"]),
        ({"privacy": {"k": 5, "l": {"s": {"distinct": 2}}}}, ["1 setting of privacy in the release alone"]),
        ({"privacy": {"k": 5, "l": {"s": {"distinct": 2}, "d": {"distinct": 3}}}}, ["2 settings of privacy in the release alone"]),
        ({"privacy": {"k": "name of a person"}}, ["privacy.k is something else in the release and 5 in the job"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("keyed", [False, True])
def test_what_differs_between_a_release_and_a_job_is_named(tmp_path: Path, stated: dict[str, Any], apart: list[str], keyed: bool) -> None:
    assert other_job_note(job_in(tmp_path, keyed=keyed), manifest(**stated)) == note(*apart)


def test_where_nothing_differs_a_keyed_digest_alone_tells(tmp_path: Path) -> None:
    assert other_job_note(job_in(tmp_path / "unkeyed"), manifest()) == ""
    job = job_in(tmp_path / "keyed", keyed=True)
    assert other_job_note(job, manifest()) == note(DIGESTS_DIFFER)
    assert other_job_note(job, manifest(job=keyed_job(job, create_secret(job.work_path / FILE)), privacy={"k": 4})) == ""


def test_no_more_than_three_settings_are_named(tmp_path: Path) -> None:
    job = job_in(tmp_path, l={"s": {"distinct": 3}})
    told = other_job_note(job, manifest(method="mondrian", privacy={"k": 4, "l": {"s": {"distinct": 2}, "d": {"distinct": 2}}}))
    assert told.count(" in the release and ") == 3
    assert "alone" not in told


def test_a_job_whose_hierarchy_is_gone_is_not_the_releases_and_no_digest_is_said_to_differ(tmp_path: Path) -> None:
    job = job_in(tmp_path, keyed=True, hierarchy={"csv": "gone.csv"})
    assert other_job_note(job, manifest()) == ""
    assert other_job_note(job, manifest(privacy={"k": 4})) == note("privacy.k is 4 in the release and 5 in the job")


@pytest.mark.parametrize(("k", "apart"), [(4, ""), (5, note("privacy.k is 5 in the release and 4 in the job"))])
def test_of_several_tables_what_differs_between_a_release_and_a_job_is_named(tmp_path: Path, k: int, apart: str) -> None:
    (tmp_path / "job").mkdir()
    one = load_tables_job(hospital_job(tmp_path / "job", {}))
    assert other_tables_job_note(one, stated(tmp_path / "release", privacy={"k": k, "knows": "all"})) == apart
