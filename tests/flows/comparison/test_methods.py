"""Methods are compared by what their releases publish, counted record by record here; nothing stays but figures."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from core.evaluation.advice import advise
from flows.commands.measures import _methods
from schemas.job.job import load_job
from schemas.job.method import METHODS
from schemas.release.method_comparison import Figures, MethodComparison, MethodRun
from tasks.utility.method_runs import Ended, MethodRequest, _sentence, run_method
from tasks.utility.methods import render_methods
from tests.conftest import CommandLine
from tests.jobs import job_of, people, people_job, released

QIDS = ["sex", "zip", "smoker"]
TABLE = people(300, seed=3)
K = 4


def small_job(folder: Path, **parts: Any) -> Path:
    """A job of three QIDs that are no numbers, so that CANON cannot run it."""
    columns = job_of()["columns"]
    qids = [qid for qid in columns["quasi_identifiers"] if qid["name"] in QIDS]
    columns |= {"quasi_identifiers": qids, "identifiers": ["person", "age", "height", "born"]}
    return people_job(folder, TABLE, files=2, columns=columns, privacy={"k": K}, **parts)


FIGURES = Figures(
    released=300, suppressed=0, classes=50, min_class=4, gcp=0.1, dm=1, c_avg=1.0, prosecutor_max=0.25,
    prosecutor_mean=0.2, share_above=1.0, cpu=1.0, peak=1, wall=1.0,
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """The folder of a job, what the command printed, and what it said."""

    folder: Path
    comparison: MethodComparison
    said: str

    def figures(self, method: str) -> Figures:
        [run] = [run for run in self.comparison.runs if run.method == method]
        assert run.figures, run.failed
        return run.figures


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """The real thing: the command line, and a process for each method."""
    folder = tmp_path_factory.mktemp("methods")
    ended = CommandLine("direct", folder)("compare", small_job(folder / "job"), "--methods", "skald,canon,rayden", "--json")
    assert ended.returncode == 0, ended.stderr
    return Compared(folder / "job", MethodComparison.model_validate_json(ended.stdout), ended.stderr)


def published(folder: Path, method: str) -> tuple[Any, list[tuple[Any, ...]]]:
    flow: Any = METHODS[method].flow.load()
    made = getattr(flow, "fn", flow)(small_job(folder, method={"name": method}), ())
    return made.manifest, released(made.folder).select(QIDS).rows()


LISTED = {"sex": 3, "smoker": 2}
"""How many values the hierarchies of two columns list; that of the third keeps beginnings."""


def penalty(qid: str, label: str | None, labels: set[str | None]) -> float:
    """What a label has lost: its share of what is listed or, of a beginning, of the labels that are no beginnings of others."""
    told = {one for one in labels if one is not None}
    if label is None or label == "*":
        return float(label == "*")
    nulls = None in labels or any(one.endswith(", null}") for one in told)
    size = LISTED[qid] + nulls if qid in LISTED else len(told)
    if label.endswith(", null}"):
        # The null is one value more, and a value by itself is one beside it.
        beside = penalty(qid, label[1 : -len(", null}")], labels)
        return min(max(beside, 1 / size) + 1 / size, 1.0)
    stem = label.rstrip("*")
    if qid in LISTED or stem == label:
        return 0.0
    stems = {one.removeprefix("{").removesuffix(", null}").rstrip("*") for one in told - {"*"}}
    ends = [one for one in stems if not any(other != one and other.startswith(one) for other in stems)]
    return sum(one.startswith(stem) for one in ends) / len(ends)


def penalty_in_source(qid: str, label: str | None, labels: set[str | None]) -> float:
    """What a label has lost of the source: the distinct values that it may stand for over all, 0 for a value itself."""
    values = {None if value is None else str(value).lower() for value in TABLE[qid].to_pylist()}
    if label in values:
        return 0.0
    if label is not None and label.endswith(", null}"):
        # The null is one value more, and a value by itself is one beside it.
        beside = penalty_in_source(qid, label[1 : -len(", null}")], labels)
        return min(max(beside, 1 / len(values)) + 1 / len(values), 1.0)
    stands = len(values) if label == "*" else sum(value is not None and value.startswith(str(label).rstrip("*")) for value in values)
    return stands / len(values) if stands > 1 else 0.0


def gcp(rows: Sequence[tuple[Any, ...]], priced: Callable[[str, str | None, set[str | None]], float]) -> float:
    """The mean penalty of all published values, and 1 for those that are not there."""
    lost = 0.0
    for place, qid in enumerate(QIDS):
        column = [None if row[place] is None else str(row[place]).lower() for row in rows]
        lost += sum(priced(qid, label, set(column)) for label in column)
    return (lost / len(QIDS) + len(TABLE) - len(rows)) / len(TABLE)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["skald", "rayden"])
def test_figures_are_those_of_the_releases_counted_record_by_record(compared: Compared, tmp_path: Path, method: str) -> None:
    manifest, rows = published(tmp_path, method)
    found, sizes, lost = compared.figures(method), Counter(rows), len(TABLE) - len(rows)
    assert (found.released, found.suppressed, found.classes, found.min_class) == (len(rows), lost, len(sizes), min(sizes.values()))
    assert found.dm == sum(size * size for size in sizes.values()) + lost * len(TABLE) == manifest.loss["dm"]
    assert found.c_avg == pytest.approx(len(rows) / len(sizes) / K)
    assert found.share_in_classes == len(rows) / len(TABLE)
    assert found.prosecutor_max == 1 / min(sizes.values())
    assert found.prosecutor_mean == pytest.approx(len(sizes) / len(rows))
    assert found.share_above == pytest.approx(sum(size for size in sizes.values() if size < 12) / len(rows))
    # Methods are compared by the values of one source; a release by itself is priced by its own labels.
    assert found.gcp == pytest.approx(gcp(rows, penalty_in_source))
    assert manifest.loss["gcp"] == pytest.approx(gcp(rows, penalty))
    assert found.cpu > 0 and found.wall > 0
    assert 50e6 < found.peak < 2e9


@pytest.mark.ci
def test_a_method_that_cannot_run_the_job_is_listed_with_its_sentence(compared: Compared) -> None:
    [failed] = [run for run in compared.comparison.runs if run.failed]
    sentence = "Method 'canon' compares numbers and dates, and no quasi-identifier holds any. Use another one, such as 'rayden'."
    assert (failed.method, failed.figures, failed.failed) == ("canon", None, sentence)
    assert f"canon could not be compared: {sentence}" in compared.comparison.advice[0].others


@pytest.mark.ci
def test_only_figures_stay(compared: Compared) -> None:
    folder = compared.folder
    assert not (folder / "releases").exists()
    assert sorted(path.name for path in (folder / "releases-comparison").iterdir()) == ["methods.csv", "methods.html", "methods.json"]
    assert not (folder / ".skald" / "people" / "comparison").exists()
    assert not (folder / ".skald" / "people" / "artifacts" / "measured").exists()
    assert json.loads((folder / "releases-comparison" / "methods.json").read_text()) == compared.comparison.model_dump(mode="json")
    with (folder / "releases-comparison" / "methods.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["k"], bool(row["failed"])) for row in rows] == [
        ("skald", "4", False),
        ("canon", "4", True),
        ("rayden", "4", False),
    ]
    assert [float(row["gcp"]) for row in rows if row["gcp"]] == [compared.figures(method).gcp for method in ("skald", "rayden")]


@pytest.mark.ci
def test_the_page_needs_nothing_else_and_shows_every_figure(compared: Compared) -> None:
    page = (compared.folder / "releases-comparison" / "methods.html").read_text()
    assert page == render_methods(compared.comparison)
    assert not re.findall(r"<script|<link|<img|@import|url\(|src=|href=", page)
    assert page.count("<svg ") == 9
    for text in (compared.comparison.summary.split(". ")[1], f"{compared.figures('rayden').dm:,}", "not run: Method &#39;canon&#39;"):
        assert text in page


@pytest.mark.ci
def test_several_k_are_drawn_as_lines_and_text_of_others_is_escaped(compared: Compared) -> None:
    plain = compared.figures("rayden")
    runs = [MethodRun(method="rayden", k=k, figures=plain) for k in (4, 8)]
    runs += [MethodRun(method="canon", k=4, figures=plain), MethodRun(method="canon", k=8, failed="<b>")]
    advice = tuple(advise(k, [run for run in runs if run.k == k]) for k in (4, 8))
    made = compared.comparison.model_copy(update={"runs": tuple(runs), "advice": advice})
    page = render_methods(made)
    assert page.count("class='s-series-0' fill='none'") == 9
    assert "<b>" not in page
    assert "not run: &lt;b&gt;" in page


def test_what_an_interrupted_comparison_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import compare as module

    flow: Any = module.compare_methods
    asked: list[tuple[str, int]] = []

    def run_method(_: MethodRequest, method: str, k: int, *__: object) -> MethodRun:
        asked.append((method, k))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return MethodRun(method=method, k=k, figures=FIGURES)

    monkeypatch.setattr("tasks.utility.method_runs.run_method", run_method)
    arguments = (small_job(tmp_path), (), ("rayden", "clustering"), (8, 4))
    with pytest.raises(KeyboardInterrupt):
        getattr(flow, "fn", flow)(*arguments)
    made = getattr(flow, "fn", flow)(*arguments)
    assert asked == [("rayden", 4), ("clustering", 4), ("rayden", 8), ("rayden", 8), ("clustering", 8)]
    assert [(run.method, run.k) for run in made.comparison.runs] == [("rayden", 4), ("clustering", 4), ("rayden", 8), ("clustering", 8)]


def test_the_jobs_own_method_keeps_its_options_and_others_have_their_defaults(tmp_path: Path) -> None:
    asked = MethodRequest(tmp_path / "job.yaml", ("suppression.limit=0",), "rayden")
    own, other = (asked.settings_of(method, 7, tmp_path / 'a "b"') for method in ("rayden", "canon"))
    assert not [setting for setting in own if setting.startswith("method")]
    assert 'method={"name": "canon"}' in other
    assert own[0] == "suppression.limit=0"
    assert "privacy.k=7" in own


def test_a_comparison_draws_no_pseudonyms(tmp_path: Path) -> None:
    job = small_job(tmp_path)
    settings = (
        'columns.identifiers=[{name: person, treatment: {token: {vault: {file: "vault.parquet"}}}}, age, height, born]',
        "columns.linkable=person",
    )
    asked = MethodRequest.of(job, settings, load_job(job, settings))
    assert set(json.loads(asked.untreated[0].removeprefix("columns.identifiers="))) == {"person", "age", "height", "born"}
    assert not load_job(job, asked.settings_of("rayden", 4, tmp_path / "scratch")).columns.pseudonyms
    assert MethodRequest.of(job, (), load_job(job)).untreated == ()


def test_a_process_that_was_ended_is_told_in_a_sentence(tmp_path: Path) -> None:
    assert _sentence(Ended(-9, "", "", 1.0, 1.0), tmp_path) == "The system ended its process, most likely for lack of memory."
    assert _sentence(Ended(-11, "", "", 1.0, 1.0), tmp_path) == "Its process was ended by signal 11."
    assert _sentence(Ended(2, "", f"a fault in\n  '{tmp_path}/work'\n", 1.0, 1.0), tmp_path) == "a fault in 'its folder/work'"
    assert _sentence(Ended(2, "", "", 1.0, 1.0), tmp_path) == "It ended with exit code 2."


@pytest.mark.parametrize(("codes", "code"), [((3, 3), 3), ((-9, 3), 2), ((3, 0), 0)])
def test_a_comparison_in_which_nothing_ran_ends_as_the_runs_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, int], code: int
) -> None:
    ended = dict(zip(("rayden", "clustering"), codes, strict=True))

    def run_method(_: MethodRequest, method: str, k: int, *__: object) -> MethodRun:
        return MethodRun(method=method, k=k, **({"failed": "No.", "code": ended[method]} if ended[method] else {"figures": FIGURES}))

    monkeypatch.setattr("tasks.utility.method_runs.run_method", run_method)
    told = CommandLine("direct", tmp_path)("compare", small_job(tmp_path / "job"), "--methods", ",".join(ended))
    assert told.returncode == code, told.stderr
    assert (tmp_path / "job" / "releases-comparison" / "methods.json").is_file()


def test_what_refuses_a_method_keeps_its_exit_code(tmp_path: Path) -> None:
    job = small_job(tmp_path)
    request = MethodRequest.of(job, ("privacy.k=none",), load_job(job))
    absent: Any = None
    failed = run_method(request, "rayden", 0, absent, tmp_path / "scratch", absent)
    assert failed.failed and failed.code == 2


def test_methods_are_named_or_all() -> None:
    assert _methods("all", tuple(METHODS)) == tuple(METHODS)
    assert _methods("rayden, canon,rayden", tuple(METHODS)) == ("rayden", "canon")
    with pytest.raises(typer.BadParameter, match=r"there is no method 'raiden' \(did you mean 'rayden'\?\)"):
        _methods("skald,raiden", tuple(METHODS))
