"""What pytest does in a copy whose functions note that they are called: it writes what each test has reached, and what it cost."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from benchmarks.mutants.reach import FOLDER, NOTED


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    """Notes one test with its fixtures: those that several tests share count for the first."""
    noted: set[str] = getattr(builtins, NOTED)
    noted.clear()
    before = os.times()
    yield
    seconds = sum(os.times()[:4]) - sum(before[:4])
    passed = not any(report.failed or report.skipped for report in item.stash.get(REPORTS, []))
    with Path(os.environ[FOLDER], f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps([item.nodeid, round(seconds, 4), passed, sorted(noted)]) + "\n")


REPORTS = pytest.StashKey[list[pytest.TestReport]]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.CallInfo[None]]:
    """Keeps how each phase of the test ended."""
    outcome = yield
    item.stash.setdefault(REPORTS, []).append(outcome.get_result())  # type: ignore[attr-defined]
