"""What pytest does to try faults: it imports everything once, and forks a process for each fault.

The process gives the function its code with the fault, runs the tests, and ends. So nothing of a fault is ever left, and no fault waits for
imports. What a fault makes endless is ended by a limit of CPU seconds. A test that fails without the fault too is no witness.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from benchmarks.mutants.laws import same_examples

PLAN = "SKALD_MUTANTS"
"""The variable that names the file of the plan: for each fault a line."""
VERDICTS = "SKALD_VERDICTS"
"""The variable that names the file to which each verdict is added."""
LAYERS = ("schemas", "core", "tasks", "flows")
PROCESSES = 2
"""Faults that are tried at a time."""
STARTING, TIMES = 10, 10
"""CPU seconds that a test may take, and how many times what it takes without a fault it may take besides."""
PATIENCE = 150
"""Seconds of wall clock without a test that ends, after which a fault counts as endless: nothing may ever come."""
ENDLESS = "endless: "
"""What stands before the name of a test that did not come to an end."""


STATE = "SKALD_STATE"
"""The variable that holds the digest of code and tests, which is written beside each verdict."""


class Planned(NamedTuple):
    """A fault and the tests that are to notice it.

    Attributes:
        name: The name of the mutant.
        path: The module's file, from the root.
        function: The function with the fault, with its class.
        source: The text of the module with the fault.
        tests: Their names and CPU seconds without a fault, in the order in which they run.
        limit: CPU seconds, after which no further test is begun.
    """

    name: str
    path: str
    function: str
    source: str
    tests: Sequence[tuple[str, float]]
    limit: int


class _Trial(NamedTuple):
    """A process that tries a fault, or one test without any."""

    planned: Planned
    witness: str
    """The test whose failing is doubted; empty for a trial of the fault."""
    spent: float
    """CPU seconds of the processes before this one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Let laws draw the same examples in each trial, and make none smaller."""
    same_examples()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Try each fault of the plan, and ends the process."""
    if session.testsfailed:
        # A file that cannot be collected would leave its tests out, and faults would seem to be noticed by none.
        print(f"{session.testsfailed} files of tests cannot be collected", file=sys.__stderr__, flush=True)
        os._exit(1)
    plan = [Planned(*json.loads(line)) for line in Path(os.environ[PLAN]).read_text("utf-8").splitlines()]
    _Trials(session, plan, Path(os.environ[VERDICTS])).run()
    # Modules of other languages tell at an orderly end what they have not given back.
    os._exit(0)


def digest_of(file: Path) -> str:
    """Return the digest of a file; nothing if it is not there."""
    return blake2b(file.read_bytes(), digest_size=12).hexdigest() if file.is_file() else ""


def with_fault(source: str, path: str, function: str) -> CodeType:
    """Return the code of a function in a text.

    Raises:
        LookupError: it holds no such function.
    """
    left = [compile(source, path, "exec", dont_inherit=True)]
    while left:
        code = left.pop()
        if code.co_qualname == function:
            return code
        left += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    raise LookupError(function)


def functions_of(paths: Sequence[str], root: Path) -> Mapping[tuple[str, str], list[FunctionType]]:
    """Return all functions of some files by file, from the root, and name."""
    files = {str(root / path): path for path in paths}
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and (path := files.get(one.__code__.co_filename)):
            found.setdefault((path, one.__code__.co_qualname), []).append(one)
    return found


class _Trials:
    """The faults of a plan, in processes of which a few run at a time.

    Args:
        session: pytest's, whose tests are collected.
        plan: The faults.
        verdicts: The file to which each verdict is added.
    """

    def __init__(self, session: pytest.Session, plan: Sequence[Planned], verdicts: Path) -> None:
        self._session, self._plan, self._verdicts = session, plan, verdicts
        self._items: dict[str, Any] = {item.nodeid: item for item in session.items}
        self._root, self._running = Path(str(session.config.rootpath)), dict[int, _Trial]()
        self._witnesses: dict[str, bool] = {}
        """Of each test that failed with a fault, whether it passes without one."""

    def run(self) -> None:
        _import_all(self._root)
        self._functions = functions_of(sorted({one.path for one in self._plan}), self._root)
        gc.collect()
        gc.freeze()
        left = [_Trial(one, "", 0.0) for one in reversed(self._plan)]
        while left or self._running:
            while left and len(self._running) < PROCESSES:
                self._begin(left.pop())
            left += self._ended()
            time.sleep(0.02)

    def _begin(self, trial: _Trial) -> None:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            self._running[pid] = trial
            return
        try:
            self._child(trial)
        finally:
            os._exit(3)

    def _folder(self, pid: int) -> Path:
        return self._root / f"trial-{pid}"

    def _child(self, trial: _Trial) -> None:
        """Run the tests of a trial; never returns."""
        os.setpgid(0, 0)
        folder, one = self._folder(os.getpid()), trial.planned
        folder.mkdir()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
        factory: Any = self._session.config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp, factory._given_basetemp = None, folder / "tests"
        for kind in (signal.SIGPROF, signal.SIGXCPU):
            signal.signal(kind, signal.SIG_DFL)
        if not trial.witness:
            code = with_fault(one.source, str(self._root / one.path), one.function)
            for function in self._functions[one.path, one.function]:
                function.__code__ = code
        asked = [(test, seconds) for test, seconds in one.tests if self._is_asked(test, trial)]
        with (folder / "notes").open("a", buffering=1) as notes:
            for place, (test, seconds) in enumerate(asked):
                if time.process_time() > one.limit:
                    notes.write("time\n")
                    os._exit(0)
                notes.write(f"{test}\n")
                # What does not end within this is ended by the system, compiled loops too.
                signal.setitimer(signal.ITIMER_PROF, STARTING + TIMES * seconds)
                following = self._items[asked[place + 1][0]] if place + 1 < len(asked) else None
                if any(report.failed for report in runtestprotocol(self._items[test], log=False, nextitem=following)):
                    notes.write("failed\n")
                    os._exit(0)
            notes.write("passed\n")
        os._exit(0)

    def _is_asked(self, test: str, trial: _Trial) -> bool:
        if trial.witness:
            return test == trial.witness
        return test in self._items and self._witnesses.get(test, True)

    def _ended(self) -> list[_Trial]:
        """Take what processes that ended have found; return what is to be tried after it."""
        following = list[_Trial]()
        for pid, trial in list(self._running.items()):
            notes = self._folder(pid) / "notes"
            if notes.exists() and time.time() - notes.stat().st_mtime > PATIENCE:
                os.killpg(pid, signal.SIGKILL)
            done, status, used = os.wait4(pid, os.WNOHANG)
            if not done:
                continue
            del self._running[pid]
            lines = notes.read_text().splitlines() if notes.exists() else []
            shutil.rmtree(self._folder(pid), ignore_errors=True)
            spent = trial.spent + used.ru_utime + used.ru_stime
            following += self._judged(trial, lines, os.WIFSIGNALED(status) or os.WEXITSTATUS(status) != 0, spent)
        return following

    def _judged(self, trial: _Trial, lines: Sequence[str], is_broken: bool, spent: float) -> list[_Trial]:
        """Write the verdict on a fault, or return what has to be tried first."""
        end = lines[-1] if lines else ""
        if trial.witness:
            self._witnesses[trial.witness] = end == "passed"
            if end != "passed":
                return [_Trial(trial.planned, "", spent)]
            self._write(trial.planned, trial.witness, spent)
        elif end in ("passed", "time"):
            self._write(trial.planned, "", spent, len(lines) - 1, end == "time")
        else:
            # A process that ended of itself or was ended fails the test that it was at.
            test = lines[-2] if end == "failed" else end
            if not test:
                self._write(trial.planned, "", spent)
            elif test not in self._witnesses or not self._witnesses[test]:
                return [_Trial(trial.planned, test, spent)]
            else:
                self._write(trial.planned, (ENDLESS if is_broken else "") + test, spent)
        return []

    def _write(self, one: Planned, killed: str, spent: float, tests: int = 0, is_cut: bool = False) -> None:
        with self._verdicts.open("a") as file:
            test = killed.removeprefix(ENDLESS).partition("::")[0]
            held = [os.environ[STATE], digest_of(self._root / one.path), digest_of(self._root / test) if test else ""]
            file.write(json.dumps([one.name, killed, round(spent, 2), tests, is_cut, *held]) + "\n")
        print(f"{spent:6.1f} s  {killed or 'LIVES'}  {one.name}", file=sys.__stderr__, flush=True)


def _import_all(root: Path) -> None:
    """Import every module of the product, so that no process does."""
    for layer in LAYERS:
        for path in sorted((root / layer).rglob("*.py")):
            if "templates" in path.parts or path.name == "__main__.py":
                continue
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            importlib.import_module(name.removesuffix(".__init__"))
