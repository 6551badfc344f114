"""CPU against everything that a table or a job may have much of.

This shows cliffs: values of an axis that cost far more than their neighbours.

    python -m benchmarks.cliffs [--axis qids values …] [--method skald mondrian] [--rows 200000] [--most 1000000] [--minutes 5]

One thing changes at a time: quasi-identifiers, values of one of them (numbers, and text), k, the limit, rows of a chunk, nulls, the kind of
file and its compression. Each line is one run from the source to the verified release with ``--direct``, beside a copy of the same file by
PyArrow on one thread. ``step`` is the ratio to the line before it on the same axis. ``--most`` is how many different values are tried, in a
table of twice as many records. A run that does not end within ``--minutes``, or is refused, is printed as such.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cliffs.tables import Shape, prepare
from benchmarks.files.__main__ import COPY
from benchmarks.measure import Cost, measure, skald

ROOT = Path(__file__).parent.parent.parent
COPIES = {
    "parquet": COPY,
    "csv": """
import pyarrow.csv as pc, sys
options = pc.ReadOptions(use_threads=False)
with pc.open_csv(sys.argv[1], options) as reader, pc.CSVWriter("copy.csv", reader.schema) as writer:
    for batch in reader:
        writer.write_batch(batch)
""",
}

TIMED_OUT = 124
"""How ``timeout`` ends where it had to end the command."""


class Line(NamedTuple):
    """One run: its axis, what it is called there, its table, and what replaces parts of the job."""

    axis: str
    name: str
    shape: Shape
    settings: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axis", nargs="+", help="only these: qids, values, text, k, limit, chunks, nulls, files")
    parser.add_argument("--method", nargs="+", default=["skald", "mondrian"])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=5)
    options = parser.parse_args()
    for method in options.method:
        print(f"\n{method}; {options.rows:,} records, 6 QIDs, k = 10, limit 0.01, memory 1GB unless a line says otherwise\n")
        print(f"{'':<34}{'CPU s':>8}{'step':>7}{'wall s':>8}{'peak MB':>9}{'× copy':>8}{'classes':>11}{'suppressed':>12}")
        axis, before = "", 0.0
        # The first run compiles, where nothing did before.
        play(Line("", "", Shape(1_000), {}), method, options.minutes * 60)
        for line in lines(Shape(options.rows), options.most):
            if options.axis and line.axis not in options.axis:
                continue
            ended = play(line, method, options.minutes * 60)
            if isinstance(ended, str):
                print(f"{line.name:<34}{ended}", flush=True)
                continue
            cost, copy, made = ended
            step = f"{cost.cpu / before:.2f}" if line.axis == axis else ""
            axis, before = line.axis, cost.cpu
            print(
                f"{line.name:<34}{cost.cpu:>8.2f}{step:>7}{cost.wall:>8.2f}{cost.peak / 1e6:>9.0f}{cost.cpu / copy.cpu:>8.1f}"
                f"{made['classes']:>11,}{made['suppressed']:>12,}",
                flush=True,
            )


def play(line: Line, method: str, seconds: float) -> tuple[Cost, Cost, dict[str, Any]] | str:
    """Measure a run and a copy of its table, and return both with the run's manifest; or how it ended."""
    limited = {name: value for name, value in line.settings.items() if method == "skald" or name != "suppression.limit"}
    if len(limited) < len(line.settings):
        return "no limit in this method"
    with tempfile.TemporaryDirectory(prefix="skald-cliffs-") as name:
        folder = Path(name)
        settings = {"method": {"name": method}} | ({} if method == "skald" else {"suppression": {"limit": 0}}) | limited
        table = prepare(folder, line.shape, settings)
        try:
            cost = measure(["timeout", str(seconds), *skald("run", "job.yaml", "--direct")], folder, PYTHONPATH=str(ROOT))
        except RuntimeError as error:
            code = int(str(error).partition("ended with ")[2].partition(":")[0])
            return f"does not end within {seconds:.0f} s" if code == TIMED_OUT else f"exit {code}: {str(error).splitlines()[-1]}"
        copy = measure([sys.executable, "-c", COPIES[line.shape.kind], str(table)], folder)
        current = (folder / "releases" / "CURRENT").read_text().strip()
        return cost, copy, json.loads((folder / "releases" / current / "manifest.json").read_bytes())


def lines(base: Shape, most: int) -> Iterator[Line]:
    """Yield what is run, axis by axis."""
    for qids in (2, 4, 6, 9, 12, 15, 30, 300):
        yield Line("qids", f"{qids} QIDs", replace(base, qids=qids), {})
    for text in (False, True):
        values = 1_000
        while values <= most:
            shape = replace(base, rows=max(base.rows, 2 * values), values=values, text=text)
            yield Line("text" if text else "values", f"{values:,} {'texts' if text else 'numbers'} of {shape.rows:,}", shape, {})
            values *= 10
    for k in (2, 10, 100, 1_000, 10_000):
        yield Line("k", f"k = {k:,}", base, {"privacy.k": k})
    for limit in (0, 0.001, 0.01, 0.1, 0.5, 1):
        yield Line("limit", f"limit {limit}", base, {"suppression.limit": limit})
    for rows in (2_000, 20_000, 200_000, 1_000_000):
        yield Line("chunks", f"chunks of {rows:,} rows", base, {"chunk_rows": rows})
    for nulls in (0.0, 0.01, 0.3, 0.99):
        yield Line("nulls", f"{nulls:.0%} nulls", replace(base, nulls=nulls), {})
    yield Line("files", "CSV", replace(base, kind="csv"), {})
    for compression in ("none", "snappy", "zstd", "gzip"):
        yield Line("files", f"Parquet, {compression}", replace(base, compression=compression), {})


if __name__ == "__main__":
    main()
