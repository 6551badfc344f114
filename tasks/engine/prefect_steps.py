"""Steps as Prefect tasks; imported only inside a flow run.

A run without Prefect does not pay for its import.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeVar

from prefect import Task
from prefect.assets import Asset, AssetProperties
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.task_engine import TaskRunTimeoutError
from prefect.tasks import MaterializingTask

from core.columns.data_parallel import limit_threads
from schemas.errors.base import SkaldError, StorageError
from schemas.errors.runners import WithdrawnError
from tasks.engine.calls import Call, artifacts_of, thread_share, withdrawn_by
from tasks.engine.guard import CHUNKS_SECONDS, RETRY_SECONDS, RUN_TASK_SECONDS, guarded
from tasks.engine.lineage import Lineage
from tasks.engine.progress import step_label
from tasks.engine.runs import Run
from tasks.store.files import private_folder

Result = TypeVar("Result")

# The first is said of every task on a thread that has a limit of time, which takes effect between two statements, as is wanted here.
# The others are said of every task of a chunk: among thousands of them nobody would find the lines that are for people.
_NOISE = ("Timeout of %s seconds configured", "Finished in state Completed", "Finished in state Cached")
logging.getLogger("prefect.task_runs").addFilter(lambda record: not str(record.msg).startswith(_NOISE))


class Calls(Protocol):
    """Interface of objects that make one phase's calls, in this process or on workers."""

    def __call__(self, function: Callable[..., Any], call: Call) -> Any:
        """Make a call and return its result."""

    def withdraw(self) -> None:
        """Cancel calls that have not begun; running ones go on."""


class CallsHere:
    """Object that makes calls in this process's threads, each with a part of the job's threads."""

    def __init__(self, share: int) -> None:
        self._share = share

    def __call__(self, function: Callable[..., Any], call: Call) -> Any:
        """Make a call and return its result."""
        with limit_threads(self._share):
            return function(*call.arguments)

    def withdraw(self) -> None:
        """Do nothing, as calls in threads check for cancellation themselves."""


def task_results(run: Run, phase: str, function: Callable[..., Result], calls: Sequence[Call], workers: int) -> Iterator[Result]:
    """Yield the results of calls in order, each a Prefect task; reuse persisted results, redo lost ones.

    Calls for remote workers are all submitted at once.

    A task takes no parameters, so that Prefect has nothing to look through or to store. Its result is a reference, persisted in the run
    folder as JSON under the call's key: with a new Prefect home and an empty database it is found all the same. Where the artefact that
    a record refers to is damaged or gone, the task runs once more.
    """
    records = private_folder(run.store.folder.parent / "results")
    names = [_record(run, phase, call) for call in calls]
    run.questions_answered.update(names)
    stopped, made_by = threading.Event(), _calls(run, phase, calls, workers)
    tasks = [_task(run, phase, function, call, records / name, stopped, made_by) for name, call in zip(names, calls, strict=True)]
    futures: list[PrefectFuture[Any]] = []
    # Who waits for a worker elsewhere takes none here.
    turns = _submitted(tasks, futures, len(tasks) if not isinstance(made_by, CallsHere) else workers)
    try:
        for asked, task in zip(names, tasks, strict=True):
            name, result = _result(phase, task, next(turns))
            # A record of an earlier run may outlive what it speaks of, or have been put in another's place.
            if name == asked and all(run.store.is_complete(artifact) for artifact in artifacts_of(result)):
                yield result
            else:
                again = _keyed(task.with_options(refresh_cache=True), phase)
                yield _result(phase, again, again.submit())[1]
    except BaseException:
        stopped.set()
        made_by.withdraw()
        # The folder's lock is let go after this: a thread that went on would write into the next run's.
        for future in futures:
            future.wait()
        raise


def counted_workers() -> int:
    """Return how many calls the flow's remote workers can make at a time; 0 for threads of this process."""
    context = FlowRunContext.get()
    count: Callable[[], int] | None = getattr(context.task_runner, "count_workers", None) if context else None
    return count() if count else 0


def _submitted(tasks: Sequence[Task[[], Any]], futures: list[PrefectFuture[Any]], most: int) -> Iterator[PrefectFuture[Any]]:
    """Submit tasks, at most ``most`` at a time, and yield their futures in order.

    Args:
        tasks: In order.
        futures: Gets the future of each task that is submitted.
        most: Tasks at a time.
    """
    free, ended = threading.Semaphore(most), [threading.Event() for _ in tasks]

    def end(place: int, _future: PrefectFuture[Any]) -> None:
        ended[place].set()
        free.release()

    for wanted in range(len(tasks)):
        while len(futures) < len(tasks) and not ended[wanted].is_set():
            free.acquire()
            place = len(futures)
            futures.append(tasks[place].submit())
            futures[place].add_done_callback(partial(end, place))
        yield futures[wanted]


def _calls(run: Run, phase: str, calls: Sequence[Call], workers: int) -> Calls:
    context = FlowRunContext.get()
    elsewhere = getattr(context.task_runner, "calls", None) if context and all(call.may_leave_process for call in calls) else None
    made_by: Calls = elsewhere(phase, run.work, run.spill) if elsewhere else CallsHere(thread_share(run.job, min(workers, len(calls))))
    return made_by


def _record(run: Run, phase: str, call: Call) -> str:
    """Return the name of the record of a call's result.

    It is keyed, because Prefect's server keeps it and others can read there.
    """
    return f"{phase}-{run.secret.keyed(call.key)}"


def _task(
    run: Run, phase: str, function: Callable[..., Result], call: Call, record: Path, stopped: threading.Event, made_by: Calls
) -> Task[[], Any]:
    def work() -> Any:
        # Tasks that wait for a thread cannot be taken back; they find out for themselves when they begin.
        if stopped.is_set():
            raise WithdrawnError
        # Workers elsewhere know nothing of the lease.
        run.work.raise_if_lost()
        with withdrawn_by(stopped):
            return [record.name, guarded(lambda: made_by(function, call))()]

    chunks = call.may_leave_process and not call.reads_all_chunks
    task: Task[[], Any] = Task(
        work,
        name=phase,
        task_run_name=step_label(phase, call.label),
        # Prefect's own key holds the run's id, so that no later run would find the record, and knows nothing of the code that is called.
        cache_key_fn=lambda _context, _parameters: record.name,
        persist_result=True,
        result_storage=record.parent,
        # The default is a pickle, and to read one is to run what it says.
        result_serializer="json",
        cache_result_in_memory=False,
        **_again(CHUNKS_SECONDS if chunks else RUN_TASK_SECONDS),
    )
    return _keyed(task, phase)


def task_here(step: str, label: str, function: Callable[[], Result], lineage: Lineage | None, *, once: bool) -> Result:
    """Run a function as a Prefect task in this thread and return its result; lineage becomes an asset.

    Arguments as for ``tasks.engine.steps.step_here``.
    """

    def work() -> Result:
        made = guarded(function)()
        if asset:
            asset.add_metadata(dict(lineage.facts) if lineage else {})
        return made

    named: dict[str, Any] = {"name": step, "task_run_name": step_label(step, label), "persist_result": False}
    named |= {"retries": 0} if once else _again(RUN_TASK_SECONDS)
    asset, task = None, Task(work, **named)
    if lineage:
        asset = Asset(key=lineage.release, properties=AssetProperties(name=str(lineage.facts["release"])))
        task = MaterializingTask(work, assets=[asset], asset_deps=list(lineage.sources), materialized_by="skald", **named)
    try:
        return _keyed(task, step)()
    except TaskRunTimeoutError:
        raise StorageError.timed_out(step, RUN_TASK_SECONDS) from None


class RetryRule(TypedDict):
    """Retry settings of a Prefect task."""

    retries: int
    retry_delay_seconds: list[float]
    retry_condition_fn: Callable[[Task[..., Any], TaskRun, State[Any]], bool]
    timeout_seconds: float


def _again(seconds: float) -> RetryRule:
    return RetryRule(
        retries=len(RETRY_SECONDS), retry_delay_seconds=list(RETRY_SECONDS), retry_condition_fn=_may_pass, timeout_seconds=seconds
    )


def _may_pass(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Return whether a failed task should be retried: after a transient fault or a timeout."""
    error = state.data
    return error.transient if isinstance(error, SkaldError) else isinstance(error, TaskRunTimeoutError)


def _result(phase: str, task: Task[[], Result], future: PrefectFuture[Result]) -> Result:
    try:
        return future.result()
    except TaskRunTimeoutError:
        raise StorageError.timed_out(phase, task.timeout_seconds or 0) from None


def _keyed(task: Task[[], Result], step: str) -> Task[[], Result]:
    """Give a Prefect task a fixed key for its step, the same in all versions.

    Prefect would make it of the name and the bytecode of ``work``, alike for all steps.
    """
    task.task_key = f"skald.{step}"
    return task
