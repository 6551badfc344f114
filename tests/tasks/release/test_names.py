"""Names that somebody else wrote lead nowhere but into the release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.errors.folders import EscapeError
from tasks.release.manifest import check_names
from tests.conftest import Anonymise, CommandLine
from tests.jobs import people, people_job

TABLE = people(200)
OUT = ["../x", "data/../../x", "/etc/passwd", "data//x", "./x", "", "data/", "data/..", "data/x\0y"]
K = ("--set", "privacy.k=4")


@pytest.mark.parametrize("name", OUT)
def test_a_name_that_leads_out_is_refused_and_not_told(name: str) -> None:
    with pytest.raises(EscapeError, match="1 name of files in it would lead out") as refused:
        check_names("release", ["manifest.json", "data/..hidden", "data/a..b", name])
    assert "passwd" not in str(refused.value)


def test_a_name_that_is_the_folder_of_another_is_refused() -> None:
    with pytest.raises(EscapeError, match="1 name"):
        check_names("release", ["data", "data/part-00001.parquet"])


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("name", ["../../outside.parquet", "{folder}/outside.parquet", "data/../../../outside.parquet"])
def test_a_manifest_that_names_files_outside_the_release_fails_the_verification(
    anonymise: Anonymise, direct: CommandLine, tmp_path: Path, name: str
) -> None:
    job = people_job(tmp_path, TABLE)
    release = anonymise(job, K[1]).folder
    manifest = json.loads((release / "manifest.json").read_text())
    [file] = manifest["files"]
    (release / file["path"]).rename(tmp_path / "outside.parquet")
    file["path"] = name.format(folder=tmp_path)
    (release / "manifest.json").write_text(json.dumps(manifest))
    (release / "data" / "part-00001.parquet").write_bytes((tmp_path / "outside.parquet").read_bytes())
    done = direct("verify", release, "--job", job, *K)
    assert (done.returncode, done.stdout) == (4, "")
    assert "1 name of files in it would lead out of its folder" in done.stderr
    assert "outside.parquet" not in done.stderr


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("entry", ["data", "data/part-00001.parquet", "manifest.json", "report.html"])
def test_a_release_of_which_a_part_is_a_link_fails_the_verification(
    anonymise: Anonymise, direct: CommandLine, tmp_path: Path, entry: str
) -> None:
    job = people_job(tmp_path, TABLE)
    release = anonymise(job, K[1]).folder
    (release / entry).rename(tmp_path / "elsewhere")
    (release / entry).symlink_to(tmp_path / "elsewhere")
    done = direct("verify", release, "--job", job, *K)
    assert (done.returncode, done.stdout) == (4, "")
    # A manifest that is a link is not opened, so that nothing else is looked at.
    refused = "manifest.json cannot be read" if entry == "manifest.json" else "it holds 1 link in the place of files or folders"
    assert refused in done.stderr
