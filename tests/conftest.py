"""How tests run the product: the command line in this process or in one of its own, or the flow in this process without Prefect."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from core.compiling.compiled import compiled_loops_only
from tests import laws
from tests.command_line import SECRET, CommandLine

# Before anything imports flows: in this process the steps run without Prefect.
os.environ["SKALD_DIRECT"] = "1"
os.environ["SKALD_SECRET"] = SECRET
# As the command does before NumPy is there: threads of linear algebra spin while they wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
laws.load()

if TYPE_CHECKING:
    from schemas.job.job import Job
    from tasks.publication.verify_and_publish import PublishedRelease

MODES = ["direct", "prefect"]
"""How the command line is run in those of its tests where it matters; Prefect without a server, each time started anew."""


Anonymise = Callable[..., "PublishedRelease"]
VERIFIED: set[tuple[str, ...]] = set()
"""What was verified by now: module of tests, method, and what becomes of suppressed records."""
MIGRATED = """
import sys
from pathlib import Path
from flows.server.local_api import prefect_api, prepare_prefect
with prefect_api(prepare_prefect(Path(sys.argv[1]))):
    pass
"""


@pytest.fixture(scope="session", autouse=True)
def _compiled_loops() -> Iterator[None]:
    """In this process loops are compiled, whatever was called before; commands in processes of their own do small work in arrays."""
    with compiled_loops_only():
        yield


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of Prefect with its migrated database, made once for all workers by the product itself: four CPU seconds."""
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prefect"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(home.glob("schema-*.db")):
            line = CommandLine("prefect", tmp_path_factory.mktemp("migrated"))
            subprocess.run([sys.executable, "-c", MIGRATED, str(home)], **line.options(), check=True)
    return home


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that are slow in one mode only, and of long tables of cases all but a few: as slow, or as the mark says."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow_under_prefect") and "prefect" in item.callspec.params.values():
            item.add_marker("slow")
        if item.get_closest_marker("few"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tables.values():
        few, others = (*cases[0].get_closest_marker("few").args, "slow")[:2]
        # Spread over the table, because neighbours are alike. Tables of whole jobs begin at different places, so that not all run the same
        # method; a table of quick cases at its first, which is mostly the quickest.
        first = crc32(cases[0].nodeid.partition("[")[0].encode()) if cases[0].get_closest_marker("ci") else 0
        quick = {(first + place * len(cases) // few) % len(cases) for place in range(few)}
        for place, item in enumerate(cases):
            if place not in quick:
                item.add_marker(others)


@pytest.fixture(params=MODES)
def skald(request: pytest.FixtureRequest, tmp_path: Path) -> CommandLine:
    """The command line, in each mode."""
    home = request.getfixturevalue("prefect_home") if request.param == "prefect" else None
    return CommandLine(str(request.param), tmp_path, home)


@pytest.fixture
def direct(tmp_path: Path) -> CommandLine:
    """The command line without Prefect, where the mode does not matter; in this process unless a test asks for one."""
    return CommandLine("direct", tmp_path)


@pytest.fixture
def prefect(tmp_path: Path, prefect_home: Path) -> CommandLine:
    """The command line with Prefect and without a server, where it alone matters."""
    return CommandLine("prefect", tmp_path, prefect_home)


def verify_first(job: Job, release: Path) -> None:
    """Verify a release that was just published, if it is the first of its kind in the module of the test.

    Raises:
        VerificationError: it is not what its run said.
    """
    from flows.verification import verified_release
    from schemas.errors.base import SkaldError, VerificationError

    module = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
    kind = module, job.method.name, job.suppression.treatment, str(bool(job.columns.person))
    if kind in VERIFIED or not release.is_dir():
        return
    VERIFIED.add(kind)
    # What a test has put out of the way, such as a source, is no fault of the release.
    with suppress(SkaldError):
        try:
            verified_release(job, str(release), None)
        except VerificationError as refused:
            raise AssertionError(str(refused)) from refused


@pytest.fixture(scope="session")
def anonymise() -> Anonymise:
    """Run a job in this process by its own method, without Prefect: ``anonymise(job_path, "privacy.k=3")``.

    What is published is verified, the first release of each kind in a module of tests.
    """
    from schemas.job.job import load_job
    from schemas.job.method import METHODS

    def run(job_path: Path, *settings: str) -> PublishedRelease:
        job = load_job(job_path, settings)
        flow: Any = METHODS[job.method.name].flow.load()
        published: PublishedRelease = getattr(flow, "fn", flow)(job_path, tuple(settings))
        verify_first(job, published.folder)
        return published

    return run


def snapshot(folder: Path) -> Mapping[str, Sequence[int]]:
    """Return inode and mtime of every file in a folder, by relative path."""
    return {
        str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()
    }
