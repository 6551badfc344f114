"""A wheel: one name at the top, and everything that the checkout does, also where somebody's folders have the names of our floors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.jobs import digests, people_job
from tests.patience import SECONDS
from tests.places import ROOT

pytestmark = pytest.mark.slow
FLOORS = ("core", "schemas", "tasks", "flows", "data")
EVERY_MODULE = """
import importlib, pkgutil, sys
import skald
for module in pkgutil.walk_packages(skald.__path__, "skald."):
    importlib.import_module(module.name)
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
FROM_PYTHON = """
import skald
for direct in (True, False, False):
    published = skald.run("job.yaml", {"privacy.k": 6, "target": f"from-python-{direct}", "work": f"work-{direct}"}, direct=direct)
    print(published.release, skald.verify(published.folder)["classes"])
import tasks
print(tasks.MINE)
"""
TYPED = """
import skald
reveal_type(skald.run("job.yaml").manifest)
"""


@dataclass(frozen=True)
class Installed:
    """A wheel in an environment of its own, and a folder of somebody's whose names are those of our floors."""

    wheel: Path
    environment: Path
    folder: Path

    def __call__(self, program: str, *arguments: str) -> str:
        """Run a program of the environment to its end, in the folder; return what it printed."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SKALD_", "PREFECT_", "PYTHON"))}
        environment |= {"HOME": str(self.folder.parent), "SKALD_SECRET": os.environ["SKALD_SECRET"]}
        command = [str(self.environment / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def pip(python: Path, *arguments: object) -> None:
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    subprocess.run(command, check=True, timeout=SECONDS)


def beside() -> set[str]:
    return {path.name for path in ROOT.iterdir()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout, in an environment that has the packages of this one."""
    folder, before = tmp_path_factory.mktemp("installed"), beside()
    pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    # A build is a guest in the checkout.
    assert beside() == before
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment" / "bin" / "python"
    pip(python, "install", "--no-deps", wheel)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "environment"), "platbase": ""}))
    # A path of a .pth file is searched, but its own .pth files, of the editable checkout, are not read.
    (packages / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    theirs = folder / "theirs"
    people_job(theirs)
    for name in ("flows", "core"):
        (theirs / name).mkdir()
        (theirs / name / "__init__.py").write_text("raise SystemExit('not ours')")
    for name in ("data", "deployments"):
        (theirs / name).mkdir()
    (theirs / "schemas.py").write_text("raise SystemExit('not ours')")
    (theirs / "tasks.py").write_text("MINE = 'my own tasks'")
    return Installed(wheel, folder / "environment", theirs)


@pytest.mark.promise
def test_a_wheel_has_one_name_at_the_top(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"skald"}
    assert "skald/py.typed" in names
    assert "skald/data/jobs/hierarchies/blood_group.csv" in names
    assert not [name for name in names if name.startswith(("skald/tests", "skald/deployments"))]


@pytest.mark.promise
def test_every_module_of_a_wheel_imports_and_takes_no_other_name(installed: Installed) -> None:
    assert not {*installed("python", "-c", EVERY_MODULE).split()} & {*FLOORS, "deployments", "relocation"}


@pytest.mark.promise
def test_the_command_publishes_what_the_checkout_publishes_with_prefect_and_without(installed: Installed) -> None:
    outputs = []
    for number, options in enumerate([("--direct",), (), ("--runner", "dask")]):
        settings = [f"target=out-{number}", f"work=work-{number}", "privacy.k=6", "chunk_rows=100"]
        installed("skald", "run", "job.yaml", *options, *(part for setting in settings for part in ("--set", setting)))
        release = (installed.folder / f"out-{number}" / "CURRENT").read_text().strip()
        outputs.append(digests(installed.folder / f"out-{number}" / release))
        installed("skald", "verify", f"out-{number}/{release}", "--job", "job.yaml", "--set", "privacy.k=6")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "flows.cli",
            "run",
            "job.yaml",
            "--direct",
            "--set",
            "privacy.k=6",
            "--set",
            "target=ours",
            "--set",
            "work=w",
        ],
        cwd=installed.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        check=False,
    )
    assert done.returncode == 0
    ours = digests(installed.folder / "ours" / (installed.folder / "ours" / "CURRENT").read_text().strip())
    assert outputs == [ours, ours, ours]


@pytest.mark.promise
def test_a_program_runs_jobs_and_keeps_its_own_modules_of_our_names(installed: Installed) -> None:
    first, second, again, mine = installed("python", "-c", FROM_PYTHON).splitlines()
    assert first == second == again
    assert mine == "my own tasks"


def test_commands_that_start_processes_start_their_own(installed: Installed) -> None:
    said = installed("skald", "compare", "job.yaml", "--methods", "skald,canon", "--direct", "--json")
    assert [run["failed"] for run in json.loads(said)["runs"]] == [None, None]


@pytest.mark.promise
def test_the_version_is_that_of_the_wheel(installed: Installed) -> None:
    assert installed("skald", "--version").strip() == f"skald {installed.wheel.name.split('-')[1]}"


def test_who_checks_types_gets_ours(installed: Installed) -> None:
    said = installed("python", "-m", "mypy", "--no-incremental", "-c", TYPED)
    assert "dict[str, Any]" in said


def test_a_source_archive_gives_the_same_wheel(installed: Installed, tmp_path: Path) -> None:
    build = "import relocation, sys; relocation.build_sdist(sys.argv[1])"
    made = installed.environment / "build"
    venv.create(made, with_pip=True)
    pip(made / "bin" / "python", "install", "setuptools>=77")
    command = [str(made / "bin" / "python"), "-c", build, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "deployments")}, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", tmp_path, archive)
    (again,) = tmp_path.glob("*.whl")
    contents = [{name: file.read(name) for name in file.namelist()} for file in map(zipfile.ZipFile, (installed.wheel, again))]
    assert contents[0] == contents[1]
