"""``python -m benchmarks.memory``: holds the memory of large runs against what was asked.

Four million records, half of whose values of a quasi-identifier are different; four million patients on eight threads; tables of 100 and of
300 columns, and long texts. Ends with 1 if a run holds more than its memory and 400 MB, which the program and its libraries take.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.cliffs.__main__ import Line, play
from benchmarks.cliffs.tables import Shape
from benchmarks.measure import measure, skald
from benchmarks.wide.__main__ import BESIDE, anonymised, prepare
from flows.demo import make_patients

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 512_000_000
MINUTES = 30
LINE = Line("values", "two million", Shape(4_000_000, values=2_000_000), {"memory": "512MB"})


def of_values(method: str) -> int:
    """Return the peak of a run on millions of different numbers, in bytes.

    Raises:
        RuntimeError: it did not come to its end, or lost records.
    """
    ended = play(LINE, method, MINUTES * 60)
    if isinstance(ended, str):
        raise RuntimeError(ended)
    cost, _, manifest = ended
    if manifest["released"] + manifest["suppressed"] != manifest["records"] or manifest["records"] != LINE.shape.rows:
        raise RuntimeError("records are missing")
    return cost.peak


def of_threads() -> int:
    """Return the peak of a run with eight threads on four million patients, in bytes."""
    with TemporaryDirectory(prefix="skald-memory-") as name:
        job = make_patients(Path(name), 4_000_000)
        given = ["--direct", "--set", "memory=512MB", "--set", "threads=8"]
        return measure(skald("run", str(job), *given), Path(name), PYTHONPATH=str(ROOT)).peak


def of_columns(rows: int, columns: int, texts: int) -> int:
    """Return the peak of a run on a wide table, in bytes."""
    with TemporaryDirectory(prefix="skald-memory-") as name:
        return anonymised(prepare(Path(name), rows, columns, texts), "512MB").peak


RUNS: Mapping[str, Callable[[], int]] = {
    "two million values, skald": lambda: of_values("skald"),
    "two million values, mondrian": lambda: of_values("mondrian"),
    "eight threads": of_threads,
    "500,000 records of 100 columns": lambda: of_columns(500_000, 100, 0),
    "200,000 records of 300 columns": lambda: of_columns(200_000, 300, 0),
    "50,000 texts of 10,000 characters": lambda: of_columns(50_000, 3, 10_000),
}


def main(given: Sequence[str] | None = None) -> None:
    """Measure the runs and print their peaks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    wanted, over = parser.parse_args(given).only, False
    for name, peak_of in RUNS.items():
        if wanted in name:
            peak = peak_of()
            over |= peak > MEMORY + BESIDE
            print(f"{name:<36}{peak / 1e6:>7,.0f} MB, asked for {MEMORY / 1e6:,.0f}", flush=True)
    if over:
        sys.exit("A run held more than it may.")


if __name__ == "__main__":
    main()
