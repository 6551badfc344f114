"""The command line as tests run it: in this process, in one of its own, or in one that is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

from tests.patience import SECONDS
from tests.places import ROOT

SECRET = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
"""What releases' ids are keyed with in tests, so that they agree between folders."""
SIGNALLING = """
import os
from pathlib import Path

def at(number, pattern, once):
    def first():
        try:
            # Of threads that come here together one alone makes it: a second signal to stop would come after the one to go on.
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True
    def signalling(renamed):
        def rename(path, target):
            made = renamed(path, target)
            if Path(target).match(pattern) and first():
                os.kill(os.getpid(), number)
            return made
        return rename
    Path.replace, Path.rename = signalling(Path.replace), signalling(Path.rename)
"""
"""Signals a process once, at a known moment, however busy the machine: all that it leaves for good, it renames when it is whole."""
SIGNALLED = """
import sys
at(int(sys.argv.pop(1)), sys.argv.pop(1), sys.argv.pop(1))
from flows import cli
cli.main()
"""


@dataclass(frozen=True)
class CommandLine:
    """Runs ``skald`` as a user would, in a folder of the user's with an empty home.

    A process takes two CPU seconds to start, most of them imports. So a call without Prefect is made in this process: its text, exit code
    and files are the same. Where the process itself matters, the test asks for one.
    """

    mode: str
    folder: Path
    prefect: Path | None = None
    secret: str | None = SECRET

    @property
    def home(self) -> Path:
        """The user's home; all that it holds is Prefect's migrated database, else each command in it would make one first."""
        home = self.folder / "home"
        if not home.is_dir():
            home.mkdir()
            if self.prefect and self.mode == "prefect":
                shutil.copytree(self.prefect, home / ".cache" / "skald" / "prefect")
        return home

    def command(self, *arguments: object) -> list[str]:
        """Return the command, with the option of the mode."""
        given = [str(argument) for argument in arguments]
        direct = ["--direct"] if self.mode == "direct" and given[:1] == ["run"] else []
        return [sys.executable, "-m", "flows.cli", *given, *direct]

    def options(self, **environment: str) -> dict[str, Any]:
        """Return the folder and the environment in which the command runs."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SKALD_", "PREFECT_", "XDG_"))}
        switch = {"SKALD_DIRECT": "1"} if self.mode == "direct" else {}
        switch |= {} if self.secret is None else {"SKALD_SECRET": self.secret}
        settings = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(self.home), "COLUMNS": "200"}
        return {"cwd": self.folder, "env": inherited | settings | switch | environment}

    def __call__(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return (self.here if self.mode == "direct" else self.process)(*arguments, **environment)

    def here(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, with the folder and the environment that it would have in its own."""
        from flows import cli

        command, given = self.command(*arguments), self.options(**environment)
        with pytest.MonkeyPatch.context() as patch, told() as said:
            patch.chdir(given["cwd"])
            for name in os.environ.keys() - given["env"].keys():
                patch.delenv(name)
            for name, value in given["env"].items():
                patch.setenv(name, value)
            patch.setattr(tempfile, "tempdir", None)  # asked of the environment again
            patch.setattr(sys, "argv", ["skald", *command[command.index("flows.cli") + 1 :]])
            with pytest.raises(SystemExit) as ended:
                cli.main()
        return subprocess.CompletedProcess(command, int(ended.value.code or 0), *(b"".join(parts).decode() for parts in said))

    def process(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in a process of its own."""
        return self.ended(self.command(*arguments), **environment)

    def killed(self, pattern: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command that dies by SIGKILL as soon as a file that is like the pattern has its final name."""
        done = self.signalled(signal.SIGKILL, pattern, *arguments, **environment)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return done

    def signalled(self, number: int, pattern: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command that gets a signal as soon as a file that is like the pattern has its final name."""
        return self.ended(self.command_signalled(number, pattern, *arguments), **environment)

    def command_signalled(self, number: int, pattern: str, *arguments: object) -> list[str]:
        """Return a command that gets a signal as soon as a file that is like the pattern has its final name."""
        program, _, _, *given = self.command(*arguments)
        once = self.folder / f".signalled-{uuid4().hex}"
        return [program, "-c", SIGNALLING + SIGNALLED, str(int(number)), pattern, str(once), *given]

    def ended(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run any program to its end as a command would be run."""
        return subprocess.run(command, **self.options(**environment), capture_output=True, text=True, check=False, timeout=SECONDS)

    def start(self, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        """Start a command and does not wait for it."""
        return subprocess.Popen(
            self.command(*arguments), **self.options(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


@contextmanager
def told() -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Take what is written to standard output and standard error, by Python or by what is below it, until the end of the block."""
    said: tuple[list[bytes], list[bytes]] = ([], [])
    with pytest.MonkeyPatch.context() as patch:
        before, readers = [os.dup(1), os.dup(2)], []
        try:
            for number, name in enumerate(("stdout", "stderr"), start=1):
                end, start = os.pipe()
                os.dup2(start, number)
                patch.setattr(sys, name, os.fdopen(start, "w", encoding="utf-8"))
                readers.append(Thread(target=_read, args=(end, said[number - 1])))
                readers[-1].start()
            yield said
        finally:
            for number, (name, kept) in enumerate(zip(("stdout", "stderr"), before, strict=True), start=1):
                getattr(sys, name).close()
                os.dup2(kept, number)
                os.close(kept)
            for reader in readers:
                reader.join()


def _read(end: int, parts: list[bytes]) -> None:
    while part := os.read(end, 1 << 16):
        parts.append(part)
    os.close(end)
