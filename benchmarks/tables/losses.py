"""The loss of a release of several tables, compared with single tables and with one joined table.

    python -m benchmarks.tables.losses [--persons N] [--most N]

All keep k = 12 persons: the tables together by levels and by classes of persons, each table alone with ``person`` said, and the join of
persons and visits with ``person`` said. Tables alone publish no pseudonym, so that nobody can tell which rows are one person's; the wide
table repeats a person's own values for every visit. Neither keeps whole histories. A loss is the mean certainty penalty (GCP) over the
values of the tables that it is of, values that are left out counting 1.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import yaml

from benchmarks.measure import measure, skald
from benchmarks.tables.__main__ import QIDS, VISIT, hospital_job


def one_table_job(name: str, person: str, qids: list[dict[str, Any]], method: str) -> dict[str, Any]:
    """Return the job of one table in which persons are counted."""
    return {
        "version": 1,
        "name": f"{name}_{method}",
        "source": {"path": f"{name}/*.parquet"},
        "columns": {"person": person, "identifiers": [person], "quasi_identifiers": qids, "withheld": ["income", "nights", "visit_id"]},
        "privacy": {"k": 12},
        "suppression": {"limit": 0.05},
        "method": {"name": method},
        "memory": "1GB",
        "target": "releases",
    }


def losses_of(folder: Path, job: dict[str, Any]) -> str:
    """Run a job and return its losses in words."""
    path = folder / f"{job['name']}.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False))
    measure(skald("run", str(path), "--direct"), Path.cwd())
    [manifest] = (folder / "releases").glob(f"{job['name']}-*/manifest.json")
    found = json.loads(manifest.read_text())
    loss = found["loss"]
    if "by_table" in loss:
        of_tables = ", ".join(f"{name} {lost:.3f}" for name, lost in loss["by_table"].items())
        return f"{loss['gcp']:.3f} ({of_tables}), {found['persons']['released']:,} persons"
    return f"{loss['gcp']:.3f}, {found['released']:,} of {found['records']:,} rows"


def main() -> None:
    """Print what each loses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--most", type=int, default=6)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        measure(skald("make-data", "hospital", "--rows", str(asked.persons), "--out", str(folder)), Path.cwd())
        (folder / "wide").mkdir()
        join = f"FROM '{folder}/person/*.parquet' AS p LEFT JOIN '{folder}/visit/*.parquet' AS v USING (person_id)"
        duckdb.execute(f"COPY (SELECT * {join}) TO '{folder}/wide/0.parquet'")
        for method in ("skald", "mondrian"):
            together = hospital_job("1GB", asked.most) | {"name": f"together_{method}", "method": {"name": method}}
            print(f"tables together, {method}: {losses_of(folder, together)}")
            for name, qids in {"person": QIDS, "visit": VISIT, "wide": [*QIDS, *VISIT]}.items():
                job = one_table_job(name, "person_id", qids, method)
                if name != "wide":
                    job["columns"]["withheld"] = ["income"] if name == "person" else ["nights", "visit_id"]
                print(f"{name} alone, {method}: {losses_of(folder, job)}")


if __name__ == "__main__":
    main()
