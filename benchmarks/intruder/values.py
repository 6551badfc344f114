"""Attacks on people who have several values.

The attacker has somebody's class and wants to learn a value for certain.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.intruder.attack import Attack, run

PART = "l and t of people who have several values"
PEOPLE, AGES = 3_000, 40
DIAGNOSES = ["acne", "asthma", "cold", "flu", "gout", "hiv"]


def patients() -> pl.DataFrame:
    """Everybody of every fourth age has a record of hiv and one of flu; the others have one record."""
    draws, rows = random.Random(30), []
    for person in range(PEOPLE):
        age = 20 + person % AGES
        held = ["hiv", "flu"] if age % 4 == 0 else [draws.choice(DIAGNOSES)]
        rows += [(person, age, value) for value in held]
    return pl.DataFrame(rows, ["pid", "age", "dx"], orient="row")


def certain(folder: Path, method: dict[str, Any], privacy: dict[str, Any]) -> str:
    """Publish the patients, and counts the people of whom a value is certain.

    The intruder knows of everybody the age and how many records there are; the release tells him the values of each class. A value that as
    many records of a class bear as there are people in it may be everybody's; the count is of those with whom it is so.
    """
    data = patients()
    data.write_parquet(folder / "patients.parquet")
    columns = {
        "person": "pid",
        "identifiers": ["pid"],
        "sensitive": ["dx"],
        "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 2, 4, 8]}}],
    }
    ended = run(folder, {"source": {"path": "patients.parquet"}, "columns": columns, "privacy": {"k": 12, **privacy}, "method": method})
    if not ended.manifest:
        return f"exit {ended.code}: no release"
    target = folder / "releases" / "job"
    files = sorted((target / (target / "CURRENT").read_text().strip()).rglob("*.parquet"))
    labels = pl.concat([pl.read_parquet(file) for file in files])["age"].unique().cast(pl.String).to_list()
    known = data.with_columns(label=pl.Series([label_of(age, labels) for age in data["age"].to_list()]))
    people = known.group_by("label").agg(pl.col("pid").n_unique().alias("people"))
    held = known.group_by("label", "dx").agg(pl.col("pid").n_unique().alias("held")).join(people, on="label")
    sure = held.filter(pl.col("held") == pl.col("people")).select("label", "people").unique()
    return f"{int(sure['people'].sum()):,} of {PEOPLE:,} people"


def label_of(age: int, labels: list[str]) -> str:
    """Return the label that an age falls under: the age itself, or a range of it; ``*`` for all."""
    for label in labels:
        ends = [
            int(part) for part in label.replace("[", " ").replace(")", " ").replace("]", " ").replace(",", " ").split() if part.isdigit()
        ]
        if len(ends) == 1 and ends[0] == age:
            return label
        if len(ends) == 2 and ends[0] <= age < ends[1] + label.endswith("]"):
            return label
    return "*"


L, T = {"l": {"dx": {"distinct": 2}}}, {"t": {"dx": {"t": 0.5}}}
ATTACKS = [
    Attack(
        PART, "is certain of a value (skald, distinct l = 2)", "750 of 3,000 people", partial(certain, method={"name": "skald"}, privacy=L)
    ),
    Attack(PART, "is certain of a value (skald, t = 0.5)", "750 of 3,000 people", partial(certain, method={"name": "skald"}, privacy=T)),
    Attack(
        PART,
        "is certain of a value (mondrian, distinct l = 2)",
        "750 of 3,000 people",
        partial(certain, method={"name": "mondrian"}, privacy=L),
    ),
]
