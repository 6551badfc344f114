"""Cohen's attacks on tight classes, played against every method on data that are made for them.

    python -m benchmarks.downcoding [--rows 6000] [--k 10] [--methods skald,mondrian,…] [--draws 2000000]

A. Cohen, Attacks on Deidentification's Defenses, USENIX Security 2022: where labels are as narrow as their class, the choice of a label
tells of what is in it. The data are clusters of about 1.5 k records, far from one another; of each record every further
quasi-identifier is 0 but for one in 3 k with a heavy tail. The intruder knows this distribution and the method.

*Widened* are the records in classes with a label that begins at 0 and goes further. Of these he says: one of the class is above 0 there,
all others are 0 (downcoding: finer than the label, for each of them). *Downcoded* is the share of all records in classes of which that is
true. He also says, for each such class: there is exactly one person in the cluster of the class with a value above 0 and in the label there
(predicate singling-out). *Isolated* is the share of these claims that are true of the source; *by chance* is what the same claims would be
worth without the release, from their weight w in the distribution: n w (1 - w)^(n - 1), w from draws of its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from numpy.typing import NDArray

from schemas.job.method import METHODS
from tasks.publication.verify_and_publish import PublishedRelease

TAILS = ("a", "b", "c", "d")
"""Quasi-identifiers that are 0 but for a heavy tail."""
APART = 1 << 16
SPREAD = 64
Records = dict[str, NDArray[np.int64]]
Range = tuple[float, float]


class Played(NamedTuple):
    """Shares as the module's docstring has them; None where no label was widened."""

    classes: int
    widened: float
    downcoded: float
    isolated: float | None
    chance: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--draws", type=int, default=2_000_000)
    asked = parser.parse_args()
    clusters = int(asked.rows / (1.5 * asked.k))
    people, others = (drawn(rows, clusters, asked.k, seed) for rows, seed in ((asked.rows, 1), (asked.draws, 2)))
    print(f"{asked.rows:,} records in {clusters:,} clusters, k = {asked.k}\n")
    print(f"{'method':14}{'ends':>10}{'classes':>9}{'widened':>9}{'downcoded':>11}{'isolated':>10}{'by chance':>11}")
    for method in asked.methods.split(","):
        for ends in ("observed", "shared") if not METHODS[method].one_level else ("bins",):
            found = attacked(people, others, released(people, method, asked.k, ends))
            shares = [f"{found.widened:.1%}", f"{found.downcoded:.1%}", *map(_share, (found.isolated, found.chance))]
            print(f"{method:14}{ends:>10}{found.classes:>9,}{shares[0]:>9}{shares[1]:>11}{shares[2]:>10}{shares[3]:>11}", flush=True)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def drawn(rows: int, clusters: int, k: int, seed: int) -> Records:
    """Draw records: their positions, and their values.

    Values are 0 but for one in about three k of each column, up to 2^16.
    """
    random = np.random.default_rng(seed)
    records = {"place": random.integers(0, clusters, rows) * APART + random.integers(0, SPREAD, rows)}
    for name in TAILS:
        tail = np.floor(np.exp2(random.uniform(0, 16, rows))).astype(np.int64)
        records[name] = np.where(random.random(rows) < 1 / (3 * k), tail, 0)
    return records


def released(people: Records, method: str, k: int, ends: str) -> pl.DataFrame:
    """Run a job over the records and return its labels."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pq.write_table(pa.table(people), folder / "people.parquet")
        widths = [1 << power for power in range(0, 18, 2)]
        qids: list[dict[str, Any]] = [{"name": "place", "hierarchy": {"widths": [SPREAD, APART, 16 * APART, 256 * APART]}}]
        qids += [{"name": name, "hierarchy": {"widths": widths}} for name in TAILS]
        job = {"version": 1, "name": "clusters", "source": {"path": "people.parquet"}, "columns": {"quasi_identifiers": qids}}
        job |= {"privacy": {"k": k}, "suppression": {"limit": 0.05}, "method": {"name": method}, "memory": "1GB", "target": "releases"}
        job |= {} if ends == "bins" else {"endpoints": ends}
        (folder / "job.yaml").write_text(yaml.safe_dump(job), "utf-8")
        os.environ["SKALD_DIRECT"] = "1"
        flow = METHODS[method].flow.load()
        made: PublishedRelease = getattr(flow, "fn", flow)(folder / "job.yaml", ())
        return pl.read_parquet(made.folder / "data" / "*.parquet").with_columns(pl.all().cast(pl.String))


def attacked(people: Records, others: Records, labels: pl.DataFrame) -> Played:
    """Play both attacks against a release.

    Args:
        people: The records that it was made of.
        others: Records of the same distribution, from which weights are reckoned.
        labels: What it publishes.
    """
    rows, size = len(people["place"]), len(others["place"])
    by_place, by_other = np.argsort(people["place"], kind="stable"), np.argsort(others["place"], kind="stable")
    widened = downcoded = classes = claims = isolated = 0
    chance = 0.0
    for *texts, members in labels.group_by(["place", *TAILS]).len().sort(["place", *TAILS]).iter_rows():
        classes += 1
        ranges = dict(zip(("place", *TAILS), map(range_of, texts), strict=True))
        wide = [name for name in TAILS if ranges[name][0] <= 0 < ranges[name][1]]
        if not wide:
            continue
        widened += members
        # The narrowest: the least room for a second one above 0.
        name = min(wide, key=lambda one: ranges[one][1])
        mine, elsewhere = inside(people, by_place, ranges), inside(others, by_other, ranges)
        above, weight = int((people[name][mine] > 0).sum()), int((others[name][elsewhere] > 0).sum()) / size
        downcoded += members if above == 1 else 0
        claims, isolated = claims + 1, isolated + (above == 1)
        chance += rows * weight * (1 - weight) ** (rows - 1)
    some = claims or None
    return Played(classes, widened / rows, downcoded / rows, some and isolated / claims, some and chance / claims)


def inside(records: Records, order: NDArray[np.int64], ranges: dict[str, Range]) -> NDArray[np.int64]:
    """Return which records fit all labels of a class.

    ``order`` sorts them by position, so that few are looked at.
    """
    places = records["place"]
    low, high = ranges["place"]
    first, last = np.searchsorted(places, low, "left", sorter=order), np.searchsorted(places, high, "right", sorter=order)
    mine = order[first:last]
    for name in TAILS:
        values = records[name][mine]
        mine = mine[(values >= ranges[name][0]) & (values <= ranges[name][1])]
    return mine


def range_of(label: str) -> Range:
    """Return what a label covers."""
    if label == "*":
        return -np.inf, np.inf
    if label.startswith(">="):
        return float(label[3:]), np.inf
    if label.startswith("<="):
        return -np.inf, float(label[3:])
    low, _, high = label.strip("[]").partition(" - ")
    return float(low), float(high or low)


if __name__ == "__main__":
    main()
