"""Whoever can write where releases lie cannot make a verification read without end: what has none, or is longer, is refused unread."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.verification import figures_of, verified_release
from schemas.errors.base import SkaldError, StorageError, VerificationError
from schemas.errors.folders import LargeManifestError
from schemas.job.job import load_job
from tasks.lattice.optimum import replayed_manifest
from tasks.publication import staging
from tasks.publication.target import job_target
from tasks.release.manifest import MOST_PARTS, manifest_of
from tasks.source.extracts import open_run
from tasks.verification.published_releases import newer_releases_sentence
from tasks.verification.release import VerificationContext, Verified, verify_published
from tests.conftest import Anonymise
from tests.jobs import data_files, people, people_job
from tests.tampering.kinds import anew, private_key

TERABYTE = 1 << 40


@pytest.fixture(scope="module")
def made(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a job and its signed release."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKALD_SIGNING_KEY", str(private_key(folder)))
        anonymise(people_job(folder, people(200)))
    return folder


@pytest.fixture
def target(made: Path, tmp_path: Path) -> Path:
    """Return the folder of releases, alone, as others have it."""
    return Path(shutil.copytree(made / "releases", tmp_path / "releases"))


def release_in(target: Path) -> Path:
    return target / (target / "CURRENT").read_text().strip()


def verified(release: Path) -> Verified:
    return verify_published(None, release, VerificationContext(str(release)))


def link_without_end(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def sparse(path: Path) -> None:
    os.truncate(path, TERABYTE)


@pytest.mark.ci
@pytest.mark.parametrize("lay", [link_without_end, pipe, sparse])
@pytest.mark.parametrize("name", ["manifest.json", "manifest.sig", "report.html", "report.json", "data"])
def test_what_has_no_end_is_refused_unread(target: Path, name: str, lay: Callable[[Path], None]) -> None:
    release = release_in(target)
    lay(data_files(release)[0] if name == "data" else release / name)
    # Links are refused as such where data is; all the rest is a release that is not as it was published.
    with pytest.raises(SkaldError) as told:
        verified(release)
    assert told.value.exit_code in {2, 4}
    assert "/dev/zero" not in str(told.value)


@pytest.mark.parametrize("lay", [link_without_end, pipe, sparse])
def test_a_pointer_without_end_names_no_release(target: Path, lay: Callable[[Path], None]) -> None:
    release = release_in(target)
    lay(target / "CURRENT")
    with pytest.raises(VerificationError, match="CURRENT does not name"):
        verified(release)


@pytest.mark.parametrize("lay", [link_without_end, pipe, sparse])
def test_neither_a_replay_nor_a_run_that_finds_its_release_reads_without_end(made: Path, target: Path, lay: Callable[[Path], None]) -> None:
    release = release_in(target)
    lay(release / "manifest.json")
    with pytest.raises(StorageError):
        replayed_manifest(load_job(made / "job.yaml", [f"replay={release}"]))
    with open_run(load_job(made / "job.yaml", [f"target={target}"])) as run, pytest.raises(StorageError):
        job_target(run.job).recall(release.name, run)


def test_the_manifest_says_the_bytes_of_every_file(target: Path) -> None:
    release = release_in(target)
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["files"]
    for file in (*manifest["files"], *manifest["documents"]):
        assert file["bytes"] == (release / file["path"]).stat().st_size


def test_a_manifest_that_says_no_bytes_is_verified_as_before(target: Path) -> None:
    release = release_in(target)
    (release / "manifest.sig").unlink()

    def forget(said: dict[str, object]) -> None:
        said["signed_by"] = None
        for file in said["files"]:  # type: ignore[attr-defined]
            del file["bytes"]

    anew(release, forget)
    assert verified(release).recount.records > 0
    data = data_files(release)[0]
    data.write_bytes(data.read_bytes() + b"\0")
    with pytest.raises(VerificationError, match="altered"):
        verified(release)


def test_a_manifest_of_more_entries_than_any_is_not_taken_apart() -> None:
    with pytest.raises(StorageError, match="cannot be read as a manifest"):
        manifest_of(b'{"lattice": [' + b"[]," * MOST_PARTS + b"[]]}", "it")


@pytest.mark.ci
def test_no_manifest_is_published_that_would_not_be_read(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "is_small_enough_to_parse", lambda content: len(content) < 1_000)
    with pytest.raises(LargeManifestError, match="or raise rows_per_file; nothing was published"):
        anonymise(people_job(tmp_path, people(200)))
    assert "rows_per_file" not in str(LargeManifestError.of_release("r", 1, 1, of_tables=True))
    assert not list((tmp_path / "releases").glob("*/manifest.json"))


@pytest.mark.ci
def test_an_old_release_that_is_put_back_is_said_to_be_one(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, people(200))
    old = anonymise(job).folder
    assert verified(old).newer == ()
    people_job(tmp_path, people(220))
    new = anonymise(job).folder
    assert new != old
    later = json.loads((new / "manifest.json").read_text())["created"].replace("20", "21", 1)
    anew(new, lambda said: said.update(created=later))
    (old.parent / "CURRENT").write_text(f"{old.name}\n")
    found = verified_release(None, str(old), None)
    assert found.newer == (new.name,)
    assert figures_of(found)["newer"] == [new.name]
    assert f"beside it lies '{new.name}'" in newer_releases_sentence(found.newer)
    assert verified(new).newer == ()
    # What lies there and is no release is none that is newer.
    link_without_end(new / "manifest.json")
    assert verified(old).newer == ()
