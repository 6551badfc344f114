"""What it costs that k people share the set of combinations which all records of one of them are in, on visits of made patients.

    python -m benchmarks.linked [--visits 1000000] [--k 10] [--limits 0,0.05,0.2,0.5]

A quarter as many people as visits; one has 4.2 visits on average and 40 at most. Between visits people grow older (up to two years), their
BMI moves (0.6 at most), one visit in ten has another PIN code and one in twenty another profession. ``person`` is published as a keyed
hash. The first line of each limit accepts what that tells (``columns.linkable``), the second keeps it (``method.linked: keep``). Every line
is a run of its own from the source to the verified release; all figures are the manifest's. ``below k`` is the share of people who share
their set of combinations with fewer than k, ``fewest`` how many share the rarest set.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from benchmarks.measure import measure, skald
from data.medical import make_medical

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / ".data"
JOB = ROOT / "data" / "jobs" / "medical.yaml"
MOST = 40
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
    "MB": 6,
}
"""Titles and widths of the table."""


def visits_of(patients: pa.Table, visits: int, seed: int = 0) -> pa.Table:
    """Returns visits of patients, about so many.

    Args:
        patients: Of ``data.medical``, more than people are needed.
        visits: How many visits, about.
        seed: The same seed gives the same visits.
    """
    random = np.random.default_rng(seed)
    each = np.minimum(random.geometric(1 / 4.2, visits // 4), MOST)
    who = np.repeat(np.arange(len(each)), each)
    size, table = len(who), patients.take(pa.array(who))
    other = patients.take(pa.array(random.integers(0, len(patients), size)))
    moved = pc.add(table["bmi"].cast(pa.float64()), pa.array(random.integers(-6, 7, size) / 10))
    changed = {
        "age": pc.add(table["age"], pa.array(random.integers(0, 3, size), table["age"].type)),
        "bmi": pc.round(moved, 1).cast(table["bmi"].type),
        "pin_code": pc.if_else(pa.array(random.random(size) < 0.1), other["pin_code"], table["pin_code"]),
        "profession": pc.if_else(pa.array(random.random(size) < 0.05), other["profession"], table["profession"]),
        "health_condition": other["health_condition"],
    }
    for name, column in changed.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table.append_column("person", pa.array(who)).take(pa.array(random.permutation(size)))


def job_in(folder: Path, visits: int) -> Path:
    """Writes the visits, once, and a job of them; returns its file."""
    source = folder / "visits" / f"{visits}.parquet"
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        patients = pa.concat_tables(map(pq.read_table, make_medical(folder / "patients", visits // 3)))
        pq.write_table(visits_of(patients, visits), source, row_group_size=250_000)
        shutil.rmtree(folder / "patients")
    job: dict[str, Any] = yaml.safe_load(JOB.read_text("utf-8"))
    shutil.copytree(JOB.parent / "hierarchies", folder / "hierarchies", dirs_exist_ok=True)
    hashed = {"name": "person", "treatment": {"hash": {"key": {"env": "LINKED_KEY"}, "length": 16}}}
    job["columns"] |= {"person": "person", "identifiers": ["patient_id", "name", "address", hashed]}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job | {"source": {"path": f"visits/{visits}.parquet"}, "chunk_rows": 250_000}, sort_keys=False))
    return path


def line(job: Path, k: int, limit: str, linked: str) -> str:
    """Runs a job from its source and returns its figures."""
    for name in ("releases", ".skald"):
        shutil.rmtree(job.parent / name, ignore_errors=True)
    settings = [f"privacy.k={k}", f"suppression.limit={limit}", f"method.linked={linked}", "target=releases"]
    settings += ["columns.linkable=person"] if linked == "tell" else []
    command = skald("run", job.name, "--direct", *(part for setting in settings for part in ("--set", setting)))
    cost = measure(command, job.parent, PYTHONPATH=str(ROOT), LINKED_KEY="0123456789abcdef" * 4)
    release = (job.parent / "releases" / "CURRENT").read_text().strip()
    made: dict[str, Any] = json.loads((job.parent / "releases" / release / "manifest.json").read_text())
    [told] = made["linked"]
    cells = [limit, linked, f"{made['released']:,}", f"{made['suppressed'] / made['records']:.1%}", f"{made['classes']:,}"]
    cells += [f"{made['loss']['gcp']:.4f}", f"{told['share']:.1%}", f"{told['smallest']:,}", f"{cost.cpu:.1f}", f"{cost.peak / 1e6:.0f}"]
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True)) + f"  {made['node']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visits", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--limits", default="0,0.05,0.2,0.5")
    parser.add_argument("--data", type=Path, default=DATA / "linked")
    asked = parser.parse_args()
    job = job_in(asked.data, asked.visits)
    print(f"about {asked.visits:,} visits of {asked.visits // 4:,} people, k = {asked.k}\n")
    print("".join(f"{title:>{width}}" for title, width in COLUMNS.items()) + "  node")
    for limit in asked.limits.split(","):
        for linked in ("tell", "keep"):
            print(line(job, asked.k, limit, linked), flush=True)


if __name__ == "__main__":
    main()
