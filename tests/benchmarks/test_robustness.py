"""A short run of what tries to break runs: ``python -m benchmarks.robustness`` with more minutes tries more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.robustness.commands import Commands, Limits
from benchmarks.robustness.tally import Tally
from tests.jobs import people_job
from tests.patience import SECONDS
from tests.places import ROOT


@pytest.mark.slow
def test_nothing_breaks_in_a_short_run(tmp_path: Path) -> None:
    parts = ("kills", "nights", "inputs", "jobs", "drafts", "tampering", "machine", "stores")
    command = [sys.executable, "-m", "benchmarks.robustness", "--minutes", "0.7", "--folder", str(tmp_path), "--only", *parts]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(part in done.stdout for part in parts)
    assert "0 faults" in done.stdout


def test_a_fault_is_counted_and_told() -> None:
    tally = Tally()
    tally.add("kills", "skald", times=3)
    tally.add("kills", "skald", "another release")
    assert (tally.total("kills"), tally.faults) == (4, ["kills, skald: another release"])
    assert tally.table().splitlines()[1].split() == ["kills", "skald", "4", "1"]


@pytest.mark.slow
def test_commands_are_killed_limited_and_told_of(tmp_path: Path) -> None:
    """Else everything would seem to survive."""
    people_job(tmp_path)
    commands = Commands()
    assert commands.start(tmp_path, "run", "job.yaml").kill_after(0).code == -9
    short = commands(tmp_path, "run", "job.yaml", limits=Limits(file_bytes=2_000))
    assert (short.code, "cannot be written" in short.said) == (2, True)
    whole = commands(tmp_path, "run", "job.yaml", limits=Limits(clock=-86_400))
    assert (whole.code, "verified" in whole.out) == (0, True), whole
