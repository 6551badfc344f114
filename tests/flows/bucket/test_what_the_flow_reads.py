"""With source, work and target in buckets the flow reads counts, digests and labels of classes, and nothing that is of records."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from schemas.job.job import load_job
from tests.conftest import Anonymise, CommandLine
from tests.flows.engine.test_dask import cluster_of
from tests.flows.lattice.test_roots import job, room_for
from tests.jobs import job_of, people, people_job, write_job
from tests.servers import objects, s3_bucket

ROWS = 1000
TABLE = people(ROWS).set_column(0, "person", pa.array([row // 2 for row in range(ROWS)]))
SETTINGS = ("chunk_rows=100", "rows_per_file=200")
PERSONS = {"columns": job_of()["columns"] | {"person": "person"}}
FRAGMENTS = {"name": "mondrian", "fragments": {"count": 3}}
JOBS: dict[str, dict[str, Any]] = {
    "skald": {},
    "persons": PERSONS,
    "fragments": {"method": FRAGMENTS},
    "persons in fragments": {"method": FRAGMENTS} | PERSONS,
}

READ = {"looks", "listed", "passthrough", "bundles", "domain", "histogram", "sizes", "census", "losses", "tallies"}
READ |= {"outcome", "cells", "classes", "lattice"}
"""Steps whose artefacts the flow may read: figures, domains, counts and digests of a bounded number, the lists of the job; and what a
search found: the recoding of the histogram's cells, and the labels of classes."""
OVERLAP = ("by", "unit", "shared", "shared_at_risk", "added", "added_at_risk", "removed", "removed_at_risk", "unmeasured")
TWICE = {"skald", "persons"}
"""Jobs of which two releases are held against one another: by the counts of files, and by records."""


LITTLE_ROOM = """
import sys
from flows.server.local_api import prepare_prefect
prepare_prefect()
from core.lattice import lattice as roots
from tasks.lattice import optimum
roots.BYTES_PER_CELL = optimum.BYTES_PER_CELL = int(sys.argv.pop(1))
from flows.cli import main
main()
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """What an S3 server is asked, and the environment that leads there."""
    path = tmp_path_factory.mktemp("s3") / "log"
    with s3_bucket(log=path) as environment:
        yield path, environment


def published(prefix: str) -> dict[str, Any]:
    """The manifest of the release that is the current one."""
    release = objects().cat_file(f"bucket/{prefix}/out/CURRENT").decode().strip()
    manifest: dict[str, Any] = json.loads(objects().cat_file(f"bucket/{prefix}/out/{release}/manifest.json"))
    return manifest


def read_by_the_flow(log: Path) -> Counter[str]:
    """Bytes of artefacts that the flow read, by step."""
    found = Counter[str]()
    for key, method, path, _, size in (line.split("\t") for line in log.read_text().splitlines()):
        if (key, method) == ("flow", "GET") and "/artifacts/" in path and not path.endswith(".record"):
            found[path.split("/artifacts/")[1].split("/")[0]] += int(size)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_nothing_that_is_of_records_passes_through_the_flow(
    prefect: CommandLine, anonymise: Anonymise, log: tuple[Path, dict[str, str]], name: str
) -> None:
    path, environment = log
    prefix, parts = name.replace(" ", "-"), JOBS[name]
    here = people_job(prefect.folder / "here", TABLE, files=3, row_group=100, **parts)
    local = [anonymise(here, *SETTINGS, f"privacy.k={k}").manifest for k in (4, 6)[: 2 if name in TWICE else 1]]
    objects().put(str(here.parent / "people"), f"bucket/{prefix}/", recursive=True)
    places = {"source": {"path": f"s3://bucket/{prefix}/people/*.parquet"}, "target": f"s3://bucket/{prefix}/out"}
    write_job(prefect.folder, job_of(**places, **parts, work=f"s3://bucket/{prefix}/work"))
    given = [part for setting in SETTINGS for part in ("--set", setting)]
    path.write_text("")
    with cluster_of(prefect, 2, **environment | {"AWS_ACCESS_KEY_ID": "worker"}) as cluster:
        for k, expected in zip((4, 6), local, strict=False):
            asked = ["run", "job.yaml", *given, "--set", f"privacy.k={k}", "--scheduler", cluster.address]
            as_flow = environment | {"AWS_ACCESS_KEY_ID": "flow"}
            done = prefect(*asked, **as_flow)
            assert (done.returncode, "Traceback" in done.stderr) == (0, False)
            manifest = published(prefix)
            assert [file["sha256"] for file in manifest["files"]] == [file.sha256 for file in expected.files]
            # Of the first release the second one tells how many records both put at risk; the target is another one.
            told = [[one[field] for field in OVERLAP] for one in manifest["overlaps"]]
            assert told == [[getattr(one, field) for field in OVERLAP] for one in expected.overlaps]
    assert set(read_by_the_flow(path)) <= READ


@pytest.mark.slow
def test_further_roots_are_counted_of_histograms_that_the_flow_does_not_read(
    prefect: CommandLine, anonymise: Anonymise, log: tuple[Path, dict[str, str]]
) -> None:
    path, environment = log
    (prefect.folder / "here").mkdir()
    parts: dict[str, Any] = {"method": {"name": "skald", "roots": 100}, "privacy": {"k": 60}, "suppression": {"limit": 0.01}}
    here, chunks = job(prefect.folder / "here", **parts), "chunk_rows=300"
    dear = load_job(here).memory // 90
    with room_for(90, here):
        alone = anonymise(here, chunks)
    expected = alone.manifest
    assert len(alone.untold.search["roots"]) > 1
    objects().put(str(here.parent / "people"), "bucket/roots/", recursive=True)
    places = {"source": {"path": "s3://bucket/roots/people/*.parquet"}, "target": "s3://bucket/roots/out"}
    write_job(prefect.folder, job_of(**places, **parts, columns=yaml.safe_load(here.read_text())["columns"], work="s3://bucket/roots/work"))
    path.write_text("")
    with cluster_of(prefect, 2, **environment | {"AWS_ACCESS_KEY_ID": "worker"}) as cluster:
        asked = ["run", "job.yaml", "--set", chunks, "--scheduler", cluster.address]
        as_flow = environment | {"AWS_ACCESS_KEY_ID": "flow"}
        done = prefect.ended([sys.executable, "-c", LITTLE_ROOM, str(dear), *asked], **as_flow)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    manifest = published("roots")
    assert manifest["search"] == expected.search
    assert [file["sha256"] for file in manifest["files"]] == [file.sha256 for file in expected.files]
    assert set(read_by_the_flow(path)) <= READ
