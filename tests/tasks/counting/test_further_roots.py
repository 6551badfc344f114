"""Further roots of a search are counted by tasks of a cluster: the same node and bytes, and no cells of chunks are read by the flow."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.job.job import load_job
from tasks.counting import histograms
from tasks.counting.chunk_counts import count_histograms
from tasks.counting.coding import load_coding
from tasks.counting.source_domains import count_domains
from tasks.counting.source_sizes import merge_histograms
from tasks.engine import steps
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.lattice.recodings import Outcome, choose_root, search_lattice
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tasks.store.store import Artifact
from tests.flows.lattice.test_roots import job, room_for


def searched(path: Path, *settings: str) -> tuple[Any, tuple[str, ...], set[str]]:
    """Return what a search found, digests of its recoding, and which steps the flow's own process read artefacts of for it."""
    with open_run(load_job(path, ("chunk_rows=150", *settings))) as run:
        source = read_source(run)
        domain = count_domains(run, source)
        root, parts = choose_root(run.job, load_coding(run.job, domain, run.store)), count_histograms(run, source)
        read = watched(run)
        histogram = merge_histograms(run, domain, root, parts)
        found = search_lattice(run, domain, root, histogram, parts, [])
        steps = set(read)
        return run.store.read_model(found.outcome, Outcome), (histogram.sha256, found.cells.sha256, found.classes.sha256), steps


def watched(run: Run) -> set[str]:
    """Return the steps that a run's store is asked for from now on, but for what tasks of ``bundles`` and ``histograms`` ask for."""
    plain, read, others = run.store.path, set[str](), run.store.watching(nullcontext)

    def path(artifact: Artifact) -> Path:
        read.add(artifact.step)
        return plain(artifact)

    def mapped(_run: Run, _phase: str, function: Any, calls: list[Call]) -> list[Any]:
        return [function(elsewhere(call.arguments[0]), *call.arguments[1:]) for call in calls]

    def each_alone(_run: Run, step: Any, given: Any, items: list[Any]) -> list[Artifact]:
        made: list[Artifact] = step(elsewhere(given), items)
        return made

    def elsewhere(given: Any) -> Any:
        return replace(given, store=others) if given.store is run.store else given

    run.store.path = path  # type: ignore[method-assign]
    histograms.map_step, steps.run_for_each_item = mapped, each_alone  # type: ignore[assignment]
    return read


@pytest.mark.ci
@pytest.mark.parametrize("cells", [90, pytest.param(160, marks=pytest.mark.slow)])
def test_tasks_count_further_roots_and_the_search_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    path = job(tmp_path, method={"name": "skald", "roots": 100}, privacy={"k": 60}, suppression={"limit": 0.01})
    monkeypatch.setattr(histograms, "map_step", histograms.map_step)
    monkeypatch.setattr(steps, "run_for_each_item", steps.run_for_each_item)
    with room_for(cells, path):
        expected, digests, read = searched(path, "work=here")
        assert (len(expected.roots) > 1, "histograms" in read) == (True, True)
        monkeypatch.setattr(steps, "count_remote_workers", lambda: 2)
        monkeypatch.setattr(histograms, "count_remote_workers", lambda: 2)
        monkeypatch.setattr(steps, "FAN", 3)
        found, again, read = searched(path, "work=tasks")
    assert (found, again) == (expected, digests)
    assert read <= {"bundles", "domain", "histogram", "outcome"}
