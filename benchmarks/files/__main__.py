"""The cost of the same records in one file and in many.

It is compared with a plain copy of the one file by PyArrow on one thread.

    python -m benchmarks.files [--rows 1000000] [--files 1 100 1000] [--memory 1GB] [--data FOLDER]

The data are made once in ``benchmarks/.data`` (or ``--data``) and kept: the same patients, cut into so many files. Ends with 1 if a release
differs in a byte from that of one file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Cost, measure
from benchmarks.scale import anonymised
from data.medical import make_medical

DATA = Path(__file__).parent.parent / ".data"
COPY = """
import pyarrow.parquet as pq, sys
with pq.ParquetFile(sys.argv[1]) as file, pq.ParquetWriter("copy.parquet", file.schema_arrow, compression="zstd") as writer:
    for batch in file.iter_batches(131_072, use_threads=False):
        writer.write_batch(batch)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    made = [prepare(options.data / f"medical-{options.rows}-in-{files}", options.rows, files) for files in options.files]
    copy = copied(made[0][0])
    print(f"medical, {options.rows:,} records, k = 50, limit 0.01, memory {options.memory}, --direct; a copy {copy.cpu:.2f} CPU s\n")
    print(f"{'files':>7}{'chunks':>8}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'× one':>7}{'ms a file':>11}{'× copy':>8}")
    # The first run compiles, where nothing did before.
    anonymised(made[0], options.memory, ["--direct"])
    first: tuple[Cost, list[str]] | None = None
    for files in made:
        cost, said = anonymised(files, options.memory, ["--direct"])
        digests = [file["sha256"] for file in said["files"]]
        first = first or (cost, digests)
        more = (cost.cpu - first[0].cpu) / len(files) * 1000
        print(
            f"{len(files):>7,}{said['increment']['chunks']:>8}{cost.cpu:>8.2f}{cost.wall:>8.2f}{cost.peak / 1e6:>9.0f}"
            f"{cost.cpu / first[0].cpu:>7.2f}{more:>11.1f}{cost.cpu / copy.cpu:>8.1f}"
        )
        if digests != first[1]:
            sys.exit("The releases differ.")


def prepare(folder: Path, rows: int, files: int) -> list[Path]:
    """Make the files if they are not there."""
    if len(list(folder.glob("*.parquet"))) != files:
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_medical(folder, rows, files=files)
    return sorted(folder.glob("*.parquet"))


def copied(file: Path) -> Cost:
    """Measure the floor."""
    with tempfile.TemporaryDirectory(dir=file.parent.parent) as folder:
        return measure([sys.executable, "-c", COPY, str(file)], Path(folder))


if __name__ == "__main__":
    main()
