"""What pytest does to try many faults in one process: it gives a function the code with the fault, runs tests, and takes the code back.

To start a process and read its tests takes longer than most trials. A fault in a compiled loop cannot be tried so.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

PLAN = "SKALD_MUTANTS"
"""The variable that names the file of the plan: for each fault a line. What comes of it is written beside it."""
PATIENCE = 10
"""Seconds of wall clock for each CPU second of a limit, after which the process is ended and another one goes on."""
POISONED = "poisoned"
"""The verdict on a fault after which the test that noticed it fails without it too."""


class Planned(NamedTuple):
    """A fault and the tests that are to notice it.

    Attributes:
        name: The name of the mutant.
        path: The module's file, from the root.
        function: The function with the fault, with its class.
        source: The text of the module with the fault.
        tests: Their names, in the order in which they run.
        limit: CPU seconds, after which a fault counts as noticed.
    """

    name: str
    path: str
    function: str
    source: str
    tests: Sequence[str]
    limit: int


class OvertimeError(BaseException):
    """A trial takes longer than it may."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Lets laws draw the same examples in each trial, and make none smaller."""
    settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate), derandomize=True, database=None)
    settings.load_profile("mutants")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Tries each fault of the plan that was not begun before."""
    plan, items = Path(os.environ[PLAN]), {item.nodeid: item for item in session.items}
    verdicts = plan.with_suffix(".verdicts")
    begun = {json.loads(line)[0] for line in verdicts.read_text().splitlines()} if verdicts.exists() else set()
    signal.signal(signal.SIGPROF, _end)
    for line in plan.read_text("utf-8").splitlines():
        one = Planned(*json.loads(line))
        if one.name in begun:
            continue
        with verdicts.open("a") as file:
            file.write(json.dumps([one.name, None, 0.0]) + "\n")
        before = os.times()
        killed = _failed(session, one, [items[test] for test in one.tests if test in items])
        if killed is None:
            continue
        seconds = sum(os.times()[:4]) - sum(before[:4])
        # What fails without the fault too noticed nothing: something of the fault is left, or the test is no good one.
        poisoned = bool(killed) and bool(_first_failed(session, [items[killed]]))
        with verdicts.open("a") as file:
            file.write(json.dumps([one.name, POISONED if poisoned else killed, round(seconds, 2)]) + "\n")
        if poisoned:
            pytest.exit("a test fails without a fault", 1)
    return True


def with_fault(source: str, path: str, function: str) -> CodeType:
    """Returns the code of a function in a text.

    Raises:
        LookupError: it holds no such function.
    """
    left: list[tuple[CodeType, str]] = [(compile(source, path, "exec", dont_inherit=True), "")]
    while left:
        code, _ = left.pop()
        if code.co_qualname == function:
            return code
        left += [(inner, "") for inner in code.co_consts if isinstance(inner, CodeType)]
    raise LookupError(function)


@contextmanager
def replaced(file: str, function: str, code: CodeType) -> Iterator[int]:
    """Gives all functions of a name in a file other code for as long as the block lasts; yields how many there are."""
    found = [
        one for one in gc.get_objects()
        if isinstance(one, FunctionType) and one.__code__.co_qualname == function and one.__code__.co_filename == file
        and len(one.__code__.co_freevars) == len(code.co_freevars)
    ]  # fmt: skip
    before = [one.__code__ for one in found]
    for one in found:
        one.__code__ = code
    try:
        yield len(found)
    finally:
        for one, old in zip(found, before, strict=True):
            one.__code__ = old


def _failed(session: pytest.Session, one: Planned, items: Sequence[Any]) -> str | None:
    """Returns which test notices a fault; nothing if none does, and None if the fault cannot be tried here."""
    file = str(Path(str(session.config.rootpath), one.path))
    with replaced(file, one.function, with_fault(one.source, file, one.function)) as functions:
        if not functions or not items:
            return None
        signal.setitimer(signal.ITIMER_PROF, one.limit)
        # Nothing in Python ends a compiled loop that has no end.
        faulthandler.dump_traceback_later(PATIENCE * one.limit, exit=True)
        try:
            return _first_failed(session, items)
        except OvertimeError:
            return str(items[0].nodeid)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()


def _first_failed(session: pytest.Session, items: Sequence[Any]) -> str:
    try:
        for place, item in enumerate(items):
            following = items[place + 1] if place + 1 < len(items) else None
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                return str(item.nodeid)
        return ""
    finally:
        # A fixture that was made with a fault may not come to an end.
        with suppress(Exception):
            session._setupstate.teardown_exact(None)


def _end(number: int, frame: FrameType | None) -> None:
    raise OvertimeError
