"""An S3 server, a Dask scheduler and its workers, each a process of this machine, for as long as a measurement takes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

PATIENCE = 120
ROOT = Path(__file__).parent.parent.parent


def free_port() -> int:
    """Returns a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(folder: Path, environment: dict[str, str], *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a Python module until the end of the block; what it says goes to a file of the folder."""
    with (folder / "servers.log").open("ab") as log:
        given = os.environ | environment | {"PYTHONPATH": str(ROOT)}
        process = subprocess.Popen([sys.executable, "-m", *command], cwd=folder, env=given, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def listens(port: int) -> None:
    """Waits until somebody listens on a port.

    Raises:
        TimeoutError: nobody does.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise TimeoutError from None
            time.sleep(0.1)
        else:
            return


@contextmanager
def store(folder: Path) -> Iterator[dict[str, str]]:
    """Starts an S3 server; yields the environment that leads there."""
    port = free_port()
    with started(folder, {}, "moto.server", "-H", "127.0.0.1", "-p", str(port)):
        listens(port)
        keys = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "a-secret", "AWS_DEFAULT_REGION": "us-east-1"}
        yield {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", **keys}


@contextmanager
def cluster(folder: Path, environment: dict[str, str], workers: int) -> Iterator[tuple[str, Sequence[psutil.Process]]]:
    """Starts a scheduler and workers of one thread; yields its address and the workers."""
    with ExitStack() as stack:
        port = free_port()
        address, quiet = f"tcp://127.0.0.1:{port}", "--no-dashboard"
        stack.enter_context(started(folder, environment, "distributed.cli.dask_scheduler", "--host", address, quiet))
        listens(port)
        command = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--memory-limit", "0", quiet)
        processes = [stack.enter_context(started(folder, environment, *command)) for _ in range(workers)]
        yield address, [psutil.Process(process.pid) for process in processes]


def seconds(processes: Sequence[psutil.Process]) -> float:
    """Returns the CPU seconds that processes have taken so far."""
    return float(sum(process.cpu_times().user + process.cpu_times().system for process in processes))
