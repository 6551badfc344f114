"""The use of further cores and threads: wall next to CPU time, and the share of too few threads.

    python -m benchmarks.cores [--rows 1000000 5000000] [--threads 2 4 8 16] [--memory 1GB] [--set KEY=VALUE …]

Medical patients (made once in ``benchmarks/.data``), k = 50, limit 0.01, ``--direct``. Every few milliseconds the states of a run's threads
are looked at, as the system tells them: those that run or wait for a core could run. The share of CPU that is spent in moments where only
one could is what a second core does nothing for, and tells what wall would be of CPU on two cores that are free, whatever else the machine
does meanwhile: it is to be at most 0.65. The share where at most two could is what a third core does nothing for.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.local_suppression import ROOT, medical
from benchmarks.measure import skald

INTERVAL = 0.004
FEW = 2


@dataclass
class Watched:
    """What was seen of a run.

    Attributes:
        wall: Seconds.
        cpu: Seconds.
        one: CPU seconds of moments in which one thread at most could run.
        few: The same of two.
        peak: Bytes.
    """

    wall: float = 0
    cpu: float = 0
    one: float = 0
    few: float = 0
    peak: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--threads", type=int, nargs="*", default=[2, 4, 8, 16])
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="further settings of the job")
    given = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, memory {given.memory}, load {os.getloadavg()[0]:.1f}\n")
    print(f"{'':>37}{'wall':>10}{'wall/CPU on':>13}{'':>9}{'CPU while at most':>22}")
    print(
        f"{'records':>12}{'threads':>9}{'CPU s':>8}{'wall s':>8}{'/CPU':>10}{'2 free cores':>13}{'peak MB':>9}{'one or two could run':>22}"
    )
    for rows in given.rows:
        job = medical(rows)
        for threads in given.threads:
            seen = run(job, threads, given.memory, given.set)
            one, few = seen.one / seen.cpu, seen.few / seen.cpu
            print(
                f"{rows:>12,}{threads:>9}{seen.cpu:>8.2f}{seen.wall:>8.2f}{seen.wall / seen.cpu:>10.2f}{(1 + one) / 2:>13.2f}"
                f"{seen.peak / 1e6:>9,.0f}{one:>15.0%}{few:>7.0%}",
                flush=True,
            )


def run(job: Path, threads: int, memory: str, more: Sequence[str]) -> Watched:
    """Run a job from the beginning in a process of its own, and watches it.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        # In a folder of its own: what releases of one source tell together is measured where there are several.
        shutil.copytree(job.parent, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("medical", ".skald", "releases"))
        Path(folder, "medical").symlink_to(job.parent / "medical")
        job = Path(folder, job.name)
        settings = {"memory": memory, "threads": str(threads)} | dict(setting.split("=", 1) for setting in more)
        options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        before, start = os.times(), time.perf_counter()
        with subprocess.Popen(
            [*skald("run", str(job), "--direct"), *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            seen = watch(process.pid)
            _, said = process.communicate()
        seen.wall, after = time.perf_counter() - start, os.times()
    if process.returncode:
        raise RuntimeError(said.decode())
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    # The kernel's clock of single threads is coarse: shares of it, of the sum that it tells at the end.
    seen.one, seen.few = (part * cpu / max(seen.cpu, 1e-9) for part in (seen.one, seen.few))
    seen.cpu = cpu
    return seen


def watch(pid: int) -> Watched:
    """Looks at the threads of a process until it ends."""
    seen, process, spent = Watched(), psutil.Process(pid), 0.0
    while True:
        try:
            able = sum(could_run(task) for task in Path(f"/proc/{pid}/task").iterdir())
            times = process.cpu_times()
            ended = process.status() == psutil.STATUS_ZOMBIE
            seen.peak = max(seen.peak, process.memory_info().rss)
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            return seen
        now = times.user + times.system
        seen.cpu = now
        seen.one += now - spent if able <= 1 else 0
        seen.few += now - spent if able <= FEW else 0
        spent = now
        if ended:
            return seen
        time.sleep(INTERVAL)


def could_run(task: Path) -> bool:
    """Return whether a thread runs or wait for a core."""
    try:
        return b") R " in (task / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


if __name__ == "__main__":
    main()
