"""Runs that get too few resources or whose clock goes back: they end in a sentence and can go on.

The resources are address space, open files and room on the disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from benchmarks.robustness.cases import SETTINGS, Case, content, drawn, releases
from benchmarks.robustness.commands import Commands, Limits
from benchmarks.robustness.kills import looked_at, wrong_end
from benchmarks.robustness.tally import Tally

MEGABYTE, YEAR = 1_000_000, 365 * 86_400
ABORTED, FAULTED, NOT_LOADED = -6, -11, 127
"""How a process ends that aborts (SIGABRT), touches memory that it does not have (SIGSEGV), or whose libraries cannot be loaded."""
NEEDS: dict[str, Callable[[Random], Limits]] = {
    "little address space": lambda random: Limits(address_space=random.randint(20, 600) * MEGABYTE),
    "few open files": lambda random: Limits(open_files=random.randint(16, 64)),
    "a full disk": lambda random: Limits(file_bytes=random.randint(2_000, 60_000)),
    "a clock set back": lambda random: Limits(clock=-random.randint(1, 20 * YEAR)),
    "a clock set ahead": lambda random: Limits(clock=random.randint(1, 20 * YEAR)),
}


def in_need(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    """Let runs end or not end in need, and then without it; yield after each trial."""
    for number, case in enumerate(drawn(random)):
        base = folder / f"case-{number}"
        case.write(base / "job")
        shutil.copytree(base / "job", base / "undisturbed")
        if fault := wrong_end(commands(base / "undisturbed", "run", "job.yaml", *SETTINGS), 0):
            tally.add("machine", "undisturbed", f"{case}: {fault}")
            continue
        wanted = content(releases(base / "undisturbed")[0])
        for need, drawn_limits in NEEDS.items():
            here, limits = base / need.replace(" ", "-"), drawn_limits(random)
            shutil.copytree(base / "job", here)
            tally.add("machine", need, _named(case, limits, _tried(commands, here, limits, wanted)))
            yield
        shutil.rmtree(base)


def _tried(commands: Commands, folder: Path, limits: Limits, wanted: list[str]) -> str:
    # Whoever runs short may end in a sentence; no clock may matter. Without address space Arrow may abort, and code of others
    # touch what it was not given: their threads cannot say it.
    codes = [0] if limits.clock else [0, 2, ABORTED, FAULTED, NOT_LOADED] if limits.address_space else [0, 2]
    if fault := wrong_end(commands(folder, "run", "job.yaml", *SETTINGS, limits=limits), *codes):
        return fault
    return wrong_end(commands(folder, "run", "job.yaml", *SETTINGS), 0) or looked_at(commands, folder, wanted)


def _named(case: Case, limits: Limits, fault: str) -> str:
    return f"{case}, {limits}: {fault}" if fault else ""
