"""Several tables from a bucket and into one: the manifest last, and what is there verifies."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import skald
from flows.tables import tables
from schemas.errors.base import SkaldError, SourceError, StorageError, VerificationError
from schemas.errors.storage import AfterPublicationError
from schemas.relational.tables_job import load_tables_job
from tasks.engine.runs import Run
from tasks.relational import publication
from tasks.relational.verified import verify_tables
from tasks.store.place import Bucket
from tasks.verification.published_releases import release_folder
from tests.conftest import CommandLine
from tests.flows.relational.hospital import JOB, hospital_job, hospital_tables
from tests.servers import objects, s3_bucket

pytestmark = [pytest.mark.ci, pytest.mark.slow]


def test_tables_go_from_a_bucket_into_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = deepcopy(JOB) | {"target": "s3://bucket/releases"}
    with s3_bucket():
        system = objects()
        for name, table in hospital_tables(150, 3).items():
            pq.write_table(table, tmp_path / f"{name}.parquet")
            system.put_file(str(tmp_path / f"{name}.parquet"), f"bucket/source/{name}/0.parquet")
            job["tables"][name]["source"] = {"path": f"s3://bucket/source/{name}/*.parquet"}
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump(job, sort_keys=False))

        def refused(*_: object) -> None:
            raise VerificationError("the release", ["it is refused"])

        with monkeypatch.context() as patch:
            patch.setattr(Bucket, "create_from", refused)
            with pytest.raises(VerificationError):
                tables(path, ())
        # What is refused late is taken away.
        assert not system.find("bucket/releases")
        made, again = tables(path, ()), tables(path, ())
        assert (made.new, again.new, again.manifest) == (True, False, made.manifest)
        release = f"bucket/releases/{made.manifest.release}"
        assert system.cat_file("bucket/releases/CURRENT").decode().strip() == made.manifest.release
        assert {one.removeprefix(f"{release}/") for one in system.find(release)} == {*made.manifest.listed, "manifest.json"}
        with release_folder(f"s3://{release}") as folder:
            assert verify_tables(load_tables_job(path), folder).recount is not None
        content = json.loads(system.cat_file(f"{release}/manifest.json"))
        system.pipe_file(f"{release}/manifest.json", json.dumps(content | {"histories": 1}).encode())
        with pytest.raises(StorageError, match="altered"):
            tables(path, ())


def test_a_release_in_a_bucket_is_verified_with_and_without_its_job_by_command_and_program(direct: CommandLine) -> None:
    made = tables(hospital_job(direct.folder, hospital_tables(60, 3), attacks="off"), ())
    with s3_bucket():
        objects().put(str(made.folder), f"bucket/{made.folder.name}", recursive=True)
        release, job = f"s3://bucket/{made.folder.name}", direct.folder / "job.yaml"
        here = skald.verify(made.folder, job)
        assert here["persons"] == made.manifest.persons.released
        assert skald.verify(release, job) == here
        assert skald.verify(release)["histories"] == here["histories"]
        for told in (["--job", str(job)], []):
            done = direct("verify", release, "--json", *told)
            assert done.returncode == (0 if told else 5), done.stderr
            assert json.loads(done.stdout) == skald.verify(release, *told[1:])
        with pytest.raises(SkaldError, match="not a release"):
            skald.verify("s3://bucket/hospital-0123456789abcdef", job)


def test_a_table_that_changes_while_it_is_recounted_is_named_and_no_fault_of_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = hospital_job(tmp_path, hospital_tables(150, 3))
    visits = next((tmp_path / "visit").glob("*.parquet"))
    counted = publication.recount_tables

    def late(*arguments: Any) -> Any:
        visits.write_bytes(b"no Parquet")
        return counted(*arguments)

    monkeypatch.setattr(publication, "recount_tables", late)
    with pytest.raises(SourceError, match="changed while it was being read"):
        tables(job, ())
    assert not list((tmp_path / "releases").glob("*/manifest.json"))


def test_what_fails_after_tables_are_published_does_not_unsay_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise StorageError.not_writable("here", "No space left on device")

    job = hospital_job(tmp_path, hospital_tables(150, 3))
    with monkeypatch.context() as patch:
        patch.setattr(Run, "remove_unneeded_artifacts", full)
        with pytest.raises(AfterPublicationError, match="is published, verified and whole, but artefacts") as told:
            tables(job, ())
    done = tables(job, ())
    assert (done.new, done.manifest.release in str(told.value)) == (False, True)
