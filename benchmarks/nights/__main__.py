"""The cost of a nightly job as the number of earlier nights grows.

Its source is a table of people that grows and changes.

    python -m benchmarks.nights [--full] [--people 2000] [--nights 12] [--equal]

Every night a share of the people come, leave, or get another value; with ``--equal`` the data stay as they are but for one value, so that
nights can be compared. People are published under pseudonyms of one key. ``--full`` is 365 nights of 20,000 people. Shown are, of some
nights, the CPU seconds of the run, those of the phase that compares releases, the bytes of the index of pseudonyms and of the registry,
and what was found. With ``--equal`` it ends with 1 if the index of the last night is more than a tenth larger than that of the second.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import flows.skald  # noqa: F401 - makes the flow that is run
from tasks.engine.flows import plain_flow

SHOWN = (1, 2, 3, 10, 30, 90, 180, 365)
CHANGED = 0.002
JOB: dict[str, Any] = {
    "version": 1,
    "name": "nights",
    "source": {"path": "people.parquet"},
    "columns": {
        "person": "pid",
        "identifiers": [{"name": "pid", "treatment": {"hash": {"key": {"env": "NIGHTS_KEY"}}}}],
        "quasi_identifiers": [
            {"name": "age", "hierarchy": {"widths": [1, 5, 10, 20, 40]}},
            {"name": "area", "hierarchy": {"widths": [1, 5, 10]}},
        ],
        "sensitive": ["dx"],
    },
    "privacy": {"k": 10},
    "suppression": {"limit": 0.05},
    "method": {"name": "skald"},
    "memory": "512MB",
    "target": "releases",
}


def main() -> None:
    """Run the nights and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="365 nights of 20,000 people")
    parser.add_argument("--people", type=int, default=2_000)
    parser.add_argument("--nights", type=int, default=12)
    parser.add_argument("--equal", action="store_true", help="the same people every night, but for one value")
    options = parser.parse_args()
    people, nights = (20_000, 365) if options.full else (options.people, options.nights)
    os.environ["NIGHTS_KEY"] = hashlib.sha256(b"nights").hexdigest()
    print(f"{people:,} people, {nights:,} nights, k = 10\n")
    print(f"{'night':>6}{'records':>10}{'CPU s':>9}{'compared s':>12}{'index kB':>10}{'registry kB':>13}{'joined':>9}{'below k':>9}")
    sizes = dict[int, int]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.yaml").write_text(yaml.safe_dump(JOB, sort_keys=False))
        for night, table in enumerate(tables(people, nights, equal=options.equal), start=1):
            pq.write_table(table, folder / "people.parquet")
            began = time.process_time()
            done = plain_flow("skald")(folder / "job.yaml", ())
            cost = time.process_time() - began
            registry = folder / ".skald" / ".releases"
            sizes[night] = sum(path.stat().st_size for path in registry.glob("*.sets"))
            if night in SHOWN or night == nights:
                held = sum(path.stat().st_size for path in registry.iterdir())
                joined = (done.manifest.joined or ())[:1]
                found = [f"{one.people:>9,}{one.below_k:>9,}" for one in joined if one.people is not None and one.below_k is not None]
                print(
                    f"{night:>6}{len(table):>10,}{cost:>9.2f}{done.manifest.seconds['overlaps']:>12.2f}{sizes[night] / 1e3:>10,.0f}"
                    f"{held / 1e3:>13,.0f}{''.join(found)}",
                    flush=True,
                )
    if options.equal and sizes[nights] > 1.1 * sizes[min(2, nights)]:
        sys.exit("The index grows with the number of releases.")


def tables(people: int, nights: int, *, equal: bool) -> Iterator[pa.Table]:
    """Yield the people of each night."""
    random = np.random.default_rng(1)
    dx = np.array(["flu", "asthma", "cold", "none"])
    pid, came = np.arange(people), people
    age, area, value = random.integers(18, 90, people), random.integers(0, 40, people), random.integers(0, 4, people)
    for night in range(nights):
        yield pa.table({"pid": [f"p{number}" for number in pid], "age": age, "area": area, "dx": dx[value]})
        few = max(int(len(pid) * CHANGED), 1)
        if equal:
            value[night % people] = (value[night % people] + 1) % 4
            continue
        stays = np.ones(len(pid), bool)
        stays[random.integers(0, len(pid), few)] = False
        value[random.integers(0, len(pid), few)] = random.integers(0, 4, few)
        new = few * 2
        pid = np.concatenate([pid[stays], np.arange(came, came + new)])
        age = np.concatenate([age[stays], random.integers(18, 90, new)])
        area = np.concatenate([area[stays], random.integers(0, 40, new)])
        value, came = np.concatenate([value[stays], random.integers(0, 4, new)]), came + new


if __name__ == "__main__":
    main()
