"""Attacks on several releases of the same people: each is safe by itself, and they are joined."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.intruder.attack import Attack, Ended, run

PART = "several releases"
KEY = "5ecret-of-the-hospital-0123456789abcdef"
HASHED = {"hash": {"key": {"env": "INTRUDER_KEY"}}}


def _job(source: str, qids: Mapping[str, Sequence[float]], columns: Mapping[str, Any], **privacy: Any) -> dict[str, Any]:
    quasi = [{"name": name, "hierarchy": {"widths": list(widths)}} for name, widths in qids.items()]
    return {
        "source": {"path": source},
        "columns": {"quasi_identifiers": quasi, **columns},
        "privacy": {"k": 12, **privacy},
        "suppression": {"limit": 0.02},
        "method": {"name": "skald"},
        "overlaps": "refuse",
    }


def _files(folder: Path, name: str) -> pl.DataFrame:
    target = folder / "releases" / name
    return pl.read_parquet(sorted((target / (target / "CURRENT").read_text().strip() / "data").glob("*.parquet")))


def _outcome(ended: Ended, got: str) -> str:
    return f"refused (exit {ended.code})" if ended.code else got


def _changed_value(folder: Path) -> str:
    """Take the lines of one night out of those of the next."""
    random = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "pid": [f"p{number}" for number in range(2000)],
            "age": random.integers(20, 90, 2000),
            "dx": random.choice(["flu", "asthma", "cold"], 2000),
        }
    )
    job = _job("night.parquet", {"age": (1, 5, 10, 20)}, {"person": "pid", "sensitive": ["dx"]})
    table.write_parquet(folder / "night.parquet")
    run(folder, job, "night")
    before = _files(folder, "night")
    table = table.with_columns(dx=pl.when(pl.col("pid") == "p7").then(pl.lit("hiv")).otherwise("dx"))
    table.write_parquet(folder / "night.parquet")
    ended = run(folder, job, "night")
    if ended.code:
        return _outcome(ended, "")
    old, new = (Counter(frame.rows()) for frame in (before, _files(folder, "night")))
    return f"{(old - new).total()} line gone, {(new - old).total()} new: one patient's old and new diagnosis"


def _crossing(folder: Path) -> str:
    """Take the values of two classes that cross, and keeps those that both have."""
    kinds = [(1, 1, "hiv"), (1, 0, "flu"), (0, 1, "asthma"), (0, 0, "cold")]
    rows = [{"pid": f"p{number}", "a": a, "b": b, "dx": dx} for number, (a, b, dx) in enumerate(kinds * 50)]
    pl.DataFrame(rows).write_parquet(folder / "people.parquet")
    jobs = [
        _job("people.parquet", {qid: (1, 2)}, {"identifiers": ["pid", other], "sensitive": ["dx"]}, l={"dx": {"distinct": 2}})
        for qid, other in (("a", "b"), ("b", "a"))
    ]
    run(folder, jobs[0], "first")
    ended = run(folder, jobs[1], "second")
    if ended.code:
        return _outcome(ended, "")
    first, second = (_files(folder, name) for name in ("first", "second"))
    known = 0
    for a, b, _ in kinds:
        left = set(first.filter(pl.col("a") == a)["dx"]) & set(second.filter(pl.col("b") == b)["dx"])
        known += 50 if len(left) == 1 else 0
    return f"the diagnosis of {known} of {len(rows)}"


def _alone(frames: Sequence[pl.DataFrame], key: str, k: int) -> tuple[int, int, int]:
    """Return how many pseudonyms releases share, how many of these are rare, and how many unique.

    A rare one has the same contents in these releases as fewer than k.
    """
    sets: dict[Hashable, list[Hashable]] = defaultdict(list)
    for number, frame in enumerate(frames):
        others = [name for name in frame.columns if name != key]
        held: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
        for pseudonym, *row in frame.select([key, *others]).rows():
            held[pseudonym][tuple(row)] += 1
        for pseudonym, counts in held.items():
            sets[pseudonym].append((number, frozenset(counts.items())))
    sizes = Counter(map(tuple, sets.values()))
    shared = [sizes[tuple(held)] for held in sets.values() if len(held) > 1]
    return len(shared), sum(size < k for size in shared), shared.count(1)


def _joined(folder: Path, jobs: Sequence[Mapping[str, Any]], key: str = "person") -> str:
    """Run two jobs, and joins their releases by the pseudonyms of one column."""
    os.environ["INTRUDER_KEY"] = KEY
    run(folder, jobs[0], "first")
    ended = run(folder, jobs[1], "second")
    if ended.code:
        return _outcome(ended, "")
    people, below, alone = _alone([_files(folder, name) for name in ("first", "second")], key, 12)
    return f"{below:,} of {people:,} people below k, {alone:,} alone"


def _two_roles(folder: Path) -> str:
    random = np.random.default_rng(2)
    table = pl.DataFrame(
        {
            "person": [f"p{number}" for number in range(4000)],
            "age": random.integers(18, 90, 4000),
            "area": random.integers(0, 40, 4000),
            "income": random.integers(10, 90, 4000),
        }
    )
    table.select("person", "age", "income").write_parquet(folder / "people.parquet")
    table.select("person", "area", "age").write_parquet(folder / "places.parquet")
    named = {"identifiers": [{"name": "person", "treatment": HASHED}]}
    first = _job("people.parquet", {"age": (1, 10, 40), "income": (1, 20, 80)}, named)
    second = _job("places.parquet", {"area": (1, 5, 20)}, named | {"insensitive": ["age"]})
    return _joined(folder, [first, second])


def _visits(folder: Path) -> None:
    random = np.random.default_rng(3)
    of = random.integers(0, 4000, 9000)
    month = random.integers(0, 24, 9000)
    table = {"visit": [f"v{number}" for number in range(9000)], "person": [f"p{number}" for number in of], "month": month}
    pl.DataFrame(table).write_parquet(folder / "visits.parquet")


def _two_units(folder: Path) -> str:
    _visits(folder)
    columns = {"identifiers": [{"name": "person", "treatment": HASHED}, "visit"], "linkable": ["person"]}
    first = _job("visits.parquet", {"month": (1, 6, 24)}, {**columns, "person": "visit"})
    second = _job(
        "visits.parquet",
        {"month": (1, 5, 25)},
        {"identifiers": [{"name": "person", "treatment": HASHED}, "visit"], "linkable": ["person"], "person": "person"},
    )
    return _joined(folder, [first, second])


def _visits_beside_persons(folder: Path) -> str:
    _visits(folder)
    random = np.random.default_rng(4)
    table = {"person": [f"p{number}" for number in range(4000)], "birth": random.integers(1940, 2000, 4000)}
    pl.DataFrame(table).write_parquet(folder / "people.parquet")
    first = _job("people.parquet", {"birth": (1, 10, 60)}, {"identifiers": [{"name": "person", "treatment": HASHED}], "person": "person"})
    named = {"identifiers": [{"name": "person", "treatment": HASHED}, "visit"], "linkable": ["person"], "person": "visit"}
    return _joined(folder, [first, _job("visits.parquet", {"month": (1, 12, 24)}, named)])


BEFORE = (
    "1 line gone, 1 new: one patient's old and new diagnosis",
    "the diagnosis of 200 of 200",
    "4,000 of 4,000 people below k, 3,939 alone",
    "2,633 of 3,584 people below k, 1,352 alone",
    "3,584 of 3,584 people below k, 3,070 alone",
)
PLAYED = (
    ("takes one night out of the next, after one diagnosis changed", _changed_value),
    ("crosses two releases that each keep l = 2", _crossing),
    ("joins a release that generalises a column to one that publishes it", _two_roles),
    ("joins a job that counts visits to one that counts patients", _two_units),
    ("joins visits to persons", _visits_beside_persons),
)
ATTACKS = [Attack(PART, name, before, play) for (name, play), before in zip(PLAYED, BEFORE, strict=True)]
