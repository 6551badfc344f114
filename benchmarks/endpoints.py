"""The cost in GCP of shared end points of ranges.

Without them values of single people stand at ends; these are counted.

    python -m benchmarks.endpoints [--k 10] [--rows 100000] [--methods mondrian,rayden] [--data ../shared/data]

Adult is expected as ``adult/`` in the folder that ``--data`` names; medical patients are kept in ``benchmarks/.data``; the incomes are
drawn from a distribution with a heavy tail. Each line is two runs from the source to the verified release, with ``endpoints: observed`` and
``shared``. ``told`` are the values of numerical quasi-identifiers which one person alone has that are the end of a published range, as a
share of all such values.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.local_suppression import DATA, adult, medical
from core.hierarchies.levels import as_text
from schemas.job.job import Job, load_job
from schemas.job.method import METHODS
from tasks.publication.verify_and_publish import PublishedRelease

RANGES = [name for name, entry in METHODS.items() if not entry.one_level]


class Measured(NamedTuple):
    """GCP as published and of the classes, and the share of one person's values that are range ends.

    The share is None if no value belongs to one person.
    """

    gcp: float
    held: float
    told: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100_000, help="medical patients")
    parser.add_argument("--methods", default=",".join(RANGES))
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        jobs = {
            "Adult": adult(Path(folder), asked.data / "adult"),
            "medical": medical(asked.rows),
            "incomes": incomes(Path(folder) / "incomes"),
            "of persons": incomes(Path(folder) / "persons", persons=1_500),
        }
        print(f"k = {asked.k}\n{'':10}{'':14}{'GCP observed':>14}{'shared':>9}{'more':>8}{'told observed':>15}{'shared':>9}")
        for title, job in jobs.items():
            for method in asked.methods.split(","):
                observed, shared = (measured(job, method, asked.k, way) for way in ("observed", "shared"))
                print(
                    f"{title:10}{method:14}{observed.gcp:>14.4f}{shared.gcp:>9.4f}{shared.gcp / observed.gcp - 1:>8.1%}"
                    f"{_share(observed.told):>15}{_share(shared.told):>9}",
                    flush=True,
                )


def _share(told: float | None) -> str:
    return "–" if told is None else f"{told:.1%}"


def incomes(folder: Path, rows: int = 30_000, persons: int = 0) -> Path:
    """Write a job about people whose income has a heavy tail.

    Most incomes above a few thousand are one person's alone.

    Args:
        folder: Gets job and data.
        rows: Incomes.
        persons: Whose they are; each is a person's own if there is none.
    """
    folder.mkdir()
    random = np.random.default_rng(7)
    income = np.round(np.exp(random.normal(10.3, 1.1, rows))).astype(np.int64)
    columns = {"income": income, "age": random.integers(18, 90, rows), "region": random.integers(0, 12, rows).astype(str)}
    columns["job"] = random.integers(0, 5, rows)
    columns |= {"person": random.integers(0, persons, rows)} if persons else {}
    pq.write_table(pa.table(columns), folder / "incomes.parquet")
    qids: list[Mapping[str, Any]] = [
        {"name": "income", "hierarchy": {"widths": [1000, 10000, 100000]}},
        {"name": "age", "hierarchy": {"widths": [1, 5, 10, 20]}},
        {"name": "region", "hierarchy": {"tree": {"*": [str(number) for number in range(12)]}}},
    ]
    job = {"version": 1, "name": "incomes", "source": {"path": "incomes.parquet"}, "memory": "1GB", "target": "releases"}
    whose = {"person": "person", "identifiers": ["person"]} if persons else {}
    job |= {
        "columns": {"quasi_identifiers": qids, "sensitive": ["job"], "insensitive": [], **whose},
        "privacy": {"k": 10},
        "method": {"name": "skald"},
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job), "utf-8")
    return path


def measured(path: Path, method: str, k: int, way: str) -> Measured:
    """Run a job with one method and return what it lost and what its ranges tell."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [f"privacy.k={k}", f"method={{name: {method}}}", f"endpoints={way}", f"target={folder}/out", f"work={folder}/work"]
        settings += ["suppression={limit: 1}"]
        os.environ["SKALD_DIRECT"] = "1"
        flow = METHODS[method].flow.load()
        made: PublishedRelease = getattr(flow, "fn", flow)(path, tuple(settings))
        told = share_told(load_job(path, settings), made.folder)
        # What classes hold is in no release; the run knows it.
        assert made.untold is not None
        return Measured(float(made.untold.loss["gcp"]), float(made.untold.loss["gcp_held"]), told)


def share_told(job: Job, release: Path) -> float | None:
    """Return the share of values held by one person alone that are the end of a published range."""
    files = [path for pattern in job.source_pattern for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    alone = told = 0
    for qid in job.columns.quasi_identifiers:
        values = _column(files, qid.name)
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)):
            continue
        counts = pl.DataFrame({"value": pl.Series(values)}).group_by("value").len().filter(pl.col("len") == 1)
        mine = set(as_text(counts["value"].to_arrow().cast(values.type)).to_pylist())
        ends: set[str] = set()
        for label in pl.read_parquet(release / "data" / "*.parquet", columns=[qid.name])[qid.name].cast(pl.String).unique().drop_nulls():
            if label[0] in "[<>":
                ends |= set(label.strip("[]<>= ").split(" - "))
        alone, told = alone + len(mine), told + len(mine & ends)
    return told / alone if alone else None


def _column(files: list[Path], name: str) -> pa.Array:
    if files[0].suffix == ".csv":
        read = pl.read_csv(files, separator=";", columns=[name])[name].to_arrow()
        return read if isinstance(read, pa.Array) else read.combine_chunks()
    return pa.concat_arrays([chunk for file in files for chunk in pq.read_table(file, columns=[name])[name].chunks])


if __name__ == "__main__":
    main()
