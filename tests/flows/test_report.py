"""Every release has a report that people can hand on: whole, true, self-contained, escaped and without a cell value."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from flows.methods import FLOWS, flow_of
from schemas.report import Report
from tests.conftest import Anonymise, CommandLine
from tests.jobs import JOB, QIDS, class_sizes, people, people_job, released

TABLE = people(400)
HOSTILE = "<script>alert('1')</script> & \"q\""
VOID = {"meta", "rect", "br"}
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
    """Reads both reports of a release."""
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
    assert_self_contained(made.folder)


@pytest.mark.parametrize("method", sorted(FLOWS))
def test_every_method_writes_both_reports_before_it_publishes(tmp_path: Path, method: str) -> None:
    job = people_job(tmp_path, TABLE, method={"name": method}, suppression={"limit": 0.2})
    flow: Any = flow_of(method)
    made = getattr(flow, "fn", flow)(job)
    assert {path.name for path in made.folder.iterdir()} == {"data", "manifest.json", "report.html", "report.json"}
    report, page = report_of(made.folder)
    assert report.asked.method_words in page.text
    assert [loss.name for loss in report.losses if not loss.meaning] == []
    assert all((qid.level is None) == (method != "skald") for qid in report.qids)
    assert_self_contained(made.folder)


def renamed(columns: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(columns)
    changed["quasi_identifiers"][1]["name"] = HOSTILE + "q"
    changed["identifiers"], changed["sensitive"] = [HOSTILE + "i"], [HOSTILE + "s"]
    return changed


def test_names_of_columns_are_text_and_never_markup(anonymise: Anonymise, tmp_path: Path) -> None:
    hostile = {"age": HOSTILE + "q", "person": HOSTILE + "i", "disease": HOSTILE + "s"}
    table = TABLE.rename_columns([hostile.get(name, name) for name in TABLE.column_names])
    columns = renamed(JOB["columns"])
    made = anonymise(people_job(tmp_path, table, columns=columns, privacy={"k": 5, "l": {HOSTILE + "s": {"distinct": 2}}}))
    _, page = report_of(made.folder)
    assert_self_contained(made.folder)
    for name in hostile.values():
        assert name in page.text


def test_reports_are_the_same_but_for_time_and_memory_however_the_source_is_cut(anonymise: Anonymise, tmp_path: Path) -> None:
    def told(folder: str, **settings: int) -> tuple[dict[str, Any], str]:
        made = anonymise(people_job(tmp_path / folder, TABLE), *(f"{name}={value}" for name, value in settings.items()))
        report = json.loads((made.folder / "report.json").read_text("utf-8"))
        page = (made.folder / "report.html").read_text("utf-8")
        del report["seconds"], report["peak_rss"]
        return report, re.sub(r'<tr><th scope="row">(Time|Memory)</th>.*', "", page)

    assert told("whole") == told("cut", chunk_rows=60)


def test_nothing_is_published_without_its_report(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(report: Report) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tasks.publishing.render", fail)
    with pytest.raises(Exception, match="No space left"):
        anonymise(people_job(tmp_path, TABLE))
    assert not list((tmp_path / "releases").iterdir())


def test_the_command_names_the_report(direct: CommandLine) -> None:
    people_job(direct.folder, TABLE)
    done = direct("run", "job.yaml")
    assert done.returncode == 0, done.stderr
    [page] = direct.folder.glob("releases/*/report.html")
    assert str(page) in done.stdout.replace("\n", "")
