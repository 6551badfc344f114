"""Every release has a report that people can hand on: whole, true, self-contained, escaped, and of values only what k share."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from copy import deepcopy
from html.parser import HTMLParser
from math import exp, log
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from core.charts.chart import COLOURS, DARK_STYLE
from schemas.errors.base import StorageError, VerificationError, printable
from schemas.job.job import load_job
from schemas.job.method import METHODS
from schemas.job.method import METHODS as FLOWS
from schemas.release.report import Report
from tasks.publication.staging import documents_of, write_texts
from tasks.report.report import rebuild_report
from tests.conftest import Anonymise, CommandLine
from tests.jobs import JOB, QIDS, class_sizes, generalise, people, people_job, released
from tests.oracles.contrast import contrast
from tests.tampering.kinds import anew

TABLE = people(400)
HOSTILE = "<script>alert('1')</script> & \"q\" \x1b[31m \u202e"
VOID = {"meta", "br"}
LOADING = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"}


class Page(HTMLParser):
    """Reads a page as a browser would: its elements, whether they are closed in turn, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def report_of(release: Path) -> tuple[Report, Page]:
    """Read both reports of a release."""
    report = Report.model_validate_json((release / "report.json").read_bytes())
    return report, Page((release / "report.html").read_text("utf-8"))


def assert_self_contained(release: Path) -> None:
    text = (release / "report.html").read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert page.elements[0] == "html"
    assert not LOADING & set(page.elements)
    assert not {name for name, _ in page.attributes if name.startswith("on") or name in {"src", "href", "style", "action"}}
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", text)
    assert "default-src 'none'" in text


@pytest.mark.ci
@pytest.mark.parametrize("treatment", ["drop", "mask"])
def test_a_report_tells_what_the_files_hold(anonymise: Anonymise, tmp_path: Path, treatment: str) -> None:
    made = anonymise(people_job(tmp_path, TABLE), "suppression.limit=0.2", f"suppression.treatment={treatment}")
    report, page = report_of(made.folder)
    sizes = class_sizes(released(made.folder), QIDS)
    if treatment == "mask":
        assert sizes.pop(("*",) * len(QIDS)) == report.came_out.masked == made.manifest.suppressed
    out = report.came_out
    assert sum(band.classes for band in out.bands) == len(sizes)
    assert sum(band.records for band in out.bands) == sizes.total()
    assert out.mean_class == pytest.approx(sizes.total() / len(sizes))
    assert (out.records, out.suppressed) == (400, made.manifest.suppressed)
    assert [(qid.name, qid.level, qid.ncp) for qid in report.qids] == [
        (qid, made.manifest.levels[qid] if made.manifest.levels else None, made.manifest.ncp[qid]) for qid in QIDS
    ]
    for figure in (f"{out.released:,}", f"{out.classes:,}", report.release, *report.certificate, *report.asked.promises):
        assert figure in page.text
    assert {loss.name: loss.value for loss in report.losses} == made.manifest.loss
    assert {risk.name: risk.after for risk in report.risk}["min_class"] == min(sizes.values())
    assert out.source_bands == ()
    assert f"{out.suppressed:,} record" in " ".join(out.why_suppressed)
    assert_self_contained(made.folder)


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("method", sorted(FLOWS))
def test_every_method_writes_both_reports_before_it_publishes(tmp_path: Path, method: str) -> None:
    job = people_job(tmp_path, TABLE, method={"name": method}, suppression={"limit": 0.2})
    flow: Any = METHODS[method].flow.load()
    made = getattr(flow, "fn", flow)(job)
    assert {path.name for path in made.folder.iterdir()} == {"data", "manifest.json", "report.html", "report.json"}
    report, page = report_of(made.folder)
    assert report.asked.method_words in page.text
    assert [loss.name for loss in report.losses if not loss.meaning] == []
    assert all((qid.level is None) == (method != "skald") for qid in report.qids)
    assert report.lattice is None
    assert_self_contained(made.folder)
    assert page.elements.count("svg") == 3
    written = {path.name: path.read_bytes() for path in made.folder.glob("report.*")}
    shutil.rmtree(tmp_path / "people")
    job.unlink()
    assert write_texts(tmp_path, documents_of(rebuild_report(made.folder))) == [tmp_path / "report.html", tmp_path / "report.json"]
    assert {path.name: path.read_bytes() for path in tmp_path.glob("report.*")} == written


def renamed(columns: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(columns)
    changed["quasi_identifiers"][1]["name"] = HOSTILE + "q"
    changed["identifiers"], changed["sensitive"] = [HOSTILE + "i"], [HOSTILE + "s"]
    return changed


@pytest.mark.ci
def test_names_of_columns_are_text_and_never_markup(anonymise: Anonymise, tmp_path: Path) -> None:
    hostile = {"age": HOSTILE + "q", "person": HOSTILE + "i", "disease": HOSTILE + "s"}
    table = TABLE.rename_columns([hostile.get(name, name) for name in TABLE.column_names])
    columns = renamed(JOB["columns"])
    made = anonymise(people_job(tmp_path, table, columns=columns, privacy={"k": 5, "l": {HOSTILE + "s": {"distinct": 2}}}))
    _, page = report_of(made.folder)
    assert_self_contained(made.folder)
    for name in hostile.values():
        assert printable(name) in page.text
    assert page.text.replace("\n", " ").isprintable()


@pytest.mark.ci
def test_reports_are_the_same_but_for_date_time_and_memory_however_the_source_is_cut(anonymise: Anonymise, tmp_path: Path) -> None:
    def told(folder: str, **settings: int) -> tuple[dict[str, Any], str]:
        made = anonymise(people_job(tmp_path / folder, TABLE), *(f"{name}={value}" for name, value in settings.items()))
        report = json.loads((made.folder / "report.json").read_text("utf-8"))
        page = (made.folder / "report.html").read_text("utf-8")
        del report["seconds"], report["peak_rss"], report["created"]
        return report, re.sub(r'<tr><th scope="row">(Time|Memory)</th>.*|<dt>Made on</dt>.*', "", page)

    assert told("whole") == told("cut", chunk_rows=60)


@pytest.mark.ci
def test_nothing_is_published_without_its_report(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(report: Report) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tasks.publication.staging.render", fail)
    with pytest.raises(Exception, match="No space left"):
        anonymise(people_job(tmp_path, TABLE))
    assert not list((tmp_path / "releases").iterdir())


@pytest.mark.ci
def test_the_command_names_the_report(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    [page] = direct.folder.glob("releases/*/report.html")
    assert str(page) in done.stdout.replace("\n", "")


@pytest.mark.ci
def test_the_proof_is_what_a_plain_count_of_the_files_says(anonymise: Anonymise, tmp_path: Path) -> None:
    table = TABLE.append_column("ward", pa.array(["a", "a", "b", "c"] * 100))
    columns = deepcopy(JOB["columns"])
    columns["sensitive"].append("ward")
    privacy = {"k": 5, "l": {"disease": {"distinct": 2}, "ward": {"entropy": 1.5}}, "t": {"ward": {"t": 0.6}}}
    made = anonymise(people_job(tmp_path, table, columns=columns, privacy=privacy, suppression={"limit": 0.3}))
    classes: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in released(made.folder).to_dicts():
        classes.setdefault(tuple(row[qid] for qid in QIDS), []).append(row)
    wards = {ward: count / 400 for ward, count in Counter(table["ward"].to_pylist()).items()}

    def shares(rows: list[dict[str, Any]]) -> dict[str, float]:
        return {ward: sum(row["ward"] == ward for row in rows) / len(rows) for ward in wards}

    spread = [shares(rows) for rows in classes.values()]
    measured = made.manifest.measured
    assert measured["l"]["disease"] == min(len({row["disease"] for row in rows}) for rows in classes.values())
    assert measured["l"]["ward"] == pytest.approx(min(exp(-sum(s * log(s) for s in one.values() if s)) for one in spread))
    assert max(sum(abs(one[ward] - wards[ward]) for ward in wards) / 2 for one in spread) <= 0.6
    assert "t" not in measured
    report, page = report_of(made.folder)
    assert report.proofs[0].measured == str(min(map(len, classes.values())))
    assert all(proof.measured in page.text for proof in report.proofs if proof.measured)
    why = made.untold.suppressed_for
    assert made.manifest.suppressed_for == {}
    assert sum(why.values()) == made.manifest.suppressed > 0
    below = class_sizes(pl.DataFrame(generalise(table, made.manifest.node or (), QIDS), schema=QIDS, orient="row"), QIDS)
    assert why["k"] == sum(size for size in below.values() if size < 5)


@pytest.fixture(scope="module")
def kept(anonymise: Anonymise, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that tests copy before they do something to it."""
    return anonymise(people_job(tmp_path_factory.mktemp("kept"), TABLE), "suppression.limit=0.2").folder


def altered(release: Path, **figures: Any) -> None:
    """Change figures of a manifest, and give it the digest that it would have."""
    anew(release, lambda said: said.update(figures), report=False)


@pytest.mark.ci
def test_no_report_is_made_of_files_that_are_not_the_manifests(direct: CommandLine, kept: Path) -> None:
    release = direct.folder / "release"
    shutil.copytree(kept, release)
    [part] = release.glob("data/*.parquet")
    before = (release / "report.html").read_bytes()
    pl.read_parquet(part).head(100).write_parquet(part)
    done = direct("report", "release")
    assert done.returncode == 4
    assert "1 data file altered since publication" in done.stderr
    assert (release / "report.html").read_bytes() == before


def test_no_report_is_made_of_a_manifest_that_is_not_true_of_the_files(kept: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(kept, release)
    altered(release, classes=1, min_class=200)
    with pytest.raises(VerificationError, match=r"min_class = 200, the files hold"):
        rebuild_report(release)
    (release / "manifest.json").unlink()
    with pytest.raises(StorageError, match=r"no manifest\.json"):
        rebuild_report(release)


def test_no_report_is_made_of_a_manifest_that_was_altered(kept: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(kept, release)
    text = (release / "manifest.json").read_text()
    gcp = json.loads(text)["loss"]["gcp"]
    text = text.replace(f'"gcp": {gcp}', f'"gcp": {gcp / 2}')
    for altered_text in (text, text.replace('"format": 2', '"format": 1')):
        (release / "manifest.json").write_text(altered_text)
        with pytest.raises(VerificationError, match=r"manifest\.json was altered since publication"):
            rebuild_report(release)


def test_a_job_that_is_given_is_the_one_that_made_the_release(kept: Path) -> None:
    path = kept.parent.parent / "job.yaml"
    with pytest.raises(StorageError, match="not the one that made"):
        rebuild_report(kept, load_job(path))
    made = rebuild_report(kept, load_job(path, ["suppression.limit=0.2"]))
    assert made.model_dump_json(indent=2) + "\n" == (kept / "report.json").read_text()


def test_the_command_makes_the_report_again(direct: CommandLine, kept: Path) -> None:
    done = direct("report", kept, "--to", "again")
    assert done.returncode == 0, done.stderr
    assert (direct.folder / "again" / "report.html").read_bytes() == (kept / "report.html").read_bytes()
    printed = direct("report", kept, "--json")
    assert printed.stdout == (kept / "report.json").read_text()


PAIRS = [
    *[(ink, paper, 4.5) for paper in ("paper", "panel") for ink in ("ink", "soft")],
    *[("good", "good-paper", 4.5), ("ink", "good-paper", 4.5), ("bad", "bad-paper", 4.5), ("ink", "bad-paper", 4.5), ("focus", "paper", 3)],
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_on_the_page_has_the_contrast_that_people_need(kept: Path, theme: str) -> None:
    text = (kept / "report.html").read_text("utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", text, re.S)[:2]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", light if theme == "light" else dark))
    for front, back, least in PAIRS:
        assert contrast(colours[front], colours[back]) >= least, f"{front} on {back}"
    # Charts have the page's paper behind them; their own colours are in core.charts.chart.
    assert colours["paper"].upper() == COLOURS["paper"][theme == "dark"]
    assert text.count(DARK_STYLE) == 1


def test_charts_are_named_for_who_cannot_see_them_and_no_value_is_in_a_picture(kept: Path) -> None:
    text = (kept / "report.html").read_text("utf-8")
    pictures = re.findall(r"<svg\b[^>]* role='img'[^>]*><title>([^<]+)</title><desc>([^<]+)</desc>", text)
    assert len(pictures) == text.count("<svg") == 3
    labels = set(released(kept).select(pl.col(QIDS).cast(str)).unpivot()["value"].drop_nulls().to_list()) - {"*"}
    drawn = "".join(re.findall(r"<svg\b.*?</svg>", text, re.S))
    shown = {label for label in re.findall(r">([^<>]+)<", drawn) if label.strip() in labels}
    assert not {label for label in shown if not label.strip().isdigit()}
