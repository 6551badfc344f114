"""A real Prefect server on a file database, its worker, and what is asked of its API."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.conftest import CommandLine
from tests.patience import SECONDS, until
from tests.places import ROOT

FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@dataclass
class PrefectServer:
    """A server that runs, and processes that know it."""

    line: CommandLine
    port: int
    process: subprocess.Popen[bytes]
    database: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process that uses the server."""
        home = {"PREFECT_HOME": str(self.line.folder / "home"), "PREFECT_WORKER_QUERY_SECONDS": "1"}
        return {"PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api", "DO_NOT_TRACK": "1"} | home

    def prefect(self, *arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
        """Run ``prefect`` to its end."""
        options = self.line.options(**self.environment) | {"cwd": folder}
        command = [sys.executable, "-m", "prefect", *arguments]
        return subprocess.run(command, **options, capture_output=True, text=True, check=False, timeout=SECONDS)

    def start_worker(self, **environment: str) -> psutil.Process:
        """Start a worker of the pool ``skald``, which it makes."""
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "skald", "--type", "process"]
        with (self.line.folder / "worker.log").open("wb") as log:
            options = self.line.options(**self.environment | environment)
            self.processes.append(subprocess.Popen(command, **options, stdout=log, stderr=log))
        return psutil.Process(self.processes[-1].pid)

    def ask(self, method: str, path: str, content: Any = None) -> httpx.Response:
        """Ask the API."""
        return httpx.request(method, f"http://127.0.0.1:{self.port}/api{path}", json=content, timeout=SECONDS)

    def state(self, run: str) -> dict[str, Any]:
        """The state of a flow run."""
        state: dict[str, Any] = self.ask("GET", f"/flow_runs/{run}").json()["state"]
        return state

    def ended(self, run: str) -> dict[str, Any]:
        """Wait for the end of a flow run."""
        until(lambda: self.state(run)["type"] in FINAL)
        return self.state(run)

    def rows(self, query: str, *values: str) -> list[Any]:
        """Read the server's database."""
        with closing(sqlite3.connect(self.database)) as database:
            return database.execute(query, values).fetchall()

    def content(self) -> bytes:
        """All bytes of the database, with what is not yet merged into its main file."""
        return b"".join(path.read_bytes() for path in sorted(self.database.parent.glob(f"{self.database.name}*")))


@contextmanager
def serving(line: CommandLine, prefect_home: Path) -> Iterator[PrefectServer]:
    """Run a server until the end of the block, on a copy of the migrated database."""
    database = line.folder / "server.db"
    shutil.copy(next(prefect_home.glob("schema-*.db")), database)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "PREFECT_HOME": str(line.folder / "home"),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{database}",
        "PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "0.2",
        "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with (line.folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, **line.options(**settings), stdout=log, stderr=log)
    server = PrefectServer(line, port, process, database)
    try:
        until(lambda: _healthy(port))
        yield server
    finally:
        for started in [*server.processes, process]:
            for child in psutil.Process(started.pid).children(recursive=True) if started.poll() is None else []:
                child.kill()
            started.kill()
            started.wait()


def _healthy(port: int) -> bool:
    try:
        return json.loads(httpx.get(f"http://127.0.0.1:{port}/api/health").text) is True
    except (httpx.HTTPError, ValueError):
        return False


def frozen_below(process: psutil.Process) -> list[psutil.Process]:
    """The processes that one has begun and that are stopped."""
    found = []
    for child in process.children(recursive=True):
        # It may end in the meantime.
        with suppress(psutil.NoSuchProcess):
            found += [child] if child.status() == psutil.STATUS_STOPPED else []
    return found
