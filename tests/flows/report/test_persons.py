"""People are spoken of where people were counted, by figures that a plain count of them gives; nowhere else, and no threshold with it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.units.losses import PRESETS
from schemas.errors.base import VerificationError
from schemas.job.job import load_job
from schemas.job.method import METHODS
from schemas.release.figures import RepeatedColumn
from schemas.release.manifest import Manifest
from schemas.release.report import Report
from schemas.release.terms import Unreported
from tasks.composition.release_history import people_of_release
from tasks.engine.prefect_pages import summary
from tasks.recount.recount import verify_release
from tasks.report.report import rebuild_report
from tasks.store.store import Store
from tasks.utility.utility import measure_utility
from tests.conftest import Anonymise, CommandLine
from tests.flows.lattice.test_persons import QIDS, TABLE, WHOSE, columns, job, people_in
from tests.house.replaced import PERSON_SIZES_BYTES_PER_ROW, ROOTS_BYTES_PER_CELL
from tests.jobs import people

HARMLESS = TABLE.drop_columns(["note", "born"])
"""Without what may tell who people are where it is published as it is."""
UNIQUE = people(400, seed=2).drop_columns(["note", "born"])
COUNTING = [name for name, method in METHODS.items() if method.counts_persons]
SOURCES = [str(source).split(":")[0] for source in PRESETS.values()]


def check(figures: Mapping[str, Any], sizes: list[int]) -> None:
    """Compare a risk with that of each person of each class, one by one."""
    each = [1 / size for size in sizes for _ in range(size)]
    assert (figures["records"], figures["classes"], figures["min_class"]) == (len(each), len(sizes), min(sizes))
    assert figures["prosecutor_max"] == max(each)
    assert figures["prosecutor_mean"] == pytest.approx(sum(each) / len(each))
    assert figures["share_above"] == pytest.approx(sum(risk > 0.09 for risk in each) / len(each))
    assert (figures["unique"], figures["marketer"]) == (sizes.count(1), figures["prosecutor_mean"])


def sizes_before() -> list[int]:
    """The persons of each combination of the source; that of nobody's records is none."""
    found: dict[Any, set[Any]] = {}
    for row, person in zip(zip(*(TABLE[qid].to_pylist() for qid in QIDS), strict=True), WHOSE, strict=True):
        found.setdefault(row, set()).update([] if person is None else [person])
    return [len(who) for who in found.values() if who]


def banded(sizes: list[int], bands: Any) -> None:
    assert sum(band.classes for band in bands) == len(sizes)
    for band in bands:
        mine = [size for size in sizes if band.least <= size <= (band.most or max(sizes))]
        assert (band.classes, band.records) == (len(mine), sum(mine))


def report_of(folder: Path) -> Report:
    return Report.model_validate_json((folder / "report.json").read_text())


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["privacy.l={disease: {distinct: 2}}", "suppression.limit=0.3"],
        ["chunk_rows=70"],
        ["method.root=dense", "suppression.treatment=mask"],
    ],
    ids=["whole", "sensitive values in the cells", "chunks", "masked"],
)
@pytest.mark.parametrize("fine", [True, False], ids=["finest root", "coarser root"])
def test_risk_before_and_after_is_that_of_persons(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str], fine: bool
) -> None:
    if not fine:
        monkeypatch.setattr(ROOTS_BYTES_PER_CELL, 1 << 20)
    made = anonymise(job(tmp_path, row_group=70, files=2), *settings)
    manifest, before = made.manifest, sizes_before()
    assert manifest.node is not None
    check(made.untold.risk, before)
    banded(before, made.untold.source_sizes)
    assert "before" not in manifest.risk
    assert not any("In the source" in figure for figure in report_of(made.folder).criteria[0].figures)
    known = people_of_release(manifest.release, Store(load_job(tmp_path / "job.yaml", settings).work_path / "artifacts"))
    recount, _ = verify_release(load_job(tmp_path / "job.yaml", settings), made.folder, known)
    assert recount.persons is not None
    if not any("l=" in setting for setting in settings):
        after = [len(who) for who in people_in(manifest.node).values() if len(who) >= manifest.privacy["k"]]
        check(manifest.risk["after"], after)
        banded(after, report_of(made.folder).came_out.bands)
        assert report_of(made.folder).came_out.mean_class == pytest.approx(sum(after) / len(after))


@pytest.mark.ci
@pytest.mark.parametrize(
    "settings", [["chunk_rows=70"], ["chunk_rows=70", "privacy.l={disease: {distinct: 2}}"]], ids=["", "sensitive values"]
)
def test_risk_before_is_the_same_where_memory_holds_but_some_combinations(
    anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str]
) -> None:
    # About five parts of them.
    monkeypatch.setattr(PERSON_SIZES_BYTES_PER_ROW, 1 << 23)
    made = anonymise(job(tmp_path, row_group=70, files=2), *settings)
    check(made.untold.risk, sizes_before())


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "method",
    [
        *({"name": name} for name in COUNTING),
        {"name": "mondrian", "mode": "relaxed"},
        {"name": "mondrian", "fragments": {"count": 3}},
        {"name": "rayden", "fragments": {"count": 2}},
    ],
    ids=str,
)
def test_risk_and_c_avg_are_of_persons_whatever_the_method(direct: CommandLine, method: dict[str, Any]) -> None:
    path = job(direct.folder, files=2, row_group=70, method=method, chunk_rows=70, suppression={"limit": 0.5})
    ended = direct("run", path)
    assert ended.returncode == 0, ended.stderr
    manifest = Manifest.model_validate_json((current(direct) / "manifest.json").read_text())
    untold = Unreported.model_validate_json((direct.folder / ".skald/people/untold.json").read_text())
    check(untold.risk, sizes_before())
    banded(sizes_before(), untold.source_sizes)
    risk = manifest.risk["after"]
    assert sum(band.records for band in manifest.person_sizes) == risk["records"]
    assert manifest.loss["c_avg"] == pytest.approx(risk["records"] / risk["classes"] / manifest.privacy["k"])


def test_a_report_of_persons_says_persons_and_claims_what_they_keep(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, HARMLESS, columns=harmless()), "privacy.k=12", "suppression.limit=0.2")
    report, page = report_of(made.folder), (made.folder / "report.html").read_text()
    assert made.manifest.min_class >= 12
    assert (report.came_out.unit, report.came_out.persons) == ("person", made.manifest.persons)
    assert report.asked.promises[0].endswith("at least 12 persons (k-anonymity).")
    assert "No person's risk is above 0.09" in report.maximum_risk
    assert not report.came_out.warnings
    assert not any("Classes are counted in records" in limit.text for limit in report.limits)
    assert "persons on average" in page
    assert "Share of persons by the number of persons in their class" in page
    assert f"the smallest class has {made.manifest.min_class:,} persons" in page


@pytest.mark.ci
def test_a_report_of_records_speaks_of_no_persons(anonymise: Anonymise, tmp_path: Path) -> None:
    roles = columns(person=[], identifiers=["person"], withheld=["score", "visits", "zip", "height"], insensitive="rest")
    made = anonymise(job(tmp_path, UNIQUE, columns=roles))
    report = report_of(made.folder)
    told = [report.asked.promises, report.certificate, report.came_out.why_suppressed, report.risk, report.losses, report.verified]
    assert not re.search(r"\b(people|persons?'?s?)\b", json.dumps([str(one) for one in told]).replace("columns.person", ""))
    assert any("Classes are counted in records" in limit.text for limit in report.limits)
    assert (report.came_out.unit, report.came_out.warnings, made.manifest.repeats) == ("record", (), {})


@pytest.mark.ci
def test_a_report_made_again_is_the_same_though_nobody_is_in_the_files(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path, suppression={"limit": 0.2, "treatment": "mask"}))
    assert rebuild_report(made.folder) == report_of(made.folder)


@pytest.mark.ci
def test_altered_classes_by_persons_are_noticed(anonymise: Anonymise, tmp_path: Path) -> None:
    made, loaded = anonymise(job(tmp_path)), load_job(tmp_path / "job.yaml")
    path = made.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["person_sizes"][0]["classes"] += 1
    path.write_text(json.dumps(manifest))
    with pytest.raises(VerificationError, match="classes by persons are not those of the files"):
        verify_release(loaded, made.folder, people_of_release(made.manifest.release, Store(loaded.work_path / "artifacts")))


@pytest.mark.ci
def test_a_verification_that_could_not_count_persons_claims_no_risk(direct: CommandLine) -> None:
    path = job(direct.folder, privacy={"k": 12}, suppression={"limit": 0.2})
    direct("run", path)
    arguments = ("verify", current(direct), "--job", path)
    # Persons keep their notes, so that the run claimed none either.
    assert "No maximum risk is claimed" in direct(*arguments).stdout
    assert direct("clean", path).returncode == 0
    assert "No maximum risk is claimed" in direct(*arguments).stdout
    said = direct(*arguments, "--set=source.path=nowhere.parquet")
    assert said.returncode == 5
    assert "keeps 0." not in said.stdout
    assert "people in each class were not counted" in said.stdout


@pytest.mark.ci
def test_the_summary_of_a_run_and_of_a_check_speak_of_persons(direct: CommandLine) -> None:
    path = job(direct.folder)
    for ended in (direct("run", path), direct("run", path), direct("verify", current(direct), "--job", path)):
        assert re.search(r"risk after +at most 1 in \d+ persons", ended.stdout + ended.stderr)


def current(line: CommandLine) -> Path:
    """The folder of the newest release."""
    return line.folder / "releases" / (line.folder / "releases" / "CURRENT").read_text().strip()


def harmless(**others: Any) -> dict[str, Any]:
    """Columns that name persons, for the table of these."""
    return columns(identifiers=["person", "zip", "height"], withheld=["score", "visits"], insensitive=[], **others)


def repeating(folder: Path, table: pa.Table = HARMLESS, **others: Any) -> Path:
    """A job that names nobody, though the same people come again."""
    return job(
        folder,
        table,
        columns=columns(person=[], identifiers=["person"], withheld=["score", "visits", "zip", "height"], insensitive="rest"),
        **others,
    )


def figures() -> tuple[float, int]:
    """Records of a person on average, and at most."""
    counts = Counter(person for person in WHOSE if person is not None)
    return counts.total() / len(counts), max(counts.values())


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize("method", METHODS)
def test_identifiers_that_repeat_are_warned_of_whatever_the_method(direct: CommandLine, method: str) -> None:
    ended = direct(
        "run", repeating(direct.folder), "--set", f"method={{name: {method}}}", "--set", "privacy.k=12", "--set", "suppression.limit=0.5"
    )
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout + ended.stderr
    folder = current(direct)
    manifest, report = Manifest.model_validate_json((folder / "manifest.json").read_text()), report_of(folder)
    [repeats] = [Unreported.model_validate_json((direct.folder / ".skald/people/untold.json").read_text()).repeats["person"]]
    assert (repeats.mean, repeats.most, repeats.share) == (pytest.approx(figures()[0]), figures()[1], 1.0)
    # How often is for whoever runs the job: the most records of one are one person's.
    assert manifest.repeats == {"person": RepeatedColumn()}
    sentence = "1 identifier repeats: 'person'. If it says whose a record is"
    [warning] = report.came_out.warnings
    page = (folder / "report.html").read_text()
    for text in (" ".join(said.split()), warning, page.replace("&#39;", "'")):
        assert sentence in text
    for text in (said, report.maximum_risk, page, report.model_dump_json()):
        assert not any(source in text for source in SOURCES)
        assert not re.search(r"(above|keeps) 0\.(09|2)\b", text)
    assert any("Classes are counted in records" in limit.text for limit in report.limits)


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("said", ["none", "person"], ids=["each is said to be one", "named"])
def test_no_warning_where_the_job_says_who_is_who(anonymise: Anonymise, tmp_path: Path, said: str) -> None:
    made = anonymise(job(tmp_path, HARMLESS, columns=harmless(person=said)), "privacy.k=12", "suppression.limit=0.3")
    assert made.manifest.repeats == {}
    assert (made.manifest.persons is None) == (said == "none")
    assert "0.09" in report_of(made.folder).maximum_risk
    assert not list((tmp_path / ".skald").rglob("repeats*"))


@pytest.mark.ci
def test_what_watchers_of_runs_read_speaks_of_persons_and_warns(anonymise: Anonymise, tmp_path: Path) -> None:
    named, unnamed = anonymise(job(tmp_path / "named")), anonymise(repeating(tmp_path / "unnamed"))
    told = [summary(report_of(made.folder), str(made.folder), "link", new=True) for made in (named, unnamed)]
    assert f"the smallest of {named.manifest.min_class} persons" in told[0]
    assert "identifier repeats" not in told[0]
    assert f"the smallest of {unnamed.manifest.min_class} records" in told[1]
    assert "1 identifier repeats" in told[1]


@pytest.mark.ci
def test_utility_is_measured_of_a_release_of_persons(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(job(tmp_path))
    found = measure_utility(load_job(tmp_path / "job.yaml"), made.folder, 50, 0, None)
    assert (found.records, found.released, found.suppressed) == (len(TABLE), made.manifest.released, made.manifest.suppressed)


@pytest.mark.ci
def test_an_empty_list_says_nothing_of_who_is_who(anonymise: Anonymise, tmp_path: Path) -> None:
    assert anonymise(repeating(tmp_path)).manifest.repeats


@pytest.mark.ci
def test_that_every_record_is_a_person_is_part_of_the_release(anonymise: Anonymise, tmp_path: Path) -> None:
    silent, said = (anonymise(job(tmp_path / str(person), columns=columns(person=person))).manifest for person in ([], "none"))
    assert silent.release != said.release
    assert [file.sha256 for file in silent.files] == [file.sha256 for file in said.files]


@pytest.mark.ci
def test_pseudonyms_that_repeat_are_warned_of_too(anonymise: Anonymise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKALD_KEY", "0123456789abcdef" * 4)
    treated = {"name": "person", "treatment": {"hash": {"key": {"env": "SKALD_KEY"}}}}
    made = anonymise(job(tmp_path, columns=columns(person=[], identifiers=[treated, "zip", "height", "born"], linkable="person")))
    assert made.untold.repeats["person"].most == figures()[1]


@pytest.mark.ci
def test_people_who_come_again_in_another_file_repeat(anonymise: Anonymise, tmp_path: Path) -> None:
    table = pa.concat_tables([UNIQUE, UNIQUE.slice(0, 40)])
    path = job(tmp_path, table, files=2, columns=columns(person=[], identifiers=["person"], insensitive="rest"))
    made = anonymise(path)
    assert (made.untold.repeats["person"].most, made.untold.repeats["person"].mean) == (2, pytest.approx(1.1))


def test_identifiers_of_any_type_stop_no_run(anonymise: Anonymise, tmp_path: Path) -> None:
    rows = len(TABLE)
    odd = {
        "lists": pa.array([[row] for row in range(rows)]),
        "nothing": pa.nulls(rows),
        "bytes": pa.array([b"\xff%d" % (row % 7) for row in range(rows)]),
        "text": pa.array([b"\xff%d" % (row % 5) for row in range(rows)]).view(pa.string()),
        "money": pa.array([row % 9 for row in range(rows)]).cast(pa.decimal128(30, 2)),
        "spans": pa.array([row % 3 for row in range(rows)], pa.duration("s")),
    }
    table = TABLE
    for name, column in odd.items():
        table = table.append_column(name, column)
    made = anonymise(job(tmp_path, table, columns=columns(person=[], identifiers=["person", "zip", "height", "born", *odd])))
    assert made.manifest.repeats.keys() - {"person", "zip", "height", "born"} == {"bytes", "text", "money"}
    assert made.untold.repeats["text"].most == -(-rows // 5)
