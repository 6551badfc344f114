"""What a command leaves that was killed is taken away by the next one; what a living one uses is not. A flow runs jobs of its method."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest

from schemas.errors.base import JobError
from schemas.job.method import METHODS
from tasks.store.files import clear_temporary_folders, temporary_folder
from tests.conftest import Anonymise, CommandLine
from tests.jobs import people_job

NAMES = re.compile(r"verify-\d+(-[0-9a-f]{16})?")
KILLED = """
import os, signal, sys
from tasks.recount import recount
counted = recount.recount
def killed(job, files, spill, *more):
    (spill / "raw").write_text("raw")
    os.kill(os.getpid(), signal.SIGKILL)
recount.recount = killed
from flows import cli
sys.argv[0] = "skald"
cli.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("next_one", ["run", "verify"])
def test_what_a_killed_verify_leaves_goes_with_the_next_command(direct: CommandLine, tmp_path: Path, next_one: str) -> None:
    job = people_job(tmp_path)
    assert direct("run", job).returncode == 0
    release = tmp_path / "releases" / (tmp_path / "releases" / "CURRENT").read_text().strip()
    died = direct.ended([sys.executable, "-c", KILLED, "verify", str(release), "--job", str(job)])
    assert died.returncode == -signal.SIGKILL, died.stderr
    [left] = (tmp_path / ".skald" / "people").glob("verify-*")
    assert (left / "raw").exists()
    given = [job] if next_one == "run" else [release, "--job", job]
    assert direct(next_one, *given).returncode == 0
    assert not list((tmp_path / ".skald" / "people").glob("verify-*"))


def test_a_folder_in_use_and_what_is_no_folder_of_ours_stay(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "verify-3").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "verify-4").mkdir()
    (tmp_path / "verified").mkdir()
    with temporary_folder(tmp_path / "verify-5") as held:
        clear_temporary_folders(tmp_path, NAMES)
        assert held.is_dir()
        assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "verify-3", "verified", "verify-5"}
    assert not held.exists()


@pytest.mark.ci
def test_clean_leaves_what_a_command_at_work_uses(direct: CommandLine, tmp_path: Path) -> None:
    job = people_job(tmp_path)
    assert direct("run", job).returncode == 0
    work = tmp_path / ".skald" / "people"
    (work / "reveal-1").mkdir()
    with temporary_folder(work / "verify-2") as held:
        (held / "spilt").write_text("raw")
        done = direct("clean", job)
        assert done.returncode == 0, done.stderr
        assert "1 command still at work there" in done.stdout
        assert (held / "spilt").read_text() == "raw"
        assert {path.name for path in work.iterdir()} == {".skald-work", "verify-2"}
    assert direct("clean", job).returncode == 0
    assert not work.exists()


def test_a_folder_that_cannot_be_made_is_named_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with temporary_folder(tmp_path / "file" / "verify-1") as path:
        assert not path.exists()
    clear_temporary_folders(tmp_path / "nowhere", NAMES)


@pytest.mark.ci
def test_verify_of_a_job_that_never_ran_leaves_no_work_folder(direct: CommandLine, anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(people_job(tmp_path))
    done = direct("verify", made.folder, "--job", "job.yaml", "--set", "work=nowhere/yet")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("method", ["mondrian", "rayden"])
def test_a_flow_refuses_a_job_of_another_method(tmp_path: Path, method: str) -> None:
    flow = METHODS["skald"].flow.load()
    with pytest.raises(JobError, match=f"method.name is '{method}', and this is the flow of 'skald'") as told:
        flow(people_job(tmp_path), (f"method={{name: {method}}}",))
    assert told.value.exit_code == 2
    assert not (tmp_path / "releases").exists()
