"""Execution of steps, as Prefect tasks or in this process without Prefect.

A step is a function from references to references (artefacts in, artefacts out). Inside a Prefect flow each call becomes a task run. Its
result, a reference, is persisted under the store's key, so that an interrupted run finds it again even without Prefect's database. Prefect
believes that record; the store does not, and checks the artefact itself. Without Prefect only the store checks, which is enough: a step
whose artefact is complete returns it at once.

On a cluster, tables of chunks are merged as a tree by workers, so that the flow merges only a few. Sums of counts do not depend on the
order of adding, so the result and its key are those of all parts merged at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from core.columns.data_parallel import limit_threads
from tasks.engine.calls import Call, groups, tasks_for, thread_share, withdrawn_by
from tasks.engine.flows import in_flow_run
from tasks.engine.guard import Result, guarded
from tasks.engine.lineage import Lineage
from tasks.engine.progress import advance
from tasks.engine.runs import Run
from tasks.store.keys import Key, key_of_all
from tasks.store.step import FileStep, Step, StepCall
from tasks.store.store import Artifact

G = TypeVar("G", bound=StepCall)
Item = TypeVar("Item")
Stepped = TypeVar("Stepped")


def run_step(run: Run, phase: str, function: Callable[..., Result], call: Call) -> Result:
    """Make one call of a step, in this process or on a worker, and return its result."""
    return map_step(run, phase, function, [call])[0]


def map_step(run: Run, phase: str, function: Callable[..., Result], calls: Sequence[Call], workers: int | None = None) -> list[Result]:
    """Make all calls of a step in parallel and return their results in order; the first error ends it.

    Args:
        phase: Names the step.
        function: A function of a module, so that a worker elsewhere can find it.
        calls: What it is called with.
        workers: How many are made at a time; as many as the run's workers unless it is said.
    """
    results: list[Result] = []
    advance(phase, 0, len(calls))
    for done, result in enumerate(_results(run, phase, function, calls, workers or run.workers), start=1):
        results.append(result)
        advance(phase, done, len(calls))
    return results


def step_here(step: str, label: str, function: Callable[[], Result], lineage: Lineage | None = None, *, once: bool = False) -> Result:
    """Run a function as a step in this thread and return its result; in a flow run it is a Prefect task.

    Args:
        step: Names it.
        label: Names its task.
        function: What is done.
        lineage: What comes into being by it, and of what.
        once: Whether it is not tried again after a fault that may pass.
    """
    advance(step, 0, 1)
    if in_flow_run():
        from tasks.engine.prefect_steps import task_here  # noqa: PLC0415

        result = task_here(step, label, function, lineage, once=once)
    else:
        result = function()
    advance(step, 1, 1)
    return result


def run_for_item(run: Run, step: Step[G, Item, Stepped], given: G, item: Item, label: str, *, elsewhere: bool = False) -> Stepped:
    """Return a step's result for one item, stored or made; on a cluster worker if ``elsewhere`` allows.

    The result depends on all chunks.
    """
    [made] = run_step(run, step.watched, step, Call(step.key(given, item), label, (given, [item]), elsewhere, reads_all_chunks=True))
    return made


def run_for_items(run: Run, step: Step[G, Item, Stepped], given: G, items: Sequence[Item]) -> list[Stepped]:
    """Return a step's results for all items in order, stored or made, several items per call.

    Neighbours are made in one call, because a task for each would cost more than the item.
    """
    return _each(run, step, given, split_for_workers(items), step.watched)


def run_for_each_item(
    run: Run, step: Step[G, Item, Stepped], given: G, items: Sequence[Item], label: str = "", workers: int | None = None
) -> list[Stepped]:
    """Return a step's results for all items in order, stored or made, one item per call.

    As many are made at a time as the run has workers, unless ``workers`` says otherwise.
    """
    return _each(run, step, given, [[item] for item in items], label or step.watched, workers)


def results_of_each(run: Run, step: FileStep[G, Item], given: G, items: Sequence[Item]) -> list[Artifact]:
    """Return a step's artefacts for all items in order; missing ones are made, by cluster tasks if any.

    The process of the flow asks for it next; of a source in a bucket it may have nothing, and could not make it.
    """
    lost = [item for item in items if step.find(given, item) is None] if count_remote_workers() else []
    if lost:
        run_for_items(run, step, given, lost)
    return step(given, items)


def _each(
    run: Run, step: Step[G, Item, Stepped], given: G, parts: Sequence[Sequence[Item]], label: str, workers: int | None = None
) -> list[Stepped]:
    calls = _calls(parts, label, lambda item: step.key(given, item), given)
    return [made for result in map_step(run, step.watched, step, calls, workers) for made in result]


def _calls(parts: Sequence[Sequence[Item]], label: str, key: Callable[[Item], Key], *arguments: Any) -> list[Call]:
    """Return a call for each part of the items, which a cluster worker may make."""
    return [
        Call(
            key=key_of_all([key(item) for item in part]),
            label=f"{label} {number} of {len(parts)}",
            arguments=(*arguments, part),
            may_leave_process=True,
        )
        for number, part in enumerate(parts, start=1)
    ]


def map_groups(
    run: Run, phase: str, function: Callable[..., list[Artifact]], items: Sequence[Any], key: Callable[[Any], Key], *arguments: Any
) -> list[Artifact]:
    """Call a function on groups of neighbouring items, on workers if any; return all artefacts in order.

    A task for each item would cost more than the item.

    Args:
        phase: Names the step.
        function: Called as ``function(*arguments, items)``; returns one artefact per item.
        items: Chunks, or whatever the step makes an artefact of.
        key: Returns the key of an item's artefact.
        *arguments: What every call gets.
    """
    calls = _calls(split_for_workers(items), phase, key, *arguments)
    return [artifact for result in map_step(run, phase, function, calls) for artifact in result]


def split_for_workers(items: Sequence[Any]) -> list[Sequence[Any]]:
    """Return a sequence cut into consecutive parts, as many as suit the current cluster workers.

    No result depends on their number.
    """
    return groups(items, tasks_for(count_remote_workers()))


def count_remote_workers() -> int:
    """Return how many cluster workers take chunk tasks now; 0 where this process makes them."""
    if not in_flow_run():
        return 0
    from tasks.engine.prefect_steps import counted_workers  # noqa: PLC0415

    return counted_workers()


def remote_takes_all_chunks(run: Run) -> bool:
    """Return whether a cluster worker with the flow's memory may do a step on all chunks.

    How much that is decides over some results, which are the same wherever they are made.
    """
    return run.job.task_memory == run.job.memory and count_remote_workers() > 0


def _results(run: Run, phase: str, function: Callable[..., Result], calls: Sequence[Call], workers: int) -> Iterator[Result]:
    if in_flow_run():
        from tasks.engine.prefect_steps import task_results  # noqa: PLC0415

        yield from task_results(run, phase, function, calls, workers)
        return
    withdrawn, share = threading.Event(), thread_share(run.job, min(workers, len(calls)))

    @guarded
    def made(call: Call) -> Result:
        with withdrawn_by(withdrawn), limit_threads(share):
            return function(*call.arguments)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(made, call) for call in calls]
        try:
            for future in futures:
                yield future.result()
        except BaseException:
            # What has begun comes to its end while the folder is still locked; what takes long looks whether it is still wanted.
            withdrawn.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


BUNDLES = "bundles"
"""Names the folder of tables that were merged of several."""
FAN = 8
"""How many tables a task merges, and how many are left to the flow at most."""


class Merge(NamedTuple):
    """Chunk tables to merge into one, and bundles of them if some were merged already.

    Attributes:
        parts: The tables of all chunks, which the result's key depends on.
        bundles: The same, some of them merged already; empty where none are.
    """

    parts: Sequence[Artifact]
    bundles: Sequence[Artifact] = ()

    @property
    def read(self) -> Sequence[Artifact]:
        """The tables to read: the bundles, or else all chunk tables."""
        return self.bundles or self.parts


def merge_on_cluster(
    run: Run, step: FileStep[G, Sequence[Artifact]], given: G, parts: Sequence[Artifact], always_merged: str | None = None
) -> Sequence[Artifact]:
    """Merge chunk tables on cluster workers to at most ``FAN``; return them unchanged without a cluster.

    Args:
        step: Merges some tables, of chunks or bundles, into one.
        given: What every call gets.
        parts: The tables.
        always_merged: The step of tables that are merged however few there are, because they hold what the flow does not read.
    """
    while count_remote_workers() and (len(parts) > FAN or (always_merged and parts and parts[0].step == always_merged)):
        parts = run_for_each_item(run, step, given, [parts[first : first + FAN] for first in range(0, len(parts), FAN)])
    return parts
