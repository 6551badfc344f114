"""A process that may map too little ends at once and says so, whatever library would have waited for ever."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import CommandLine
from tests.jobs import people, people_job
from tests.patience import SECONDS


def under(line: CommandLine, megabytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = f"ulimit -v {megabytes * 1000}; exec {' '.join(line.command(*arguments))}"
    return subprocess.run(["/bin/sh", "-c", command], **line.options(), capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("megabytes", [535, pytest.param(2000, marks=pytest.mark.slow)])
def test_too_little_address_space_is_said_in_a_sentence(direct: CommandLine, megabytes: int) -> None:
    people_job(direct.folder, people(120))
    done = under(direct, megabytes, "run", "job.yaml")
    assert done.returncode == 2
    assert f"allows this process {megabytes * 1024 / 1e6:.1f} GB of address space" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (direct.folder / ".skald").exists()
    assert under(direct, megabytes, "--help").returncode == 0


@pytest.mark.slow
def test_with_what_is_asked_for_a_run_comes_to_its_end(direct: CommandLine) -> None:
    people_job(direct.folder, people(120))
    done = under(direct, 4000, "run", "job.yaml", "--set", "privacy.k=4")
    assert done.returncode == 0, done.stderr
