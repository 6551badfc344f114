"""Runs over a bucket and a database that are killed.

What they publish, here or in the bucket, must equal what an undisturbed run publishes here.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import fsspec
import pyarrow as pa

from benchmarks.robustness.cases import METHODS, ROWS, SETTINGS, content, releases
from benchmarks.robustness.commands import Commands
from benchmarks.robustness.kills import SIGKILLED, TIMES, wrong_end
from benchmarks.robustness.tally import Tally
from tests.jobs import CSV_TYPES, job_of, people, write_csv, write_job, write_parquet
from tests.servers import postgresql, s3

BUCKET = "bucket"
WAYS = (("s3", "local"), ("s3 csv", "local"), ("local", "s3"), ("s3", "s3"), ("postgresql", "local"), ("postgresql", "s3"))
"""Where the source is, and where the releases go."""


def over_stores(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Kill runs over every way in turn, by methods drawn by chance; yield after each trial."""
    table = people(ROWS)
    with ExitStack() as stack:
        environment = stack.enter_context(s3())
        system = fsspec.filesystem(
            "s3",
            key=environment["AWS_ACCESS_KEY_ID"],
            secret=environment["AWS_SECRET_ACCESS_KEY"],
            client_kwargs={"endpoint_url": environment["AWS_ENDPOINT_URL"]},
            use_listings_cache=False,
        )
        system.mkdir(BUCKET)
        sources = _sources(folder, table, system, stack.enter_context(postgresql()))
        for number in count():
            for source, target in WAYS:
                method = random.choice(list(METHODS))
                here = folder / f"trial-{number}-{source}-{target}".replace(" ", "-")
                place = f"{BUCKET}/{here.name}"
                for name, way in (("undisturbed", "releases"), ("killed", "releases" if target == "local" else f"s3://{place}")):
                    _write(here / name, sources[source], method, way)
                crashes, fault = _tried(commands, here, random, environment, system if target == "s3" else None, place)
                told = f"{method} from {source} to {target}, trial {number}: {fault}" if fault else ""
                tally.add("stores", f"from {source} to {target}", told, max(crashes, 1))
                shutil.rmtree(here)
                yield


def _sources(folder: Path, table: pa.Table, system: Any, address: str) -> dict[str, dict[str, Any]]:
    write_parquet(folder / "people", table, files=2, row_group=60)
    write_csv(folder / "people.csv", table)
    for path in (*(folder / "people").glob("*.parquet"), folder / "people.csv"):
        system.put_file(str(path), f"{BUCKET}/source/{path.name}")
    _load(address, table)
    return {
        "local": {"path": f"{folder}/people/*.parquet"},
        "s3": {"path": f"s3://{BUCKET}/source/*.parquet"},
        "s3 csv": {"path": f"s3://{BUCKET}/source/people.csv", "types": CSV_TYPES},
        "postgresql": {"connection": {"uri": address}, "table": "people", "types": {"height": "decimal(4,1)"}},
    }


def _load(address: str, table: pa.Table) -> None:
    """Make the table of the server; decimals go in as text, because the driver takes no others."""
    from adbc_driver_postgresql.dbapi import connect

    exact = [name for name in table.column_names if pa.types.is_decimal(table[name].type)]
    texts = pa.table({name: table[name].cast(pa.string()) if name in exact else table[name] for name in table.column_names})
    columns = ", ".join(f"{name}::numeric AS {name}" if name in exact else name for name in table.column_names)
    with connect(address) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("loaded", texts, mode="create")
        cursor.execute(f"CREATE TABLE people AS SELECT {columns} FROM loaded")
        connection.commit()


def _write(folder: Path, source: dict[str, Any], method: str, target: str) -> None:
    folder.mkdir(parents=True)
    suppression = {"limit": 0.05} if not method.startswith("mondrian") else None
    write_job(folder, job_of(source=source, method=METHODS[method], suppression=suppression, target=target))


def _tried(commands: Commands, folder: Path, random: Random, environment: Mapping[str, str], system: Any, place: str) -> tuple[int, str]:
    """Kill a run some times and let it end; return the kills that came in time, and what is wrong."""
    first = commands(folder / "undisturbed", "run", "job.yaml", *SETTINGS, limits=None, **environment)
    if fault := wrong_end(first, 0):
        return 0, f"undisturbed {fault}"
    here, crashes = folder / "killed", 0
    for _ in range(random.randint(1, TIMES)):
        # To copy a release takes its time, too.
        started = commands.start(here, "run", "job.yaml", *SETTINGS, limits=None, **environment)
        ended = started.kill_after(random.random() * first.seconds * 1.5)
        crashes += ended.code == SIGKILLED
        if ended.code not in {0, SIGKILLED}:
            return crashes, wrong_end(ended, 0)
    if fault := wrong_end(commands(here, "run", "job.yaml", *SETTINGS, limits=None, **environment), 0):
        return crashes, fault
    wanted = content(releases(folder / "undisturbed")[0])
    if system is None:
        release = str(releases(here)[0])
        found = content(releases(here)[0])
    else:
        release = f"s3://{place}/{system.cat_file(f'{place}/CURRENT').decode().strip()}"
        found = _remote_content(system, release.removeprefix("s3://"))
    if found != wanted:
        return crashes, "another release than that of the undisturbed run"
    return crashes, wrong_end(commands(here, "verify", release, "--job", "job.yaml", *SETTINGS, limits=None, **environment), 0)


def _remote_content(system: Any, release: str) -> list[str]:
    names = sorted(system.find(f"{release}/data"))
    return [f"{name.removeprefix(f'{release}/')} {hashlib.sha256(system.cat_file(name)).hexdigest()}" for name in names]
