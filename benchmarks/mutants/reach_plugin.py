"""A pytest plug-in that writes what each test has reached and what it cost.

It runs in a copy of the repository whose functions note that they are called.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants.laws import same_examples
from benchmarks.mutants.reach import FOLDER, NOTED

FIXTURES: dict[Any, set[str]] = {}
"""What making each fixture has reached: all of its tests reach it, and not only the first."""
REPORTS = pytest.StashKey[list[pytest.TestReport]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Let laws draw the examples that they draw in trials."""
    same_examples()


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None]:
    """Note what a fixture reaches, apart from what was reached before."""
    noted: set[str] = getattr(builtins, NOTED)
    before = set(noted)
    noted.clear()
    yield
    FIXTURES[fixturedef] = set(noted)
    noted |= before


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    """Note one test with its fixtures: the cost of those that several tests share counts for the first."""
    noted: set[str] = getattr(builtins, NOTED)
    noted.clear()
    before = os.times()
    yield
    seconds = sum(os.times()[:4]) - sum(before[:4])
    passed = not any(report.failed or report.skipped for report in item.stash.get(REPORTS, []))
    made: Any = getattr(item, "_fixtureinfo", None)
    for definitions in made.name2fixturedefs.values() if made else ():
        for definition in definitions:
            noted |= FIXTURES.get(definition, set())
    with Path(os.environ[FOLDER], f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps([item.nodeid, round(seconds, 4), passed, sorted(noted)]) + "\n")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.CallInfo[None]]:
    """Keep how each phase of the test ended."""
    outcome = yield
    item.stash.setdefault(REPORTS, []).append(outcome.get_result())  # type: ignore[attr-defined]
