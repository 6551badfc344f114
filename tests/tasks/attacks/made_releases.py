"""Small releases made by hand, good ones and such as break the promise in one way, and their sources."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from schemas.job.job import load_job
from schemas.job.privacy import AttackFigures, AttackSettings
from tasks.attacks.release_attack import AttackedFiles, PlayedAttacks, attack_release
from tasks.recount.original import Original
from tasks.release.files import TEXT
from tasks.store.database import literal
from tests.jobs import write_job

K, PEOPLE = 5, 500
JOB: dict[str, Any] = {
    "version": 1,
    "name": "made",
    "source": {"path": "source.parquet"},
    "columns": {
        "identifiers": ["person"],
        "quasi_identifiers": [
            {"name": "age", "hierarchy": {"widths": [10, 20]}},
            {"name": "zip", "hierarchy": {"prefix": [2, 1]}},
            {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}},
        ],
        "sensitive": ["disease"],
        "insensitive": ["note"],
    },
    "privacy": {"k": K},
    "suppression": {"limit": 0.5},
    "method": {"name": "skald"},
    "memory": "256MB",
    "target": "releases",
}


@dataclass(frozen=True)
class Made:
    """A release, its source, and what was asked.

    Attributes:
        source: The source, a row a record.
        release: What is published, in the order of the file.
        job: The job, as changes of ``JOB`` by dotted key.
        manifest: The text of the manifest.
    """

    source: pl.DataFrame
    release: pl.DataFrame
    job: dict[str, Any] = field(default_factory=dict)
    manifest: str = ""

    def with_release(self, release: pl.DataFrame, **job: Any) -> Made:
        return replace(self, release=release, job=self.job | job)


def source_of(seed: int, people: int = PEOPLE) -> pl.DataFrame:
    """Return people in an order that nothing tells."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "person": [f"p{number:08x}" for number in random.permutation(1 << 20)[:people]],
            "age": random.integers(20, 80, people),
            "zip": [f"{number:03d}" for number in random.integers(100, 130, people)],
            "sex": random.choice(["f", "m"], people),
            "disease": random.choice(["flu", "gout", "cough", "measles", "rash"], people, p=[0.4, 0.25, 0.15, 0.1, 0.1]),
            "note": random.choice([f"note {number}" for number in range(9)], people),
        }
    )


def labelled(source: pl.DataFrame, width: int = 10, kept: int = 2) -> pl.DataFrame:
    """Return all records with labels: ages in bins, and a beginning of each ZIP code."""
    low = pl.col("age") // width * width
    text = pl.format("[{} - {}]", low, low + width - 1)
    return source.with_columns(text.alias("age"), pl.col("zip").str.slice(0, kept) + "*" * (3 - kept))


def published(rows: pl.DataFrame, k: int = K) -> pl.DataFrame:
    """Return the records in classes of k, without what names people, in the order of their content."""
    kept = rows.filter(pl.len().over("age", "zip", "sex") >= k)
    return kept.select("age", "zip", "sex", "disease", "note").sort("age", "zip", "sex", "disease", "note")


def good_release(seed: int, k: int = K) -> Made:
    """Return a release that keeps its promise, by levels and a treatment that the seed draws."""
    source = source_of(seed, 200 + 30 * (seed % 20))
    rows = labelled(source, (10, 20)[seed % 2], 2 - seed // 2 % 2)
    release = published(rows, k)
    job: dict[str, Any] = {"privacy.k": k}
    if seed % 3 == 0:
        release = release.filter(pl.col("disease").n_unique().over("age", "zip", "sex") >= 2)
        job["privacy.l"] = {"disease": {"distinct": 2}}
    if seed % 7 == 0:
        release = release.drop("note")
        job["columns.insensitive"] = []
    return Made(source, release, job)


def attacks_on(made: Made, folder: Path, settings: AttackSettings | None = None) -> PlayedAttacks:
    """Write a release and its source, and play all attacks."""
    folder.mkdir(parents=True, exist_ok=True)
    job = deepcopy(JOB)
    for key, value in made.job.items():
        *parts, last = key.split(".")
        place = job
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = value
    made.source.write_parquet(folder / "source.parquet")
    made.release.write_parquet(folder / "release.parquet")
    source = folder / "source.parquet"
    original = Original(f"read_parquet([{literal(str(source))}])", pq.read_schema(source), ("0123456789abcdef" * 4,))
    attacked = AttackedFiles([folder / "release.parquet"], TEXT, original, made.manifest, len(made.source))
    played = attack_release(load_job(write_job(folder, job)), settings or AttackSettings(), attacked, folder / "spill")
    assert not played.basis.unplayed
    return played


def broken_by(played: PlayedAttacks) -> list[tuple[str, str | None, str]]:
    """Return which attacks break a release."""
    return [_named(one) for one in played.broken]


def _named(one: AttackFigures) -> tuple[str, str | None, str]:
    return one.name, one.target, one.knows
