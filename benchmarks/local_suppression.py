"""What suppressed cells and further passes save, compared with dropping the records that fail.

The data are Adult and Census-Income (KDD).

    python -m benchmarks.local_suppression [--k 10] [--limit 0.05] [--objectives dm_star,gcp] [--qids 6] [--rows 1000000]

The data are expected as ``adult/`` and ``census_kdd/`` in the folder that ``--data`` names, which is ``../shared/data`` beside this
checkout if it is left out; ``--rows`` adds medical patients, kept in ``benchmarks/.data``. Every line is a run of its own from the source
to the verified release; its GCP, DM and counts are the manifest's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.census import QIDS, levels_of
from benchmarks.measure import measure, skald
from benchmarks.rayden import ADULT_QIDS
from core.columns.domains import read_domains
from core.histograms.domain_counts import DomainCounter
from flows.demo import make_patients

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
WAYS = [("drop", 0), ("mask", 0), ("cell", 0), ("drop", 2), ("drop", 5), ("cell", 2), ("cell", 5)]
COLUMNS = {"treatment": 9, "rounds": 7, "released": 12, "starred": 10, "stars": 10, "GCP": 9, "DM": 22, "CPU s": 8, "peak MB": 9}
"""Titles and widths of the table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--limit", default="0.05")
    parser.add_argument("--objectives", default="dm_star,gcp")
    parser.add_argument("--qids", type=int, default=6, help="of Census-Income")
    parser.add_argument("--rows", type=int, default=0, help="medical patients")
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        jobs = {"Adult, 8 QIDs": adult(Path(folder), asked.data / "adult")}
        jobs[f"Census-Income (KDD), {asked.qids} QIDs"] = census(Path(folder), asked.data / "census_kdd", asked.qids)
        if asked.rows:
            jobs["Medical, 5 QIDs"] = medical(asked.rows)
        for title, job in jobs.items():
            for objective in asked.objectives.split(","):
                print(f"\n{title}, k = {asked.k}, limit {asked.limit}, {objective}\n")
                print("".join(f"{title:>{width}}" for title, width in COLUMNS.items()))
                for treatment, rounds in WAYS:
                    print(line(job, treatment, rounds, asked, objective), flush=True)


def line(job: Path, treatment: str, rounds: int, asked: argparse.Namespace, objective: str) -> str:
    """Run a job from its source and return its figures."""
    for name in ("releases", ".skald"):
        shutil.rmtree(job.parent / name, ignore_errors=True)
    suppression = f"suppression={{limit: {asked.limit}, treatment: {treatment}, rounds: {rounds}}}"
    settings = [suppression, f"privacy.k={asked.k}", f"method.objective={objective}", "target=releases"]
    command = skald("run", job.name, "--direct", *(part for setting in settings for part in ("--set", setting)))
    cost = measure(command, job.parent, PYTHONPATH=str(ROOT))
    release = (job.parent / "releases" / "CURRENT").read_text().strip()
    manifest: dict[str, Any] = json.loads((job.parent / "releases" / release / "manifest.json").read_text())
    remainder, loss = manifest["remainder"] or {"starred": 0, "stars": 0}, manifest["loss"]
    counts = f"{manifest['released']:>12,}{remainder['starred']:>10,}{remainder['stars']:>10,}"
    return f"{treatment:>9}{rounds:>7}{counts}{loss['gcp']:>9.4f}{loss['dm']:>22,}{cost.cpu:>8.1f}{cost.peak / 1e6:>9.0f}"


def write(folder: Path, name: str, job: dict[str, Any]) -> Path:
    """Write a job file into a folder of its own."""
    path = folder / name / "job.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump({"version": 1, "name": name, "privacy": {"k": 10}, "method": {"name": "skald"}, "memory": "1GB"} | job))
    return path


def adult(folder: Path, data: Path) -> Path:
    """Write the job of Adult."""
    if not (data / "adult.csv").is_file():
        sys.exit(f"'{data / 'adult.csv'}' is not there. Put the Adult set of the ARX project there, or name its folder by --data.")
    qids = [{"name": name, "hierarchy": {"csv": str(data / f"hierarchy_{name}.csv")}} for name in ADULT_QIDS]
    source = {"path": str(data / "adult.csv"), "delimiter": ";", "types": {"age": "integer"}}
    return write(
        folder, "adult", {"source": source, "columns": {"quasi_identifiers": qids, "sensitive": ["salary-class"]}, "target": "releases"}
    )


def census(folder: Path, data: Path, qids: int) -> Path:
    """Write the job of Census-Income with the hierarchies of ``benchmarks.census``.

    The other columns are left out.
    """
    source = data / "census_kdd.parquet"
    if not source.is_file():
        sys.exit(f"'{source}' is not there. Put the Census-Income (KDD) data there as Parquet, or name its folder by --data.")
    table = pq.read_table(source)
    names = list(QIDS)[:qids]
    counter = DomainCounter([table.schema.field(name).type for name in names])
    for batch in table.select(names).to_batches():
        counter.add(pa.RecordBatch.from_arrays(batch.columns, names=names))
    domains = read_domains(counter.table(), names)
    columns = {
        "identifiers": [name for name in table.column_names if name not in names],
        "quasi_identifiers": [{"name": domain.qid, "hierarchy": levels_of(domain)} for domain in domains],
    }
    return write(folder, "census", {"source": {"path": str(source)}, "columns": columns, "target": "releases"})


def medical(rows: int) -> Path:
    """Make patients once and return their job."""
    folder = Path(__file__).parent / ".data" / f"medical-{rows}"
    if not (folder / "medical").exists():
        folder.mkdir(parents=True)
        make_patients(folder, rows)
    return folder / "medical.yaml"


if __name__ == "__main__":
    main()
