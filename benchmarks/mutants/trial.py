"""Puts one fault into a copy of the repository and runs the tests that are nearest to it."""

from __future__ import annotations

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

PATIENCE = 10
"""Seconds of wall clock for each CPU second that a trial may take, after which it is ended on however busy a machine."""


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        killed: By the name of the first test that failed, or by the limit; empty if it lives.
        seconds: CPU seconds.
    """

    killed: str
    seconds: float


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

    def tried(self, mutant: Mutant | None, tests: Sequence[str], marks: str, limit: int) -> Verdict:
        """Runs tests with a fault in the copy, and takes it out again.

        Args:
            mutant: The fault; None for none.
            tests: Files and folders.
            marks: As pytest's ``-m``.
            limit: CPU seconds of a process, after which it counts as killed: it would not come to an end.
        """
        if mutant is None:
            return self._run(tests, marks, limit)
        path = self.folder / mutant.path
        source, times = path.read_text("utf-8"), path.stat()
        path.write_text(mutant.applied(source), "utf-8")
        try:
            return self._run(tests, marks, limit)
        finally:
            path.write_text(source, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _run(self, tests: Sequence[str], marks: str, limit: int) -> Verdict:
        before, options = os.times(), ["-q", "-x", "--tb=no", "--no-header", "-p", "no:warnings", "-m", marks]
        command = [sys.executable, "-m", "pytest", *options, *(test for test in tests if (self.folder / test).exists())]
        # Modules of the same second and size would be taken for those that were compiled before.
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit))
            try:
                output, _ = process.communicate(timeout=limit * PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                output, _ = process.communicate()
        after = os.times()
        seconds = sum(after[2:4]) - sum(before[2:4])
        if process.returncode == 0:
            return Verdict("", seconds)
        failed = [line.split(" ")[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return Verdict(failed[0] if failed else "the limit" if process.returncode < 0 else "no test could run", seconds)
