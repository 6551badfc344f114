"""Which flow runs a job: one per method, imported when it is asked for."""

from __future__ import annotations

from typing import Any

from schemas.job.method import METHODS


def flow_of(method: str) -> Any:
    """Returns the flow of a method."""
    return METHODS[method].flow.load()
