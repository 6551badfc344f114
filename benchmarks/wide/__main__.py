"""The cost of wide tables: many columns that are only copied, and long texts.

It is compared with a copy of the same file by PyArrow on one thread.

    python -m benchmarks.wide [--rows 500000] [--columns 100 300] [--texts 10000] [--memory 512MB] [--data FOLDER]

The data are made once in ``benchmarks/.data`` (or ``--data``) and kept: two quasi-identifiers and so many columns beside them, whole
numbers, floats, decimals, texts of few and of many values, dates, moments and booleans in turn; then a tenth of the records with a text of
so many characters each. Ends with 1 if a run holds more than its memory and 400 MB, or costs more than four copies.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.files.__main__ import copied
from benchmarks.measure import Cost, measure, skald
from schemas.reading.model import memory_bytes

DATA = Path(__file__).parent.parent / ".data"
ROOT = Path(__file__).parent.parent.parent
GROUP = 50_000
BESIDE = 400_000_000
MOST = 4
QIDS = [
    {"name": "age", "hierarchy": {"widths": [1, 5, 10, 20, 40]}},
    {"name": "zip", "hierarchy": {"prefix": [4, 3, 2, 1]}},
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, nargs="*", default=[100, 300])
    parser.add_argument("--texts", type=int, default=10_000, help="characters of long texts; 0 leaves them out")
    parser.add_argument("--memory", default="512MB")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    cases = [(f"{columns} columns", options.rows, columns, 0) for columns in options.columns]
    cases += [(f"texts of {options.texts:,} characters", options.rows // 10, 3, options.texts)] if options.texts else []
    print(f"k = 10, memory {options.memory}, --direct\n")
    print(f"{'':<30}{'records':>9}{'MB':>7}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'copy':>7}{'× copy':>8}")
    over = False
    for name, rows, columns, texts in cases:
        file = prepare(options.data / f"wide-{rows}-{columns}-{texts}", rows, columns, texts)
        copy, cost = copied(file), anonymised(file, options.memory)
        size, ratio = file.stat().st_size / 1e6, cost.cpu / copy.cpu
        print(f"{name:<30}{rows:>9,}{size:>7,.0f}{cost.cpu:>8.1f}{cost.wall:>8.1f}{cost.peak / 1e6:>9,.0f}{copy.cpu:>7.1f}{ratio:>8.2f}")
        over |= cost.peak > memory_bytes(options.memory) + BESIDE or ratio > MOST
    if over:
        sys.exit("A run held or cost more than it may.")


def prepare(folder: Path, rows: int, columns: int, texts: int) -> Path:
    """Make the file if it is not there."""
    path = folder / "wide.parquet"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / "wide.part"
        batches = wide(rows, columns, texts)
        first = next(batches)
        with pq.ParquetWriter(part, first.schema, compression="zstd") as writer:
            for batch in (first, *batches):
                writer.write_batch(batch)
        part.rename(path)
    return path


def wide(rows: int, columns: int, texts: int = 0, seed: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield records with so many columns besides two quasi-identifiers.

    Where texts are asked for, one column has texts of so many characters.
    """
    random = np.random.default_rng(seed)
    words = pa.array([f"value {number}" for number in range(200)])
    for first in range(0, rows, GROUP):
        count = min(GROUP, rows - first)
        made: dict[str, pa.Array] = {
            "age": pa.array(random.integers(18, 90, count)),
            "zip": pa.array([f"{number:05d}" for number in random.integers(1000, 1200, count).tolist()]),
        }
        for number in range(columns):
            made[f"c{number}"] = _column(number % 8, count, random, words)
        if texts:
            made["report"] = pa.array([random.bytes(texts // 2).hex() for _ in range(count)])
        yield pa.RecordBatch.from_pydict(made)


def _column(kind: int, count: int, random: np.random.Generator, words: pa.Array) -> pa.Array:
    whole = random.integers(0, 10**6, count)
    kinds: list[Callable[[], pa.Array]] = [
        lambda: pa.array(whole),
        lambda: pa.array(random.random(count)),
        lambda: words.take(pa.array(whole % len(words))),
        lambda: pa.array([f"note {number}" for number in whole.tolist()]),
        lambda: pa.array((whole % 20_000).astype(np.int32)).cast(pa.date32()),
        lambda: pa.array(whole * 10**9).cast(pa.timestamp("us")),
        lambda: pa.array(whole % 2 == 0),
        lambda: pa.array(whole % 10_000).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
    ]
    return kinds[kind]()


def anonymised(file: Path, memory: str, **settings: Any) -> Cost:
    """Measure one run from nothing to a published release."""
    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        folder = Path(name)
        names = [field for field in pq.read_schema(file).names if field not in {"age", "zip"}]
        job = {
            "version": 1, "name": "wide", "source": {"path": str(file)}, "memory": memory, "target": "releases", "privacy": {"k": 10},
            "columns": {"person": "none", "quasi_identifiers": QIDS, "insensitive": names}, "suppression": {"limit": 0.02},
            "method": {"name": "skald"},
        }  # fmt: skip
        (folder / "job.yaml").write_text(yaml.safe_dump(job | settings))
        cost = measure(skald("run", "job.yaml", "--direct"), folder, PYTHONPATH=str(ROOT))
        shutil.rmtree(folder / ".skald", ignore_errors=True)
        return cost


if __name__ == "__main__":
    main()
