"""Runs that lose who they work with: Prefect's server, Dask's scheduler, a worker of Dask."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

from benchmarks.robustness.cases import SETTINGS, Case, content, releases
from benchmarks.robustness.commands import PATIENCE, ROOT, Commands
from benchmarks.robustness.kills import looked_at, wrong_end
from benchmarks.robustness.tally import Tally

Processes = list[subprocess.Popen[bytes]]


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SKALD_", "PREFECT_"))}
    quiet = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_SERVER_UI_ENABLED": "false"}
    return kept | quiet | {"PYTHONPATH": str(ROOT), "HOME": str(folder), "PREFECT_HOME": str(folder / "prefect"), "COLUMNS": "200"}


@contextmanager
def _started(folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "servers.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=_environment(folder), stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # Its children too: Prefect's server is one.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _waited(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:  # an address of this machine
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def _prefect(folder: Path) -> Iterator[tuple[Processes, list[str], dict[str, str]]]:
    port = _free_port()
    with _started(folder, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)) as server:
        _waited(lambda: _answers(f"http://127.0.0.1:{port}/api/health"))
        yield [server], [], {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}


@contextmanager
def _dask(folder: Path) -> Iterator[tuple[Processes, list[str], dict[str, str]]]:
    address, log = f"tcp://127.0.0.1:{_free_port()}", folder / "servers.log"
    with ExitStack() as stack:
        scheduler = stack.enter_context(_started(folder, "-m", "distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"))
        worker = ("-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        workers = [stack.enter_context(_started(folder, *worker)) for _ in range(2)]
        _waited(lambda: log.read_text(errors="replace").count("Register worker") == len(workers))
        yield [scheduler, workers[0]], ["--scheduler", address], {}


KINDS = {"Prefect's server": (_prefect, 0), "a worker of Dask": (_dask, 1), "Dask's scheduler": (_dask, 0)}
"""Who goes, and the position among the processes that its context yields."""


def without_servers(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Ends those processes while a run works with them; yields after each trial."""
    case, number = Case("skald", "parquet", "parquet"), 0
    case.write(folder / "undisturbed")
    if fault := wrong_end(commands(folder / "undisturbed", "run", "job.yaml", *SETTINGS), 0):
        tally.add("servers", "undisturbed", fault)
        return
    wanted = content(releases(folder / "undisturbed")[0])
    while True:
        for kind, (started, place) in KINDS.items():
            number += 1
            here = folder / f"trial-{number}"
            shutil.copytree(folder / "undisturbed", here, ignore=shutil.ignore_patterns(".skald", "releases"))
            with started(here) as (processes, options, environment):
                fault = _lost(here, processes[place], options, environment, random)
            # Whoever lost it continues without it.
            fault = fault or wrong_end(commands(here, "run", "job.yaml", *SETTINGS), 0) or looked_at(commands, here, wanted)
            tally.add("servers", f"{kind} gone", fault)
            yield


def _lost(folder: Path, lost: subprocess.Popen[bytes], options: list[str], environment: dict[str, str], random: Random) -> str:
    command = [sys.executable, "-m", "flows.cli", "run", "job.yaml", *SETTINGS, *options]
    with subprocess.Popen(
        command, cwd=folder, env=_environment(folder) | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        work = folder / ".skald" / "people" / "artifacts"
        # Somewhere between the first thing that is kept and the last.
        steps = ["domains", "domain", "histograms", "histogram", "outcome", "runs"]
        step = random.choice(steps)
        _waited(lambda: process.poll() is not None or bool(list(work.glob(f"{step}/*.record"))))
        _kill(lost)
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"hangs without it, since '{step}'"
    if process.returncode not in {0, 2} or "Traceback" in said:
        return f"ended with {process.returncode} since '{step}': {' '.join(said.split())[-300:]}"
    return ""
