"""Puts one fault into a copy of the repository and runs the tests that are nearest to it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutants.mutations import Mutant
from benchmarks.mutants.within import PLAN, POISONED, Planned

PATIENCE = 10
"""Seconds of wall clock for each CPU second that a trial may take, after which it is ended on however busy a machine."""


NONE_CHOSEN = 5
"""pytest's exit code where marks leave no test."""


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        killed: By the name of the first test that failed, or by the limit; empty if it lives.
        seconds: CPU seconds.
    """

    killed: str
    seconds: float


class Stage(NamedTuple):
    """Tests that one process runs.

    Attributes:
        tests: Names of tests, files or folders, in the order in which they run.
        limit: CPU seconds of the process, after which a fault counts as killed: it would not come to an end.
        marks: As pytest's ``-m``.
    """

    tests: Sequence[str]
    limit: int
    marks: str = "slow or not slow"


class Copy:
    """A copy of the repository as it stands."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        named = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
        for name in filter(None, named.split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)

        self._take_kernels(root)

    def _take_kernels(self, root: Path) -> None:
        """Takes what numba compiled of the repository; where it keeps that otherwise, it is compiled anew."""
        for kept in (root / "core" / "__pycache__").glob("*/*_*"):
            room, digest = kept.name.rsplit("_", 1)
            [mine, theirs] = [next(iter(place.glob(f"core/**/{room}")), place) for place in (root, self.folder)]
            if sha1(str(mine).encode(), usedforsecurity=False).hexdigest() == digest:
                name = f"{room}_{sha1(str(theirs).encode(), usedforsecurity=False).hexdigest()}"
                shutil.copytree(kept, self.folder / kept.parent.relative_to(root) / name)

    def make_ready(self, tests: Sequence[str]) -> None:
        """Compiles all modules once and for all: a trial writes none, so that none of them holds a fault."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
            "PYTHONPATH": str(self.folder)
        }
        for command in (["compileall", "-q", "core", "schemas", "tasks", "flows", "data", "benchmarks"], ["pytest", "--co", "-q", *tests]):
            subprocess.run([sys.executable, "-m", *command], cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, check=False)

    def tried_within(self, plan: Sequence[Planned], marks: str) -> dict[str, Verdict]:
        """Tries faults in as few processes as may be; one that a process did not survive, or that left something of itself, is not told.

        Args:
            plan: The faults with their tests.
            marks: As pytest's ``-m``.
        """
        file, asked = self.folder / "plan.jsonl", self.folder / "asked.txt"
        file.write_text("".join(json.dumps(one) + "\n" for one in plan), "utf-8")
        asked.write_text("".join(f"{name}\n" for name in sorted({test.split("::")[0] for one in plan for test in one.tests})), "utf-8")
        verdicts = file.with_suffix(".verdicts")
        verdicts.unlink(missing_ok=True)
        options = ["-q", "--no-header", "-p", "no:warnings", "-p", "no:xdist", "-p", "benchmarks.mutants.within", "-m", marks, "@asked.txt"]
        environment = os.environ | {"PYTHONPATH": str(self.folder), PLAN: str(file), "PYTHONDONTWRITEBYTECODE": "1"}
        begun = -1
        # Each process goes on behind the fault at which the one before it ended.
        while ((lines := verdicts.read_text().splitlines() if verdicts.exists() else []) and len(lines) > begun) or begun < 0:
            begun = len(lines)
            made = subprocess.run(
                [sys.executable, "-m", "pytest", *options], cwd=self.folder, env=environment, capture_output=True, check=False
            )
            if made.returncode == 0:
                break
        found = {name: (killed, seconds) for name, killed, seconds in map(json.loads, verdicts.read_text().splitlines())}
        return {name: Verdict(killed, seconds) for name, (killed, seconds) in found.items() if killed not in (None, POISONED)}

    def tried(self, mutant: Mutant | None, stages: Sequence[Stage]) -> Verdict:
        """Runs tests with a fault in the copy up to the first that fails, and takes the fault out again.

        Args:
            mutant: The fault; None for none.
            stages: Tests, those that are asked first in the first of them.
        """
        if mutant is None:
            return self._run(stages)
        path = self.folder / mutant.path
        source, times = path.read_text("utf-8"), path.stat()
        path.write_text(mutant.applied(source), "utf-8")
        try:
            return self._run(stages)
        finally:
            path.write_text(source, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _run(self, stages: Sequence[Stage]) -> Verdict:
        seconds = 0.0
        for stage in stages:
            found = self._stage(stage)
            seconds += found.seconds
            if found.killed:
                return Verdict(found.killed, seconds)
        return Verdict("", seconds)

    def _stage(self, stage: Stage) -> Verdict:
        before, options = os.times(), ["-q", "-x", "--tb=no", "--no-header", "-p", "no:warnings", "-p", "no:xdist", "-m", stage.marks]
        given = self.folder / "asked.txt"
        given.write_text("".join(f"{test}\n" for test in stage.tests), "utf-8")
        # A module with a fault would be kept compiled, and taken for the one without.
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, "@asked.txt"], cwd=self.folder, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (stage.limit, stage.limit))
            try:
                output, _ = process.communicate(timeout=stage.limit * PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                output, _ = process.communicate()
        after = os.times()
        seconds = sum(after[2:4]) - sum(before[2:4])
        if process.returncode in (0, NONE_CHOSEN):
            return Verdict("", seconds)
        lines = [line.split(" ", 1)[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        # Names of tests may hold what stands between them and the reason.
        named = [test for test in stage.tests if "::" in test and lines and f"{lines[0]} - ".startswith(f"{test} - ")]
        failed = [*named, *(line.split(" - ")[0] for line in lines)]
        return Verdict(failed[0] if failed else "the limit" if process.returncode < 0 else "no test could run", seconds)
