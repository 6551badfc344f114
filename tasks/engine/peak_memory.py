"""How much memory this process has taken, and how it gives back what it no longer needs."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

import pyarrow as pa


def peak_rss() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        # What getrusage tells includes the process that this one was forked from.
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def give_back() -> None:
    """Return freed memory to the system, for a phase whose memory is not this process's own heap: DuckDB's recount."""
    pa.default_memory_pool().release_unused()
    # glibc keeps what arrays of up to 32 MB leave behind; other systems have no such call and need none.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
