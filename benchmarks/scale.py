"""The cost of a run as the data grow to the paper's size.

It is compared with a plain DuckDB copy of the same columns.

    python -m benchmarks.scale [--rows 125000000] [--memory 1GB] [--prefect] [--roots 3 24] [--objective gcp] [--data FOLDER]

The data, files of a million patients, are made once in ``benchmarks/.data`` (or ``--data``) and kept. Sizes are 1, 5, 25 and 125 million
records as far as ``--rows`` goes. The last table shows that the size of a chunk does not matter. Ends with 1 if the process tree of a run
ever holds more than 1.5 times the job's memory.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure import Cost, measure, skald
from data.medical import make_medical
from data.tables import JOBS
from schemas.job.method import DEFAULT_OBJECTIVE
from schemas.reading.model import memory_bytes

DATA = Path(__file__).parent / ".data"
ROOT = Path(__file__).parent.parent
PER_FILE = 1_000_000
SIZES = (1, 5, 25, 125)
CHUNKS = (100_000, 1_000_000, 5_000_000)
MOST = 1.5
OF_METHOD = {"roots", "objective"}
COPY = """
import duckdb, sys
connection = duckdb.connect(config={"memory_limit": sys.argv[1], "temp_directory": "spill"})
columns = "blood_group, profession, age, bmi, pin_code, health_condition"
connection.execute(f"COPY (SELECT {columns} FROM read_parquet({sys.argv[2:]})) TO 'copy.parquet' (FORMAT parquet, COMPRESSION zstd)")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=125_000_000)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--prefect", action="store_true", help="run through Prefect, not --direct")
    parser.add_argument("--roots", type=int, nargs="+", default=[3])
    parser.add_argument("--objective", default=DEFAULT_OBJECTIVE, help="what the search minimises; dm_star is the paper's")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    data = prepare(options.data / "medical-scale", options.rows)
    sizes = [millions for millions in SIZES if millions * PER_FILE <= options.rows] or [max(options.rows // PER_FILE, 1)]
    mode = [] if options.prefect else ["--direct"]
    peaks = []
    how = "Prefect" if options.prefect else "--direct"
    print(f"medical, k = 50, limit 0.01, objective {options.objective}, memory {options.memory}, {how}\n")
    heads = (
        f"{'records':>12}{'roots':>7}{'plan CPU s':>12}{'CPU s':>9}{'µs each':>9}{'wall s':>8}{'peak MB':>9}{'copy CPU s':>12}{'× copy':>8}"
    )
    print(f"{heads}  node, DM*, optimum")
    for millions in sizes:
        files = sorted(data.glob("*.parquet"))[:millions]
        copy = copied(files, options.memory)
        for roots in options.roots if millions == sizes[-1] else options.roots[:1]:
            cost, said = anonymised(files, options.memory, mode, roots=roots, objective=options.objective)
            plan = planned(files, options.memory, roots=roots, objective=options.objective)
            peaks += [cost.peak, plan.peak]
            records = said["records"]
            found = f"{tuple(said['node'])} {said['loss']['dm_star']:.4g} {said['optimal'].split(';')[0]}"
            print(
                f"{records:>12,}{len(said['search']['roots']):>7}{plan.cpu:>12.1f}{cost.cpu:>9.1f}{cost.cpu / records * 1e6:>9.3f}"
                f"{cost.wall:>8.0f}{cost.peak / 1e6:>9.0f}{copy.cpu:>12.1f}{cost.cpu / copy.cpu:>8.2f}  {found}"
            )
    files = sorted(data.glob("*.parquet"))[: min(5, sizes[-1])]
    print(f"\n{'chunk rows':>12}{'CPU s':>9}{'peak MB':>9}   ({len(files)} files)")
    for rows in CHUNKS:
        cost, _ = anonymised(files, options.memory, mode, chunk_rows=rows, objective=options.objective)
        peaks.append(cost.peak)
        print(f"{rows:>12,}{cost.cpu:>9.1f}{cost.peak / 1e6:>9.0f}")
    if max(peaks) > MOST * memory_bytes(options.memory):
        sys.exit(f"A run held {max(peaks) / 1e6:,.0f} MB, more than {MOST} times its memory.")


def prepare(folder: Path, rows: int) -> Path:
    """Make the files that are not there yet; the first n are the same however many there are."""
    wanted = max(rows // PER_FILE, 1)
    if len(list(folder.glob("*.parquet"))) < wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_medical(folder, wanted * PER_FILE, files=wanted)
    return folder


def copied(files: list[Path], memory: str) -> Cost:
    """Measure the floor."""
    with tempfile.TemporaryDirectory(dir=files[0].parent.parent) as folder:
        return measure([sys.executable, "-c", COPY, memory, *map(str, files)], Path(folder))


def prepared(folder: Path, files: list[Path], memory: str, settings: dict[str, int | str]) -> list[str]:
    """Lay the medical job into a folder; return the job's name and options of a command on these files."""
    shutil.copytree(JOBS / "hierarchies", folder / "hierarchies")
    shutil.copy(JOBS / "medical.yaml", folder)
    given = [f"memory={memory}", f"source.path={json.dumps([str(file) for file in files])}"]
    given += [f"{'method.' if key in OF_METHOD else ''}{key}={value}" for key, value in settings.items()]
    return ["medical.yaml", *(part for setting in given for part in ("--set", setting))]


def planned(files: list[Path], memory: str, **settings: int | str) -> Cost:
    """Measure the plan of a run that was not made before."""
    with tempfile.TemporaryDirectory(dir=files[0].parent.parent) as folder:
        return measure(skald("plan", *prepared(Path(folder), files, memory, settings)), Path(folder), PYTHONPATH=str(ROOT))


def anonymised(files: list[Path], memory: str, mode: list[str], **settings: int | str) -> tuple[Cost, dict[str, Any]]:
    """Measure one complete run of the medical job; return its manifest with all of its search."""
    with tempfile.TemporaryDirectory(dir=files[0].parent.parent) as name:
        folder = Path(name)
        cost = measure(skald("run", *prepared(folder, files, memory, settings), *mode), folder, PYTHONPATH=str(ROOT))
        current = (folder / "releases" / "medical" / "CURRENT").read_text().strip()
        said = json.loads((folder / "releases" / "medical" / current / "manifest.json").read_bytes())
        # How the search went is in no release; the work folder keeps it.
        return cost, said | {"search": json.loads((folder / ".skald/medical/untold.json").read_bytes())["search"]}


if __name__ == "__main__":
    main()
