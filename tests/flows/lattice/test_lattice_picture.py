"""``skald lattice`` draws what an exhaustive count of every node says, with and without a run before it."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import product
from math import floor
from pathlib import Path
from typing import Any

import pytest

from core.lattice.search import LatticeMap
from schemas.errors.methods import NoLatticeError
from schemas.job.job import load_job
from tasks.planning.pareto_page import lattice_of
from tests.conftest import Anonymise, CommandLine, snapshot
from tests.house.replaced import ROOTS_BYTES_PER_BIN, ROOTS_BYTES_PER_CELL
from tests.jobs import LEVELS, generalise, job_of, people, people_job

TABLE, QIDS = people(240, seed=3), ["sex", "age", "zip"]


def small_job(folder: Path, **parts: Any) -> Path:
    columns = job_of()["columns"]
    columns |= {"quasi_identifiers": columns["quasi_identifiers"][:3], "identifiers": ["person", "height", "smoker", "born"]}
    return people_job(folder, TABLE, columns=columns, **parts)


def failing(node: tuple[int, ...], k: int) -> int:
    return sum(size for size in Counter(generalise(TABLE, node, QIDS)).values() if size < k)


def check(drawn: LatticeMap, k: int, limit: Fraction) -> None:
    """Every drawn node fails if and only if its own records say so."""
    for one in drawn.drawn:
        if one.status != "unexamined":
            assert (one.status == "fails") == (failing(one.node, k) > floor(limit * 240)), one


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("limit", ["0", "0.05"])
def test_every_node_is_drawn_as_counting_it_says(anonymise: Anonymise, tmp_path: Path, limit: str) -> None:
    job = small_job(tmp_path, suppression={"limit": float(limit)})
    made = anonymise(job)
    manifest, found = made.manifest, made.untold.search
    before = snapshot(tmp_path / "releases")
    drawn = lattice_of(load_job(job))
    assert (drawn.node, drawn.qids, drawn.levels) == (manifest.node, tuple(QIDS), tuple(len(LEVELS[qid]) for qid in QIDS))
    assert drawn.whole
    assert {one.node for one in drawn.drawn} == set(product(*map(range, drawn.levels)))
    check(drawn, 5, Fraction(limit))
    assert sum(row["fails"] for row in drawn.heights) == found["nodes"] - found["passing"]  # type: ignore[operator]
    assert sum(row["unexamined"] for row in drawn.heights) == 0
    assert snapshot(tmp_path / "releases") == before


@pytest.mark.ci
@pytest.mark.parametrize(
    "settings", [["method.root=dense"], ["privacy.l={disease: {distinct: 2}}"], []], ids=["dense", "sensitive", "roots"]
)
def test_the_lattice_is_drawn_without_a_run_and_above_several_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str]
) -> None:
    monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    monkeypatch.setattr(ROOTS_BYTES_PER_BIN, 1 << 20)
    drawn = lattice_of(load_job(small_job(tmp_path), settings))
    assert sum(sum(row.values()) for row in drawn.heights) == 40
    [chosen] = [one for one in drawn.drawn if one.node == drawn.node]
    assert chosen.status == "passes"
    if not any("privacy" in setting for setting in settings):
        check(drawn, 5, Fraction(1, 20))
    assert not (tmp_path / "releases").exists()


def test_a_method_without_lattice_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoLatticeError, match=r"method.name is rayden, which searches no lattice"):
        lattice_of(load_job(small_job(tmp_path), ["method={name: rayden}"]))


def test_the_command_writes_a_picture_or_prints_json(direct: CommandLine) -> None:
    job = small_job(direct.folder / "job")
    drawn = direct("lattice", job)
    assert drawn.returncode == 0, drawn.stderr
    assert (direct.folder / "people-lattice.svg").read_text().startswith("<svg ")
    printed = direct("lattice", job, "--json", "--to", "pictures/one.svg")
    assert json.loads(printed.stdout)["qids"] == QIDS
    assert (direct.folder / "pictures" / "one.svg").read_bytes() == (direct.folder / "people-lattice.svg").read_bytes()
