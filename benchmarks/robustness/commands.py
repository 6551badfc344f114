"""Commands as processes of their own that start at once.

Each is forked from one process that has imported everything and started nothing.

A process of ``skald`` takes two CPU seconds to import what it needs; a fork of one that has done so takes none, so that a minute holds
hundreds of kills. What is killed, limited or shifted in time is the whole process, as it would be for a user.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent.parent
LATE = ("prefect", "dask", "engine/remote", "postgresql")
"""In names of modules: what only runs of Prefect, of Dask or on a server import."""
PATIENCE = 120.0
"""Seconds after which a command that was not disturbed counts as hanging."""
HANGS = -1000


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code; a signal is its negative number, and `HANGS` a command that had to be ended.
        out: Standard output.
        said: Standard error.
        seconds: How long it took.
    """

    code: int
    out: str
    said: str
    seconds: float


@dataclass(frozen=True)
class Limits:
    """Limits of a process: address space, open files, file size, and its clock.

    None leaves a limit as it is.

    Attributes:
        address_space: RLIMIT_AS; counted from what the process has mapped already, as libraries alone map gigabytes.
        open_files: RLIMIT_NOFILE.
        file_bytes: RLIMIT_FSIZE: where a write fails as on a full disk.
        clock: Seconds that are added to what Python's clocks of the day tell.
    """

    address_space: int | None = None
    open_files: int | None = None
    file_bytes: int | None = None
    clock: float = 0


@dataclass
class Started:
    """A command that runs."""

    process: BaseProcess
    said: tuple[IO[bytes], IO[bytes]]
    begun: float = field(default_factory=time.monotonic)

    def ended(self, patience: float = PATIENCE) -> Ended:
        """Wait for the end of the command; one that does not come to it is killed."""
        self.process.join(patience)
        hangs = self.process.is_alive()
        if hangs:
            self.process.kill()
            self.process.join()
        texts = []
        for file in self.said:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return Ended(HANGS if hangs else int(self.process.exitcode or 0), texts[0], texts[1], time.monotonic() - self.begun)

    def kill_after(self, seconds: float) -> Ended:
        """Send SIGKILL after some time, if the command still runs then."""
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
        return self.ended()


class Commands:
    """Starts commands; the first takes as long as the imports."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        # Prefect is left out: these are runs without it. The variable goes to the fork server, and from there to each command.
        os.environ["SKALD_DIRECT"] = "1"
        self._context.set_forkserver_preload(
            [*_modules("core", "schemas", "tasks"), "flows.cli", "flows.skald", "flows.mondrian", "flows.records"]
        )

    def start(self, folder: Path, *arguments: object, limits: Limits | None = None, **environment: str) -> Started:
        """Start ``skald`` with some arguments in a folder."""
        said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - read and closed when the command has ended
        given = [str(argument) for argument in arguments]
        paths = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in said]
        process = self._context.Process(target=_run, args=(str(folder), given, paths, limits or Limits(), environment))
        process.start()
        return Started(process, said)

    def __call__(self, folder: Path, *arguments: object, limits: Limits | None = None, **environment: str) -> Ended:
        """Run ``skald`` to its end."""
        return self.start(folder, *arguments, limits=limits, **environment).ended()


def _modules(*floors: str) -> list[str]:
    """Return the names of the modules of some floors, but those that are imported late."""
    paths = sorted(path.relative_to(ROOT).with_suffix("") for floor in floors for path in (ROOT / floor).rglob("*.py"))
    return [".".join(path.parts) for path in paths if path.name != "__init__" and not any(late in path.as_posix() for late in LATE)]


def _run(folder: str, arguments: Sequence[str], said: Sequence[str], limits: Limits, environment: Mapping[str, str]) -> None:
    """Is the process of a command."""
    for number, path in zip((1, 2), said, strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
    os.chdir(folder)
    os.environ.update({"COLUMNS": "200"} | dict(environment))
    # A terminal's interrupt is meant for whoever counts, not for what is counted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = None
    _limit(limits)
    sys.argv = ["skald", *arguments]
    from flows import cli

    cli.main()


def _limit(limits: Limits) -> None:
    for name, limit in ((resource.RLIMIT_NOFILE, limits.open_files), (resource.RLIMIT_FSIZE, limits.file_bytes)):
        if limit is not None:
            resource.setrlimit(name, (limit, resource.getrlimit(name)[1]))
    if limits.address_space is not None:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + limits.address_space, resource.RLIM_INFINITY))
    if limits.clock:
        _shift(limits.clock)


def _shift(seconds: float) -> None:
    """Set the clock of this process as Python shows it; files still get the system's time."""
    whole, exact = time.time, time.time_ns
    time.time = lambda: whole() + seconds
    time.time_ns = lambda: exact() + int(seconds * 1_000_000_000)
