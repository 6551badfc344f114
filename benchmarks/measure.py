"""Runs a command and measures what it and its children cost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

INTERVAL = 0.01


@dataclass(frozen=True)
class Cost:
    """CPU seconds, wall seconds, and the largest resident size of the process tree in bytes.

    CPU is user and system time, with that of children.
    """

    cpu: float
    wall: float
    peak: int


def measure(command: Sequence[str], folder: Path, **environment: str) -> Cost:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed; with what it said.
    """
    before, start = os.times(), time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        peaks = [0]
        watcher = threading.Thread(target=_watch, args=(process.pid, peaks))
        watcher.start()
        said, _ = process.communicate()
        watcher.join()
    wall, after = time.perf_counter() - start, os.times()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{said}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(cpu, wall, peaks[0])


def _watch(pid: int, peaks: list[int]) -> None:
    """Sample the resident size of the tree.

    A process's own high-water mark catches what falls between two samples.
    """
    try:
        root = psutil.Process(pid)
        while root.is_running() and root.status() != psutil.STATUS_ZOMBIE:
            tree = [root, *root.children(recursive=True)]
            peaks[0] = max(peaks[0], sum(_resident(process) for process in tree), _high_water(pid))
            time.sleep(INTERVAL)
    except psutil.NoSuchProcess:
        return


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _high_water(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def skald(*arguments: str) -> list[str]:
    """Return the command line of ``skald`` in this interpreter."""
    return [sys.executable, "-m", "flows.process", *arguments]


def print_table(title: str, rows: Sequence[tuple[str, Cost]], floor: Cost) -> None:
    """Print costs and their ratio to a floor that was measured in the same run."""
    print(f"\n{title}\n")
    print(f"{'work':<52}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'× copy':>8}")
    for name, cost in rows:
        print(f"{name:<52}{cost.cpu:>8.2f}{cost.wall:>8.2f}{cost.peak / 1e6:>9.0f}{cost.cpu / floor.cpu:>8.1f}")
