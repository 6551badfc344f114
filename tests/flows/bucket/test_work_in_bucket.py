"""Work in a bucket: the release of work in a folder, on whatever machine it is begun and gone on with."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from schemas.errors.base import JobError, StorageError
from schemas.errors.folders import WorkError
from schemas.job.job import load_job
from tasks.store import place
from tasks.store.lease import Clock, take_lease
from tasks.store.place import Bucket
from tests.conftest import Anonymise, CommandLine
from tests.jobs import JOB, digests, people, people_job, released
from tests.servers import Faulty, objects, s3_bucket

TABLE = people(400)
CHANGES = ("privacy.k=4", "rows_per_file=100", "chunk_rows=100")
WITHOUT_LISTS = JOB["columns"] | {
    "quasi_identifiers": [one for one in JOB["columns"]["quasi_identifiers"] if one["name"] != "smoker"],
    "insensitive": [*JOB["columns"]["insensitive"], "smoker"],
}
"""Columns without a hierarchy's file: that of a run is among its artefacts, and a run that misses it ends."""
SETTINGS = [part for change in CHANGES for part in ("--set", change)]
METHODS = {
    "skald": {"name": "skald"},
    "mondrian": {"name": "mondrian", "fragments": {"count": 4, "sample": 0.5}},
    "rayden": {"name": "rayden", "fragments": {"count": 2}},
}
KILLED = """
import os, signal, sys
from flows.cli import main
from tasks.engine import runs

last, kept = sys.argv.pop(1), runs.Run.phase

def phase(self, name):
    if name == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return kept(self, name)

runs.Run.phase = phase
main()
"""

TAKEN_OVER = """
import sys
from flows.server.local_api import prepare_prefect
prepare_prefect()
from flows.cli import main
from tasks.engine import runs
from tasks.store.lease import Clock, take_lease

kept, time = runs.Run.phase, [0.0]

def phase(self, name):
    if name == "phase 1: domains":
        # Another run waits for the lease of this one, makes the release, and removes what both have made.
        wait = lambda seconds: time.__setitem__(0, time[0] + seconds)
        take_lease(self.work.bucket, Clock(lambda: time[0], wait)).release()
        self.work.bucket.remove(self.work.bucket.names("artifacts"))
        assert not self.work.lease.renewed()
    return kept(self, name)

runs.Run.phase = phase
main()
"""


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 server with a bucket, and the environment that leads there."""
    with s3_bucket() as environment:
        yield environment


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a run has its folders, which it shares with no test beside."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return path


def job_in(folder: Path, prefix: str, **parts: Any) -> Path:
    return people_job(folder, TABLE, files=2, work=f"s3://bucket/{prefix}", **parts)


def expire(prefix: str) -> None:
    """Let the lease of a dead run run out: somebody with a clock that flies takes it and lets it go."""
    time = [0.0]
    take_lease(Bucket(f"s3://bucket/{prefix}"), Clock(lambda: time[0], lambda seconds: time.__setitem__(0, time[0] + seconds))).release()


def left_here() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("skald-work-*"))


@pytest.mark.ci
def test_the_release_is_that_of_a_folder_and_another_machine_finds_it_made(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path
) -> None:
    here = anonymise(people_job(tmp_path / "here", TABLE, files=2), *CHANGES)
    made = anonymise(job_in(tmp_path / "there", "one", target="s3://bucket/releases"), *CHANGES)
    assert made.manifest.release == here.manifest.release
    assert made.manifest.files == here.manifest.files
    again = anonymise(job_in(tmp_path / "elsewhere", "one", target="s3://bucket/releases"), *CHANGES)
    assert not again.new
    assert not (tmp_path / "there" / ".skald").exists()
    assert not left_here()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_source_work_and_target_in_buckets_give_the_bytes_of_folders(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, method: str
) -> None:
    here = anonymise(people_job(tmp_path / "here", TABLE, files=2, method=METHODS[method]), *CHANGES)
    objects().put(str(tmp_path / "here" / "people"), f"bucket/{method}/", recursive=True)
    parts = {"source": {"path": f"s3://bucket/{method}/people/*.parquet"}, "target": f"s3://bucket/{method}/out", "method": METHODS[method]}
    made = anonymise(job_in(tmp_path / "there", f"{method}/work", **parts), *CHANGES)
    assert made.manifest.files == here.manifest.files
    objects().get(f"bucket/{method}/out/{made.manifest.release}", str(tmp_path / "got"), recursive=True)
    [got] = [path.parent for path in (tmp_path / "got").rglob("manifest.json")]
    assert digests(got) == digests(here.folder)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["phase 1: domains", "phase 2: search", "phase 3: rewrite", "verify"])
def test_a_head_that_was_killed_is_gone_on_from_on_another_machine(
    anonymise: Anonymise, direct: CommandLine, store: dict[str, str], tmp_path: Path, phase: str
) -> None:
    prefix = f"killed/{phase.replace(' ', '')}"
    job = job_in(tmp_path / "dead", prefix, target=f"s3://bucket/{prefix}-out")
    assert direct.ended([sys.executable, "-c", KILLED, phase, "run", str(job), *SETTINGS], **store).returncode == -signal.SIGKILL
    before = {name for name in objects().find(f"bucket/{prefix}/artifacts") if name.endswith(".record")}
    expire(prefix)
    heir = anonymise(job_in(tmp_path / "heir", prefix, target=f"s3://bucket/{prefix}-out"), *CHANGES)
    assert heir.new
    there = {name for name in objects().find(f"bucket/{prefix}/artifacts") if name.endswith(".record")}
    assert {name for name in before if "/runs/" not in name and "/files/" not in name} <= there
    assert heir.manifest.files == anonymise(people_job(tmp_path / "here", TABLE, files=2), *CHANGES).manifest.files


@pytest.mark.slow
def test_a_head_that_was_taken_over_publishes_nothing(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.publication import verify_and_publish as publication

    kept = publication.complete_staging

    def held_up(*arguments: Any) -> Any:
        expire("fenced")
        return kept(*arguments)

    monkeypatch.setattr(publication, "complete_staging", held_up)
    with pytest.raises(WorkError, match="did not renew its lease"):
        anonymise(job_in(tmp_path / "a", "fenced", target="s3://bucket/fenced-out"), *CHANGES)
    assert not [name for name in objects().find("bucket/fenced-out") if name.endswith("manifest.json")]
    monkeypatch.undo()
    assert anonymise(job_in(tmp_path / "b", "fenced", target="s3://bucket/fenced-out"), *CHANGES).new


@pytest.mark.slow
@pytest.mark.parametrize("way", ["--direct", "--runner=processes"])
def test_a_head_that_was_taken_over_leaves_no_artefact_after_its_heir_removed_them(
    prefect: CommandLine, store: dict[str, str], tmp_path: Path, way: str
) -> None:
    prefix = f"late{way}"
    job = job_in(tmp_path / "late", prefix, columns=WITHOUT_LISTS)
    done = prefect.ended([sys.executable, "-c", TAKEN_OVER, "run", str(job), *SETTINGS, way], **store)
    assert (done.returncode, "did not renew its lease" in done.stderr) == (2, True), done.stderr
    assert not objects().find(f"bucket/{prefix}/artifacts")


@pytest.mark.slow
def test_lost_answers_and_listings_that_lag_change_no_byte(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, opened = anonymise(people_job(tmp_path / "here", TABLE, files=2), *CHANGES), place.file_system

    def faulty(address: str) -> tuple[Any, str]:
        found, root = opened(address)
        return Faulty(found, lambda number: number % 3 == 0, lagging=True), root

    monkeypatch.setattr(place, "file_system", faulty)
    made = anonymise(job_in(tmp_path / "there", "faulty"), *CHANGES)
    assert made.manifest.files == here.manifest.files
    assert digests(made.folder) == digests(here.folder)


@pytest.mark.slow
def test_another_release_of_the_same_people_is_known_on_another_machine(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path
) -> None:
    first = anonymise(job_in(tmp_path / "a", "overlaps", target="s3://bucket/overlaps-out"), *CHANGES)
    second = anonymise(job_in(tmp_path / "b", "overlaps", target="s3://bucket/overlaps-out"), "privacy.k=5", "rows_per_file=100")
    [overlap] = second.manifest.overlaps
    assert overlap.release == first.manifest.release
    assert not overlap.unmeasured


@pytest.mark.slow
def test_every_object_is_encrypted_as_configured_and_nobody_elses_to_read(
    anonymise: Anonymise, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fsspec.config.conf, "s3", {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "a-key"}})
    anonymise(job_in(tmp_path, "sealed"), *CHANGES)
    names = objects().find("bucket/sealed")
    assert len(names) > 20
    for name in names:
        key = name.removeprefix("bucket/")
        assert objects().call_s3("head_object", Bucket="bucket", Key=key)["ServerSideEncryption"] == "aws:kms"
        grants = objects().call_s3("get_object_acl", Bucket="bucket", Key=key)["Grants"]
        assert not [grant for grant in grants if grant["Grantee"]["Type"] == "Group"]


@pytest.mark.slow
def test_every_command_works_with_work_in_a_bucket_or_says_that_it_does_not(
    direct: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    job = job_in(tmp_path, "commands")
    run = direct("run", job, *SETTINGS, **store)
    assert (run.returncode, run.stderr) == (0, "")
    [release] = (tmp_path / "releases").glob("people-*")
    for command in (
        ["plan", job, *SETTINGS],
        ["lattice", job, "--json", *SETTINGS],
        ["verify", release, "--job", job, *SETTINGS],
        ["report", release, "--job", job, *SETTINGS, "--to", tmp_path / "report"],
        ["utility", release, "--job", job, "--queries", 10, *SETTINGS],
        ["clean", job],
    ):
        ended = direct(*command, **store)
        assert (ended.returncode, ended.stderr) == (0, ""), command
        assert not left_here()
    assert not [name for name in objects().find("bucket/commands") if "/artifacts/" in name]
    assert not (tmp_path / ".skald").exists()


@pytest.mark.slow
def test_tokens_stay_those_of_the_vault_and_are_revealed_with_work_in_a_bucket(
    direct: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    vault = tmp_path / "vaults" / "person.parquet"
    vault.parent.mkdir(mode=0o700)
    tokens = {"name": "person", "treatment": {"token": {"vault": {"file": str(vault)}}}}
    given: dict[str, Any] = {"columns": JOB["columns"] | {"identifiers": [tokens]}, "target": str(tmp_path / "releases")}
    releases = []
    for number in range(2):
        # Another machine each time, with the vault and the bucket.
        ended = direct("run", job_in(tmp_path / f"{number}", "tokens", **given), "--set", f"privacy.k={4 + number}", **store)
        assert (ended.returncode, ended.stderr) == (0, "")
        releases.append((tmp_path / "releases" / "CURRENT").read_text().strip())
    first, second = (released(tmp_path / "releases" / release)["person"].to_list() for release in releases)
    assert set(first) & set(second)
    (tmp_path / "tokens").write_text("\n".join(first))
    told = direct("reveal", tmp_path / "1" / "job.yaml", "person", "--from", tmp_path / "tokens", "--to", tmp_path / "originals", **store)
    assert (told.returncode, told.stderr) == (0, "")
    originals = [line.split(",")[1] for line in (tmp_path / "originals").read_text().splitlines()[1:]]
    assert sorted(map(int, originals)) == sorted(set(map(int, originals)))
    assert set(map(int, originals)) <= set(range(len(TABLE)))
    # That it was used is known in the bucket, whatever becomes of the folder that it was in.
    shutil.rmtree(vault.parent)
    vault.parent.mkdir(mode=0o700)
    gone = direct("run", job_in(tmp_path / "2", "tokens", **given), "--set", "privacy.k=7", **store)
    assert gone.returncode == 2
    assert "the vault is gone that was used here before" in gone.stderr
    assert not left_here()


@pytest.mark.slow
def test_methods_are_compared_with_work_in_a_bucket(direct: CommandLine, store: dict[str, str], tmp_path: Path) -> None:
    job = job_in(tmp_path, "methods")
    ended = direct("compare", job, "--methods", "skald,mondrian", "--direct", *SETTINGS, **store)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not left_here()
    assert not (tmp_path / ".skald").exists()


def test_an_address_that_cannot_hold_work_is_refused(tmp_path: Path) -> None:
    for address in ("gs://bucket/work", "s3://bucket", "s3://bucket/", "s3://bucket/a*", "s3://key:secret@bucket/work", "ftp://a/b"):
        with pytest.raises(JobError, match="work: "):
            load_job(people_job(tmp_path, TABLE, work=address))


@pytest.mark.ci
def test_work_within_source_or_target_is_refused(anonymise: Anonymise, store: dict[str, str], tmp_path: Path) -> None:
    for parts in (
        {"target": "s3://bucket/within/kept/out"},
        {"target": "s3a://bucket/within"},
        {"source": {"path": "s3://bucket/within/kept/in/*.parquet"}},
    ):
        with pytest.raises(StorageError, match="lie within each other"):
            anonymise(job_in(tmp_path, "within/kept", **parts))
