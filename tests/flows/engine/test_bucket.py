"""Source and target in buckets: workers read the one and write the other, and no byte of a record passes through the flow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.conftest import Anonymise, CommandLine
from tests.flows.engine.test_dask import cluster_of
from tests.jobs import CSV_TYPES, job_of, people, people_job, write_csv, write_job
from tests.servers import s3

TABLE = people(1200)
SETTINGS = ("chunk_rows=100", "rows_per_file=200", "privacy.k=4")


@pytest.fixture
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """What an S3 server is asked, and the environment that leads there."""
    log = tmp_path_factory.mktemp("s3") / "log"
    with s3(log) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield log, environment


def system() -> Any:
    return fsspec.filesystem("s3", use_listings_cache=False)


def asks(log: Path) -> set[tuple[str, str, str]]:
    """Who asked how for which object."""
    return {(key, method, path) for key, method, path, *_ in (line.split("\t") for line in log.read_text().splitlines())}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "workers", "method", "work"),
    [
        ("parquet", 1, {"name": "skald"}, None),
        ("csv", 2, {"name": "mondrian", "fragments": {"count": 3}}, "s3://target/work"),
    ],
    ids=["one worker", "csv and fragments"],
)
def test_the_flow_lists_and_publishes_and_the_workers_read_and_write(
    prefect: CommandLine,
    anonymise: Anonymise,
    asked: tuple[Path, dict[str, str]],
    kind: str,
    workers: int,
    method: dict[str, Any],
    work: str | None,
) -> None:
    log, environment = asked
    here = people_job(prefect.folder / "here", TABLE, files=3, row_group=100, method=method)
    if kind == "csv":
        for number, path in enumerate(sorted((here.parent / "people").iterdir())):
            write_csv(path.with_suffix(".csv"), TABLE.slice(number * 400, 400))
            path.unlink()
    for bucket in ("source", "target"):
        system().mkdir(bucket)
    for path in (here.parent / "people").iterdir():
        system().put_file(str(path), f"source/people/{path.name}")
    types = {"types": CSV_TYPES} if kind == "csv" else {}
    here = write_job(here.parent, job_of(source={"path": f"people/*.{kind}", **types}, method=method))
    local = anonymise(here, *SETTINGS)
    source = {"path": f"s3://source/people/*.{kind}", **types}
    write_job(prefect.folder, job_of(source=source, target="s3://target/releases", work=work, method=method))
    given = [part for setting in SETTINGS for part in ("--set", setting)]
    with cluster_of(prefect, workers, **environment | {"AWS_ACCESS_KEY_ID": "worker"}) as cluster:
        done = prefect("run", "job.yaml", *given, "--scheduler", cluster.address, **environment | {"AWS_ACCESS_KEY_ID": "flow"})
    assert (done.returncode, done.stderr) == (0, "")
    made = f"target/releases/{system().cat_file('target/releases/CURRENT').decode().strip()}"
    written = {name.removeprefix(f"{made}/"): sha256(system().cat_file(name)).hexdigest() for name in system().find(f"{made}/data")}
    assert written == {file.path: file.sha256 for file in local.manifest.files}
    assert system().exists(f"{made}/manifest.json")
    assert {key for key, method, path in asks(log) if method == "GET" and path.startswith("/source/people/")} == {"worker"}
    at_work = {(key, method) for key, method, path in asks(log) if f"/{made}/data/" in path}
    assert {method for key, method in at_work if key == "flow"} <= {"HEAD"}
    assert {("worker", "PUT"), ("worker", "GET")} <= at_work
    held = [path for key, method, path in asks(log) if (key, method) == ("flow", "GET") and "/artifacts/" in path]
    kept = {path.split("/artifacts/")[1].split("/")[0] for path in held if not path.endswith(".record")}
    # Figures, domains, counts, and digests of a bounded number.
    assert kept <= {"looks", "passthrough", "bundles", "census", "losses", "tallies"}
    looked = {(method, path.strip("/")) for key, method, path in asks(log) if key == "flow" and path.startswith("/source")}
    assert {method for method, path in looked if path != "source"} <= {"HEAD"}
    played, expected = map(json.loads, (system().cat_file(f"{made}/manifest.json"), (local.folder / "manifest.json").read_bytes()))
    # Those on the source too: what a worker converted of it lies elsewhere on each machine.
    assert [played[part] for part in ("attacks", "attacked")] == [expected[part] for part in ("attacks", "attacked")]
