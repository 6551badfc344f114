"""The cost of the next run over a folder with one more file.

It is compared with a run that has nothing of the run before.

    python -m benchmarks.increments [--files 5] [--rows 200000] [--memory 1GB] [--data FOLDER]

The data, files of ``--rows`` patients, are made once in ``benchmarks/.data`` (or ``--data``) and kept. Scanned are the records that phases
1 and 2 read; the search, and phase 3, which rewrites all records, cost the same in every run. The last row replays yesterday's levels and
does not search. At risk are the records that yesterday's and today's release put at risk together. Then the same of releases that no file
tells to share anything: a file that grew by five records, another method in another target, other hierarchies; compared are the seconds of
the phases that serve it. Ends with 1 if two runs over the same files differ in a byte, or if a release goes unnoticed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.measure import Cost, measure, skald
from data.medical import make_medical
from data.tables import JOBS

DATA = Path(__file__).parent / ".data"
ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5, help="files of yesterday")
    parser.add_argument("--rows", type=int, default=200_000, help="records of a file")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    files = prepare(options.data / f"medical-increments-{options.rows}", options.files + 1, options.rows)
    print(f"medical, files of {options.rows:,} records, k = 50, limit 0.01, memory {options.memory}, --direct\n")
    print(f"{'run':<34}{'records':>12}{'scanned':>12}{'CPU s':>8}{'× fresh':>9}{'at risk':>12}  node")
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        here, fresh_folder = Path(name, "kept"), Path(name, "fresh")
        for folder in (here, fresh_folder):
            folder.mkdir()
            shutil.copytree(JOBS / "hierarchies", folder / "hierarchies")
            shutil.copy(JOBS / "medical.yaml", folder)
        yesterday = run(here, files[:-1], options.memory)
        fresh = run(fresh_folder, files, options.memory)
        today = run(here, files, options.memory)
        replay = run(here, files, options.memory, f"replay={yesterday[1]['release']}")
    first = yesterday[1]["release"]
    show(f"fresh, {options.files} files", *yesterday, None, first)
    show(f"fresh, {options.files + 1} files", *fresh, fresh[0], first)
    show("one file more", *today, fresh[0], first)
    show("one file more, yesterday's levels", *replay, fresh[0], first)
    if [file["sha256"] for file in today[1]["files"]] != [file["sha256"] for file in fresh[1]["files"]]:
        sys.exit("Tomorrow's run and a fresh one over the same files differ.")
    if missed := several(files[0], options.memory, options.data):
        sys.exit(f"Not measured: {', '.join(missed)}.")


SEVERAL = {
    "grown by five records": [],
    "mondrian in another target": ["method={name: mondrian}", "target=elsewhere"],
    "other hierarchies": ["columns.quasi_identifiers.2.hierarchy.widths=[1, 3, 9, 27]", "target=third"],
}


def several(file: Path, memory: str, data: Path) -> list[str]:
    """Print what releases of a file that changes in place disclose together.

    Return those that were not compared with the first one.
    """
    table, missed = pq.read_table(file), []
    print(f"\n{'run':<34}{'records':>12}{'CPU s':>8}{'compared':>10}{'peak MB':>9}{'shared':>12}{'at risk':>12}")
    with tempfile.TemporaryDirectory(dir=data) as name:
        folder = Path(name)
        shutil.copytree(JOBS / "hierarchies", folder / "hierarchies")
        shutil.copy(JOBS / "medical.yaml", folder)
        grown = folder / "grown.parquet"
        pq.write_table(table.slice(5), grown)
        cost, manifest = run(folder, [grown], memory)
        first = manifest["release"]
        show_together("first", cost, manifest, first)
        pq.write_table(table, grown)
        for words, settings in SEVERAL.items():
            cost, manifest = run(folder, [grown], memory, *settings)
            missed += [] if show_together(words, cost, manifest, first) else [words]
        kept = sum(path.stat().st_size for path in (folder / ".skald" / ".releases").iterdir())
    print(f"The registry of {len(SEVERAL) + 1} releases takes {kept / 1e3:,.0f} kB.")
    return missed


def show_together(name: str, cost: Cost, manifest: dict[str, Any], first: str) -> bool:
    """Print one row; return whether it was held against the first release."""
    seconds = manifest["seconds"]["identifiers"] + manifest["seconds"]["overlaps"]
    found = [overlap for overlap in manifest["overlaps"] if overlap["release"] == first and overlap["shared"] is not None]
    told = f"{found[0]['shared']:>12,}{sum(found[0][key] or 0 for key in RISKS):>12,}" if found else ""
    print(f"{name:<34}{manifest['records']:>12,}{cost.cpu:>8.1f}{seconds:>10.2f}{cost.peak / 1e6:>9.0f}{told}")
    return bool(found)


def prepare(folder: Path, files: int, rows: int) -> list[Path]:
    """Make the files that are not there yet; the first n are the same however many there are."""
    if len(list(folder.glob("*.parquet"))) < files:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_medical(folder, files * rows, files=files)
    return sorted(folder.glob("*.parquet"))[:files]


def run(folder: Path, files: list[Path], memory: str, *settings: str) -> tuple[Cost, dict[str, Any]]:
    """Measure one run in a folder and return its manifest."""
    given = [f"memory={memory}", f"source.path={json.dumps([str(file) for file in files])}", *settings]
    options = [part for setting in given for part in ("--set", setting)]
    cost = measure(skald("run", "medical.yaml", *options, "--direct"), folder, PYTHONPATH=str(ROOT))
    newest = max(folder.glob("**/manifest.json"), key=lambda path: path.stat().st_mtime_ns)
    return cost, json.loads(newest.read_bytes())


def show(name: str, cost: Cost, manifest: dict[str, Any], fresh: Cost | None, yesterday: str) -> None:
    """Print one row, with the records that it and yesterday's release put at risk."""
    records, reused = manifest["records"], manifest["increment"]["histograms_records"]
    ratio = f"{cost.cpu / fresh.cpu:.2f}" if fresh else ""
    found = [overlap for overlap in manifest["overlaps"] if overlap["release"] == yesterday]
    risk = f"{sum(found[0][key] or 0 for key in RISKS):,}" if found else ""
    print(f"{name:<34}{records:>12,}{records - reused:>12,}{cost.cpu:>8.1f}{ratio:>9}{risk:>12}  {tuple(manifest['node'])}")


RISKS = ("shared_at_risk", "added_at_risk", "removed_at_risk")

if __name__ == "__main__":
    main()
