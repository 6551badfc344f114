"""How much memory this process has taken."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_rss() -> int:
    """Returns the largest resident size of this process so far, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        # What getrusage tells includes the process that this one was forked from.
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
