"""What a release is made of while it is staged, on whatever file systems work folder and target lie."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import StorageError, VerificationError
from schemas.job.job import load_job
from tasks.publication import target
from tasks.publication.manifests import make_manifest
from tasks.publication.target import job_target
from tasks.recount.recount import verify_release
from tasks.store import files
from tasks.store.store import Store
from tasks.store.work_folder import FolderWork
from tests.conftest import Anonymise
from tests.jobs import data_files, digests, people, people_job

TABLE = people(300)


@pytest.mark.slow
def test_a_work_folder_on_another_file_system_gives_the_same_release(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def across(source: Path, destination: Path) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source, None, destination)

    linked = anonymise(people_job(tmp_path / "one", TABLE), "rows_per_file=60")
    monkeypatch.setattr(os, "link", across)
    job = people_job(tmp_path / "two", TABLE)
    copied = anonymise(job, "rows_per_file=60")
    assert copied.manifest.files == linked.manifest.files
    assert digests(copied.folder) == digests(linked.folder) == [file.sha256 for file in copied.manifest.files]
    assert len(copied.manifest.files) > 1
    verify_release(load_job(job, ["rows_per_file=60"]), copied.folder)
    modes = [[stat.S_IMODE(path.stat().st_mode) for path in data_files(made.folder)] for made in (linked, copied)]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_nobody_else_looks_into_a_release_before_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    monkeypatch.setattr(files, "USER_UMASK", umask)
    monkeypatch.setattr(target, "USER_UMASK", umask)
    job = load_job(people_job(tmp_path, TABLE))
    before = os.umask(0o077)
    try:
        place = job_target(job)
        staging = place.staging_folder("people-0123456789abcdef")
        assert stat.S_IMODE(staging.stat().st_mode) == 0o700
        place.publish(staging, "people-0123456789abcdef", FolderWork(Store(tmp_path), tmp_path))
    finally:
        os.umask(before)
    published = job.target_path / "people-0123456789abcdef"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (published, published / "data")] == [0o777 & ~umask] * 2


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_somebody_laid_in_the_place_of_a_release_is_named_and_stays(tmp_path: Path, kind: str) -> None:
    place = job_target(load_job(people_job(tmp_path, TABLE)))
    staging, taken = place.staging_folder("people-0123456789abcdef"), tmp_path / "releases" / "people-0123456789abcdef"
    if kind == "folder":
        (taken / "theirs").mkdir(parents=True)
    else:
        taken.write_text("theirs")
    with pytest.raises(StorageError, match=r"/people-0123456789abcdef' cannot be written .* is in its place: move it away"):
        place.publish(staging, "people-0123456789abcdef", FolderWork(Store(tmp_path), tmp_path))
    assert (taken / "theirs").is_dir() or taken.read_text() == "theirs"


State = tuple[int, int]


def state_of(found: os.stat_result) -> State:
    """Which file or folder it is, and when its content, or what is named in it, last changed."""
    return found.st_ino, found.st_mtime_ns


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was flushed, and what each rename named with all that lay below it, in order."""
    seen: list[tuple[str, Any]] = []
    plain = {name: getattr(os, name) for name in ("fsync", "rename", "replace")}

    def fsync(descriptor: int) -> None:
        plain["fsync"](descriptor)
        seen.append(("flushed", state_of(os.fstat(descriptor))))

    def naming(name: str) -> Any:
        def rename(source: Path, target: Path) -> None:
            below = [source, *(path for path in Path(source).rglob("*"))]
            seen.append((Path(target).name, {state_of(path.stat()) for path in below}))
            plain[name](source, target)

        return rename

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, naming(name))
    return seen


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("output", ["{}", "{format: csv}", "{format: duckdb}", "{partition_by: [sex]}"])
def test_what_a_name_of_the_target_stands_for_is_on_the_disk_before_it_is_named(
    anonymise: Anonymise, tmp_path: Path, events: list[tuple[str, Any]], output: str
) -> None:
    made = anonymise(people_job(tmp_path, TABLE), "rows_per_file=60", f"output={output}")
    names = [name for name, _ in events]
    named, pointed = names.index(made.manifest.release), names.index("CURRENT")
    for place in (named, pointed):
        assert events[place][1] <= {what for name, what in events[:place] if name == "flushed"}
    assert len(events[named][1]) > 4
    target = (tmp_path / "releases").stat().st_ino
    assert target in {what[0] for name, what in events[named:pointed] if name == "flushed"}, "CURRENT may name what is lost"


@pytest.mark.ci
def test_a_manifest_that_is_not_true_of_the_files_is_not_published(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault is put into the manifest; files and recount are as they should be."""

    def untrue(*arguments: Any) -> Any:
        manifest = make_manifest(*arguments)
        return manifest.model_copy(update={"classes": manifest.classes + 1})

    monkeypatch.setattr("flows.skald.make_manifest", untrue)
    with pytest.raises(VerificationError, match="the manifest says classes = "):
        anonymise(people_job(tmp_path, TABLE))
    assert not [path for path in (tmp_path / "releases").iterdir() if not path.name.startswith(".")]


def test_whoever_may_read_a_release_may_read_which_one_is_current(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(people_job(tmp_path, TABLE))
    pointer, manifest = (path.stat().st_mode for path in (made.folder.parent / "CURRENT", made.folder / "manifest.json"))
    assert stat.S_IMODE(pointer) == stat.S_IMODE(manifest)
