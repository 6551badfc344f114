"""The cost of ``method.linked: keep`` on visits of synthetic patients.

With it, k people share the set of combinations that all records of one of them are in.

    python -m benchmarks.linked [--rows 1000000] [--k 10] [--limits 0,0.05,0.2]

The person is published as a keyed hash. The first line of each limit accepts what that tells (``columns.linkable``), the second keeps it
(``method.linked: keep``). Every line is a run of its own from the source to the verified release; all figures are the manifest's.
``below k`` is the share of people who share their set of combinations with fewer than k, ``fewest`` how many share the rarest set. Data are
made in ``benchmarks/.data`` and kept for the next time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import measure, skald
from data.tables import JOBS, maker

DATA = Path(__file__).parent / ".data"
ROOT = Path(__file__).parent.parent
KEY = {"LINKED_KEY": "0123456789abcdef" * 4}
COLUMNS = {
    "limit": 7,
    "linked": 8,
    "released": 11,
    "suppressed": 11,
    "classes": 9,
    "GCP": 8,
    "below k": 9,
    "fewest": 8,
    "CPU s": 7,
    "MB": 7,
}
"""Titles and widths of the table."""


def job_in(folder: Path, rows: int) -> Path:
    """Write a job of visits that publishes a hash of each person; return its file."""
    source = DATA / f"visits-{rows}"
    if not source.exists():
        maker("visits")(source, rows)
    job: dict[str, Any] = yaml.safe_load((JOBS / "visits.yaml").read_text("utf-8"))
    shutil.copytree(JOBS / "hierarchies", folder / "hierarchies")
    treated = {"name": job["columns"]["person"], "treatment": {"hash": {"key": {"env": next(iter(KEY))}, "length": 16}}}
    job["columns"]["identifiers"] = [treated]
    job |= {"source": {"path": str(source / "*.parquet")}, "target": "releases", "chunk_rows": 250_000}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False))
    return path


def line(rows: int, k: int, limit: str, linked: str) -> str:
    """Run a job from its source and return its figures."""
    settings = [f"privacy.k={k}", f"suppression.limit={limit}", f"method.linked={linked}"]
    settings += ["columns.linkable=patient_id"] if linked == "tell" else []
    with tempfile.TemporaryDirectory() as temporary:
        job = job_in(Path(temporary), rows)
        command = skald("run", job.name, "--direct", "--json", *(part for setting in settings for part in ("--set", setting)))
        cost = measure(command, job.parent, PYTHONPATH=str(ROOT), **KEY)
        release = (job.parent / "releases" / "CURRENT").read_text().strip()
        made: dict[str, Any] = json.loads((job.parent / "releases" / release / "manifest.json").read_text())
    [told] = made["linked"]
    cells = [limit, linked, f"{made['released']:,}", f"{made['suppressed'] / made['records']:.1%}", f"{made['classes']:,}"]
    cells += [f"{made['loss']['gcp']:.4f}", f"{told['share']:.1%}", f"{told['smallest']:,}", f"{cost.cpu:.1f}", f"{cost.peak / 1e6:.0f}"]
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True)) + f"  {made['node']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--limits", default="0,0.05,0.2")
    asked = parser.parse_args()
    print(f"{asked.rows:,} visits of {asked.rows // 4:,} people, k = {asked.k}\n")
    print("".join(f"{title:>{width}}" for title, width in COLUMNS.items()) + "  node")
    for limit in asked.limits.split(","):
        for linked in ("tell", "keep"):
            print(line(asked.rows, asked.k, limit, linked), flush=True)


if __name__ == "__main__":
    main()
