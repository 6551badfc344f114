"""How tests run the product: the command line as a process of its own, or the flow in this process without Prefect."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.places import ROOT

# Before anything imports flows: in this process the steps run without Prefect.
os.environ["SKALD_DIRECT"] = "1"

if TYPE_CHECKING:
    from tasks.publication.verify_and_publish import Published

MODES = ["direct", "prefect"]
"""How the command line is run in those of its tests where it matters; Prefect without a server, each time started anew."""


Anonymise = Callable[..., "Published"]


@dataclass(frozen=True)
class CommandLine:
    """Runs ``skald`` as a user would: another process, in a folder of the user's, with an empty home."""

    mode: str
    folder: Path
    prefect: Path | None = None

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
        """Returns the command, with the option of the mode."""
        given = [str(argument) for argument in arguments]
        direct = ["--direct"] if self.mode == "direct" and given[:1] == ["run"] else []
        return [sys.executable, "-m", "flows.cli", *given, *direct]

    def options(self, **environment: str) -> dict[str, Any]:
        """Returns the folder and the environment in which the command runs."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SKALD_", "PREFECT_", "XDG_"))}
        switch = {"SKALD_DIRECT": "1"} if self.mode == "direct" else {}
        settings = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(self.home), "COLUMNS": "200"}
        return {"cwd": self.folder, "env": inherited | settings | switch | environment}

    def __call__(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return subprocess.run(
            self.command(*arguments), **self.options(**environment), capture_output=True, text=True, check=False, timeout=180
        )

    def start(self, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        """Starts a command and does not wait for it."""
        return subprocess.Popen(
            self.command(*arguments), **self.options(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of Prefect with its migrated database, made once for all workers by the product itself: four CPU seconds."""
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prefect"
    if not list(home.glob("schema-*.db")):
        script = f"from pathlib import Path; from flows.server.local_api import api, prepare\nwith api(prepare(Path({str(home)!r}))): pass"
        subprocess.run([sys.executable, "-c", script], **CommandLine("prefect", tmp_path_factory.mktemp("migrated")).options(), check=True)
    return home


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that are slow in one mode only."""
    for item in items:
        if item.get_closest_marker("slow_under_prefect") and "prefect" in item.callspec.params.values():
            item.add_marker("slow")


@pytest.fixture(params=MODES)
def skald(request: pytest.FixtureRequest, tmp_path: Path) -> CommandLine:
    """The command line, in each mode."""
    home = request.getfixturevalue("prefect_home") if request.param == "prefect" else None
    return CommandLine(str(request.param), tmp_path, home)


@pytest.fixture
def direct(tmp_path: Path) -> CommandLine:
    """The command line without Prefect, where the mode does not matter."""
    return CommandLine("direct", tmp_path)


@pytest.fixture
def prefect(tmp_path: Path, prefect_home: Path) -> CommandLine:
    """The command line with Prefect and without a server, where it alone matters."""
    return CommandLine("prefect", tmp_path, prefect_home)


@pytest.fixture(scope="session")
def anonymise() -> Anonymise:
    """Runs a job in this process, without Prefect: ``anonymise(job_path, "privacy.k=3")``."""
    from flows import skald as module

    flow: Any = module.skald

    def run(job_path: Path, *settings: str) -> Published:
        return getattr(flow, "fn", flow)(job_path, tuple(settings))

    return run


def snapshot(folder: Path) -> Mapping[str, Sequence[int]]:
    """Returns inode and mtime of every file in a folder, by relative path."""
    return {
        str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()
    }
