"""Steps as Prefect tasks: imported only inside a flow run, so that a run without Prefect does not pay for its import."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from prefect import Task
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture

from tasks.artifacts import private_folder
from tasks.runs import Run
from tasks.steps import Call, WithdrawnError, artifacts_of, guarded

Result = TypeVar("Result")


class Calls(Protocol):
    """Makes the calls of one phase, wherever that is."""

    def __call__(self, function: Callable[..., Any], call: Call) -> Any:
        """Makes a call and returns its result."""

    def withdraw(self) -> None:
        """Lets calls that have not begun return at once."""


class CallsHere:
    """Makes calls on the threads of Prefect's runner."""

    def __call__(self, function: Callable[..., Any], call: Call) -> Any:
        """Makes a call and returns its result."""
        return function(*call.arguments)

    def withdraw(self) -> None:
        """Has nothing to do: a thread that has begun ends."""


def task_results(run: Run, phase: str, function: Callable[..., Result], calls: Sequence[Call]) -> Iterator[Result]:
    """Submits every call as a task run and yields the results in order.

    A task takes no parameters, so that Prefect has nothing to look through or to store. Its result is a reference, persisted in the run
    folder as JSON under the call's key: with a new Prefect home and an empty database it is found all the same. Where the artefact that
    a record refers to is damaged or gone, the task runs once more.

    Raises:
        SkaldError: whatever a call raised; calls that have not begun by then do nothing.
    """
    records = private_folder(run.store.folder.parent / "results")
    stopped, made_by = threading.Event(), _calls(run, phase, calls)
    tasks = [_task(phase, function, call, records, stopped, made_by) for call in calls]
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
        made_by.withdraw()
        for future in futures:
            future.wait()
        raise


def _calls(run: Run, phase: str, calls: Sequence[Call]) -> Calls:
    context = FlowRunContext.get()
    elsewhere = getattr(context.task_runner, "calls", None) if context and all(call.elsewhere for call in calls) else None
    made_by: Calls = elsewhere(phase, run.spill) if elsewhere else CallsHere()
    return made_by


def _task(
    phase: str, function: Callable[..., Result], call: Call, records: Path, stopped: threading.Event, made_by: Calls
) -> Task[[], Any]:
    def work() -> Any:
        if stopped.is_set():
            raise WithdrawnError
        return guarded(lambda: made_by(function, call))()

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
