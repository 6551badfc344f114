"""What suppressed records lacked, as the manifest says it after rounds: counted record by record, and accepted by ``skald verify``."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.conftest import CommandLine
from tests.jobs import released, write_job, write_parquet

AGE, ZIP = [1, 2, 4, 8, 100], [4, 2, 1, 0]
"""Widths of ranges and digits that are kept, by level."""
K, T = 5, 0.25


def table() -> pa.Table:
    """Ages with zip codes that make many small classes, and illnesses that go with the age."""
    random = np.random.default_rng(1)
    age = np.minimum(random.geometric(0.12, 400), 30)
    ill = random.random(400) < np.where(age % 8 < 4, 0.15, 0.6)
    codes = [f"{number:04}" for number in np.minimum(random.geometric(0.01, 400), 400)]
    return pa.table({"age": age, "zip": codes, "ill": np.where(ill, "yes", "no")})


def published(row: dict[str, Any], node: list[int]) -> tuple[Any, Any]:
    return row["age"] // AGE[node[0]], row["zip"][: ZIP[node[1]]]


def far(members: list[dict[str, Any]], whole: list[dict[str, Any]]) -> bool:
    """Whether the share of the ill is too far from that of all, which of two values is the earth mover's distance."""
    share, all_of_it = (sum(row["ill"] == "yes" for row in rows) / len(rows) for rows in (members, whole))
    return abs(share - all_of_it) > T + 1e-9


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("rounds", [0, 3])
@pytest.mark.parametrize("treatment", ["drop", "mask"])
def test_every_suppressed_record_has_one_reason_and_the_release_is_verified(direct: CommandLine, treatment: str, rounds: int) -> None:
    rows = table().to_pylist()
    write_parquet(direct.folder / "people", table(), files=2)
    qids = [{"name": "age", "hierarchy": {"widths": AGE[1:4]}}, {"name": "zip", "hierarchy": {"prefix": ZIP[1:3]}}]
    write_job(
        direct.folder,
        {
            "version": 1, "name": "people", "source": {"path": "people/*.parquet"},
            "columns": {"quasi_identifiers": qids, "sensitive": ["ill"]},
            "privacy": {"k": K, "t": {"ill": {"t": T}}}, "suppression": {"limit": 0.6, "treatment": treatment, "rounds": rounds},
            "method": {"name": "skald", "node": [1, 1]}, "memory": "256MB", "target": "releases",
        },
    )  # fmt: skip
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    [release] = direct.folder.glob("releases/people-*")
    manifest = json.loads((release / "manifest.json").read_text())
    nodes = [manifest["node"], *(one["node"] for one in (manifest["remainder"] or {"rounds": []})["rounds"])]
    assert len(nodes) > 1 or not rounds
    left, told = rows, Counter[str]()
    for node in nodes:
        classes: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
        for row in left:
            classes[published(row, node)].append(row)
        left = [row for members in classes.values() if len(members) < K for row in members]
        told["spread"] += sum(len(members) for members in classes.values() if len(members) >= K and far(members, rows))
    told["spread" if rounds and treatment == "mask" and len(left) >= K and far(left, rows) else "k"] += len(left)
    # Who lacks what follows from sensitive values that are in no file: it is for whoever runs the job.
    assert manifest["suppressed_for"] == {}
    assert json.loads((direct.folder / ".skald/people/untold.json").read_text())["suppressed_for"] == +told
    assert set(told) == {"k", "spread"}
    assert told.total() == manifest["suppressed"] == len(rows) - len(released(release)) + manifest["masked"]
    assert direct("verify", str(release), "--job", "job.yaml").returncode == 0
