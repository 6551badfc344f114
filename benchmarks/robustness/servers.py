"""Runs that lose who they work with: Prefect's server, Dask's scheduler, a worker of Dask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from benchmarks.robustness.cases import SETTINGS, Case, content, releases
from benchmarks.robustness.commands import PATIENCE, ROOT, Commands
from benchmarks.robustness.kills import looked_at, wrong_end
from benchmarks.robustness.tally import Tally
from benchmarks.servers.processes import Server, cluster, free_port, kill, started, waited


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SKALD_", "PREFECT_"))}
    quiet = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_SERVER_UI_ENABLED": "false"}
    return kept | quiet | {"PYTHONPATH": str(ROOT), "HOME": str(folder), "PREFECT_HOME": str(folder / "prefect"), "COLUMNS": "200"}


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:  # an address of this machine
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def _prefect(folder: Path) -> Iterator[tuple[list[Server], list[str], dict[str, str]]]:
    port = free_port()
    with started(folder, _environment(folder), "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)) as server:
        waited(lambda: _answers(f"http://127.0.0.1:{port}/api/health"))
        yield [server], [], {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}


@contextmanager
def _dask(folder: Path) -> Iterator[tuple[list[Server], list[str], dict[str, str]]]:
    with cluster(folder, _environment(folder), 2) as (address, scheduler, workers):
        yield [scheduler, workers[0]], ["--scheduler", address], {}


KINDS = {"Prefect's server": (_prefect, 0), "a worker of Dask": (_dask, 1), "Dask's scheduler": (_dask, 0)}
"""Who goes, and the position among the processes that its context yields."""


def without_servers(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """End those processes while a run works with them; yield after each trial."""
    case, number = Case("skald", "parquet", "parquet"), 0
    case.write(folder / "undisturbed")
    if fault := wrong_end(commands(folder / "undisturbed", "run", "job.yaml", *SETTINGS), 0):
        tally.add("servers", "undisturbed", fault)
        return
    wanted = content(releases(folder / "undisturbed")[0])
    while True:
        for kind, (server, place) in KINDS.items():
            number += 1
            here = folder / f"trial-{number}"
            shutil.copytree(folder / "undisturbed", here, ignore=shutil.ignore_patterns(".skald", "releases"))
            with server(here) as (processes, options, environment):
                fault = _lost(here, processes[place], options, environment, random)
            # Whoever lost it continues without it.
            fault = fault or wrong_end(commands(here, "run", "job.yaml", *SETTINGS), 0) or looked_at(commands, here, wanted)
            tally.add("servers", f"{kind} gone", fault)
            yield


def _lost(folder: Path, lost: Server, options: list[str], environment: dict[str, str], random: Random) -> str:
    command = [sys.executable, "-m", "flows.process", "run", "job.yaml", *SETTINGS, *options]
    with subprocess.Popen(
        command, cwd=folder, env=_environment(folder) | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        work = folder / ".skald" / "people" / "artifacts"
        # Somewhere between the first thing that is kept and the last.
        steps = ["domains", "domain", "histograms", "histogram", "outcome", "runs"]
        step = random.choice(steps)
        waited(lambda: process.poll() is not None or bool(list(work.glob(f"{step}/*.record"))))
        kill(lost)
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"hangs without it, since '{step}'"
    if process.returncode not in {0, 2} or "Traceback" in said:
        return f"ended with {process.returncode} since '{step}': {' '.join(said.split())[-300:]}"
    return ""
