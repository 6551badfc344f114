"""A run that is told to end, or of which one task failed, waits for no search: it looks between roll-ups whether it is wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.search import Search
from core.privacy.promise import Promise
from schemas.errors.base import SourceError
from schemas.errors.runners import WithdrawnError
from schemas.job.job import load_job
from tasks.engine.calls import Call, raise_if_withdrawn, withdrawn_by
from tasks.engine.steps import map_step
from tasks.source.extracts import open_run
from tasks.store.keys import StepCode
from tests.core.lattice.test_branch_and_bound import widths_over
from tests.jobs import people_job

STEP = StepCode("search", __name__)


def once(begun: threading.Event, fails: bool) -> None:
    if fails:
        begun.wait()
        raise SourceError.empty(1)
    begun.set()
    while True:
        raise_if_withdrawn()
        time.sleep(0.001)


def test_a_call_that_looks_ends_when_another_one_fails(tmp_path: Path) -> None:
    """It would wait for ever for the other."""
    begun = threading.Event()
    calls = [Call(STEP.key(fails), "search", (begun, fails)) for fails in (True, False)]
    with open_run(load_job(people_job(tmp_path))) as run, pytest.raises(SourceError):
        map_step(run, "search", once, calls, workers=2)


def test_outside_of_steps_everything_is_wanted() -> None:
    raise_if_withdrawn()


def branching(*given: Any, **more: Any) -> BranchAndBound:
    return BranchAndBound(Evaluations(*given, **more))


@pytest.mark.parametrize("way", [Search, branching])
def test_a_search_that_is_not_wanted_any_more_counts_no_further_node(way: Callable[..., Search | BranchAndBound]) -> None:
    example = widths_over([(5, 3), (3, 0), (5, 1), (1, 4), (2, 2)], [1, 3], [1, 2, 4])
    event, looks = threading.Event(), [0]

    def look() -> None:
        looks[0] += 1
        event.set()
        raise_if_withdrawn()

    search = way(example.histogram((0, 0)), example.hierarchies, Promise(2), 4, report_progress=look)
    with withdrawn_by(event), pytest.raises(WithdrawnError):
        search.run()
    assert looks == [1]
