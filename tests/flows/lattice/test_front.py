"""``skald lattice --front`` writes a page of nodes, each of which a run takes as it is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

import skald
from tests.conftest import CommandLine
from tests.jobs import people_job


@pytest.mark.ci
def test_a_node_of_the_front_is_published_with_its_figures(direct: CommandLine) -> None:
    job = people_job(direct.folder / "job")
    told = direct("lattice", job, "--front", "--json")
    assert told.returncode == 0, told.stderr
    nodes = json.loads(told.stdout)["nodes"]
    one = next(one for one in nodes if one["optimal"])
    made = skald.run(job, {"method.node": one["node"], "suppression.limit": round(one["suppressed"] + 0.001, 6)})
    assert made.manifest["node"] == one["node"]
    # The page is of the source, and so is what the search measured; a release tells what its labels cost.
    untold = json.loads((job.parent / ".skald" / "people" / "untold.json").read_text())
    assert untold["release"] == made.manifest["release"]
    assert untold["loss"]["gcp"] == pytest.approx(one["gcp"])
    assert made.manifest["suppressed"] == round(one["suppressed"] * 400)
    assert made.manifest["risk"]["after"]["prosecutor_mean"] == pytest.approx(one["risk"])
    page = direct.folder / "front.html"
    assert direct("lattice", job, "--front", "--to", page).returncode == 0
    text = page.read_text()
    assert all(f"node: {one['node']}" in text for one in nodes)
    refused = direct("lattice", job, "--front", "--set", "method={name: mondrian}")
    assert refused.returncode == 2 and "searches no lattice" in refused.stderr


@pytest.mark.ci
@pytest.mark.parametrize(
    ("limit", "method", "marked"),
    [(0.07, {}, True), (0.12, {}, True), (0.4, {}, True), (1.0, {}, True), (0.07, {"weights": {"age": 9, "sex": 0.1}}, False)],
)
def test_what_the_page_marks_as_the_jobs_is_what_a_run_publishes(
    direct: CommandLine, limit: float, method: dict[str, Any], marked: bool
) -> None:
    job = people_job(direct.folder / "job", method={"name": "skald", **method}, suppression={"limit": limit}, attacks="off")
    shown = direct("lattice", job, "--front", "--json")
    assert shown.returncode == 0, shown.stderr
    chosen = [one["node"] for one in json.loads(shown.stdout)["nodes"] if one["chosen"]]
    assert chosen == ([skald.run(job).manifest["node"]] if marked else [])


@pytest.mark.ci
def test_the_page_marks_the_node_that_the_job_names(direct: CommandLine) -> None:
    job = people_job(direct.folder / "job")
    node = json.loads(direct("lattice", job, "--front", "--json").stdout)["nodes"][3]["node"]
    shown = json.loads(direct("lattice", job, "--front", "--json", "--set", f"method.node={node}").stdout)["nodes"]
    assert [one["node"] for one in shown if one["chosen"]] == [node]


@pytest.mark.ci
@pytest.mark.parametrize("setting", ["privacy.l={disease: {distinct: 9}}", "method.levels={age: [0, 0]}"])
def test_where_no_node_can_be_chosen_the_page_ends_as_a_run_does(direct: CommandLine, setting: str) -> None:
    job, settings = people_job(direct.folder / "job"), ("--set", setting, "--set", "privacy.k=150")
    page = direct.folder / "front.html"
    ended = [direct("lattice", job, "--front", "--to", page, *settings), direct("run", job, *settings)]
    assert [one.returncode for one in ended] == [3, 3]
    assert ended[0].stderr == ended[1].stderr
    assert not page.exists()
