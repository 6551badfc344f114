"""Where a release comes from, as addresses that Prefect takes, and what a person sees of it in Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.job.job import load_job
from schemas.release.report import Report
from tasks.engine.lineage import asset_address, lineage_of, sources_of
from tasks.engine.prefect_pages import figures, summary
from tests.conftest import Anonymise
from tests.jobs import people, people_job


@given(st.text(max_size=700))
def test_every_path_becomes_an_address_that_prefect_takes(path: str) -> None:
    from prefect.types.names import validate_valid_asset_key

    made = asset_address(f"/srv/{path}")
    assert validate_valid_asset_key(made) == made
    assert made.startswith("file:///")


def test_a_folder_has_one_address_however_a_job_names_it() -> None:
    assert {asset_address(path) for path in ("/srv/a/b", "/srv/c/../a/b", "/srv/./a//b")} == {"file:///srv/a/b"}
    assert asset_address("s3://bucket/a/../b") == "s3://bucket/a/../b"


@pytest.mark.ci
@pytest.mark.few(1, "ci")
@pytest.mark.parametrize(
    ("paths", "sources"),
    [
        ("people/*.parquet", ["people"]),
        (["people/2026-*/x.parquet", "people/2027.parquet"], ["people", "people/2027.parquet"]),
        (["people/[ab].parquet", "people/*.parquet"], ["people"]),
    ],
)
def test_a_release_comes_from_the_folders_and_files_that_the_job_names(
    anonymise: Anonymise, tmp_path: Path, paths: object, sources: list[str]
) -> None:
    job = people_job(tmp_path, people(100), suppression={"limit": 1})
    done = anonymise(job, "columns.quasi_identifiers.1.hierarchy.widths=[1]")
    lineage = lineage_of(load_job(job, [f"source.path={json.dumps(paths)}"]), done.manifest)
    assert lineage.sources == tuple(asset_address(str(tmp_path / source)) for source in sources)
    assert lineage.release == asset_address(str(done.folder))
    assert lineage.facts["released"] == done.manifest.released


def test_no_value_of_a_partition_is_in_an_address(tmp_path: Path) -> None:
    job = load_job(people_job(tmp_path, people(1), source={"path": ["x/region=North/*.parquet", "y/home town=Berlin"], "hive": True}))
    assert sources_of(job) == tuple(asset_address(str(tmp_path / source)) for source in ("x", "y"))


@pytest.mark.ci
def test_a_summary_in_markdown_keeps_its_shape_whatever_columns_are_called(anonymise: Anonymise, tmp_path: Path) -> None:
    done = anonymise(people_job(tmp_path, people(300)))
    report = Report.model_validate_json((done.folder / "report.json").read_bytes())
    unexpected = report.qids[0].model_copy(update={"name": "a|b <script>\n# `c`\x1b[31m\u202e"})
    text = summary(report.model_copy(update={"qids": (unexpected, *report.qids[1:])}), str(done.folder), "file:///x/report.html", new=False)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {3, 5}
    assert "<script>" not in text and text.replace("\n", " ").isprintable()
    assert f"{done.manifest.suppressed:,} (" in text
    assert "Published already" in text
    assert "[The whole report](https://x)" in summary(report, str(done.folder), "https://x", new=True)
    table = {row["figure"]: row for row in figures(report)}
    assert table["Smallest class"]["after"] == str(done.manifest.min_class)
    assert table["GCP"]["after"] == f"{done.manifest.loss['gcp']:.4f}"
