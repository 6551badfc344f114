"""``import skald``: what a program gets is what the commands give, and it stays a guest in the program's process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skald
from schemas.errors.base import JobError, VerificationError
from schemas.job.job import job_digest, load_job
from schemas.reading.regular_files import given_job, setting_texts
from tasks.store.files import USER_UMASK
from tests.jobs import digests, job_of, people_job
from tests.places import ROOT

LIGHT = """
import sys
import skald
print(*sorted(sys.modules))
"""
HEAVY = {"prefect", "duckdb", "polars", "pandera", "pyarrow", "numpy", "numba", "pydantic", "yaml", "typer", "rich", "pandas"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a job, where the program is."""
    people_job(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def test_a_run_gives_the_id_the_folder_and_the_manifest_of_its_release(here: Path) -> None:
    published = skald.run("job.yaml", {"privacy.k": 7})
    assert published.new
    assert isinstance(published.folder, Path)
    assert published.folder.name == published.release == published.manifest["release"]
    assert published.manifest == json.loads((published.folder / "manifest.json").read_text())
    assert published.manifest["privacy"]["k"] == 7
    assert not skald.run(here / "job.yaml", {"privacy.k": 7}).new


@pytest.mark.slow
def test_a_job_as_a_dict_makes_the_very_release_of_its_file(here: Path) -> None:
    written, given = skald.run("job.yaml"), skald.run(job_of(target="elsewhere", work="other"))
    assert given.release == written.release
    assert given.folder == here / "elsewhere" / given.release
    assert digests(Path(given.folder)) == digests(Path(written.folder))


def test_a_notebook_shows_the_summary_of_the_report(here: Path) -> None:
    published = skald.run("job.yaml")
    shown, page = published._repr_html_(), published.page
    assert shown is not None
    assert page is not None
    for said in ("Verified.", "Records released", f"{published.manifest['released']:,}", published.release):
        assert said in shown
        assert said in page
    assert "<html" not in shown
    assert published.report is not None
    assert published.report["release"] == published.release
    (Path(published.folder) / "report.json").unlink()
    assert published._repr_html_() is None


@pytest.mark.ci
def test_verify_gives_the_counts_and_raises_where_a_byte_is_another(here: Path) -> None:
    published = skald.run("job.yaml")
    assert skald.verify(published.folder, "job.yaml")["classes"] == published.manifest["classes"]
    (Path(published.folder) / "report.html").write_text("altered")
    with pytest.raises(skald.SkaldError) as told:
        skald.verify(published.folder)
    assert isinstance(told.value, VerificationError)


def test_a_plan_is_what_the_command_prints(here: Path) -> None:
    planned = skald.plan("job.yaml", {"privacy.k": 9}, quick=True)
    assert planned["records"] == 400
    assert [qid["name"] for qid in planned["qids"]] == [qid["name"] for qid in job_of()["columns"]["quasi_identifiers"]]
    assert not (here / "releases").exists()


@pytest.mark.parametrize(
    ("job", "settings"),
    [("nowhere.yaml", {}), ("job.yaml", {"privacy.k": 0}), ("job.yaml", {"privacy.k": object()}), ({"name": {1, 2}}, {}), ({None: 1}, {})],
)
def test_whatever_is_wrong_is_an_error_of_ours(here: Path, job: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(skald.SkaldError):
        skald.run(job, settings)


def test_prefect_keeps_no_job_that_is_no_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKALD_DIRECT")
    with pytest.raises(skald.SkaldError, match="Prefect keeps the parameters"):
        skald.run(job_of(), direct=False)


def test_files_of_the_program_keep_the_mode_that_its_umask_gives(here: Path) -> None:
    # A test that ran before in this process may have made its files private.
    before = os.umask(USER_UMASK)
    skald.run("job.yaml")
    with pytest.raises(skald.SkaldError):
        skald.run("nowhere.yaml")
    after = os.umask(before)
    assert after == USER_UMASK


def test_importing_skald_imports_nothing_heavy(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", LIGHT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in done.stdout.split()} & HEAVY


def test_a_folder_with_names_of_ours_breaks_nothing_in_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "__init__.py").write_text("raise SystemExit('not ours')")
    (tmp_path / "tasks.py").write_text("raise SystemExit('not ours')")
    code = "import skald; skald.run('job.yaml')"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "there is no such file" in done.stderr


@pytest.mark.ci
def test_the_module_is_the_command_where_it_is_run(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "skald", "verify", "none", "--job", "none.yaml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no such file" in done.stderr


def test_a_given_job_is_read_as_its_file_is(here: Path) -> None:
    data = job_of() | {"suppression": {"limit": Decimal("0.05")}, "privacy": {"k": np.int64(5)}, "target": Path("releases")}
    data["columns"]["quasi_identifiers"][3]["hierarchy"]["widths"] = (0.5, 10)
    given = load_job(given_job(data, here))
    assert job_digest(given) == job_digest(load_job(here / "job.yaml"))
    assert given.target_path == here / "releases"


def test_texts_that_look_like_numbers_stay_texts() -> None:
    assert setting_texts({"name": "12", "source.null_values": ["0"]}) == ('name="12"', 'source.null_values=["0"]')


def test_a_given_job_shows_nothing_of_itself(here: Path) -> None:
    data = job_of()
    data["columns"]["quasi_identifiers"][0]["hierarchy"] = {"tree": {"*": ["a cell value"]}}
    given = given_job(data, here)
    assert "cell value" not in f"{given} {given!r}"
    with pytest.raises(JobError) as told:
        load_job(given, ("privacy.k=0",))
    assert "cell value" not in str(told.value)
