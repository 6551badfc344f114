"""The order of siblings is learnt where it is free: how a hierarchy lists them changes no byte of what is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.method import METHODS
from schemas.job.record_methods import MondrianMethod
from tasks.publication.verify_and_publish import PublishedRelease
from tests.jobs import digests, two_column_job

LEAVES = {"Europe": {"Italy": 19, "France": 3, "Spain": 3}, "America": {"Canada": 8, "Peru": 2}, "Asia": {"Japan": 3, "China": 40}}
TABLE = pa.table({"q": [leaf for group in LEAVES.values() for leaf, count in group.items() for _ in range(count)], "s": ["x"] * 78})
NCP: dict[str, Any] = {"name": "mondrian", "score": "ncp"}
Cut = Callable[..., PublishedRelease]


@pytest.fixture(scope="module")
def cut() -> Cut:
    flow = METHODS["mondrian"].flow.load()
    return lambda job, *settings: getattr(flow, "fn", flow)(job, tuple(settings))


def job(folder: Path, method: dict[str, Any], *, turned: bool = False) -> Path:
    # Turned: Italy stands between France and Spain, and Asia between the others.
    groups = {"America": ["Peru", "Canada"], "Asia": ["China", "Japan"], "Europe": ["France", "Italy", "Spain"]}
    tree = {"tree": {"World": groups if turned else {name: list(leaves) for name, leaves in LEAVES.items()}}}
    return two_column_job(folder, TABLE, tree, method=method, privacy={"k": 5})


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "method", [NCP, {"name": "mondrian", "order": "learnt"}, NCP | {"fragments": {"count": 2, "sample": 1}}], ids=["ncp", "median", "parts"]
)
def test_how_siblings_are_listed_changes_no_byte(cut: Cut, tmp_path: Path, method: dict[str, Any]) -> None:
    one, two = cut(job(tmp_path / "one", method)), cut(job(tmp_path / "two", method, turned=True))
    assert digests(one.folder) == digests(two.folder)
    assert one.manifest.search["orders_learnt"] == 1
    said = json.loads((one.folder / "report.json").read_text())
    assert any(sentence.startswith("Order learnt") for sentence in said["certificate"])


def test_the_papers_scores_keep_the_order_that_is_listed(cut: Cut, tmp_path: Path) -> None:
    made = cut(job(tmp_path, {"name": "mondrian"}))
    assert "orders_learnt" not in made.manifest.search


@pytest.mark.slow
def test_listed_is_as_it_is_listed(cut: Cut, tmp_path: Path) -> None:
    made = cut(job(tmp_path / "one", NCP | {"order": "listed"}))
    assert "orders_learnt" not in made.manifest.search
    turned = cut(job(tmp_path / "two", NCP | {"order": "listed"}, turned=True))
    assert digests(made.folder) != digests(turned.folder)


@pytest.mark.slow
def test_a_replay_cuts_in_the_order_that_was_learnt_then(cut: Cut, tmp_path: Path) -> None:
    path = job(tmp_path, NCP)
    first = cut(path)
    again = cut(path, f"replay={first.manifest.release}")
    assert digests(again.folder) == digests(first.folder)
    # Other frequencies, by which another order would be learnt: what was one class is one again.
    pq.write_table(pa.concat_tables([TABLE, pa.table({"q": ["Peru"] * 60, "s": ["x"] * 60})]), next(tmp_path.glob("*/000.parquet")))
    other = cut(path, f"replay={first.manifest.release}")
    assert other.untold.search["partitions"] == first.untold.search["partitions"]
    assert other.manifest.search["orders_learnt"] == 1


@pytest.mark.ci
def test_records_that_were_set_apart_along_another_order_are_set_apart_again(cut: Cut, tmp_path: Path) -> None:
    # Listed, {a, b} are cut from {c, d}; learnt, {a, d} from {b, c}, by the same ranks.
    counts = {"a": 30, "b": 20, "c": 25, "d": 25}
    table = pa.table({"q": [leaf for leaf, count in counts.items() for _ in range(count)], "s": ["x"] * 100})

    def four(folder: Path) -> Path:
        method = NCP | {"fragments": {"count": 2, "sample": 1}}
        return two_column_job(folder, table, {"tree": {"all": list(counts)}}, method=method, privacy={"k": 5})

    kept = four(tmp_path / "kept")
    cut(kept, "method.order=listed")
    assert digests(cut(kept).folder) == digests(cut(four(tmp_path / "fresh")).folder)


def test_a_learnt_order_counts_for_the_release_whether_it_is_said_or_not() -> None:
    learnt = MondrianMethod(score="ncp").canonical()
    assert learnt == MondrianMethod(score="ncp", order="learnt").canonical()
    assert learnt != MondrianMethod(score="ncp", order="listed").canonical()
    assert "order" not in MondrianMethod().canonical()
