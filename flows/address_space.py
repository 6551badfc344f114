"""Check of the limit of a process's address space (``ulimit -v``), before large libraries are loaded."""

from __future__ import annotations

import os
import resource
import sys

from schemas.errors.storage import MachineError

LEAST = 3_000_000_000
"""Bytes of address space that libraries, their threads' stacks and a small run map, most of which they never touch."""


def check_address_space() -> None:
    """Raise ``MachineError`` if the address space limit is too small; under a limit, use one BLAS thread.

    With too small a limit some libraries end the process, or wait for ever.

    Raises:
        MachineError: there is such a limit.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    # What a program has loaded already has its room.
    if limit == resource.RLIM_INFINITY or "duckdb" in sys.modules:
        return
    if limit < LEAST:
        raise MachineError.no_room(limit, LEAST)
    # Each thread of OpenBLAS, of which nothing here makes use, maps tens of megabytes as NumPy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
