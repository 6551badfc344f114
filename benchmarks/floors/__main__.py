"""Complete runs compared with the cheapest of three copies of the same columns.

The copies are by PyArrow on one thread, DuckDB and Polars; all three are measured.

    python -m benchmarks.floors [--rows 1000000 25000000] [--methods skald mondrian] [--memory 1GB] [--runs 1] [--data FOLDER]

A floor is what has to be paid by whoever only reads a table and writes it again: Parquet in, Parquet with zstd out, the six columns of the
medical job. ``× floor`` is CPU seconds by those of the cheapest of the three. A run is one from the source to the verified release with
``--direct``: k = 50, and one record in a hundred may be suppressed by method skald. With ``--runs`` each is measured so often, in turn, and
the least is printed. The data, files of a million patients, are made once in ``benchmarks/.data`` (or ``--data``) and kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure import Cost, measure
from benchmarks.scale import DATA, anonymised, prepare

COLUMNS = ["blood_group", "profession", "age", "bmi", "pin_code", "health_condition"]
COPIES = {
    "PyArrow, one thread": """
import pyarrow.parquet as pq, sys
columns, writer = sys.argv[1].split(","), None
for path in sys.argv[2:]:
    with pq.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(131_072, columns=columns, use_threads=False):
            writer = writer or pq.ParquetWriter("copy.parquet", batch.schema, compression="zstd")
            writer.write_batch(batch)
writer.close()
""",
    "DuckDB": """
import duckdb, sys
connection = duckdb.connect(config={"memory_limit": "1GB", "temp_directory": "spill"})
connection.execute(f"COPY (SELECT {sys.argv[1]} FROM read_parquet({sys.argv[2:]})) TO 'copy.parquet' (FORMAT parquet, COMPRESSION zstd)")
""",
    "Polars": """
import polars, sys
polars.scan_parquet(sys.argv[2:]).select(sys.argv[1].split(",")).sink_parquet("copy.parquet", compression="zstd")
""",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 25_000_000])
    parser.add_argument("--methods", nargs="+", default=["skald", "mondrian"])
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    files = sorted(prepare(options.data / "medical-scale", max(options.rows)).glob("*.parquet"))
    for method in options.methods:
        # The first run compiles, where nothing did before.
        ran(files[:1], options.memory, method)
    for rows in options.rows:
        some = files[: max(rows // 1_000_000, 1)]
        print(f"\n{rows:,} records in {len(some)} files, k = 50, memory {options.memory}\n")
        print(f"{'':<24}{'CPU s':>9}{'wall s':>9}{'wall/CPU':>10}{'peak MB':>9}{'× floor':>9}")
        costs: dict[str, list[Cost]] = {}
        for _ in range(options.runs):
            for name, script in COPIES.items():
                costs.setdefault(name, []).append(copied(script, some))
            for method in options.methods:
                costs.setdefault(method, []).append(ran(some, options.memory, method))
        least = {name: min(each, key=lambda cost: cost.cpu) for name, each in costs.items()}
        floor = min(least[name].cpu for name in COPIES)
        for name, cost in least.items():
            print(
                f"{name:<24}{cost.cpu:>9.2f}{cost.wall:>9.2f}{cost.wall / cost.cpu:>10.2f}{cost.peak / 1e6:>9.0f}{cost.cpu / floor:>9.2f}"
            )


def copied(script: str, files: list[Path]) -> Cost:
    """Measure a copy."""
    with tempfile.TemporaryDirectory(dir=files[0].parent.parent) as folder:
        return measure([sys.executable, "-c", script, ",".join(COLUMNS), *map(str, files)], Path(folder))


def ran(files: list[Path], memory: str, method: str) -> Cost:
    """Measure a run."""
    settings: dict[str, Any] = {} if method == "skald" else {"method": f"{{name: {method}}}", "suppression.limit": 0}
    cost, _ = anonymised(files, memory, ["--direct"], **settings)
    return cost


if __name__ == "__main__":
    main()
