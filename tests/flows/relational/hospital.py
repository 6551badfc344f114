"""A small hospital: its tables, its job, and its hierarchies read value by value."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.jobs import bin_of, star
from tests.oracles.relational.histories import Label

WARDS = {"a": "inner", "b": "inner", "c": "outer"}
JOB: dict[str, Any] = {
    "version": 2,
    "name": "hospital",
    "tables": {
        "person": {
            "source": {"path": "person/*.parquet"},
            "key": "person_id",
            "columns": {
                "quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [10, 40], "origin": 0}}],
                "sensitive": ["income"],
            },
        },
        "visit": {
            "source": {"path": "visit/*.parquet"},
            "key": "visit_id",
            "references": {"person_id": "person"},
            "columns": {
                "quasi_identifiers": [{"name": "ward", "hierarchy": {"tree": {"inner": ["a", "b"], "outer": ["c"]}}}],
                "insensitive": ["nights"],
            },
        },
        "condition": {
            "source": {"path": "condition/*.parquet"},
            "references": {"person_id": "person", "visit_id": "visit"},
            "columns": {
                "quasi_identifiers": [{"name": "chronic", "hierarchy": {"tree": {"*": ["no", "yes"]}}}],
                "sensitive": ["icd"],
            },
        },
    },
    "privacy": {"k": 4},
    "suppression": {"limit": 0.3},
    "memory": "256MB",
    "target": "releases",
}
LEVELS: dict[str, list[Label]] = {
    "age": [lambda value: value, bin_of(10), bin_of(40), star],
    "ward": [lambda value: value, lambda value: WARDS[value], star],
    "chronic": [lambda value: value, star],
}
QIDS = {"person": ["age"], "visit": ["ward"], "condition": ["chronic"]}


def hospital_tables(persons: int, seed: int) -> dict[str, pa.Table]:
    """Return the three tables in no order; a few conditions are known of no visit, and some keys are left out beside a nearer one."""
    random = np.random.default_rng(seed)
    visits = random.integers(0, 3, persons)
    whose = np.repeat(np.arange(persons), visits)
    found = random.integers(0, 2, len(whose))
    where = np.repeat(np.arange(len(whose)), found)
    lone = random.choice(persons, persons // 10, replace=False)
    person_of = [*(int(whose[visit]) if random.random() < 0.8 else None for visit in where), *map(int, lone)]
    visit_of = [*(f"v{visit}" for visit in where), *(None for _ in lone)]
    some = {
        "person": {"person_id": np.arange(persons), "age": random.integers(0, 80, persons), "income": random.integers(0, 9, persons)},
        "visit": {
            "visit_id": [f"v{number}" for number in range(len(whose))],
            "person_id": whose,
            "ward": random.choice(list("abc"), len(whose)),
            "nights": random.integers(0, 5, len(whose)),
        },
        "condition": {
            "person_id": pa.array(person_of, pa.int64()),
            "visit_id": pa.array(visit_of, pa.string()),
            "chronic": random.choice(["no", "yes"], len(visit_of)),
            "icd": random.choice(["x", "y", "z"], len(visit_of)),
        },
    }
    return {name: pa.table(columns).take(random.permutation(len(columns[next(iter(columns))]))) for name, columns in some.items()}


def hospital_job(folder: Path, source: Mapping[str, pa.Table], **parts: Any) -> Path:
    """Write tables and their job into a folder and return the job file; parts of the job are replaced."""
    for name, table in source.items():
        (folder / name).mkdir(parents=True)
        half = len(table) // 2
        for number, part in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(part, folder / name / f"{number}.parquet")
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(deepcopy(JOB) | parts, sort_keys=False))
    return path


def read_release(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table of a release, as anybody would read them."""
    return {name: pq.read_table(sorted((folder / "data" / name).glob("*.parquet"))).to_pylist() for name in QIDS}
