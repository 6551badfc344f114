"""Servers as processes of this machine for the time of a measurement, such as Dask's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PATIENCE = 120
"""Seconds after which a server that does not answer counts as lost."""
Server = subprocess.Popen[bytes]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(folder: Path, environment: Mapping[str, str], *command: str) -> Iterator[Server]:
    """Run a Python module until the end of the block; what it says goes to ``servers.log`` in the folder."""
    with (folder / "servers.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: Server) -> None:
    """End a server and its children: those of Prefect work in one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def waited(ready: Callable[[], bool]) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: it is not for too long.
    """
    end = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


@contextmanager
def cluster(folder: Path, environment: Mapping[str, str], workers: int) -> Iterator[tuple[str, Server, list[Server]]]:
    """Start a scheduler and workers of one thread; yield the address, the scheduler and the workers.

    They are yielded when all workers are connected.
    """
    address, log = f"tcp://127.0.0.1:{free_port()}", folder / "servers.log"
    said = log.read_bytes().count(b"Register worker") if log.exists() else 0
    with ExitStack() as stack:
        scheduler = stack.enter_context(started(folder, environment, "distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"))
        command = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--no-dashboard")
        processes = [stack.enter_context(started(folder, environment, *command)) for _ in range(workers)]
        waited(lambda: log.read_bytes().count(b"Register worker") - said == workers)
        yield address, scheduler, processes
