"""What every step gets crosses to a worker and back: releases made of calls that travelled are those of this process, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from schemas.job.method import METHODS
from tasks.counting import untreated_figures
from tasks.engine import steps
from tasks.engine.calls import Call
from tasks.engine.remote.call_queues import FolderQueue, decoded, encoded
from tasks.engine.runs import Run
from tasks.mondrian import ways
from tasks.store.step import Step
from tasks.writing import two_level_shuffle
from tests.jobs import JOB, digests, people, people_job

PERSONS = {"columns": JOB["columns"] | {"identifiers": [], "person": "person"}, "endpoints": "shared"}
JOBS: dict[str, dict[str, Any]] = {
    "skald": {"method": {"name": "skald"}},
    "persons": {"method": {"name": "mondrian"}, **PERSONS},
    "fragments": {"method": {"name": "mondrian", "fragments": {"count": 2}}},
    "records": {"method": {"name": "kmember"}},
}


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("name", JOBS)
def test_a_release_of_calls_that_travelled_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    job = people_job(tmp_path, people(300), files=3, chunk_rows=20, **JOBS[name])
    flow = METHODS[str(JOBS[name]["method"]["name"])].flow.load()
    run_flow = getattr(flow, "fn", flow)
    expected = run_flow(job, ("work=here", "target=here-releases"))
    plain, crossed = steps.map_step, set[str]()

    def travelled(run: Run, phase: str, function: Callable[..., Any], calls: Sequence[Call], workers: int | None = None) -> list[Any]:
        if not (isinstance(function, Step) and all(call.may_leave_process for call in calls)):
            return plain(run, phase, function, calls, workers)
        queue = FolderQueue(run.store.folder.parent)
        crossed.add(phase)
        made = [decoded(encoded(function, call.arguments, queue), queue) for call in calls]
        return [function(*arguments) for function, arguments in made]

    monkeypatch.setattr(steps, "map_step", travelled)
    for module in (steps, two_level_shuffle, untreated_figures, ways):
        monkeypatch.setattr(module, "count_remote_workers", lambda: 2)
    found = run_flow(job, ("work=there", "target=there-releases"))
    assert (found.manifest.release, digests(found.folder)) == (expected.manifest.release, digests(expected.folder))
    assert len(crossed) > 4
