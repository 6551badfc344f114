"""``threads`` is how many chunk tasks work at a time: never more than the memory has room for, and no byte of a release depends on it."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.columns.data_parallel import parts_in_parallel
from schemas.job.job import load_job
from schemas.job.method import METHODS
from tasks.engine.calls import Call, workers_of
from tasks.engine.runs import Run, locked_run
from tasks.engine.steps import map_step
from tests.conftest import Anonymise, CommandLine
from tests.house.replaced import GRIDS_LEAST_ENTRIES, RECORD_ROLLUPS_FOLDED, ROLLUPS_LARGE
from tests.jobs import digests, people, people_job

TABLE = people(400)
CORES = len(os.sched_getaffinity(0))


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("method", list(METHODS))
def test_any_number_of_threads_makes_the_same_release(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    found = set()
    for threads in (1, 2, 4, 8):
        job = people_job(tmp_path / str(threads), TABLE, files=3, row_group=40)
        settings = ("privacy.k=4", "chunk_rows=40", "rows_per_file=100", f"method={{name: {method}}}", f"threads={threads}")
        made = anonymise(job, *settings)
        assert made.manifest.workers == min(threads, 4 * CORES)
        found.add((made.manifest.release, *digests(made.folder)))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("memory", "threads", "each", "workers"),
    [
        ("1GB", "null", 0, CORES),
        ("1GB", "1", 0, 1),
        ("1GB", "4", 0, 4),
        ("1GB", "100000", 0, min(4 * CORES, 62)),
        ("512MB", "4", 500_000_000, 1),
        ("512MB", "4", 200_000_000, 2),
        ("64MB", "4", 100_000_000, 1),
    ],
)
def test_workers_are_as_many_as_asked_for_up_to_four_a_core_and_the_memory(
    tmp_path: Path, memory: str, threads: str, each: int, workers: int
) -> None:
    job = load_job(people_job(tmp_path, TABLE), [f"memory={memory}", f"threads={threads}"])
    assert workers_of(job, each) == workers


@pytest.mark.parametrize("workers", [1, 3])
def test_so_many_tasks_are_at_work_at_a_time_and_results_come_in_order(tmp_path: Path, workers: int) -> None:
    at_work, most, lock = [0], [0], threading.Lock()

    def work(number: int) -> int:
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        time.sleep(0.002 * (number % 3))
        with lock:
            at_work[0] -= 1
        return number

    with locked_run(load_job(people_job(tmp_path, TABLE), [])) as run:
        assert map_step(run, "phase", work, _calls(run), workers) == list(range(12))
    assert most[0] <= workers


@pytest.mark.parametrize(("calls", "share"), [(1, 4), (3, 1), (2, 2)])
def test_tasks_that_work_at_a_time_share_out_the_threads_of_the_job(tmp_path: Path, calls: int, share: int) -> None:
    used: list[int] = []

    def work(number: int) -> int:
        used.append(len(parts_in_parallel(lambda rows: rows, 100, least=1)))
        return number

    with locked_run(load_job(people_job(tmp_path, TABLE), ["threads=4"])) as run:
        map_step(run, "parts", work, _calls(run)[:calls], workers=4)
    assert used == [share] * calls


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_search_takes_the_threads_of_the_job_and_no_more(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    pools: list[int] = []

    class Seen(ThreadPoolExecutor):
        def __init__(self, workers: int, **options: Any) -> None:
            pools.append(workers)
            super().__init__(workers, **options)

    monkeypatch.setattr("core.columns.data_parallel.ThreadPoolExecutor", Seen)
    monkeypatch.setattr(GRIDS_LEAST_ENTRIES, 1)
    monkeypatch.setattr(ROLLUPS_LARGE, 2)
    monkeypatch.setattr(RECORD_ROLLUPS_FOLDED, 1)
    anonymise(people_job(tmp_path, TABLE), "privacy.k=4", f"threads={threads}")
    assert max(pools, default=1) == threads


def _calls(run: Run) -> list[Call]:
    return [Call(key=f"{number}", label="", arguments=(number,)) for number in range(12)]  # type: ignore[arg-type]


@pytest.mark.slow
def test_prefect_is_handed_as_many_tasks_at_a_time_and_makes_the_same_release(prefect: CommandLine, anonymise: Anonymise) -> None:
    settings = ("privacy.k=4", "chunk_rows=40", "rows_per_file=100", "threads=3")
    job = people_job(prefect.folder, TABLE, files=3, row_group=40)
    done = prefect("run", job, "--json", *(word for setting in settings for word in ("--set", setting)))
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    assert manifest["workers"] == 3
    direct = anonymise(people_job(prefect.folder / "direct", TABLE), *settings)
    assert [file["sha256"] for file in manifest["files"]] == digests(direct.folder)
