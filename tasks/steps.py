"""The one switch: the same steps as Prefect tasks, or in this process without Prefect.

A step is a function from references to references (artefacts in, artefacts out). Inside a Prefect flow each call becomes a task run
whose result, a reference, is persisted under the fingerprint of its inputs: an interrupted run finds it again, whatever became of
Prefect's database. Prefect believes that record; the store does not, and checks the artefact itself. Without Prefect the store's check
is all there is, and it is enough: a step whose artefact is whole returns it at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from schemas.errors.base import InternalError, SkaldError, StorageError
from tasks.artifacts import Artifact, key_of
from tasks.lineage import Lineage
from tasks.progress import advance
from tasks.retrying import is_transient
from tasks.runners import task_runner
from tasks.runs import Run

SWITCH = "SKALD_DIRECT"
WORKERS = 2
MOST_TASKS = 32

Result = TypeVar("Result")


def without_prefect() -> bool:
    """Tells whether this process was asked to run steps without Prefect."""
    return os.environ.get(SWITCH, "") not in {"", "0"}


def guarded(function: Callable[..., Result]) -> Callable[..., Result]:
    """Lets only errors out that carry no cell value: those of ours, and others by kind and place alone.

    Prefect stores the text of exceptions and of what they were raised from, so the new one is raised where no other is being handled.
    """

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Result:
        try:
            return function(*arguments, **named)
        except SkaldError as error:
            raised, transient = error, is_transient(error)
        except BaseException as error:
            # A panic in Polars is no Exception; what interrupts or cancels is none either and goes through.
            panic = type(error).__module__ == "pyo3_runtime"
            if os.environ.get("SKALD_DEBUG") or not (panic or isinstance(error, Exception)):
                raise
            raised, transient = known(error), is_transient(error)
        raised.transient = transient
        raised.__cause__ = raised.__context__ = None
        raise raised

    return call


def known(error: BaseException) -> SkaldError:
    """Returns an error of ours for any other, without its text."""
    if isinstance(error, OSError):
        return StorageError.not_writable(str(error.filename or "a file"), error.strerror or type(error).__name__)
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "an unknown place"
    return InternalError(type(error).__name__, place)


def as_flow(function: Callable[..., Any]) -> Any:
    """Makes a function a Prefect flow of the same name, or leaves it as it is where Prefect is not wanted (importing it costs a second)."""
    if without_prefect():
        return guarded(function)
    from prefect import flow  # noqa: PLC0415

    return flow(name=function.__name__, task_runner=task_runner(WORKERS), persist_result=False)(guarded(function))


def as_job_flow(function: Callable[..., Any]) -> Any:
    """Does the same for a function of job file and settings; as Prefect's parameters these are one model, checked before a run begins."""
    if without_prefect():
        return guarded(function)
    from tasks.prefect_flows import job_flow  # noqa: PLC0415

    return job_flow(function)


@dataclass(frozen=True)
class Call:
    """One call of a step.

    Attributes:
        key: Fingerprint of all that its result depends on.
        label: Names it in Prefect's UI; no cell value, nothing secret.
        arguments: What the function gets.
        elsewhere: Whether a worker in another process may do it: the tasks of chunks. Merges and searches take the whole of the job's
            memory and stay with the flow.
    """

    key: str
    label: str
    arguments: tuple[Any, ...]
    elsewhere: bool = False


def run_step(run: Run, phase: str, function: Callable[..., Result], call: Call) -> Result:
    """Makes one call of a step."""
    return map_step(run, phase, function, [call])[0]


def map_step(run: Run, phase: str, function: Callable[..., Result], calls: Sequence[Call]) -> list[Result]:
    """Makes all calls of a step, a few at a time, and returns their results in order; the first error ends the phase.

    Args:
        run: The run.
        phase: Names the step.
        function: A function of a module, so that a worker elsewhere can find it.
        calls: What it is called with.

    Raises:
        SkaldError: whatever a call raised.
    """
    results: list[Result] = []
    advance(phase, 0, len(calls))
    for done, result in enumerate(_results(run, phase, function, calls), start=1):
        results.append(result)
        advance(phase, done, len(calls))
    return results


def step_here(step: str, label: str, function: Callable[[], Result], lineage: Lineage | None = None) -> Result:
    """Makes a step that leaves no artefact, in the thread of the flow; within Prefect it is a task all the same, so that it is seen.

    Args:
        step: Names it.
        label: Names its task.
        function: What is done.
        lineage: What comes into being by it, and of what.

    Raises:
        SkaldError: whatever the function raised.
    """
    advance(step, 0, 1)
    if in_flow_run():
        from tasks.prefect_steps import task_here  # noqa: PLC0415

        result = task_here(step, label, function, lineage)
    else:
        result = function()
    advance(step, 1, 1)
    return result


def map_groups(
    run: Run, phase: str, function: Callable[..., list[Artifact]], items: Sequence[Any], key: object, *arguments: Any
) -> list[Artifact]:
    """Calls a step on runs of neighbours, because a task per item would cost more than the item, and returns all artefacts in order.

    Args:
        run: The run.
        phase: Names the step.
        function: Called as ``function(*arguments, items)``; returns one artefact per item.
        items: Chunks, or anything that has a ``key`` or is one.
        key: What the results depend on besides the items.
        *arguments: What every call gets.
    """
    parts = groups(items)
    calls = [
        Call(
            key=key_of(phase, key, [getattr(item, "key", item) for item in part]),
            label=f"{phase} {number} of {len(parts)}",
            arguments=(*arguments, part),
            elsewhere=True,
        )
        for number, part in enumerate(parts, start=1)
    ]
    return [artifact for result in map_step(run, phase, function, calls) for artifact in result]


def groups(items: Sequence[Any], most: int = MOST_TASKS) -> list[Sequence[Any]]:
    """Cuts a list into at most ``most`` runs of neighbours of about equal length."""
    count = min(len(items), most)
    return [items[len(items) * number // count : len(items) * (number + 1) // count] for number in range(count)]


def _results(run: Run, phase: str, function: Callable[..., Result], calls: Sequence[Call]) -> Iterator[Result]:
    if in_flow_run():
        from tasks.prefect_steps import task_results  # noqa: PLC0415

        yield from task_results(run, phase, function, calls)
        return
    with ThreadPoolExecutor(min(run.job.threads or WORKERS, WORKERS)) as pool:
        futures = [pool.submit(guarded(function), *call.arguments) for call in calls]
        try:
            for future in futures:
                yield future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def in_flow_run() -> bool:
    """Tells whether this thread is in a run of Prefect's, without importing Prefect."""
    prefect = sys.modules.get("prefect.context")
    return prefect is not None and prefect.FlowRunContext.get() is not None


def artifacts_of(result: Any) -> list[Artifact]:
    """Returns the artefacts that a result refers to."""
    if isinstance(result, Artifact):
        return [result]
    if isinstance(result, BaseModel):
        return [artifact for _, value in result for artifact in artifacts_of(value)]
    if isinstance(result, Sequence) and not isinstance(result, str):
        return [artifact for value in result for artifact in artifacts_of(value)]
    return []
