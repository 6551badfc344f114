"""Publication in an object store: a release is there whole or not at all, and is never written over."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.errors.base import JobError, PrivacyError, StorageError, VerificationError
from schemas.errors.storage import ObjectStoreError
from schemas.job.job import load_job
from tasks.planning.plan import find_existing_release, make_plan
from tasks.recount.recount import verify_release
from tasks.store.place import Bucket
from tasks.verification.published_releases import release_folder
from tests.conftest import Anonymise, CommandLine
from tests.jobs import digests, people, people_job
from tests.servers import objects, s3_bucket

TABLE = people(400)
MANY = ("privacy.k=4", "rows_per_file=40")
KILLED = """
import os, signal
from flows.cli import main
from tasks.store.place import Bucket

put, there = Bucket.upload, []

def deadly(self, path, name, sha256):
    put(self, path, name, sha256)
    there.append(name)
    if len(there) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

Bucket.upload = deadly
main()
"""


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 server with a bucket, and the environment that leads there."""
    with s3_bucket() as environment:
        yield environment


def listed(prefix: str) -> list[str]:
    """Names of all objects below a prefix."""
    return [name.removeprefix(f"bucket/{prefix}/") for name in objects().find(f"bucket/{prefix}")]


def job_to(folder: Path, prefix: str, **parts: Any) -> Path:
    return people_job(folder, TABLE, target=f"s3://bucket/{prefix}/", **parts)


@pytest.mark.slow
def test_a_release_in_a_bucket_is_that_of_a_folder_and_nothing_else_is_left(
    anonymise: Anonymise, direct: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    here = anonymise(people_job(tmp_path / "here", TABLE), *MANY)
    job = job_to(tmp_path / "there", "whole")
    made = anonymise(job, *MANY)
    release = made.manifest.release
    assert release == here.manifest.release
    assert made.manifest.files == here.manifest.files
    assert objects().cat_file("bucket/whole/CURRENT") == f"{release}\n".encode()
    files = sorted(name for name in listed("whole") if name.startswith(release))
    expected = [*(file.path for file in here.manifest.files), "manifest.json", "report.html", "report.json"]
    assert files == sorted(f"{release}/{name}" for name in expected)
    with release_folder(f"s3://bucket/whole/{release}") as folder:
        assert digests(folder) == digests(here.folder)
        assert verify_release(load_job(job, MANY), folder)[1] == made.manifest
    assert not list((tmp_path / "there" / ".skald" / "people" / "outbox").glob("people-*"))
    assert find_existing_release(load_job(job, MANY)) == made.manifest
    assert not anonymise(job, *MANY).new
    assert make_plan(load_job(job, MANY)).exists
    told = direct("verify", f"s3://bucket/whole/{release}", "--job", job, "--set", "privacy.k=4", "--set", "rows_per_file=40", **store)
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.slow
def test_a_killed_publication_is_no_release_and_the_next_run_completes_it(
    anonymise: Anonymise, direct: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    job = job_to(tmp_path / "job", "killed")
    settings = [part for setting in MANY for part in ("--set", setting)]
    assert (
        direct.ended([sys.executable, "-c", KILLED, "run", str(job), *settings, "--set", "threads=1"], **store).returncode
        == -signal.SIGKILL
    )
    left = listed("killed")
    assert sum("/data/" in name for name in left) == 3
    assert not any(name.endswith(("manifest.json", "CURRENT")) for name in left)
    # A part of a file, as an upload that was cut off may leave it on some stores.
    name = next(name for name in left if name.endswith(".parquet"))
    objects().pipe_file(f"bucket/killed/{name}", b"half")
    made = anonymise(job, *MANY)
    assert {name.split("/")[0] for name in listed("killed")} == {made.manifest.release, "CURRENT"}
    assert not any(".staging" in name for name in listed("killed"))
    with release_folder(f"s3://bucket/killed/{made.manifest.release}") as folder:
        assert verify_release(load_job(job, MANY), folder)[1] == made.manifest


@pytest.fixture
def end_before_manifest(anonymise: Anonymise, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """End a run when its data files are in the bucket and its manifest is not."""

    def ended(job: Path) -> None:
        def dies(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Bucket, "download", dies)
            with pytest.raises(KeyboardInterrupt):
                anonymise(job, "privacy.k=4")

    return ended


@pytest.mark.ci
def test_what_a_killed_publication_of_other_data_left_is_cleared_away_and_nothing_else(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, end_before_manifest: Callable[[Path], None]
) -> None:
    job = job_to(tmp_path / "job", "changed")
    end_before_manifest(job)
    [left] = {name.split("/")[0] for name in listed("changed")}
    objects().pipe_file(f"bucket/changed/people-{'0' * 16}/data/part-00001.parquet", b"of another machine, which is at work")
    [mark] = [name.rsplit("/", 1)[1] for name in listed("changed") if ".staging-" in name]
    objects().pipe_file(f"bucket/changed/people-{'1' * 16}/{mark}", b"1")
    people_job(tmp_path / "job", people(300), target="s3://bucket/changed")
    made = anonymise(job, "privacy.k=4")
    assert made.manifest.release != left
    stays = {f"people-{'0' * 16}", f"people-{'1' * 16}"}
    assert {name.split("/")[0] for name in listed("changed")} == {made.manifest.release, "CURRENT"} | stays, (
        "a run that took over put it there"
    )


@pytest.mark.ci
def test_what_a_killed_publication_left_is_cleared_away_by_a_run_that_is_refused_too(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, end_before_manifest: Callable[[Path], None]
) -> None:
    job = job_to(tmp_path, "unpromised")
    end_before_manifest(job)
    assert any("/data/" in name for name in listed("unpromised"))
    with pytest.raises(PrivacyError):
        anonymise(job, "privacy.k=4", "privacy.l={disease: {distinct: 9}}")
    assert not listed("unpromised")


def test_a_pointer_that_another_run_put_meanwhile_is_not_put_over(store: dict[str, str]) -> None:
    system, current = objects(), "bucket/pointer/CURRENT"

    def update(store: Any, name: str, content: bytes) -> bool:
        bucket = Bucket("s3://bucket/pointer")
        bucket._opened = store, "bucket/pointer"
        return bucket.update(name, content)

    assert update(system, "CURRENT", b"first")
    assert update(system, "CURRENT", b"first")

    class Late:
        """A store in which somebody else puts the pointer just before it is put."""

        protocol = ("s3", "s3a")

        def __getattr__(self, name: str) -> Any:
            return getattr(system, name)

        def pipe_file(self, remote: str, content: bytes, **condition: str) -> None:
            system.pipe_file(remote, b"of another run")
            system.pipe_file(remote, content, **condition)

    assert not update(Late(), "CURRENT", b"second")
    assert not update(Late(), "new", b"second")
    assert {system.cat_file(current), system.cat_file("bucket/pointer/new")} == {b"of another run"}
    assert update(system, "CURRENT", b"second")
    assert system.cat_file(current) == b"second"

    class Old(Late):
        """A store that knows no such condition."""

        def pipe_file(self, remote: str, content: bytes, **condition: str) -> None:
            if condition:
                answer = ValueError()
                answer.response = {"Error": {"Code": "NotImplemented"}}  # type: ignore[attr-defined]
                raise OSError from answer
            system.pipe_file(remote, content)

    assert update(Old(), "CURRENT", b"third")
    assert system.cat_file(current) == b"third"


@pytest.mark.ci
def test_an_old_release_is_never_written_over(anonymise: Anonymise, store: dict[str, str], tmp_path: Path) -> None:
    job = job_to(tmp_path, "old")
    made = anonymise(job, "privacy.k=4").manifest
    place = f"bucket/old/{made.release}"
    objects().pipe_file(f"{place}/manifest.json", json.dumps({"not": "ours"}).encode())
    with pytest.raises(StorageError, match="cannot be read as a manifest"):
        anonymise(job, "privacy.k=4")
    assert json.loads(objects().cat_file(f"{place}/manifest.json")) == {"not": "ours"}
    objects().pipe_file(f"{place}/manifest.json", made.model_dump_json().encode())
    objects().rm_file(f"{place}/{made.files[0].path}")
    with pytest.raises(StorageError, match="exists with 1 file missing or altered"):
        anonymise(job, "privacy.k=4")


@pytest.mark.ci
def test_of_two_runs_that_publish_the_same_release_one_is_told(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, put = job_to(tmp_path, "race"), Bucket.upload

    def slow(bucket: Bucket, path: Path, name: str, sha256: str) -> None:
        put(bucket, path, name, sha256)
        if path.name == "report.json":
            objects().pipe_file(f"bucket/race/{name.split('/', maxsplit=1)[0]}/manifest.json", b"of another run")

    monkeypatch.setattr(Bucket, "upload", slow)
    with pytest.raises(ObjectStoreError, match="published by another run meanwhile"):
        anonymise(job, "privacy.k=4")
    [manifest] = [name for name in listed("race") if name.endswith("manifest.json")]
    assert objects().cat_file(f"bucket/race/{manifest}") == b"of another run"


@pytest.mark.ci
def test_what_is_refused_after_it_was_put_there_is_taken_away(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.publication import recount_calls

    def refuses(*_: Any, **__: Any) -> None:
        assert any("/data/" in name for name in listed("refused"))
        raise VerificationError("release", ["a fault"])

    monkeypatch.setattr(recount_calls, "recount", refuses)
    with pytest.raises(VerificationError, match="a fault"):
        anonymise(job_to(tmp_path, "refused"), "privacy.k=4")
    assert not listed("refused")


@pytest.mark.ci
def test_what_reads_back_otherwise_than_it_was_written_is_no_release(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Bucket.upload

    def spoils(bucket: Bucket, path: Path, name: str, sha256: str) -> None:
        put(bucket, path, name, sha256)
        bucket.write(name, b"otherwise")

    monkeypatch.setattr(Bucket, "upload", spoils)
    with pytest.raises(ObjectStoreError, match=r"1 file of .* read back otherwise"):
        anonymise(job_to(tmp_path, "spoilt"), "privacy.k=4")
    assert not any(name.endswith("manifest.json") for name in listed("spoilt"))


@pytest.mark.ci
def test_a_bucket_that_is_not_there_is_told_and_nothing_is_lost(anonymise: Anonymise, store: dict[str, str], tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, target="s3://no-such-bucket/releases")
    with pytest.raises(ObjectStoreError, match="cannot be read or written") as told:
        anonymise(job, "privacy.k=4")
    assert told.value.continuation


@pytest.mark.parametrize("target", ["s3://key:secret7@bucket/x", "ftp://host/x"])
def test_a_target_that_holds_a_key_or_is_unknown_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(JobError, match="target: ") as refused:
        load_job(people_job(tmp_path, TABLE, target=target))
    assert "secret7" not in str(refused.value)


@pytest.mark.parametrize("key", ["../../outside", "data/../../../outside", "/outside", "data//outside"])
def test_a_key_that_leads_out_of_the_release_is_refused_and_nothing_is_written(
    direct: CommandLine, store: dict[str, str], tmp_path: Path, key: str
) -> None:
    job, place = people_job(tmp_path, TABLE), f"bucket/out/{key.count('/')}{key.count('.')}/people-{'0' * 16}"
    (tmp_path / "temporary" / "a").mkdir(parents=True)
    objects().pipe_file(f"{place}/manifest.json", b"{}")
    objects().pipe_file(f"{place}/{key}", b"of somebody else")
    done = direct("verify", f"s3://{place}", "--job", job, **store, TMPDIR=str(tmp_path / "temporary" / "a"))
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    assert "1 name of files in it would lead out of its folder" in done.stderr
    assert not [path for path in (tmp_path / "temporary").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_what_is_laid_removed_or_changed_in_a_bucket_is_noticed(
    anonymise: Anonymise, direct: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    job = job_to(tmp_path / "there", "tampered")
    release = f"bucket/tampered/{anonymise(job).manifest.release}"
    current = "bucket/tampered/CURRENT"

    def verified() -> tuple[int, str]:
        done = direct("verify", f"s3://{release}", "--job", job, **store)
        return done.returncode, done.stderr

    assert verified() == (0, "")
    for name, content, told in (
        (f"{release}/raw.csv", b"person\n1\n", "1 entry not in the manifest"),
        (f"{release}/report.html", b"", "report.html was altered"),
        (f"{release}/report.json", None, "report.json is missing"),
        (f"{release}/manifest.json", b"{}", "cannot be read as a manifest"),
        (current, b"people-0123456789abcdef\n", "CURRENT does not name a release that is there"),
        (current, None, "CURRENT is missing"),
    ):
        before = objects().cat_file(name) if objects().exists(name) else None
        objects().rm_file(name) if content is None else objects().pipe_file(name, content)
        code, said = verified()
        assert (code, told in said) == (4, True), (name, said)
        objects().rm_file(name) if before is None else objects().pipe_file(name, before)
    assert verified() == (0, "")
