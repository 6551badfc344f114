"""Attacks on figures: what manifest and report disclose beyond labels, or of fewer people than k."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.intruder.attack import Attack, run

PART = "Figures tell no more than labels"
OLDEST, RICHEST, LONE = 117, 7_654_321, "hiv"
RECORDS = 3_000
SAME = 1e-12
RANGE = re.compile(r"\[(-?\d+) - (-?\d+)\]")


def _people(folder: Path) -> None:
    """Write people of whom one is oldest of all, and one has an income that nobody comes near."""
    random = np.random.default_rng(7)
    age, income = random.integers(20, 100, RECORDS), random.integers(0, 50_000, RECORDS)
    age[0], income[1], income[2] = OLDEST, RICHEST, 0
    dx = random.choice(["flu", "hiv", "asthma"], RECORDS)
    dx[1] = LONE
    table = {"age": age, "income": income, "sex": random.choice(["f", "m"], RECORDS), "dx": dx}
    pl.DataFrame(table).write_parquet(folder / "people.parquet")


def _job(**parts: Any) -> dict[str, Any]:
    qids = [
        {"name": "age", "hierarchy": {"widths": [10, 20], "top": 90}},
        {"name": "income", "hierarchy": {"widths": [10_000]}},
        {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}},
    ]
    columns = {"quasi_identifiers": qids, "sensitive": ["dx"]}
    method = {"name": "skald", "node": [1, 1, 0]}
    return {
        "source": {"path": "people.parquet"},
        "columns": columns,
        "privacy": {"k": 5},
        "suppression": {"limit": 0.01},
        "method": method,
    } | parts


def _labels(folder: Path, name: str) -> Counter[str]:
    """Return how many records of a release have each label of a column."""
    release = folder / "releases/job" / (folder / "releases/job/CURRENT").read_text().strip()
    frame = pl.concat([pl.read_parquet(path) for path in (release / "data").glob("*.parquet")])
    return Counter(str(label) for label in frame[name])


def _penalty(labels: Counter[str], least: int, most: int, suppressed: int, records: int) -> float:
    """Return NCP as version 0.1.0 has it: lengths over the range of the source, to which they are clipped."""
    lost = float(suppressed)
    for label, many in labels.items():
        found = RANGE.fullmatch(label)
        low, high = (int(found[1]), int(found[2])) if found else (int(label.removeprefix(">= ")), most)
        lost += many * max(min(high, most) - max(low, least), 0) / (most - least)
    return lost / records


def oldest(folder: Path) -> str:
    """Look for the oldest age behind ``>= 90``.

    It is the one for which the penalty of the column is the published one.
    """
    _people(folder)
    said = run(folder, _job()).manifest
    labels = _labels(folder, "age")
    fits = {
        most
        for most in range(91, 123)
        for least in range(20, 30)
        if abs(_penalty(labels, least, most, said["suppressed"], said["records"]) - said["ncp"]["age"]) < SAME
    }
    return f"the oldest is {OLDEST}, right" if fits == {OLDEST} else f"nothing: {len(fits)} of 32 ages fit"


def richest(folder: Path) -> str:
    """Looks for the one income that is suppressed, among eight million."""
    _people(folder)
    said = run(folder, _job()).manifest
    labels, told = _labels(folder, "income"), said["ncp"]["income"]
    # Somebody has no income, so that the range begins at 0; what is lost falls as its end grows.
    most = np.arange(50_000, 8_000_000)
    lost = np.full(len(most), float(said["suppressed"]))
    for label, many in labels.items():
        low, high = map(int, RANGE.fullmatch(label).groups())  # type: ignore[union-attr]
        lost += many * (high - low) / most
    fits = set(most[np.abs(lost / said["records"] - told) < 1e-15].tolist())
    return f"the suppressed income is {RICHEST:,}, right" if fits == {RICHEST} else f"nothing: {len(fits):,} incomes fit"


def diagnosis(folder: Path) -> str:
    """Look for the diagnosis of the one suppressed person.

    It is the one for which the worst distance is the published one.
    """
    _people(folder)
    said = run(folder, _job(privacy={"k": 5, "t": {"dx": {"t": 0.5}}})).manifest
    release = folder / "releases/job" / (folder / "releases/job/CURRENT").read_text().strip()
    frame = pl.concat([pl.read_parquet(path) for path in (release / "data").glob("*.parquet")])
    told = said.get("measured", {}).get("t", {}).get("dx")
    values = sorted(set(frame["dx"]))
    classes = frame.group_by("age", "income", "sex").agg(*((pl.col("dx") == value).mean().alias(value) for value in values))
    shares = classes.select(values).to_numpy()
    fits = []
    for guess in values:
        whole = np.array([(frame["dx"] == value).sum() + (value == guess) for value in values]) / said["records"]
        worst = float(np.abs(shares - whole).sum(axis=1).max() / 2)
        if told is not None and abs(worst - told) < SAME:
            fits.append(guess)
    return f"the diagnosis is {LONE}, right" if said["suppressed"] == 1 and fits == [LONE] else "nothing: no distance is told"


def alone(folder: Path) -> str:
    """Looks for a file that is of one person: seven records, at k = 5 people."""
    (folder / "visits").mkdir()
    random = np.random.default_rng(1)
    for name, person in (("a", np.arange(200)), ("b", np.full(7, 999))):
        table = {"person": person, "sex": random.choice(["f", "m"], len(person)), "dx": random.choice(["flu", "hiv"], len(person))}
        pl.DataFrame(table).write_parquet(folder / f"visits/{name}.parquet")
    columns = {"person": "person", "quasi_identifiers": [{"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}}], "sensitive": ["dx"]}
    said = run(folder, _job(source={"path": "visits/*.parquet"}, columns=columns, method={"name": "skald"})).manifest
    told = [one["records"] for one in said["sources"]]
    most = said["persons"]["most_records"]
    found = [f"a file has {records} records" for records in told if records is not None and records < 10]
    return " and ".join([*found, *(["one person has 7 records"] if most == 7 else [])]) or "nothing"


def added(folder: Path) -> str:
    """Look for how many people a night added, when they are fewer than k.

    The attacker compares the earlier counts with the present ones.
    """
    (folder / "nights").mkdir()
    random = np.random.default_rng(2)
    job = _job(
        source={"path": "nights/*.parquet"},
        columns={"quasi_identifiers": [{"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}}], "sensitive": ["dx"]},
        method={"name": "skald"},
    )
    for name, many in (("a", 300), ("b", 3)):
        table = {"sex": random.choice(["f", "m"], many), "dx": random.choice(["flu", "hiv"], many)}
        pl.DataFrame(table).write_parquet(folder / f"nights/{name}.parquet")
        said = run(folder, job).manifest
    before = said["increment"]["domains_records"]
    return f"{said['records'] - before} people came" if before else "nothing"


ATTACKS = [
    Attack(PART, "works the oldest age behind `>= 90` out of the column's loss", f"the oldest is {OLDEST}, right", oldest),
    Attack(PART, "works the one suppressed income out of the column's loss", f"the suppressed income is {RICHEST:,}, right", richest),
    Attack(
        PART,
        "works the diagnosis of the one suppressed person out of the distance t that was measured",
        f"the diagnosis is {LONE}, right",
        diagnosis,
    ),
    Attack(
        PART,
        "looks for files of fewer people than k, and for one person's number of records",
        "a file has 7 records and one person has 7 records",
        alone,
    ),
    Attack(PART, "takes what was counted before from all records", "3 people came", added),
]
