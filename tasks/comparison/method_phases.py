"""The runs of a comparison of methods, one after the other.

Concurrent runs would take each other's processors and memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from schemas.job.job import job_digest
from schemas.job.method import METHODS
from schemas.release.method_comparison import MethodRun
from tasks.comparison.method_runs import MethodRequest, run_method
from tasks.engine.calls import Call
from tasks.engine.progress import advance
from tasks.engine.runs import Run, versions
from tasks.engine.steps import run_step
from tasks.source.chunks import ChunkedSource
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store

MEASURED = "measured"
STEP = StepCode(MEASURED, __name__)


def measure_methods(
    run: Run,
    source: ChunkedSource,
    request: MethodRequest,
    methods: Sequence[str],
    ks: Sequence[int],
    domain: Artifact,
    histogram: Artifact | None,
) -> list[MethodRun]:
    """Run every method at every k and return the figures; an interrupted comparison is resumed.

    Returns:
        The runs by k, then in the order of the methods.
    """
    scratch, found = run.job.work_path / "comparison", []
    wanted = [(k, method) for k in ks for method in methods]
    advance("methods", 0, len(wanted))
    try:
        for done, (k, method) in enumerate(wanted, start=1):
            # A method is its flow, which runs in a process of its own; what counts its release is here.
            # Versions too: CPU time and memory are theirs, even where the release stays the same.
            of_method = StepCode(method, METHODS[method].flow.module).key(job_digest(run.job), source.digest, versions(), k)
            key = STEP.key(of_method)
            call = Call(key, f"{method}, k = {k}", (request, method, k, domain, histogram, scratch, key, run.store))
            artifact = run_step(run, MEASURED, measure_method, call)
            found.append(MethodRun.model_validate_json(run.store.path(artifact).read_bytes()))
            advance("methods", done, len(wanted))
    finally:
        # It held raw values, so that not even Ctrl+C may leave it behind.
        shutil.rmtree(scratch, ignore_errors=True)
    # The next comparison measures anew.
    run.store.remove(MEASURED)
    return found


def measure_method(
    request: MethodRequest, method: str, k: int, domain: Artifact, histogram: Artifact | None, scratch: Path, key: Key, store: Store
) -> Artifact:
    """Run one method at one k and write its figures to the store."""

    def write(path: Path) -> int:
        path.write_text(run_method(request, method, k, domain, histogram, scratch, store).model_dump_json(), "utf-8")
        return 1

    return store.make(MEASURED, key, ".json", write)
