"""How long tests wait: so long that what hangs is given up, and a busy machine never is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
SECONDS = 600


def until(true: Callable[[], Found]) -> Found:
    """Wait for something that is not false, and returns it."""
    deadline = time.monotonic() + SECONDS
    while not (found := true()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found
