"""Counts of chunks that are merged as a tree are those of all of them merged in one go, to the byte."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.job.job import load_job
from schemas.release.figures import RepeatedColumn
from tasks.composition.earlier import KnownRecords
from tasks.counting.chunk_counts import count_histograms
from tasks.counting.coding import load_coding
from tasks.counting.repeats import find_repeating_identifiers
from tasks.counting.source_domains import count_domains
from tasks.counting.source_sizes import merge_histograms
from tasks.engine import steps
from tasks.engine.calls import FEWEST_TASKS, MOST_TASKS, tasks_for
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tasks.store.store import Artifact
from tests.house.replaced import CONTENTS_KEPT, REPEATS_MOST_VALUES
from tests.jobs import job_of, people, people_job


def merged(path: Path, level: int, *settings: str) -> tuple[Any, ...]:
    """Return what the domain table and the histogram at a root of one level are told by."""
    with open_run(load_job(path, ("chunk_rows=10", *settings))) as run:
        source = read_source(run)
        domain = count_domains(run, source)
        coding = load_coding(run.job, domain, run.store)
        root = (
            tuple(min(level, top) for top in (hierarchy.top for hierarchy in coding.hierarchies)) + coding.finest[len(coding.hierarchies) :]
        )
        made = merge_histograms(run, domain, root, count_histograms(run, source))
        bundled = {path.name for path in (run.store.folder / "bundles").glob("*.parquet")}
        return (domain.key, domain.sha256, made.key, made.sha256), len(bundled)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("level", [0, 1], ids=["at the finest node", "at a coarser root"])
def test_a_tree_of_merges_gives_the_bytes_of_one_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    job = people_job(tmp_path, people(200), files=2)
    expected, none = merged(job, level, "work=here")
    monkeypatch.setattr(steps, "count_remote_workers", lambda: 2)
    monkeypatch.setattr(steps, "FAN", 3)
    found, some = merged(job, level, "work=tree")
    assert (found, none) == (expected, 0)
    # Of twenty chunks: seven, three, one of each kind.
    assert some == 2 * (7 + 3)


def known(path: Path, *settings: str) -> tuple[list[list[object]], dict[str, RepeatedColumn], set[str]]:
    """Return what a source is known by, what repeats in it, and which steps the flow's own process read artefacts of."""
    with open_run(load_job(path, ("chunk_rows=10", *settings))) as run:
        source = read_source(run)
        plain, read = run.store.path, set[str]()
        tasks = run.store.watching(nullcontext)

        def told(artifact: Artifact) -> Path:
            read.add(artifact.step)
            return plain(artifact)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run.store, "path", told)
            patch.setattr(steps, "run_for_each_item", lambda _run, step, given, items: step(replace(given, store=tasks), items))
            sketches, repeats = (
                KnownRecords(run, source).sketches((("age", "whole"), ("zip", "text"))),
                find_repeating_identifiers(run, source),
            )
        return [[one.digests.tolist(), one.counts.tolist(), one.is_complete] for one in sketches], repeats, read


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("most", [20, 5000], ids=["a sample", "all"])
def test_what_is_known_and_what_repeats_is_merged_by_tasks_and_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, *, persons: bool
) -> None:
    monkeypatch.setattr(CONTENTS_KEPT, most)
    monkeypatch.setattr(REPEATS_MOST_VALUES, most)
    columns = job_of()["columns"] | ({"person": "person"} if persons else {})
    table = people(200).set_column(0, "person", pa.array([row // 3 for row in range(200)]))
    job = people_job(tmp_path, table, files=2, columns=columns)
    expected, repeated, read = known(job, "work=here")
    assert read >= {"contents"}
    monkeypatch.setattr(steps, "count_remote_workers", lambda: 2)
    monkeypatch.setattr(steps, "FAN", 3)
    found, again, read = known(job, "work=tree")
    assert (found, again) == (expected, repeated)
    assert read == {"bundles"}
    assert bool(repeated) is not persons
    assert found[0][2] == (most > 200)


@pytest.mark.parametrize(("workers", "tasks"), [(0, FEWEST_TASKS), (2, FEWEST_TASKS), (20, 80), (10**6, MOST_TASKS)])
def test_a_phase_is_cut_into_as_many_tasks_as_its_workers_have_a_use_for(workers: int, tasks: int) -> None:
    assert tasks_for(workers) == tasks
