"""Work of several tables in a bucket: the release of work in a folder, gone on with on another machine after kill -9."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.conftest import CommandLine
from tests.flows.bucket.test_work_in_bucket import KILLED, expire, left_here
from tests.flows.engine.test_dask import cluster_of
from tests.flows.relational.hospital import JOB, hospital_tables
from tests.jobs import digests
from tests.servers import s3_bucket

pytestmark = [pytest.mark.ci, pytest.mark.slow]


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 server with a bucket, and the environment that leads there."""
    with s3_bucket() as environment:
        yield environment


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run has its folders, which it shares with no test beside."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def hospital_in(folder: Path, **parts: Any) -> Path:
    folder.mkdir()
    for name, table in hospital_tables(150, 3).items():
        (folder / name).mkdir()
        pq.write_table(table, folder / name / "0.parquet")
    (folder / "job.yaml").write_text(yaml.safe_dump(deepcopy(JOB) | parts, sort_keys=False))
    return folder / "job.yaml"


def published(direct: CommandLine, job: Path, *settings: str, **environment: str) -> dict[str, Any]:
    run = direct("run", job, "--json", *settings, **environment)
    assert run.returncode == 0, run.stderr
    manifest: dict[str, Any] = json.loads(run.stdout)
    return manifest


@pytest.mark.parametrize("method", ["skald", "mondrian"])
def test_a_killed_run_is_gone_on_with_on_another_machine_and_makes_the_bytes_of_a_folder(
    direct: CommandLine, store: dict[str, str], tmp_path: Path, method: str
) -> None:
    here = published(direct, hospital_in(tmp_path / "here", method={"name": method}))
    parts = {"method": {"name": method}, "work": f"s3://bucket/{method}", "target": f"s3://bucket/{method}-out"}
    dead = hospital_in(tmp_path / "dead", **parts)
    ended = direct.ended([sys.executable, "-c", KILLED, "phase 3: tables", "run", str(dead)], **store)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    expire(method)
    made = published(direct, hospital_in(tmp_path / "heir", **parts), **store)
    assert made["files"] == here["files"]
    assert [folder.parent.name for folder in tmp_path.glob("*/.skald")] == ["here"]


def test_workers_of_a_cluster_make_the_bytes_of_a_run_without_one(
    direct: CommandLine, prefect: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    here = published(direct, hospital_in(tmp_path / "here"))
    job = hospital_in(tmp_path / "there", work="s3://bucket/workers", target="s3://bucket/workers-out")
    with cluster_of(prefect, 2, **store) as cluster:
        made = published(prefect, job, "--scheduler", cluster.address, **store)
    assert made["files"] == here["files"]


def test_every_command_reads_work_in_a_bucket_and_leaves_nothing_here(direct: CommandLine, store: dict[str, str], tmp_path: Path) -> None:
    job = hospital_in(tmp_path / "one", work="s3://bucket/commands")
    first = published(direct, job, **store)
    release = tmp_path / "one" / "releases" / first["release"]
    for command in (["plan", job], ["verify", release, "--job", job], ["attack", release, "--job", job]):
        done = direct(*command, **store)
        assert done.returncode == 0, (command, done.stderr)
    before = digests(release)
    later = published(direct, hospital_in(tmp_path / "two", work="s3://bucket/commands"), "--set", "privacy.k=5", **store)
    # The registry of releases lies in the bucket too.
    assert [one["release"] for one in later["overlaps"]] == [first["release"]]
    assert direct("clean", job, **store).returncode == 0
    assert digests(release) == before
    assert not left_here()


def test_the_source_of_any_table_lies_apart_from_the_work(direct: CommandLine, store: dict[str, str], tmp_path: Path) -> None:
    job = hospital_in(tmp_path / "one", work="s3://bucket/within")
    content = yaml.safe_load(job.read_text())
    content["tables"]["condition"]["source"] = {"path": "s3://bucket/within/condition/*.parquet"}
    job.write_text(yaml.safe_dump(content, sort_keys=False))
    refused = direct("run", job, **store)
    assert (refused.returncode, "source" in refused.stderr) == (2, True), refused.stderr
    content["work"], content["tables"]["condition"]["source"] = "kept", {"path": "kept/condition/*.parquet"}
    (tmp_path / "one" / "kept").mkdir()
    (tmp_path / "one" / "condition").rename(tmp_path / "one" / "kept" / "condition")
    job.write_text(yaml.safe_dump(content, sort_keys=False))
    refused = direct("run", job)
    assert (refused.returncode, "source" in refused.stderr) == (2, True), refused.stderr
