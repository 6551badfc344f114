"""The cost of counting people instead of records, with every method.

The data are visits of a quarter as many people.

    python -m benchmarks.people [--rows 1000000] [--small 100000] [--memory 1GB]

The same job is run twice over the same visits, without ``columns.person`` and with it; the ratio of CPU is what counting people costs, and
the two GCPs are what the promise costs in detail.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.measure import Cost, measure, skald
from data.tables import JOBS, maker

DATA = Path(__file__).parent / ".data"
ROOT = Path(__file__).parent.parent
LARGE: Sequence[tuple[str, Any]] = (
    ("skald, k = 50", {"privacy.k": 50}),
    ("skald, k = 10, limit 0", {"privacy.k": 10, "suppression.limit": 0}),
    ("mondrian, k = 10", {"privacy.k": 10, "method.name": "mondrian"}),
)
SMALL: Sequence[tuple[str, Any]] = (
    ("rayden, k = 10", {"privacy.k": 10, "method.name": "rayden"}),
    ("canon, k = 10", {"privacy.k": 10, "method.name": "canon"}),
    ("mondrian_cof, k = 10", {"privacy.k": 10, "method.name": "mondrian_cof"}),
    ("clustering, k = 10", {"privacy.k": 10, "method.name": "clustering"}),
)


class Measured(NamedTuple):
    """A run: what it cost, and its manifest."""

    cost: Cost
    manifest: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--small", type=int, default=100_000, help="visits for the methods that measure distances; 0 leaves them out")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--only", default="", help="methods whose name begins with this")
    options = parser.parse_args()
    header = f"{'':28}{'records':>10}{'CPU s':>8}{'peak MB':>9}{'people':>10}{'CPU s':>8}{'peak MB':>9}{'ratio':>7}{'GCP':>8}{'GCP':>8}"
    for rows, cases in ((options.rows, LARGE), (options.small, SMALL)):
        if rows and (wanted := [case for case in cases if case[0].startswith(options.only)]):
            print(f"\n{rows:,} visits of {rows // 4:,} people, --direct, memory {options.memory}: k counts records, then people\n{header}")
            for name, settings in wanted:
                _compare(name, rows, settings | {"memory": options.memory})


def _compare(name: str, rows: int, settings: dict[str, Any]) -> None:
    records, people = (_run(rows, settings, persons=persons) for persons in (False, True))
    (before, first), (after, second) = records, people
    print(
        f"{name:28}{first['classes']:>10,}{before.cpu:>8.1f}{before.peak / 1e6:>9,.0f}{second['classes']:>10,}{after.cpu:>8.1f}"
        f"{after.peak / 1e6:>9,.0f}{after.cpu / before.cpu:>7.2f}{first['loss']['gcp']:>8.4f}{second['loss']['gcp']:>8.4f}",
        flush=True,
    )


def _run(rows: int, settings: dict[str, Any], *, persons: bool) -> Measured:
    source = DATA / f"visits-{rows}"
    if not source.exists():
        maker("visits")(source, rows)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(JOBS / "hierarchies", folder / "hierarchies")
        job = yaml.safe_load((JOBS / "visits.yaml").read_text("utf-8"))
        job["source"]["path"] = str(source / "*.parquet")
        if not persons:
            job["columns"]["identifiers"] = [job["columns"].pop("person")]
        (folder / "visits.yaml").write_text(yaml.safe_dump(job), "utf-8")
        command = skald(
            "run", "visits.yaml", "--direct", *(part for key, value in settings.items() for part in ("--set", f"{key}={value}"))
        )
        cost = measure(command, folder, PYTHONPATH=str(ROOT))
        [manifest] = (folder / "releases" / "visits").glob("*/manifest.json")
        return Measured(cost, json.loads(manifest.read_text("utf-8")))


if __name__ == "__main__":
    main()
