"""A lattice that is too large to hold is searched all the same, and a release says how far from the optimum it can be."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.lattice.branch_and_bound import BranchAndBound
from schemas.errors.methods import NoLatticeError
from schemas.job.job import load_job
from tasks.planning.pareto_page import lattice_of
from tasks.planning.plan import make_plan
from tests.conftest import Anonymise, CommandLine
from tests.house.replaced import ROOTS_BYTES_PER_CELL
from tests.jobs import people_job

NAMES = "abcdefgh"
NODES = 9 ** len(NAMES)
DM = {"name": "skald", "objective": "dm_star"}


def job(folder: Path) -> Path:
    """Eight numerical QIDs of nine levels each, every second one copied from the one before, with noise."""
    random = np.random.default_rng(1)
    columns: dict[str, Any] = {}
    for place, name in enumerate(NAMES):
        fresh = random.integers(0, 60, 500)
        columns[name] = np.where(random.random(500) < 0.8, columns[NAMES[place - 1]], fresh) if place % 2 else fresh
    qids = [{"name": name, "hierarchy": {"widths": [1, 2, 4, 8, 16, 32, 64, 128]}} for name in NAMES]
    return people_job(
        folder, pa.table(columns), columns={"quasi_identifiers": qids}, privacy={"k": 5}, suppression={"limit": 0.1}, method=DM
    )


@pytest.mark.slow
def test_the_optimum_is_certified_where_the_search_comes_to_its_end(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path))
    manifest = made.manifest
    assert manifest.optimal == "certified"
    assert manifest.search == {"nodes": NODES}
    assert made.untold.search["bound"] == manifest.loss["dm_star"]
    assert "passing" not in made.untold.search
    assert "Certified: none that keeps it has a smaller loss" in (tmp_path / "releases" / manifest.release / "report.html").read_text()


@pytest.mark.slow
def test_ended_by_its_effort_a_search_says_how_far_from_the_optimum_it_can_be(anonymise: Anonymise, tmp_path: Path) -> None:
    optimum = anonymise(job(tmp_path)).manifest.loss["dm_star"]
    for effort in (1, 20, 75):
        made = anonymise(tmp_path / "job.yaml", f"method.effort={effort}")
        manifest, found = made.manifest, made.untold
        bound, value = found.search["bound"], manifest.loss["dm_star"]
        assert isinstance(bound, int)
        assert bound <= optimum <= value
        # Of small tables twice as many nodes are looked at for the same effort.
        assert found.search["evaluated"] == 2 * effort
        assert manifest.optimal == "best of the nodes counted; others could be better: raise method.effort"
        assert "could be better: raise method.effort" in found.optimal
        if effort > 1:
            percent = float(found.optimal.split(" % above the optimum")[0].split()[-1].replace(",", ""))
            assert value <= bound * (1 + percent / 100) <= value + bound * 0.001001


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(("effort", "said"), [(20_000, "best of the nodes above 1 root; "), (4, "above the best above its root; ")])
def test_above_a_root_that_memory_makes_coarse_nothing_is_certified(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effort: int, said: str
) -> None:
    monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    made = anonymise(job(tmp_path), f"method.effort={effort}")
    root = made.untold.search["root"]
    assert isinstance(root, list)
    assert any(root)
    assert said in made.untold.optimal
    assert "raise memory" in made.untold.optimal
    assert "raise memory" in made.manifest.optimal
    assert not any(letter.isdigit() for letter in made.manifest.optimal)


@pytest.mark.ci
def test_a_dense_root_is_searched_too(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path), "method.root=dense")
    assert made.manifest.search["nodes"] == NODES
    assert made.untold.optimal.startswith("best of the nodes above 1 root; ")


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("objective", ["dm_all", "c_avg", "precision", "gcp", "gcp_covered", "entropy"])
def test_every_objective_is_sought(anonymise: Anonymise, tmp_path: Path, objective: str) -> None:
    made = anonymise(job(tmp_path), f"method.objective={objective}", "method.effort=150")
    assert made.untold.optimal == "certified" or made.untold.optimal.startswith("best of 300 nodes counted")
    # Their values follow from how often each value occurs in the source, which no label tells.
    assert not {"gcp_covered", "entropy"} & made.manifest.loss.keys()


@pytest.mark.slow
def test_what_was_searched_is_not_searched_again(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = anonymise(job(tmp_path)).manifest
    shutil.rmtree(tmp_path / "releases")
    monkeypatch.setattr(BranchAndBound, "run", lambda _: pytest.fail("searched again"))
    assert anonymise(tmp_path / "job.yaml").manifest.files == first.files


@pytest.mark.slow
def test_it_is_planned_and_not_drawn(tmp_path: Path) -> None:
    loaded = load_job(job(tmp_path))
    assert make_plan(loaded).nodes == NODES
    with pytest.raises(NoLatticeError):
        lattice_of(loaded)


@pytest.mark.slow
def test_the_command_line_shows_it(direct: CommandLine) -> None:
    job(direct.folder)
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    assert "certified: 43,046,721 nodes in all" in " ".join((done.stdout + done.stderr).split())


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("person", [False, True])
def test_a_part_of_a_lattice_may_begin_at_more_cells_than_a_number_counts(anonymise: Anonymise, tmp_path: Path, person: bool) -> None:
    random = np.random.default_rng(0)
    columns = {name: random.integers(0, 500, 600) for name in NAMES} | ({"person": np.arange(600) // 2} if person else {})
    qids: list[dict[str, Any]] = [{"name": name, "hierarchy": {"widths": [2, 50, 250]}} for name in NAMES]
    roles: dict[str, Any] = {"quasi_identifiers": qids} | ({"identifiers": ["person"], "person": "person"} if person else {})
    path = people_job(tmp_path, pa.table(columns), columns=roles, privacy={"k": 5}, suppression={"limit": 0.05})
    whole = anonymise(path).manifest
    assert whole.node is not None
    assert min(whole.node) > 0
    for exact, settings in ((True, [f"method.levels={{{NAMES[0]}: [1, 4]}}"]), (False, [])):
        qids[0] |= {"exact": exact}
        part = anonymise(people_job(tmp_path, pa.table(columns), columns=roles, privacy={"k": 5}, suppression={"limit": 0.05}), *settings)
        assert (part.manifest.node, part.manifest.optimal) == (whole.node, "certified")
        assert [file.sha256 for file in part.manifest.files] == [file.sha256 for file in whole.files]
