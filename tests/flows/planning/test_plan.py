"""``skald plan`` tells how unique records are and which columns make them so, counted before anything is written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

from flows.terminal.plans import contributor_sentence, plan_summary, published_column_rows
from schemas.errors.base import PrivacyError
from schemas.job.job import load_job
from schemas.release.figures import PassedColumn, passthrough_warnings
from tasks.counting import uniqueness
from tasks.planning.plan import Plan, make_plan
from tasks.report.sentences import TRIED_NEXT, warning_sentences
from tests.conftest import Anonymise, CommandLine
from tests.house.replaced import CODING_WORD
from tests.jobs import QIDS, class_sizes, job_of, people, people_job

TABLE = people(300, seed=5)


def exposed(names: list[str], k: int) -> tuple[int, int]:
    """Count records that are alone, and those in classes below k, record by record."""
    sizes = class_sizes(pl.DataFrame(TABLE.select(names)), names).values() if names else [len(TABLE)]
    return sum(size == 1 for size in sizes), sum(size for size in sizes if size < k)


def assert_plain(plan: Plan, qids: list[str], k: int) -> None:
    assert plan.exposed is not None
    assert (plan.exposed.unique, plan.exposed.below_k) == exposed(qids, k)
    assert [qid.name for qid in plan.qids] == qids
    for qid in plan.qids:
        assert qid.without is not None
        assert (qid.without.unique, qid.without.below_k) == exposed([name for name in qids if name != qid.name], k), qid.name


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize("word", [1 << 62, 2000], ids=["one word", "several words"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"chunk_rows": 70},
        {"privacy": {"k": 3, "l": {"disease": {"distinct": 2}}}, "chunk_rows": 70},
        {"method": {"name": "mondrian"}},
    ],
    ids=["whole", "chunks", "with sensitive values", "mondrian"],
)
def test_who_stands_out_is_what_a_plain_count_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, word: int) -> None:
    monkeypatch.setattr(CODING_WORD, word)
    plan = make_plan(load_job(people_job(tmp_path, TABLE, row_group=70, **settings)))
    assert_plain(plan, QIDS, settings.get("privacy", {"k": 5})["k"])
    assert plan.exposed is not None
    assert plan.risk["unique"] == plan.exposed.unique


def test_one_quasi_identifier_is_all_there_is(tmp_path: Path) -> None:
    columns = job_of()["columns"]
    columns["quasi_identifiers"], columns["identifiers"] = columns["quasi_identifiers"][1:2], ["person", *(set(QIDS) - {"age"})]
    assert_plain(make_plan(load_job(people_job(tmp_path, TABLE, columns=columns))), ["age"], 5)


@pytest.mark.ci
def test_a_run_counts_nothing_of_the_plan_again_and_tells_the_same_risk(anonymise: Anonymise, tmp_path: Path) -> None:
    path = people_job(tmp_path, TABLE)
    plan = make_plan(load_job(path))
    counted = {file: file.stat().st_mtime_ns for file in (tmp_path / ".skald").rglob("*.parquet")}
    untold = anonymise(path, "suppression.limit=0.5").untold
    assert counted.items() <= {file: file.stat().st_mtime_ns for file in (tmp_path / ".skald").rglob("*.parquet")}.items()
    assert untold.risk == plan.risk


@pytest.mark.ci
def test_what_is_not_counted_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = people_job(tmp_path, TABLE)
    quick = make_plan(load_job(path), quick=True)
    assert (quick.exposed, quick.not_counted, quick.histograms_to_scan) == (None, "", 1)
    monkeypatch.setattr("tasks.counting.source_sizes.can_count_sizes", lambda *_: False)
    scattered = make_plan(load_job(path))
    assert scattered.exposed is None
    assert "too many to add up" in scattered.not_counted


@pytest.mark.ci
@pytest.mark.parametrize("chunk_rows", [20_000, 3_000])
def test_of_many_combinations_who_stands_out_without_a_column_is_estimated_from_whole_classes_of_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int
) -> None:
    table = people(20_000, seed=7)
    path = people_job(tmp_path, table, chunk_rows=chunk_rows)
    exact = make_plan(load_job(path))
    monkeypatch.setattr(uniqueness, "CELLS_SAMPLED", 4_000)
    estimated = make_plan(load_job(path))
    assert (estimated.exposed, estimated.risk) == (exact.exposed, exact.risk)
    assert exact.exposed is not None
    assert exact.not_counted == ""
    shown = Console(width=400)
    with shown.capture() as text:
        shown.print(plan_summary(estimated))
    assert "estimated from one in 5 combinations. Those with all quasi-identifiers are exact. '" in text.get()
    for one, other in zip(estimated.qids, exact.qids, strict=True):
        assert one.without is not None
        assert other.without is not None
        for found, right, most in (
            (one.without.unique, other.without.unique, exact.exposed.unique),
            (one.without.below_k, other.without.below_k, exact.exposed.below_k),
        ):
            assert found <= most
            assert abs(found - right) <= 0.2 * right + 200


@pytest.mark.ci
@pytest.mark.parametrize("folder", ["count=3", "word_0=1"])
def test_a_folder_of_the_work_is_no_column_whatever_it_is_called(tmp_path: Path, folder: str) -> None:
    found = [make_plan(load_job(people_job(tmp_path / below, TABLE))) for below in ("plain", folder)]
    assert [(plan.exposed, plan.risk, plan.qids) for plan in found[:1]] == [(plan.exposed, plan.risk, plan.qids) for plan in found[1:]]
    assert_plain(found[1], QIDS, load_job(people_job(tmp_path, TABLE)).privacy.k)


def test_the_column_that_makes_records_stand_out_is_named(direct: CommandLine) -> None:
    table = pa.table({"sex": ["f", "m"] * 100, "age": list(range(40)) * 5, "s": ["a"] * 200})
    columns = {
        "quasi_identifiers": [
            {"name": "sex", "hierarchy": {"tree": {"*": ["f", "m"]}}},
            {"name": "age", "hierarchy": {"widths": [1, 10]}},
        ],
        "sensitive": ["s"],
    }
    path = people_job(direct.folder, table, columns=columns, privacy={"k": 12})
    told = direct("plan", path)
    assert told.returncode == 0, told.stderr
    words = " ".join(told.stdout.split())
    assert "'age' drives the risk most: without it 0 (0.00%) instead of 200 (100.00%) records" in words
    made = Plan.model_validate_json(direct("plan", path, "--json").stdout)
    assert contributor_sentence(made) in words
    assert json.loads(direct("plan", path, "--json", "--quick").stdout)["exposed"] is None


def test_each_published_column_is_listed_once_and_those_treated_alike_together() -> None:
    found = PassedColumn(distinct=30, unique_records=0, values=300, looked_at=30, reasons=("dates of birth",))
    passed = dict.fromkeys(("born", "near", "seen", "hours"), found)
    ways = {"born": "shared", "near": "rounded", "seen": "shared"}
    plan = Plan.model_construct(published=ways, passthrough=passed)
    assert [*published_column_rows(plan)] == [
        ("published", "'born' and 'seen': shared"), ("published", "near: rounded"), ("untreated", "hours: 30 values, 0 records alone"),
    ]  # fmt: skip
    many = Plan.model_construct(published={f"q{number}": "cut" for number in range(100)}, passthrough={})
    assert [*published_column_rows(many)] == [("published", "'q0', 'q1', 'q2', 'q3', 'q4' and 95 more: cut")]
    # All are warned of, and only one as if it went out as it is.
    warned = passthrough_warnings(passed, ways)
    assert len(warned) == len(passed)
    assert [said.split("'")[1] for said in warned if "published as it is" in said] == ["hours"]


@pytest.mark.promise
@pytest.mark.slow
def test_cuts_that_follow_from_sensitive_values_are_warned_of_before_and_after(anonymise: Anonymise, tmp_path: Path) -> None:
    parts = {"privacy": {"k": 3, "l": {"disease": {"distinct": 2}}}, "method": {"name": "mondrian", "refused": "next"}}
    job = people_job(tmp_path, TABLE, **parts)
    plan = make_plan(load_job(job), quick=True)
    assert plan.warnings == (TRIED_NEXT,)
    shown = Console(width=400)
    with shown.capture() as text:
        shown.print(plan_summary(plan))
    assert "method.refused: next" in text.get()
    assert make_plan(load_job(job, ["method.refused=stop"]), quick=True).warnings == ()
    made = anonymise(job)
    assert TRIED_NEXT in warning_sentences(made.manifest)
    assert "method.refused: next" in (made.folder / "report.html").read_text()


@pytest.mark.ci
def test_a_plan_ends_as_the_run_where_no_class_can_keep_the_promise(anonymise: Anonymise, tmp_path: Path) -> None:
    path = people_job(tmp_path, people(60), privacy={"k": 2, "l": {"disease": {"distinct": 99}}}, suppression={"limit": 0.5})
    for tried in (partial(make_plan, load_job(path)), partial(anonymise, path)):
        with pytest.raises(PrivacyError, match="All records in one class would not keep"):
            tried()
    # What a class may keep once others are suppressed is left to the run.
    assert make_plan(load_job(path, ["privacy.l={disease: {entropy: 1.5}}"])).records == 60
