"""Workers on Dask that have nothing in common with the head but a bucket: the same bytes, and nothing of the work left on any machine."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tasks.store.lease import Clock, take_lease
from tasks.store.place import Bucket
from tests.conftest import Anonymise, CommandLine
from tests.jobs import CSV_TYPES, JOB, PUBLISHED, digests, people, people_job, write_csv
from tests.patience import until
from tests.places import ROOT
from tests.servers import objects, s3_bucket

TABLE = people(1500)
CHANGES = ("privacy.k=4", "rows_per_file=500", "chunk_rows=250")
SETTINGS = [part for change in CHANGES for part in ("--set", change)]
METHODS: dict[str, dict[str, Any]] = {
    "skald": {"name": "skald"},
    "mondrian": {"name": "mondrian", "fragments": {"count": 4, "sample": 0.5}},
    "rayden": {"name": "rayden", "fragments": {"count": 2}},
}


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 server with a bucket, and the environment that leads there."""
    with s3_bucket() as environment:
        yield environment


@contextmanager
def cluster(secluded: Path, folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, which see nothing of the head's folder; each has a folder for temporary files of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    processes = []
    try:
        for number, command in enumerate((["scheduler", "--host", address], ["worker", address], ["worker", address])):
            here = folder / f"{number}"
            here.mkdir(parents=True)
            options = ["--nthreads", "1", "--no-nanny"] if number else []
            started = [sys.executable, "-m", f"distributed.cli.dask_{command[0]}", *command[1:], *options, "--no-dashboard"]
            variables = os.environ | environment | {"TMPDIR": str(here), "PYTHONPATH": str(ROOT)}
            with (here / "log").open("wb") as log:
                processes.append(subprocess.Popen(hidden(secluded, started), cwd=here, env=variables, stdout=log, stderr=log))
        until(lambda: (folder / "0" / "log").read_text().count("Register worker") == 2)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def hidden(folder: Path, command: list[str]) -> list[str]:
    """Return a command that sees nothing of a folder, where the machine allows a process mounts of its own."""
    script = f'mount -t tmpfs none {shlex.quote(str(folder))} && exec "$@"'
    allowed = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode == 0
    return ["unshare", "-m", "sh", "-c", script, "sh", *command] if allowed else command


def job_in(folder: Path, prefix: str, method: dict[str, Any], **parts: Any) -> Path:
    """A job whose source, work and target are in the bucket."""
    places = {"source": {"path": f"s3://bucket/{prefix}/people/*.parquet"}, "target": f"s3://bucket/{prefix}/out"}
    job = people_job(folder, TABLE, files=3, method=method, work=f"s3://bucket/{prefix}/kept", **places, **parts)
    objects().put(str(folder / "people"), f"bucket/{prefix}/", recursive=True)
    shutil.rmtree(folder / "people")
    return job


def released(prefix: str, to: Path) -> list[str]:
    """Digests of the files of the release in the bucket."""
    [manifest] = [name for name in objects().find(f"bucket/{prefix}/out") if name.endswith("manifest.json")]
    objects().get(manifest.removesuffix("/manifest.json"), str(to), recursive=True)
    return digests(next(to.rglob("manifest.json")).parent)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_workers_that_share_a_bucket_alone_make_the_bytes_of_a_run_in_a_folder(
    anonymise: Anonymise, prefect: CommandLine, store: dict[str, str], tmp_path: Path, method: str
) -> None:
    here = anonymise(people_job(tmp_path / "here", TABLE, files=3, method=METHODS[method]), *CHANGES)
    job = job_in(prefect.folder / "job", method, METHODS[method])
    with cluster(prefect.folder / "job", tmp_path / "machines", store) as (address, _):
        done = prefect("run", job, "--scheduler", address, *SETTINGS, **store)
        assert (done.returncode, done.stderr) == (0, "")
        assert not list((tmp_path / "machines").glob("*/skald-work-*"))
    assert released(method, tmp_path / "got") == digests(here.folder)
    assert not [name for name in objects().find(f"bucket/{method}/kept") if "/calls/" in name]


@pytest.mark.slow
def test_neither_a_dead_worker_nor_a_dead_head_costs_what_is_finished(
    anonymise: Anonymise, prefect: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    here = anonymise(people_job(tmp_path / "here", TABLE, files=3), *CHANGES)
    job = job_in(prefect.folder / "job", "killed", METHODS["skald"])
    made = lambda: {name: one.get("ETag") for name, one in objects().find("bucket/killed/kept/artifacts/domains", detail=True).items()}  # noqa: E731
    with cluster(prefect.folder / "job", tmp_path / "machines", store) as (address, processes):
        head = prefect.start("run", job, "--scheduler", address, *SETTINGS, **store)
        until(lambda: len(made()) >= 2)
        processes[1].kill()
        head.kill()
        head.communicate()
        before = {name: tag for name, tag in made().items() if name.endswith(".record")}
        expire("killed/kept")
        (prefect.folder / "elsewhere").mkdir()
        shutil.move(job.parent, prefect.folder / "elsewhere" / "job")
        done = prefect("run", prefect.folder / "elsewhere" / "job" / "job.yaml", "--scheduler", address, *SETTINGS, **store)
        assert (done.returncode, done.stderr) == (0, "")
    assert made().items() >= before.items()
    assert released("killed", tmp_path / "got") == digests(here.folder)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["skald", "rayden"])
def test_what_finished_chunks_left_and_was_lost_is_made_again_by_workers(
    prefect: CommandLine, store: dict[str, str], tmp_path: Path, method: str
) -> None:
    prefix, columns = f"lost-{method}", JOB["columns"] | {"person": "person"}
    source = {"path": f"s3://bucket/{prefix}/people/*.csv", "format": "csv", "types": CSV_TYPES}
    places = {"source": source, "target": f"s3://bucket/{prefix}/out", "work": f"s3://bucket/{prefix}/kept"}
    job = people_job(prefect.folder / "job", people(1), method={"name": method}, columns=columns, **places)
    shutil.rmtree(job.parent / "people")
    for number in range(3):
        write_csv(tmp_path / "people" / f"{number}.csv", TABLE.slice(number * 200, 200))
    objects().put(str(tmp_path / "people"), f"bucket/{prefix}/", recursive=True)
    with cluster(prefect.folder / "job", tmp_path / "machines", store) as (address, _):
        command = ("run", job, "--scheduler", address, *SETTINGS)
        head = prefect.start(*command, **store)
        until(lambda: objects().find(f"bucket/{prefix}/kept/artifacts/files"))
        head.kill()
        head.communicate()
        lost = [name for name in objects().find(f"bucket/{prefix}/kept/artifacts") if "/members/" in name or "/people/" in name]
        assert len(lost) > 2
        objects().rm(lost)
        expire(f"{prefix}/kept")
        done = prefect(*command, **store)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_values_that_the_flow_decided_on_reach_workers_through_the_bucket(
    anonymise: Anonymise, prefect: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    here = anonymise(people_job(tmp_path / "here", TABLE, files=3, columns=PUBLISHED), *CHANGES)
    job = job_in(prefect.folder / "job", "ways", METHODS["skald"], columns=PUBLISHED)
    with cluster(prefect.folder / "job", tmp_path / "machines", store) as (address, _):
        refused = prefect("run", job, "--scheduler", address, *SETTINGS, **store)
        assert (refused.returncode, "'publish' are not published by workers into a bucket" in refused.stderr) == (2, True)
        done = prefect("run", job, "--scheduler", address, *SETTINGS, "--set", "target=out", **store)
        assert (done.returncode, done.stderr) == (0, "")
    [manifest] = job.parent.glob("out/*/manifest.json")
    assert digests(manifest.parent) == digests(here.folder)


@pytest.mark.slow
def test_workers_take_tokens_from_a_vault_that_they_see_and_say_so_where_they_do_not(
    prefect: CommandLine, store: dict[str, str], tmp_path: Path
) -> None:
    for seen, folder in ((True, tmp_path), (False, prefect.folder / "job")):
        vaults = folder / "vaults"
        vaults.mkdir(mode=0o700, parents=True)
        tokens = {"name": "person", "treatment": {"token": {"vault": {"file": str(vaults / "person.parquet")}}}}
        columns = JOB["columns"] | {"identifiers": [tokens]}
        job = job_in(prefect.folder / "job", f"tokens-{seen}", METHODS["skald"], columns=columns)
        with cluster(prefect.folder / "job", tmp_path / f"machines-{seen}", store) as (address, _):
            done = prefect("run", job, "--scheduler", address, *SETTINGS, **store)
        if seen or not is_hidden():
            assert (done.returncode, done.stderr) == (0, "")
        else:
            assert done.returncode == 2
            assert "vault" in done.stderr


def is_hidden() -> bool:
    """Whether the machine allows a process mounts of its own."""
    return hidden(Path("/mnt"), ["true"]) != ["true"]


def expire(prefix: str) -> None:
    """Let the lease of a dead run run out: somebody with a clock that flies takes it and lets it go."""
    time = [0.0]
    take_lease(Bucket(f"s3://bucket/{prefix}"), Clock(lambda: time[0], lambda seconds: time.__setitem__(0, time[0] + seconds))).release()
