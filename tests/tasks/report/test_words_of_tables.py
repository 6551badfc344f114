"""What the report of several tables says holds where there is one of something, and where there is nothing to measure."""

from __future__ import annotations

import re

import pytest

from core.recount.histories import TablesRecount
from flows.terminal.tables import verified_summary
from schemas.relational.manifest import ReleasedPersons, ReleasedTable, TablesLoss, TablesManifest
from schemas.release.figures import PassedColumnOfPersons
from schemas.release.increments import Joined, Overlap, PersonsOverlap
from tasks.relational.report import report_content, report_texts
from tasks.relational.verified import VerifiedTables

COLUMN = PassedColumnOfPersons(distinct=2, unique_records=1, values=2, looked_at=2, unique_persons=1)


def table(levels: dict[str, int | None], passthrough: dict[str, PassedColumnOfPersons] | None = None) -> ReleasedTable:
    """Return a table of two rows that are all published."""
    return ReleasedTable(records=2, released=2, withheld=0, suppressed=0, orphans=0, levels=levels, passthrough=passthrough or {})


def manifest(k: int, histories: int) -> TablesManifest:
    """Return the manifest of two persons and two visits, of which the visits have no quasi-identifier."""
    return TablesManifest(
        release="r-0", name="r", job="", inputs="", method="skald", privacy={"k": k, "knows": "all"}, unit="person",
        key_columns={"person": ["id"], "visit": []}, references={"visit": {"id": "person"}},
        persons=ReleasedPersons(source=2, released=2, smallest_class=k), histories=histories, min_class=k,
        tables={"person": table({"age": 1}), "visit": table({}, {"icd": COLUMN})}, loss=TablesLoss(gcp=0.5, by_table={"person": 0.5}),
        optimal="certified", search={"nodes": 2}, files=(), versions={}, seconds={}, peak_rss=0,
    )  # fmt: skip


def test_a_table_without_quasi_identifiers_has_no_loss_and_not_the_loss_0() -> None:
    page = report_texts(manifest(2, 1))["report.html"]
    cells = {row[0]: row[-1] for row in (re.findall(r"<td>(.*?)</td>", one) for one in page.split("<tr>")) if row}
    assert cells == {"person": "0.5000", "visit": "–"}


def test_names_on_a_page_of_tables_are_text_without_control_characters() -> None:
    made = manifest(2, 1)
    odd = made.tables["visit"].model_copy(update={"levels": {"<b>\x1b[31m\u202e": 1}})
    page = report_texts(made.model_copy(update={"tables": made.tables | {"visit": odd}}))["report.html"]
    assert "<td>&lt;b&gt;\\x1b[31m\\u202e 1</td>" in page
    assert page.replace("\n", " ").isprintable()


@pytest.mark.parametrize(("k", "histories"), [(1, 2), (2, 1)])
def test_one_person_or_history_is_no_plural(k: int, histories: int) -> None:
    said = " ".join(report_content(manifest(k, histories))["sentences"])
    assert not re.search(r"\b1 (persons|histories|rows|records|values|are)\b", said)
    assert ("at least 1 person:" in said, "1 is different" in said) == (k == 1, histories == 1)


@pytest.mark.parametrize("unmeasured", ["", "the index is gone"])
def test_releases_that_join_nobody_below_k_say_it_of_whom_it_was_counted(unmeasured: str) -> None:
    """Others, who are in one release alone, may share what that publishes with fewer than k: no release joins them to another."""
    said = Joined(columns=("id",), releases=1, k=4, people=9, below_k=0, by_labels=0, smallest=4, unmeasured=unmeasured).sentence()
    assert "of somebody in several of them is that of at least k = 4 people" in said
    assert ("All that they publish was compared" in said) != ("Not all of them were compared" in said)


@pytest.mark.parametrize(
    ("overlap", "shared", "rounded", "words"),
    [
        (PersonsOverlap, 17, True, "at least 17 persons are in the sources of both"),
        (Overlap, 1, False, "1 record is in the sources of both"),
        (Overlap, 0, True, "some records are in the sources of both"),
    ],
)
def test_who_is_left_out_is_not_said_to_be_in_the_release(overlap: type[Overlap], shared: int, rounded: bool, words: str) -> None:
    """Records of both sources are counted, so that they may be more than either release has."""
    found = overlap(release="r-0", k=3, shared=shared, shared_at_risk=3, added=0, removed=0, rounded=rounded)
    assert words in found.sentence()
    assert "this one are in" not in found.sentence()


@pytest.mark.parametrize(("at_risk", "told"), [(0, False), (3, True)])
def test_nobody_is_left_with_those_who_are_nobody(at_risk: int, told: bool) -> None:
    found = Overlap(release="r-0", k=3, shared=9, shared_at_risk=3, added=5, added_at_risk=at_risk, removed=0)
    assert ("is left with these" in found.sentence()) == told


@pytest.mark.parametrize(("histories", "words"), [(1, "there is one history."), (2, "there are 2 different histories.")])
def test_one_history_is_not_different_from_others(histories: int, words: str) -> None:
    recount = TablesRecount(persons=4, histories=histories, smallest=2, failing=0, records={"person": 4, "visit": 2})
    assert verified_summary(VerifiedTables(manifest(2, histories), recount, ())).endswith(words)
