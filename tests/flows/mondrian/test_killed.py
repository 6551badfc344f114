"""Fragments as a queue for workers: SIGKILL of a worker or of the whole run costs the fragments at hand only.

Mondrian by its own score and by what cuts save, in an order that is learnt, and k-member clustering in fragments.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from schemas.job.method import METHODS
from tests.conftest import CommandLine
from tests.flows.engine.test_dask import cluster_of, made, release
from tests.jobs import digests, people, people_job
from tests.patience import SECONDS, until

FRAGMENTS = 16
HELD = 3
TABLE = people(6000)
SHARED_OUT = {"fragments": {"count": FRAGMENTS, "sample": 0.5}}
WAYS = {"mondrian": {"name": "mondrian"}, "ncp": {"name": "mondrian", "score": "ncp"}, "kmember": {"name": "kmember"}}
LASTING = ("domains", "samples", "census", "losses")
SETTINGS = ("--set", "chunk_rows=1000", "--set", "rows_per_file=100")


@pytest.fixture(scope="module", params=WAYS)
def method(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What is asked for."""
    return WAYS[request.param] | SHARED_OUT


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, method: dict[str, Any]) -> list[str]:
    """The data files of a direct run."""
    flow = METHODS[method["name"]].flow.load()
    done = getattr(flow, "fn", flow)(people_job(tmp_path_factory.mktemp("direct"), TABLE, method=method), SETTINGS[1::2])
    assert done.untold.search["fragments"] == FRAGMENTS
    return digests(done.folder)


def done_fragments(folder: Path) -> int:
    """How many fragments are anonymised and written."""
    return len(made(folder, "losses")) // 2


def killed_in_the_middle(skald: CommandLine, *more: object) -> None:
    """Kill a run that has finished a further fragment, but not all."""
    before = done_fragments(skald.folder)
    process = skald.start("run", "job.yaml", *SETTINGS, *more)
    until(lambda: done_fragments(skald.folder) > before or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert before < done_fragments(skald.folder) < FRAGMENTS, "the run was not killed in the middle"
    assert not (skald.folder / "releases").exists()


def killed_in_the_queue(skald: CommandLine, worker: subprocess.Popen[bytes]) -> dict[Path, tuple[int, int]]:
    """Freeze a worker in the middle, let the other one take what is in the queue, and kills it; return what was finished by then."""
    before = done_fragments(skald.folder)
    # The two workers may still end what a killed run gave them; a worker that is frozen before there are fragments holds all others up.
    until(lambda: done_fragments(skald.folder) > before + 2)
    worker.send_signal(signal.SIGSTOP)
    # A worker holds the fragment that it is at, and one or two that Dask has given it beforehand.
    until(lambda: done_fragments(skald.folder) >= FRAGMENTS - HELD)
    finished = made(skald.folder, "losses")
    worker.kill()
    return finished


@pytest.mark.ci
@pytest.mark.few(1)
def test_a_killed_run_continues_with_the_fragments_that_were_not_done(
    direct: CommandLine, undisturbed: list[str], method: dict[str, Any]
) -> None:
    people_job(direct.folder, TABLE, method=method)
    direct.killed("losses/*.record", "run", "job.yaml", *SETTINGS)
    assert 0 < done_fragments(direct.folder) < FRAGMENTS, "the run was not killed in the middle"
    assert not (direct.folder / "releases").exists()
    kept = made(direct.folder, *LASTING)
    done = direct("run", "job.yaml", *SETTINGS)
    assert done.returncode == 0, done.stderr
    assert release(direct.folder) == undisturbed
    assert made(direct.folder, *LASTING).items() >= kept.items(), "what was finished was made again"


@pytest.mark.ci
@pytest.mark.few(1)
def test_a_cluster_takes_fragments_from_a_queue_and_neither_a_dead_worker_nor_a_killed_run_costs_finished_ones(
    prefect: CommandLine, undisturbed: list[str], method: dict[str, Any]
) -> None:
    people_job(prefect.folder, TABLE, method=method)
    with cluster_of(prefect, 2) as cluster:
        killed_in_the_middle(prefect, "--scheduler", cluster.address)
        early = made(prefect.folder, *LASTING)
        process = prefect.start("run", "job.yaml", *SETTINGS, "--scheduler", cluster.address)
        kept = killed_in_the_queue(prefect, cluster.processes[1])
        _, said = process.communicate(timeout=SECONDS)
        assert (process.returncode, said) == (0, "")
        assert [worker.poll() for worker in cluster.processes[1:]] == [-signal.SIGKILL, None]
    assert len(kept) / 2 >= FRAGMENTS - HELD
    assert release(prefect.folder) == undisturbed
    assert made(prefect.folder, *LASTING).items() >= (early | kept).items()
