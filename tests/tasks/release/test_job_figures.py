"""What a manifest says of its job is held against the job, each figure by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.recount.labels.label_losses import ColumnLoss
from schemas.job.job import Job
from schemas.release.manifest import Manifest
from schemas.release.terms import NOT_FOR_NODES, OWN_NODE, LatticeFigures
from tasks.report.terms import terms_of
from tasks.verification import manifest_claims
from tasks.verification.manifest_claims import job_faults, stated_faults
from tests.core.recount.test_classes import manifest, recount
from tests.jobs import job_of

QIDS = [{"name": "age", "hierarchy": {"widths": [2]}}, {"name": "zip", "hierarchy": {"prefix": [1]}}]
TOPS, NODE = {"age": 2, "zip": 1}, (1, 0)
DRAWN = LatticeFigures(levels=(3, 2), heights={"passes": (0, 1, 2, 1), "fails": (1, 1, 0, 0)}, nodes={}, whole=False)


def job(**parts: Any) -> Job:
    columns = {"quasi_identifiers": QIDS, "sensitive": ["disease"]}
    return Job.model_validate(job_of(**({"columns": columns, "method": {"name": "skald", "root": "occupied"}} | parts)))


def of_job(one: Job, **changes: Any) -> Manifest:
    said: dict[str, Any] = {
        "name": one.name, "release": f"{one.name}-0", "method": one.method.name, "privacy": {"k": one.privacy.k},
        "hierarchies": {"age": "a"}, "node": NODE, "levels": {"age": 1, "zip": 0}, "tops": TOPS,
        "asked": terms_of(one, NODE, list(TOPS.values())), "lattice": DRAWN, "search": {"nodes": 6},
    }  # fmt: skip
    return manifest(**(said | changes))


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digests of job and hierarchies, which depend on files, are those of the manifest."""
    monkeypatch.setattr(manifest_claims, "read_secrets", lambda _job: [])
    monkeypatch.setattr(manifest_claims, "is_of_job", lambda *_: True)
    monkeypatch.setattr(manifest_claims, "hierarchies_as_in", lambda *_: {"age": "a"})


def wrong(one: Job, **changes: Any) -> list[str]:
    faults, unsaid = job_faults(one, of_job(one, **changes))
    assert unsaid == []
    return [fault.removeprefix("the manifest's ").partition(" cannot be")[0] for fault in faults]


def test_a_manifest_that_says_what_its_job_does_has_no_fault() -> None:
    assert wrong(job()) == []
    assert wrong(job(), optimal="best of 3 nodes") == []
    assert wrong(job(), lattice=None) == []


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("name", {"release": "others-0"}), ("name", {"name": "others"}),
        ("hierarchies", {"hierarchies": {"age": "b"}}), ("ncp", {"ncp": {"zip": 0.1, "age": 0.2}}),
        ("optimal", {"optimal": NOT_FOR_NODES}), ("optimal", {"optimal": OWN_NODE}), ("masked", {"masked": 1}),
        ("lattice", {"lattice": DRAWN.model_copy(update={"levels": (3, 3)})}),
        ("lattice", {"lattice": DRAWN.model_copy(update={"heights": {"passes": (1, 2, 2)}})}),
        ("lattice", {"lattice": DRAWN.model_copy(update={"heights": {"passes": (1, 1, 2, 1)}})}),
        ("lattice", {"lattice": DRAWN.model_copy(update={"heights": {"passes": (1, 3, 2, 1)}})}),
        ("search.nodes", {"search": {"nodes": 5}}), ("replay_of", {"replay_of": "people-1"}),
    ],
)  # fmt: skip
def test_what_is_said_otherwise_is_named(field: str, changes: dict[str, Any]) -> None:
    assert wrong(job(), **changes) == [f"'{field}'"]


def test_where_a_manifest_has_no_levels_its_lattice_is_not_held_against_the_job() -> None:
    assert wrong(job(), tops={}, asked=terms_of(job(), NODE, []), search={}) == ["'node' and 'search.nodes'"]


def test_a_method_without_levels_has_no_node_and_says_so() -> None:
    cut = job(method={"name": "mondrian"})
    said: dict[str, Any] = {"node": None, "levels": None, "lattice": None, "search": {}, "asked": terms_of(cut, None, list(TOPS.values()))}
    assert wrong(cut, **said, optimal=NOT_FOR_NODES) == []
    assert wrong(cut, **said, optimal="certified") == ["'optimal'"]


def test_of_levels_that_the_job_names_alone_there_are_nodes_and_pictures() -> None:
    named = job(method={"name": "skald", "root": "occupied", "levels": {"age": [1, 2]}})
    drawn = DRAWN.model_copy(update={"heights": {"passes": (0, 1, 2, 1)}})
    assert wrong(named, lattice=drawn, search={"nodes": 4}) == []
    assert wrong(named, lattice=DRAWN, search={"nodes": 6}) == ["'lattice' and 'search.nodes'"]
    assert wrong(job(method={"name": "skald", "root": "occupied", "levels": {"age": [2, 2]}}), lattice=None, search={"nodes": 2}) == [
        "'node'"
    ]


def test_of_a_column_that_hides_values_a_picture_may_have_fewer_nodes() -> None:
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [2], "top": 90}}, QIDS[1]], "sensitive": ["disease"]}
    fewer = DRAWN.model_copy(update={"heights": {"passes": (0, 1, 2, 1)}})
    assert job(columns=columns).columns.quasi_identifiers[0].hides
    assert wrong(job(columns=columns), lattice=fewer, search={"nodes": 5}) == []
    more = DRAWN.model_copy(update={"heights": {"passes": (0, 1, 3, 1)}})
    assert wrong(job(columns=columns), lattice=more, search={"nodes": 5}) == ["'lattice'"]


def test_figures_that_the_files_contradict_are_stated_beside_those_of_the_job() -> None:
    one = job()
    said = of_job(one)
    beside = set(stated_faults(one, said, recount()))
    [fault] = set(stated_faults(one, said, recount(classes=9))) - beside
    assert "classes" in fault


def test_figures_that_contradict_each_other_or_the_labels_are_stated_too() -> None:
    one = job()
    losses = {name: ColumnLoss(10.0, 10.0, numeric=False) for name in TOPS}
    found, ncp = replace(recount(), losses=losses), {"age": 0.15, "zip": 0.15}
    true, wrong_sums, wrong_labels = (
        stated_faults(one, of_job(one, ncp=shares, suppressed_for=why), found)
        for shares, why in ((ncp, {}), (ncp, {"k": 1}), (ncp | {"zip": 0.5}, {}))
    )
    assert [[fault for fault in faults if name in fault] for faults, name in ((true, "suppressed_for"), (true, "ncp"))] == [[], []]
    assert [fault for fault in wrong_sums if "suppressed_for" in fault]
    assert [fault for fault in wrong_labels if "ncp.zip" in fault]


@pytest.mark.parametrize(
    ("method", "node", "is_wrong"),
    [
        ({"node": [1, 0]}, (1, 0), False), ({"node": [2, 0]}, (1, 0), True), ({"node": [1, 1]}, (1, 0), True), ({}, (1, 0), False),
        ({"levels": {"age": [1, 2]}}, (1, 0), False), ({"levels": {"age": [2, 2]}}, (1, 0), True),
        ({"levels": {"age": [0, 0]}}, (1, 0), True),
        ({"levels": {"age": [0, 1], "zip": [1, 1]}}, (1, 0), True),
    ],
)  # fmt: skip
def test_a_node_is_the_one_that_the_job_names_and_within_its_levels(method: dict[str, Any], node: tuple[int, int], is_wrong: bool) -> None:
    one = job(method={"name": "skald", "root": "occupied"} | method)
    assert manifest_claims._is_node_of(one, of_job(one, node=node), ["age", "zip"]) is not is_wrong
    assert not manifest_claims._is_node_of(one, of_job(one, node=node), ["zip", "age"])
    assert not manifest_claims._is_node_of(one, of_job(one, node=(*node, 0)), ["age", "zip"])
    replayed = one.model_copy(update={"replay": Path("people-1")})
    assert manifest_claims._is_node_of(replayed, of_job(one, node=node), ["age", "zip"]) is ("node" in method or not is_wrong)
