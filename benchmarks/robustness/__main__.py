"""Attempts to break runs for some minutes, and a report of what was tried and how it ended.

The parts are kills, nights, wrong input, random jobs and drafts, tampering, stores, and too few resources.

    python -m benchmarks.robustness [--minutes 2] [--seed 1] [--only kills nights inputs jobs drafts tampering …]

Every part gets an equal share of the time, and one trial at least. What is drawn by chance depends on the seed, how much of it on the time,
and the moments of kills on the machine too. Ends with 1 if anything ended otherwise than it should; then the folder with the jobs stays.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from benchmarks.robustness.commands import Commands
from benchmarks.robustness.inputs import known_inputs, made_inputs
from benchmarks.robustness.kills import kills, nights
from benchmarks.robustness.machine import in_need
from benchmarks.robustness.random_drafts import random_drafts
from benchmarks.robustness.random_jobs import random_jobs
from benchmarks.robustness.servers import without_servers
from benchmarks.robustness.stores import over_stores
from benchmarks.robustness.tally import Tally
from benchmarks.robustness.tampering import tampered

Part = Callable[[Commands, Path, Random, Tally], Iterator[None]]


def _inputs(commands: Commands, folder: Path, random: Random, tally: Tally) -> Iterator[None]:
    yield from known_inputs(commands, folder, tally)
    yield from made_inputs(commands, folder, random, tally)


PARTS: dict[str, Part] = {
    "kills": kills,
    "nights": nights,
    "inputs": _inputs,
    "jobs": random_jobs,
    "drafts": random_drafts,
    "tampering": tampered,
    "machine": in_need,
    "servers": without_servers,
    "stores": over_stores,
}


def run(minutes: float, seed: int, folder: Path, only: list[str]) -> Tally:
    """Run the parts one after the other; what one leaves of its time goes to the others."""
    commands, tally = Commands(), Tally()
    commands(folder, "--help")  # the imports, which are no part's time
    end = time.monotonic() + minutes * 60
    for left, name in zip(range(len(only), 0, -1), only, strict=True):
        until = time.monotonic() + (end - time.monotonic()) / left
        (folder / name).mkdir()
        for _ in PARTS[name](commands, folder / name, Random(f"{seed} {name}"), tally):
            if time.monotonic() > until:
                break
    return tally


def main() -> None:
    """Print the tables; ends with 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="skald-robustness-"))
    folder.mkdir(exist_ok=True)
    tally = run(given.minutes, given.seed, folder, given.only)
    print(tally.table())
    crashes, inputs = sum(map(tally.total, ("kills", "nights", "stores"))), tally.total("inputs")
    print(f"\n{crashes:,} crashes, {inputs:,} inputs, {tally.total('tampering'):,} ways to tamper, "
          f"{tally.total('machine') + tally.total('servers'):,} machines in need; {len(tally.faults):,} faults")  # fmt: skip
    for fault in tally.faults:
        print(f"- {fault}")
    if tally.faults:
        print(f"What they were is in {folder}.")
        sys.exit(1)
    if not given.folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
