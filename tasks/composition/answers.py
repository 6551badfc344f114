"""Comparisons of two releases, run by a worker where a cluster has workers.

They read records, which the flow itself never does.
"""

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
FiguresOrReason = list[Any]
"""Figures, None where the two have no records in common, and the reason if they cannot be counted; as JSON has them."""


def returning_reason(function: Callable[..., Figures | None]) -> Callable[..., FiguresOrReason]:
    """Wrap a function to return ``[figures, ""]``, or ``[None, reason]`` for an ``UnmeasuredError``.

    A worker can return the message; ``run_comparison`` raises the error again.
    """

    @wraps(function)
    def answer(*arguments: Any) -> FiguresOrReason:
        try:
            return [function(*arguments), ""]
        except UnmeasuredError as reason:
            return [None, str(reason)]

    return answer


def run_comparison(run: Run, function: Callable[..., FiguresOrReason], *arguments: Any, here: bool = False) -> Figures | None:
    """Call a wrapped comparison, on a worker if any; return its figures or raise ``UnmeasuredError``.

    UnmeasuredError ends it where the comparison says why it could not be made.

    Args:
        run: The run.
        function: The comparison, wrapped by ``returning_reason``; a function of a module.
        *arguments: Its arguments.
        here: Whether only this process can read its inputs.
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
