"""What two releases tell together, counted by a task where a cluster has workers: of records, what the flow never reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from schemas.errors.signals import UnmeasuredError
from tasks.engine.calls import Call
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, run_step
from tasks.store.keys import StepCode

STEP = StepCode("overlaps", __name__)

Figures = Mapping[str, int | str]
"""Records that both have, or either has alone, and how many of each are at risk, by field of the overlap."""
Answer = list[Any]
"""Figures, None where the two have no records in common, and why they cannot be told; as JSON has them."""


def as_answer(function: Callable[..., Figures | None]) -> Callable[..., Answer]:
    """Make a function that raises ``UnmeasuredError`` one that says why, as a worker's answer can."""

    @wraps(function)
    def answer(*arguments: Any) -> Answer:
        try:
            return [function(*arguments), ""]
        except UnmeasuredError as reason:
            return [None, str(reason)]

    return answer


def answered(run: Run, function: Callable[..., Answer], *arguments: Any, here: bool = False) -> Figures | None:
    """Return the figures of two releases together, counted by a task if there are workers.

    Args:
        run: The run.
        function: Made by ``as_answer``; a function of a module.
        *arguments: What it gets.
        here: Whether only this process has what it reads.
    """
    if here or not count_remote_workers():
        found, reason = function(*arguments)
    else:
        # What an earlier release left may be gone tomorrow: no later run finds this call made.
        found, reason = run_step(run, "overlaps", function, Call.once(STEP, "releases together", arguments))
    if reason:
        raise UnmeasuredError(reason)
    figures: Figures | None = found
    return figures
