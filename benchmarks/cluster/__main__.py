"""The cost of a run on Dask as the data grow, for the process of the flow and for the workers.

Source and target are in a bucket.

    python -m benchmarks.cluster [--rows 250000 1000000 4000000] [--workers 2] [--memory 1GB] [--data FOLDER]

The data are made once in ``benchmarks/.data`` (or ``--data``) and kept; the bucket is on an S3 server of this machine, whose own CPU is not
counted. Ends with 1 if a release differs in a byte from that of a run without a cluster on files of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec
import psutil

from benchmarks.measure import measure, skald
from benchmarks.servers.processes import Server, cluster
from data.medical import make_medical
from data.tables import JOBS
from tests.servers import s3

ROOT = Path(__file__).parent.parent.parent
DATA = Path(__file__).parent.parent / ".data"
FILES = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 1_000_000, 4_000_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    same = True
    print(f"medical, {FILES} files, k = 50, limit 0.01, memory {options.memory}, {options.workers} workers of one thread\n")
    print(f"{'records':>12}{'flow CPU s':>12}{'workers CPU s':>15}{'wall s':>8}{'flow %':>8}{'peak MB':>9}{'one process CPU s':>19}")
    with tempfile.TemporaryDirectory() as name, s3() as environment:
        keys = {"key": environment["AWS_ACCESS_KEY_ID"], "secret": environment["AWS_SECRET_ACCESS_KEY"]}
        system = fsspec.filesystem("s3", endpoint_url=environment["AWS_ENDPOINT_URL"], **keys)
        system.mkdir("target")
        for rows in options.rows:
            files = prepare(options.data / f"medical-{rows}-in-{FILES}", rows)
            system.mkdir(f"source-{rows}")
            for path in files:
                system.put_file(str(path), f"source-{rows}/{path.name}")
            address, home = f"s3://source-{rows}/*.parquet", {"PREFECT_HOME": f"{name}/prefect"}
            if rows == options.rows[0]:
                # Makes Prefect's database, once.
                run(options.memory, [str(files[0])], "releases", [], home)
            alone, local = run(options.memory, [str(files[0].parent / "*.parquet")], "releases", ["--direct"], {})
            with cluster(Path(name), os.environ | environment | {"PYTHONPATH": str(ROOT)}, options.workers) as (scheduler, _, workers):
                before = seconds(workers)
                cost, _ = run(options.memory, [address], f"s3://target/{rows}", ["--scheduler", scheduler], environment | home)
                theirs = seconds(workers) - before
            made = system.cat_file(f"target/{rows}/CURRENT").decode().strip()
            remote = json.loads(system.cat_file(f"target/{rows}/{made}/manifest.json"))
            same &= remote["files"] == local["files"]
            share = 100 * cost.cpu / (cost.cpu + theirs)
            print(f"{rows:>12,}{cost.cpu:>12.1f}{theirs:>15.1f}{cost.wall:>8.0f}{share:>8.0f}{cost.peak / 1e6:>9.0f}{alone.cpu:>19.1f}")
    if not same:
        sys.exit("The releases differ.")


def seconds(servers: Sequence[Server]) -> float:
    """Return the CPU seconds that servers have taken so far."""
    taken = [psutil.Process(server.pid).cpu_times() for server in servers]
    return float(sum(times.user + times.system for times in taken))


def prepare(folder: Path, rows: int) -> list[Path]:
    """Make the files if they are not there."""
    if len(list(folder.glob("*.parquet"))) != FILES:
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_medical(folder, rows, files=FILES)
    return sorted(folder.glob("*.parquet"))


def run(memory: str, source: list[str], target: str, mode: list[str], environment: dict[str, str]) -> tuple[Any, dict[str, Any]]:
    """Measure one complete run; return its manifest where the release is on this machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(JOBS / "hierarchies", folder / "hierarchies")
        shutil.copy(JOBS / "medical.yaml", folder)
        given = [f"memory={memory}", f"source.path={json.dumps(source)}", f"target={target}"]
        options = [part for setting in given for part in ("--set", setting)]
        quiet = {"DO_NOT_TRACK": "1", "PYTHONPATH": str(ROOT)}
        cost = measure(skald("run", "medical.yaml", *options, *mode), folder, **environment, **quiet)
        current = folder / "releases" / "CURRENT"
        if not current.exists():
            return cost, {}
        return cost, json.loads((current.parent / current.read_text().strip() / "manifest.json").read_bytes())


if __name__ == "__main__":
    main()
