"""Attacks by what a release does not count: visits of the same people, and unchanged columns."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.intruder.attack import Attack, Ended, run, skald

K = 12
PERSONS, VISITS, RECORDS = 60, 30, 4


def _visits(folder: Path) -> pa.Table:
    """Write visits of people whose age and postcode stay the same.

    The attacker has these of everybody.
    """
    random = np.random.default_rng(1)
    person = np.repeat(np.arange(PERSONS), VISITS * RECORDS)
    table = pa.table(
        {
            "person_id": 1000 + person,
            "visit_id": 500_000 + np.arange(len(person)) // RECORDS,
            "age": 40 + person % 40,
            "zip": 10_000 + person % 30,
            "diagnosis": [f"d{number}" for number in random.integers(0, 9, len(person))],
        }
    )
    (folder / "visits").mkdir()
    pq.write_table(table, folder / "visits" / "visits.parquet")
    return table


def _bounds(label: object) -> tuple[int, int]:
    """Return the least and the greatest number that a label may stand for."""
    numbers = re.findall(r"\d+", str(label))
    return (int(numbers[0]), int(numbers[-1])) if numbers else (0, 10**9)


def draft_of_visits(folder: Path) -> str:
    """Run a draft unedited and count the records whose published values fewer than k people fit."""
    table = _visits(folder)
    skald(folder, "init", "visits", "--out", "job.yaml")
    ended = skald(folder, "run", "job.yaml", "--direct")
    if ended.code:
        return f"nothing was published (exit code {ended.code})"
    target = folder / "releases" / "job"
    release = target / (target / "CURRENT").read_text().strip()
    files = sorted((release / "data").glob("*.parquet"))
    rows = pa.concat_tables([pq.read_table(file, columns=["age", "zip"]) for file in files]).to_pylist()
    people = {(row["person_id"], row["age"], row["zip"]) for row in table.select(["person_id", "age", "zip"]).to_pylist()}
    fitting: dict[tuple[object, object], int] = defaultdict(int)
    for labels in {(row["age"], row["zip"]) for row in rows}:
        ages, zips = map(_bounds, labels)
        fitting[labels] = sum(ages[0] <= age <= ages[1] and zips[0] <= code <= zips[1] for _, age, code in people)
    few = sum(fitting[row["age"], row["zip"]] < K for row in rows)
    return f"{few:,} of {len(rows):,} records fit fewer than {K} people, the fewest {min(fitting.values())}; {_claim(ended)}"


def all_untreated(folder: Path) -> str:
    """Publish laboratory values unchanged and count the records that these values single out."""
    random, rows = np.random.default_rng(2), 20_000
    columns = {"age": random.integers(20, 80, rows), "sex": random.choice(["f", "m"], rows), "dx": random.choice(list("abcdef"), rows)}
    values = {f"lab_{number}": np.round(random.normal(100, 15, rows), 1) for number in range(8)}
    (folder / "in").mkdir()
    pq.write_table(pa.table(columns | values), folder / "in" / "admissions.parquet")
    qids = [{"name": "age", "hierarchy": {"widths": [10, 20]}}, {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}}]
    job = {
        "source": {"path": "in/*.parquet"},
        "columns": {"person": "none", "quasi_identifiers": qids, "sensitive": ["dx"], "insensitive": "rest"},
        "privacy": {"k": K},
        "method": {"name": "skald"},
    }
    ended = run(folder, job)
    release = folder / "releases" / "job" / str(ended.manifest["release"])
    published = pa.concat_tables([pq.read_table(file) for file in sorted((release / "data").glob("*.parquet"))])
    counts = Counter(zip(*(published[name].to_pylist() for name in values), strict=True))
    alone = sum(number == 1 for number in counts.values())
    return f"{alone:,} of {published.num_rows:,} records alone by their untreated columns; {_claim(ended)}"


def _claim(ended: Ended) -> str:
    """Return what the run claimed of the risk."""
    claim = re.search(r"keeps 0\.\d+", ended.text)
    warned = "and warned" if re.search(r"^\s*warning", ended.text, re.MULTILINE) else "and did not warn"
    return f"the run said '{claim[0]}' {warned}" if claim else f"the run claimed no maximum risk {warned}"


ATTACKS = [
    Attack(
        "drafts",
        "knows age and postcode of everybody in a draft of visits",
        "7,200 of 7,200 records fit fewer than 12 people, the fewest 1; the run said 'keeps 0.09' and did not warn",
        draft_of_visits,
    ),
    Attack(
        "untreated columns",
        "knows all values that are published as they are",
        "20,000 of 20,000 records alone by their untreated columns; the run said 'keeps 0.09' and did not warn",
        all_untreated,
    ),
]
