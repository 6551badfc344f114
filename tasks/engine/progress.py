"""Step names of a run, listeners for its progress and notices, and the memory of its process."""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

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


Listener = Callable[[str, int, int], None]
Hearer = Callable[[str], None]
_listeners: list[Listener] = []
_hearers: list[Hearer] = []


class StepWords(NamedTuple):
    """Progress words of a step: phase, description, and percent of the run at its begin and end.

    Attributes:
        phase: Of the paper's three, and the fourth that verifies and publishes.
        words: What it does.
        begins: About how much of a run is over when it begins, in percent.
        ends: The same when it ends.
    """

    phase: int
    words: str
    begins: int
    ends: int


STEPS = {
    "values": StepWords(1, "look at columns that are published untreated", 1, 2),
    "passthrough": StepWords(1, "add up what was seen of them", 2, 2),
    "domains": StepWords(1, "count domains", 2, 20),
    "domain": StepWords(1, "merge domains", 20, 22),
    "histograms": StepWords(2, "count cells", 22, 42),
    "histogram": StepWords(2, "merge cells", 42, 46),
    "sizes": StepWords(2, "count classes of the source", 46, 48),
    "search": StepWords(2, "search lattice", 48, 60),
    "coded": StepWords(2, "code records", 22, 42),
    "recode": StepWords(2, "make classes", 42, 60),
    "cuts": StepWords(2, "cut cells", 46, 60),
    "sample": StepWords(2, "draw sample", 22, 30),
    "part": StepWords(2, "share records out", 30, 45),
    "fragments": StepWords(3, "anonymise fragments", 45, 92),
    "measured": StepWords(3, "anonymise by each method", 0, 100),
    "rewrite": StepWords(3, "rewrite chunks", 60, 85),
    "files": StepWords(3, "write release", 85, 92),
    "repeats": StepWords(4, "look for identifiers that repeat", 92, 93),
    "characters": StepWords(4, "look at the characters of keys of persons", 93, 93),
    "spellings": StepWords(4, "look for spellings of one person", 93, 93),
    "contents": StepWords(4, "tell records by what they hold", 93, 93),
    "verify": StepWords(4, "recount written files", 93, 98),
    "attacks": StepWords(4, "attack the release", 98, 98),
    "publish": StepWords(4, "publish release", 98, 100),
}
"""The steps of all methods, by the name that tasks, artefacts and progress have in common."""


def step_label(step: str, label: str) -> str:
    """Return the name of a step's task in Prefect: ``phase 1 · domains 3 of 11``."""
    return f"phase {STEPS[step].phase} · {label}" if step in STEPS else label


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within the block, call ``listener(step, done, total)`` at each progress of any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def advance(step: str, done: int, total: int) -> None:
    """Report to all listeners that ``done`` of ``total`` calls of a step are made."""
    for listener in _listeners:
        listener(step, done, total)


@contextmanager
def hearing(hearer: Hearer) -> Iterator[None]:
    """Within the block, call ``hearer(sentence)`` once for each different notice of any thread."""
    said = set[str]()

    def hear(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            hearer(sentence)

    _hearers.append(hear)
    try:
        yield
    finally:
        _hearers.remove(hear)


def notify(sentence: str) -> None:
    """Send a notice for the job's user to all hearers; no release contains the notice."""
    for hearer in _hearers:
        hearer(sentence)
