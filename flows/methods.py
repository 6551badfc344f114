"""Which flow runs a job: one per method, imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

FLOWS = {
    "skald": "flows.skald:skald",
    "mondrian": "flows.mondrian:mondrian",
    "rayden": "flows.rayden:rayden",
    "canon": "flows.canon:canon",
    "mondrian_cof": "flows.mondrian_cof:mondrian_cof",
    "clustering": "flows.clustering:clustering",
}
"""Import path of the flow of each method."""


def flow_of(method: str) -> Any:
    """Returns the flow of a method."""
    module, name = FLOWS[method].split(":")
    return getattr(import_module(module), name)
