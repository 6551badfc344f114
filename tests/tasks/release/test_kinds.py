"""A job and a release of different kinds, one table and several, are told apart by every command before anything is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.errors.base import StorageError
from tasks.release.manifest import is_of_tables_as_its_job
from tests.conftest import CommandLine

ONE, SEVERAL, BROKEN = "version: 1\nsource: {path: a.csv}\n", "version: 2\ntables: {}\n", "version: ["
MANIFESTS = {"one table": {"release": "a-1"}, "several tables": {"unit": "a", "tables": {}, "histories": {}}}


def written(folder: Path, kind: str, text: str) -> tuple[Path, Path]:
    release, job = folder / "release", folder / "job.yaml"
    release.mkdir()
    (release / "manifest.json").write_text(json.dumps(MANIFESTS[kind]))
    job.write_text(text)
    return release, job


@pytest.mark.parametrize(("kind", "text"), [("one table", SEVERAL), ("several tables", ONE)])
@pytest.mark.parametrize("command", ["verify", "attack", "utility", "report"])
def test_a_job_of_the_other_kind_is_called_so(direct: CommandLine, kind: str, text: str, command: str) -> None:
    release, job = written(direct.folder, kind, text)
    ended = direct(command, release, "--job", job)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"is a release of {kind}, and the job is a job of " in ended.stderr


@pytest.mark.parametrize(("kind", "text"), [("one table", ONE), ("several tables", SEVERAL), *((kind, BROKEN) for kind in MANIFESTS)])
def test_a_job_of_the_same_kind_or_of_none_is_left_to_its_own_reader(tmp_path: Path, kind: str, text: str) -> None:
    is_of_tables_as_its_job(*written(tmp_path, kind, text), ())


def test_settings_decide_over_the_kind_as_the_file_does(tmp_path: Path) -> None:
    release, job = written(tmp_path, "one table", "version: 1\n")
    is_of_tables_as_its_job(release, job, ())
    with pytest.raises(StorageError):
        is_of_tables_as_its_job(release, job, ("version=2", "tables={}"))
