"""Steps as Prefect tasks: imported only inside a flow run, so that a run without Prefect does not pay for its import."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from prefect import Task
from prefect.futures import PrefectFuture

from tasks.artifacts import private_folder
from tasks.runs import Run
from tasks.steps import Call, artifacts_of, guarded

Result = TypeVar("Result")


def task_results(run: Run, phase: str, function: Callable[..., Result], calls: Sequence[Call]) -> Iterator[Result]:
    """Submits every call as a task run and yields the results in order.

    A task takes no parameters, so that Prefect has nothing to look through or to store. Its result is a reference, persisted in the run
    folder as JSON under the call's key: with a new Prefect home and an empty database it is found all the same. Where the artefact that
    a record refers to is damaged or gone, the task runs once more.

    Raises:
        SkaldError: whatever a call raised; calls that have not begun by then do nothing.
    """
    records = private_folder(run.store.folder.parent / "results")
    stopped = threading.Event()
    tasks = [_task(phase, function, call, records, stopped) for call in calls]
    futures = [task.submit() for task in tasks]
    try:
        for task, future in zip(tasks, futures, strict=True):
            result = future.result()
            if all(run.store.whole(artifact) for artifact in artifacts_of(result)):
                yield result
            else:
                again: PrefectFuture[Result] = task.with_options(refresh_cache=True).submit()
                yield again.result()
    except BaseException:
        stopped.set()
        for future in futures:
            future.wait()
        raise


def _task(phase: str, function: Callable[..., Result], call: Call, records: Path, stopped: threading.Event) -> Task[[], Any]:
    def work() -> Result | None:
        return None if stopped.is_set() else guarded(function)(*call.arguments)

    return Task(
        work,
        name=phase,
        task_run_name=call.label,
        cache_key_fn=lambda _context, _parameters: f"{phase}-{call.key}",
        persist_result=True,
        result_storage=records,
        result_serializer="json",
        cache_result_in_memory=False,
    )
