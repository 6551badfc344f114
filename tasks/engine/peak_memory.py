"""Peak memory of this process, and the release of freed memory to the system."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

import pyarrow as pa


def peak_rss() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        # What getrusage tells includes the process that this one was forked from.
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def release_memory() -> None:
    """Return freed memory of Arrow and the C heap to the operating system."""
    pa.default_memory_pool().release_unused()
    # glibc keeps what arrays of up to 32 MB leave behind; other systems have no such call and need none.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
