"""Trials of faults in a copy of the repository, in two sessions of pytest.

One session has compiled loops; in the other these are plain Python.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutants.copied import Copy
from benchmarks.mutants.mutations import Mutant
from benchmarks.mutants.nearest import nearest
from benchmarks.mutants.reach import Reach, callers, kernels, modules, tests_of
from benchmarks.mutants.within import ENDLESS, PLAN, STATE, VERDICTS, Planned, digest_of


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        killed: The test that failed, or did not end; empty if it lives.
        seconds: CPU seconds.
        tests: How many tests passed with it, if it lives.
        is_cut: Whether its time was over before all of its tests were asked.
    """

    killed: str
    seconds: float
    tests: int = 0
    is_cut: bool = False


class Asked:
    """The tests of a fault: those that reach its function, nearest first, for so many CPU seconds.

    Of a function that numba compiles it is known who calls it.

    Args:
        root: The repository.
        reaches: What each test costs and reaches.
        limit: CPU seconds of the tests of a fault, by what they cost without it.
    """

    def __init__(self, root: Path, reaches: Sequence[Reach], limit: int) -> None:
        self._root, self._reaches, self._tests, self._limit = root, reaches, tests_of(reaches), limit
        self._sources = {path: (root / path).read_text("utf-8") for path in modules(root)}
        self._texts = {file: (root / file).read_text("utf-8") for one in reaches if (root / (file := one.test.split("::")[0])).exists()}

    def is_compiled(self, mutant: Mutant) -> bool:
        """Return whether numba compiles the function of a fault."""
        return mutant.function in kernels(ast.parse(self._sources[mutant.path]))

    def planned(self, mutant: Mutant) -> Planned:
        """Return how a fault is tried."""
        tests = [(one.test, one.seconds) for one in self.tests(mutant)]
        # Times two: fixtures that tests share are made again in each process.
        return Planned(
            mutant.name, mutant.path, mutant.function, mutant.applied(self._sources[mutant.path]), tests, STARTED + 2 * self._limit
        )

    def tests(self, mutant: Mutant) -> list[Reach]:
        """Return the tests of a fault, file by file, cheap ones first.

        Those that import its module come first, then those nearest to it, then the others.
        """
        noted = not kernels(ast.parse(self._sources[mutant.path]))
        at = {f"{mutant.path}:{mutant.function}"} if noted else callers(self._sources, mutant.path, mutant.function)
        found = {test for one in at for test in self._tests.get(one, ())}
        own, near = imports_of(mutant.path), tuple(nearest(mutant.path))
        rank: dict[str, tuple[bool, bool, float]] = {}
        for one in self._reaches:
            file = one.test.split("::")[0]
            is_own = own.search(self._texts.get(file, "")) is not None
            if is_own and not noted:
                # What tests call themselves of a module with compiled loops is not noted.
                found.add(one)
            if one in found:
                cheapest = min(rank.get(file, (True, True, one.seconds))[2], one.seconds)
                rank[file] = not is_own, not file.startswith(near), cheapest
        ranked = sorted(found, key=lambda test: (rank[test.test.split("::")[0]][:2], test.seconds, test.test))
        sums = accumulate(one.seconds for one in ranked)
        # The nearest one is asked whatever it costs.
        chosen = [one for place, (one, total) in enumerate(zip(ranked, sums, strict=True)) if total <= self._limit or not place]
        return sorted(chosen, key=lambda test: (rank[file := test.test.split("::")[0]], file, test.seconds, test.test))


def imports_of(path: str) -> re.Pattern[str]:
    """Return what finds a line that imports a module, or names from it."""
    *within, name = path.removesuffix(".py").split("/")
    folder = re.escape(".".join(within))
    return re.compile(rf"^from {folder}(\.{name} import | import .*\b{name}\b)", re.MULTILINE)


STARTED = 5
"""CPU seconds that a process may take besides its tests."""


def tried(copy: Copy, plan: Sequence[Planned], marks: str, is_compiled: bool, kept: Path, state: str) -> None:
    """Try faults in one session of pytest, whose processes have all imported by then.

    Args:
        copy: Of the repository.
        plan: The faults with their tests.
        marks: As pytest's ``-m``.
        is_compiled: Whether numba compiles loops; if not, faults within them are tried too.
        kept: The file to which each verdict is added.
        state: What is written beside each.
    """
    file, asked = copy.folder / "plan.jsonl", copy.folder / "asked.txt"
    file.write_text("".join(json.dumps(one) + "\n" for one in plan), "utf-8")
    asked.write_text("".join(f"{name}\n" for name in sorted({test.split("::")[0] for one in plan for test, _ in one.tests})), "utf-8")
    # A fault may end a process at once, and where it was is of no use.
    plugins = ["-p", "no:xdist", "-p", "no:faulthandler", "-p", "benchmarks.mutants.within"]
    # Whole numbers that pass their width begin anew in compiled loops; plain Python does the same, and warns of it.
    plain = [] if is_compiled else ["-W", "ignore:overflow encountered:RuntimeWarning"]
    options = ["-q", "--no-header", *plugins, *plain, "-m", marks, "@asked.txt"]
    environment = os.environ | {
        "PYTHONPATH": str(copy.folder),
        PLAN: str(file),
        VERDICTS: str(kept),
        STATE: state,
        "PYTHONHASHSEED": "0",
        "NUMBA_DISABLE_JIT": str(int(not is_compiled)),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=copy.folder, env=environment, stdout=subprocess.DEVNULL, check=False)


def verdicts_of(kept: Path, root: Path, mutants: Mapping[str, str], state: str) -> dict[str, Verdict]:
    """Return those of the verdicts in a file that still hold.

    One that a mutant lives holds for the state of code and tests in which it was found. One that a test kills it holds as long as the
    module with the fault and the file of the test stay.

    Args:
        kept: The file.
        root: The repository.
        mutants: The module of each mutant by name.
        state: The digest of code and tests, and of how they are asked.
    """
    found = dict[str, Verdict]()
    for line in kept.read_text("utf-8").splitlines() if kept.exists() else ():
        name, killed, seconds, tests, is_cut, then, module, test = json.loads(line)
        file = str(killed).removeprefix(ENDLESS).partition("::")[0]
        stays = name in mutants and digest_of(root / mutants[name]) == module and digest_of(root / file) == test
        if then == state or (killed and stays):
            found[name] = Verdict(killed, seconds, tests, is_cut)
    return found
