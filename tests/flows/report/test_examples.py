"""The report shows a few published records, and of them no more than k records of the files share; the rest of it holds no value."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from schemas.job.job import load_job
from schemas.release.report import Example, Report
from tasks.verification.release import VerificationContext, verify_published
from tests.conftest import Anonymise
from tests.jobs import JOB, QIDS, people, people_job, released

TABLE = people(400)


def report_of(release: Path) -> Report:
    return Report.model_validate_json((release / "report.json").read_bytes())


def assert_shared(example: Example, files: pl.DataFrame, k: int) -> None:
    """All that is shown of a record, put together, is what k records of the files have."""
    text = files.select(pl.all().cast(pl.String))
    same = [pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in example.values.items()]
    assert text.filter(pl.all_horizontal(same)).height >= k


def texts(folder: Path) -> pl.DataFrame:
    """Read the files as the report spells their values."""
    import duckdb

    return duckdb.sql(f"SELECT COLUMNS(*)::VARCHAR FROM read_parquet('{folder}/data/*.parquet')").pl()


@pytest.mark.ci
@pytest.mark.parametrize(("method", "treatment"), [("skald", "mask"), ("mondrian", "drop"), ("skald", "cell")])
def test_all_that_is_shown_of_a_record_is_shared_by_k(anonymise: Anonymise, tmp_path: Path, method: str, treatment: str) -> None:
    changes: dict[str, Any] = {"method": {"name": method}, "suppression": {"limit": 0.2, "treatment": treatment}}
    made = anonymise(people_job(tmp_path, TABLE, **changes))
    report = report_of(made.folder)
    assert 1 <= len(report.examples) <= 3
    assert len({tuple(one.values[qid] for qid in QIDS) for one in report.examples}) == len(report.examples)
    for one in report.examples:
        assert list(one.values)[: len(QIDS)] == QIDS
        # Masked records are no class that a reader should take for one.
        assert set(one.values.values()) != {"*"}
        assert_shared(one, texts(made.folder), 5)


@pytest.mark.ci
def test_further_values_are_shown_only_where_k_share_them_too(anonymise: Anonymise, tmp_path: Path) -> None:
    table = TABLE.append_column("ward", pa.array(["north"] * 400)).append_column("case", pa.array([f"case {row}" for row in range(400)]))
    columns = deepcopy(JOB["columns"])
    columns["insensitive"] += ["ward", "case"]
    made = anonymise(people_job(tmp_path, table, columns=columns))
    page = (made.folder / "report.html").read_text("utf-8")
    for one in report_of(made.folder).examples:
        assert one.values["ward"] == "north"
        assert "case" not in one.values
        assert_shared(one, texts(made.folder), 5)
    assert "case 1" not in page
    assert "not shown here" in page


@pytest.mark.ci
@pytest.mark.parametrize("output", [{}, {"format": "csv"}], ids=str)
def test_of_long_texts_none_is_looked_for(anonymise: Anonymise, tmp_path: Path, output: dict[str, Any]) -> None:
    """Some thousands of them at a time are more than a small memory holds, and whoever makes the report again must leave out the same."""
    essays = [f"{row if row % 2 else 0:05d}" * 4_000 for row in range(400)]
    columns = deepcopy(JOB["columns"])
    columns["insensitive"] += ["ward"]
    job = people_job(tmp_path, TABLE.append_column("ward", pa.array(essays)), output=output, columns=columns)
    made = anonymise(job)
    assert all("ward" not in one.values for one in report_of(made.folder).examples)
    verify_published(load_job(job), made.folder, VerificationContext(str(made.folder)))


@pytest.mark.ci
def test_where_people_are_counted_nothing_but_combinations_is_shown(anonymise: Anonymise, tmp_path: Path) -> None:
    """Whose record is whose is not in the files: five records of one value may be of one person."""
    table = TABLE.append_column("ward", pa.array(["north"] * 400))
    columns = deepcopy(JOB["columns"]) | {"person": "person"}
    columns["insensitive"] += ["ward"]
    made = anonymise(people_job(tmp_path, table, columns=columns))
    assert [set(one.values) for one in report_of(made.folder).examples] == [set(QIDS)] * 3


def test_where_identifiers_repeat_nothing_but_combinations_is_shown(anonymise: Anonymise, tmp_path: Path) -> None:
    """Five records of one value may be of one person here too, though the job names none."""
    table = TABLE.set_column(TABLE.schema.get_field_index("person"), "person", pa.array([row // 8 for row in range(400)]))
    made = anonymise(people_job(tmp_path, table))
    assert made.manifest.repeats
    assert [set(one.values) for one in report_of(made.folder).examples] == [set(QIDS)] * 3


@pytest.mark.ci
def test_the_order_of_the_source_chooses_no_record(anonymise: Anonymise, tmp_path: Path) -> None:
    there = anonymise(people_job(tmp_path / "there", TABLE))
    back = anonymise(people_job(tmp_path / "back", TABLE.take(list(range(399, -1, -1)))), "chunk_rows=70")
    assert report_of(there.folder).examples == report_of(back.folder).examples


@pytest.mark.slow
@pytest.mark.parametrize("output", [{"format": "csv"}, {"format": "duckdb"}, {"partition_by": ["sex"]}], ids=str)
def test_other_formats_show_records_that_their_files_hold(anonymise: Anonymise, tmp_path: Path, output: dict[str, Any]) -> None:
    made = anonymise(people_job(tmp_path, TABLE, output=output))
    plain = anonymise(people_job(tmp_path / "plain", TABLE))
    for one in report_of(made.folder).examples:
        assert_shared(one, texts(plain.folder), 5)


@pytest.mark.ci
def test_the_page_answers_who_when_and_what_is_published(anonymise: Anonymise, tmp_path: Path) -> None:
    job = people_job(tmp_path, TABLE, source={"path": "people/*.parquet", "name": "Register of the <town>"}, run_by="A. Verne & co")
    made = anonymise(job)
    report, page = report_of(made.folder), (made.folder / "report.html").read_text("utf-8")
    created = json.loads((made.folder / "manifest.json").read_text())["created"]
    assert report.created == created
    assert f" {created[:4]}, {created[11:16]} UTC" in page
    assert "Register of the &lt;town&gt;" in page
    assert "A. Verne &amp; co" in page
    assert "none was in force" in page
    assert {column.name: column.role for column in report.columns} == {
        **dict.fromkeys(QIDS, "quasi-identifier"),
        "disease": "sensitive",
        **dict.fromkeys(["note", "score", "visits"], "insensitive"),
    }
    assert set(released(made.folder).columns) == {column.name for column in report.columns}


@pytest.mark.ci
def test_the_three_questions_are_answered_by_what_was_measured(anonymise: Anonymise, tmp_path: Path) -> None:
    made = anonymise(people_job(tmp_path, TABLE, privacy={"k": 5, "l": {"disease": {"distinct": 2}}}, suppression={"limit": 0.4}))
    report = report_of(made.folder)
    singling, linking, inferring = report.criteria
    assert (singling.name, linking.name, inferring.name) == ("Singling out", "Linkability", "Inference")
    assert f"{report.came_out.min_class:,} record" in singling.figures[0]
    after = made.manifest.risk["after"]
    assert f"{after['marketer']:.2%}" in linking.figures[0]
    assert inferring.kept == (made.manifest.one_value["disease"].classes == 0)
    assert any("≥ 2" in figure for figure in inferring.figures)
    alone = {name: one.unique_records for name, one in made.manifest.passthrough.items() if one.unique_records}
    assert singling.kept == (not alone)
    for name, records in alone.items():
        assert any(f"'{name}'" in figure and f"{records:,} record" in figure for figure in singling.figures)
    page = (made.folder / "report.html").read_text("utf-8")
    assert page.count('class="question') == 3
