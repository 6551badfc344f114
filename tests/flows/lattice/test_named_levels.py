"""What a job may say of levels: how fine and how coarse a column may be, how much it counts, or the one node to take."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import floor
from pathlib import Path

import pytest

from schemas.errors.base import JobError, PrivacyError
from schemas.errors.hierarchies import HierarchyError
from schemas.job.job import load_job
from tasks.verification.manifest_claims import job_faults
from tests.command_line import CommandLine
from tests.conftest import Anonymise
from tests.covering import each_pair
from tests.flows.lattice.test_objectives import QIDS, RECORDS, TABLE, K, Node, charges, cost, job
from tests.house.replaced import OPTIMUM_BRANCHED, ROOTS_BYTES_PER_CELL, SOURCE_SIZES_SHARE
from tests.jobs import LEVELS, generalise, released

WITHIN = {"sex": [0, 1], "age": [1, 3], "zip": [1, 2]}
SETTING = f"method.levels={WITHIN}"
WAYS = {
    "one root": ["method.roots=24"],
    "several roots": ["method.roots=24"],
    "dense": ["method.root=dense"],
    "branch and bound": [],
}


def allowed(limit: str, within: dict[str, list[int]]) -> list[Node]:
    """The nodes within levels that suppress no more than the limit, counted record by record."""
    spans = [range(len(LEVELS[qid])) if qid not in within else range(within[qid][0], within[qid][1] + 1) for qid in QIDS]
    most = floor(Fraction(limit) * RECORDS)
    return [node for node in product(*spans) if sum(size for size in Counter(generalise(TABLE, node, QIDS)).values() if size < K) <= most]


def patch(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "several roots":
        monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    if way == "branch and bound":
        monkeypatch.setattr(OPTIMUM_BRANCHED, 1)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(("way", "objective", "limit"), each_pair(list(WAYS), ["gcp", "precision", "c_avg"], ["0.1", "0.4"]))
def test_the_node_is_the_best_of_those_within_the_levels(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, objective: str, limit: str
) -> None:
    patch(way, monkeypatch)
    settings = [SETTING, f"method.objective={objective}", f"suppression.limit={limit}", *WAYS[way]]
    nodes = allowed(limit, WITHIN)
    manifest = anonymise(job(tmp_path), *settings).manifest
    assert manifest.node in nodes
    assert cost(manifest.node, objective)[0] == pytest.approx(min(cost(node, objective)[0] for node in nodes))
    assert manifest.search["nodes"] == 2 * 3 * 2
    assert manifest.optimal == "certified" or way == "several roots"
    assert job_faults(load_job(tmp_path / "job.yaml", settings), manifest) == ([], [])


@pytest.mark.ci
def test_precision_is_a_share_of_the_whole_hierarchy_whatever_is_left_out(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path), SETTING, "suppression.limit=0.4").manifest
    shares = [level / (len(LEVELS[qid]) - 1) for qid, level in zip(QIDS, made.node or (), strict=True)]
    assert made.loss["precision"] == pytest.approx(1 - sum(shares) / len(QIDS))


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["one root", "several roots", "branch and bound"])
def test_a_column_of_more_weight_keeps_more_and_the_node_is_the_best_by_the_weighted_sum(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    patch(way, monkeypatch)
    weights, levels = {"age": 0.2, "zip": 5, "sex": 1}, {}
    for objective in ("gcp", "entropy"):
        settings = [f"method.objective={objective}", f"method.weights={weights}", "suppression.limit=0.1", *WAYS[way]]
        made = anonymise(job(tmp_path / objective), *settings)
        manifest = made.manifest

        def weighted(node: Node, objective: str = objective) -> float:
            rows = generalise(TABLE, node, QIDS)
            sizes, total = Counter(rows), 0.0
            for qid, level in zip(QIDS, node, strict=True):
                published, suppressed = charges(qid, level, objective)
                each = zip(rows, published, suppressed, strict=True)
                total += weights[qid] * sum(gone if sizes[row] < K else kept for row, kept, gone in each)
            return total

        least = min(weighted(node) for node in allowed("0.1", {}))
        assert manifest.node is not None
        assert weighted(manifest.node) == pytest.approx(least)
        assert made.untold.loss["weighted"] * RECORDS * sum(weights.values()) == pytest.approx(least)
        # What is minimised by how often values occur follows from no label.
        assert ("weighted" in manifest.loss) == (objective == "gcp")
        levels[objective] = dict(manifest.levels or {})
        plain = anonymise(job(tmp_path / f"{objective} alone"), f"method.objective={objective}", "suppression.limit=0.1").manifest
        assert levels[objective]["zip"] <= (plain.levels or {})["zip"]


@pytest.mark.ci
def test_weights_of_one_change_nothing_but_the_id(anonymise: Anonymise, tmp_path: Path) -> None:
    settings = ["method.objective=gcp", "suppression.limit=0.1"]
    plain = anonymise(job(tmp_path / "plain"), *settings)
    same = anonymise(job(tmp_path / "same"), *settings, "method.weights={age: 1}")
    assert same.manifest.node == plain.manifest.node
    assert same.manifest.release != plain.manifest.release
    assert released(same.folder).equals(released(plain.folder))


@pytest.mark.ci
def test_weights_count_in_stars_too(anonymise: Anonymise, tmp_path: Path) -> None:
    settings = ["method.objective=gcp", "method.weights={zip: 3}", "suppression={limit: 0.2, treatment: cell}"]
    made = anonymise(job(tmp_path), *settings)
    loss = made.manifest.loss
    assert "by the weights of the job" in (made.folder / "report.html").read_text()
    assert 0 < loss["weighted"] < 1
    assert loss["weighted"] != loss["gcp"]


@pytest.mark.slow
def test_a_node_that_is_named_is_taken_and_its_losses_are_those_of_the_search(anonymise: Anonymise, tmp_path: Path) -> None:
    found = anonymise(job(tmp_path / "found"), "suppression.limit=0.1")
    named = anonymise(job(tmp_path / "named"), "suppression.limit=0.1", f"method.node={list(found.manifest.node or ())}")
    assert named.manifest.node == found.manifest.node
    # Which values its classes hold is known of the finest cells alone, which nobody counted for one node: at most what they publish.
    assert named.manifest.loss == found.manifest.loss
    assert named.manifest.loss["gcp_held"] == named.manifest.loss["gcp"]
    assert named.manifest.optimal == "node that the job names, and no other choice was examined"
    assert released(named.folder).equals(released(found.folder))


@pytest.mark.slow
def test_the_risk_before_is_the_same_of_the_finest_root_of_chunks_read_once_and_out_of_core(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["suppression.limit=0.9", "chunk_rows=50"]
    finest = anonymise(job(tmp_path / "finest"), *settings).untold
    coarser = anonymise(job(tmp_path / "coarser"), *settings, "method.node=[1, 2, 1]").untold
    monkeypatch.setattr(SOURCE_SIZES_SHARE, 1 << 40)
    spilt = anonymise(job(tmp_path / "spilt"), *settings, "method.node=[1, 2, 1]").untold
    assert finest.risk
    assert finest.risk == coarser.risk == spilt.risk


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("node", [(1, 2, 1), (0, 3, 2), (1, 1, 3)])
def test_any_node_is_counted_as_record_by_record(anonymise: Anonymise, tmp_path: Path, node: Node) -> None:
    sizes = Counter(generalise(TABLE, node, QIDS))
    manifest = anonymise(job(tmp_path), "suppression.limit=0.9", f"method.node={list(node)}").manifest
    assert manifest.node == node
    assert manifest.suppressed == sum(size for size in sizes.values() if size < K)
    assert manifest.min_class == min(size for size in sizes.values() if size >= K)


def test_a_node_that_does_not_keep_the_promise_ends_with_code_3(direct: CommandLine, tmp_path: Path) -> None:
    ended = direct("run", job(tmp_path), "--set", "method.node=[0, 0, 0]", "--set", "suppression.limit=0")
    assert ended.returncode == 3
    assert "method.node does not keep the promise" in ended.stderr
    assert not list((tmp_path / "releases").glob("*/manifest.json"))


def test_levels_that_cannot_keep_the_promise_are_named(anonymise: Anonymise, tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match=r"No node within method\.levels keeps the promise"):
        anonymise(job(tmp_path), "method.levels={sex: [0, 0], age: [0, 0], zip: [0, 0]}", "suppression.limit=0")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("method.node=[0, 0]", "method.node: has 2 levels for 3 quasi-identifiers"),
        ("method={name: skald, node: [0, 0, 0], levels: {age: [0, 1]}}", "method.levels: a node that is named is not looked for"),
        ("method={name: skald, levels: {agee: [0, 1]}}", "method.levels: 'agee' is no quasi-identifier"),
        ("method={name: skald, levels: {age: [2, 1]}}", "must be the least and the most level"),
        ("method={name: skald, levels: {age: [2]}}", "must be the least and the most level"),
        (
            "method={name: skald, objective: dm_star, weights: {age: 2}}",
            "the objective counts classes and not columns; use objective: 'precision'",
        ),
        ("method={name: skald, objective: gcp, weights: {age: -1}}", "must be a number from 0 to 1,000,000"),
        ("method={name: skald, objective: gcp, weights: {age: 0, sex: 0, zip: 0}}", "all are 0"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_read(tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(JobError) as caught:
        load_job(job(tmp_path), [setting])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("method.levels={age: [0, 9]}", "method.levels: column 'age' has levels 0 to"),
        ("method.node=[0, 0, 9]", "method.node: column 'zip' has levels 0 to"),
    ],
)
def test_a_level_that_there_is_not_is_refused(anonymise: Anonymise, tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(HierarchyError, match=said):
        anonymise(job(tmp_path), setting)


@pytest.mark.parametrize("setting", ["method.levels={age: [0, 0]}", "method.node=[0, 0, 0]"])
def test_a_level_that_tells_what_the_job_hides_is_refused(anonymise: Anonymise, tmp_path: Path, setting: str) -> None:
    hidden = "columns.quasi_identifiers.1.hierarchy={widths: [1, 5, 10, 40], top: 80}"
    with pytest.raises(HierarchyError, match="tells what the job hides"):
        anonymise(job(tmp_path), setting, hidden)


def test_later_rounds_keep_within_the_levels_too(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path), SETTING, "suppression={limit: 0.4, rounds: 3}").manifest
    assert made.remainder is not None
    for node in (made.node or (), *(one.node for one in made.remainder.rounds)):
        assert all(least <= level <= most for (least, most), level in zip(WITHIN.values(), node, strict=True))


def test_a_manifest_of_a_node_that_the_job_does_not_allow_is_refused(anonymise: Anonymise, tmp_path: Path) -> None:
    path = job(tmp_path)
    manifest = anonymise(path, SETTING, "suppression.limit=0.4").manifest
    other = manifest.model_copy(update={"node": (0, 3, 3), "levels": {"sex": 0, "age": 3, "zip": 3}})
    assert "node" in job_faults(load_job(path, [SETTING, "suppression.limit=0.4"]), other)[0][0]


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("limit", ["0.1", "0.4"])
def test_the_penalty_of_values_held_is_that_of_each_class_counted_one_by_one(anonymise: Anonymise, tmp_path: Path, limit: str) -> None:
    made = anonymise(job(tmp_path), f"suppression.limit={limit}")
    loss, node = made.untold.loss, made.manifest.node
    assert node is not None
    rows = generalise(TABLE, node, QIDS)
    sizes, lost = Counter(rows), 0.0
    for qid in QIDS:
        values = TABLE[qid].to_pylist()
        numbers = [value for value in values if value is not None] if qid == "age" else []
        for row in rows:
            held = {value for value, other in zip(values, rows, strict=True) if other == row}
            known = [value for value in held if value is not None]
            if sizes[row] < K or (numbers and known and len(known) < len(held)):
                lost += 1
            elif numbers:
                lost += (max(known) - min(known)) / (max(numbers) - min(numbers)) if known else 0
            else:
                lost += len(held) / len(set(values)) if len(held) > 1 else 0
    assert loss["gcp_held"] == pytest.approx(lost / RECORDS / len(QIDS))
    assert loss["gcp_held"] <= loss["gcp"]
    # What a class holds is in no label: told is what it can be at most.
    assert made.manifest.loss["gcp_held"] == made.manifest.loss["gcp"]
