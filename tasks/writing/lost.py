"""Artefacts of chunks that are gone are made again where the source can be read: on a cluster, by tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tasks.engine.runs import Run
from tasks.engine.steps import map_groups, workers_elsewhere
from tasks.store.keys import Key
from tasks.store.store import Artifact


def make_lost(
    run: Run, step: str, function: Callable[..., list[Artifact]], items: Sequence[Any], key: Callable[[Any], Key], *arguments: Any
) -> None:
    """Has tasks make what a step left of some chunks and is not there any more, as it is lost between two runs.

    The process of the flow asks for it next; of a source in a bucket it may have nothing, and could not make it.

    Args:
        run: The run.
        step: Names the artefacts.
        function: Called as ``function(*arguments, items)``; makes them.
        items: Chunks, with whatever tells them apart.
        key: Returns the key of an item's artefact.
        *arguments: What every call gets.

    Raises:
        SkaldError: whatever a call raises.
    """
    lost = [item for item in items if run.store.find(step, key(item)) is None] if workers_elsewhere() else []
    if lost:
        map_groups(run, "rewrite", function, lost, key, *arguments)
