"""The cost of a release of several tables.

It is compared with that of the unit's table alone and with a join of the tables by DuckDB.

    python -m benchmarks.tables [--persons N] [--memory 1GB] [--most N]

Persons, visits and conditions are those of ``skald make-data hospital``: two visits a person, two conditions for every three visits. CPU
seconds with start-up, kernels compiled before; peak resident size of the process tree.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import yaml

from benchmarks.measure import Cost, measure, skald

QIDS = [
    {"name": "sex", "hierarchy": {"tree": {"*": ["female", "male"]}}},
    {"name": "age", "hierarchy": {"widths": [1, 5, 10, 20, 40]}},
    {"name": "zip", "hierarchy": {"prefix": [5, 4, 3, 2]}},
]
WARDS = {"medical": ["cardiology", "emergency", "geriatrics", "neurology", "oncology"], "other": ["maternity", "paediatrics", "surgery"]}
VISIT = [{"name": "start", "hierarchy": {"date": ["month", "quarter", "year"]}}, {"name": "ward", "hierarchy": {"tree": WARDS}}]


def hospital_job(memory: str, most: int) -> dict[str, Any]:
    """Return the job of all three tables."""
    tables = {
        "person": {
            "source": {"path": "person/*.parquet"},
            "key": "person_id",
            "columns": {"quasi_identifiers": QIDS, "sensitive": ["income"]},
        },
        "visit": {
            "source": {"path": "visit/*.parquet"},
            "key": "visit_id",
            "references": {"person_id": "person"},
            "rows": {"most": most},
            "columns": {"quasi_identifiers": VISIT, "insensitive": ["nights"]},
        },
        "condition": {
            "source": {"path": "condition/*.parquet"},
            "references": {"person_id": "person", "visit_id": "visit"},
            "columns": {"sensitive": ["icd10"]},
        },
    }
    common = {"privacy": {"k": 12}, "suppression": {"limit": 0.05, "rows": 0.1}, "method": {"name": "skald", "objective": "gcp"}}
    return {"version": 2, "name": "tables", "tables": tables, **common, "memory": memory, "target": "releases"}


def unit_job(memory: str) -> dict[str, Any]:
    """Return the job of the persons alone."""
    columns = {"identifiers": ["person_id"], "quasi_identifiers": QIDS, "sensitive": ["income"]}
    common = {"privacy": {"k": 12}, "suppression": {"limit": 0.05}, "method": {"name": "skald", "objective": "gcp"}}
    return {
        "version": 1,
        "name": "unit",
        "source": {"path": "person/*.parquet"},
        "columns": columns,
        **common,
        "memory": memory,
        "target": "releases",
    }


def joined(folder: Path) -> Cost:
    """Measure a join of the three tables that DuckDB writes, as the floor."""
    query = (
        "COPY (SELECT * FROM 'person/*.parquet' p LEFT JOIN 'visit/*.parquet' v USING (person_id) "
        "LEFT JOIN 'condition/*.parquet' c USING (visit_id)) TO 'joined.parquet'"
    )
    return measure([skald()[0], "-c", f"import duckdb; duckdb.execute({query!r})"], folder)


def main() -> None:
    """Print what each costs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--most", type=int, default=6)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        measure(skald("make-data", "hospital", "--rows", str(asked.persons), "--out", str(folder)), Path.cwd())
        jobs = {"tables": hospital_job(asked.memory, asked.most), "unit": unit_job(asked.memory)}
        for name, job in jobs.items():
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(job, sort_keys=False))
        rows = {
            name: duckdb.execute(f"SELECT count(*) FROM '{folder}/{name}/*.parquet'").fetchall()[0][0] for name in jobs["tables"]["tables"]
        }
        print(", ".join(f"{name} {many:,}" for name, many in rows.items()))
        for name in ("unit", "tables"):
            cost = measure(skald("run", str(folder / f"{name}.yaml"), "--direct"), Path.cwd())
            print(f"{name:>7}: {cost.cpu:7.1f} CPU s, {cost.peak / 1e6:7.0f} MB")
        cost = joined(folder)
        print(f"{'join':>7}: {cost.cpu:7.1f} CPU s, {cost.peak / 1e6:7.0f} MB")


if __name__ == "__main__":
    main()
