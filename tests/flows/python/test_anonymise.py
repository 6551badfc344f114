"""``skald.anonymise``: a table in memory in, the same kind out, and nothing of it left anywhere."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
import yaml

import skald
from schemas.errors.tables import FrameError
from tests.conftest import Anonymise
from tests.jobs import job_of, people, people_job, released

TABLE = people(300)
JOB = job_of(source=None, target=None)
JOB["columns"]["quasi_identifiers"][4]["hierarchy"] = {"tree": {"*": ["true", "false"]}}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class Stream:
    """A table of a library that nobody knows."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


KINDS: dict[str, tuple[Any, type]] = {
    "an Arrow table": (lambda: TABLE, pa.Table),
    "a batch": (lambda: TABLE.combine_chunks().to_batches()[0], pa.RecordBatch),
    "a reader": (TABLE.to_reader, pa.RecordBatchReader),
    "a stream": (Stream, pa.Table),
    "Polars": (lambda: pl.from_arrow(TABLE), pl.DataFrame),
    "lazy Polars": (lambda: pl.LazyFrame(pl.from_arrow(TABLE)), pl.LazyFrame),
}


def as_arrow(table: Any, schema: pa.Schema) -> pa.Table:
    """Return a table of any kind as Arrow has it, in the types of a schema."""
    if isinstance(table, pl.LazyFrame):
        table = table.collect()
    found = table if isinstance(table, pa.Table) else table.to_arrow() if isinstance(table, pl.DataFrame) else pa.table(table)
    return pa.table({name: found[name].cast(schema.field(name).type) for name in found.column_names})


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, anonymise: Anonymise) -> pa.Table:
    """What a run publishes of the same records."""
    job = people_job(tmp_path_factory.mktemp("run"), TABLE, columns=JOB["columns"])
    return released(anonymise(job).folder).to_arrow()


@pytest.mark.few(1, "ci")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_comes_out_with_the_records_that_a_run_publishes(kind: str, published: pa.Table, temporary: Path) -> None:
    make, expected = KINDS[kind]
    table, report = skald.anonymise(make(), JOB)
    assert isinstance(table, expected)
    assert as_arrow(table, published.schema).equals(published)
    assert report.manifest["min_class"] >= 5
    assert not list(temporary.iterdir())


def test_pandas_comes_out_without_an_index_that_names_records(published: pa.Table, temporary: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = TABLE.to_pandas()
    frame.index = pandas.Index([f"person {number}" for number in frame["person"]], name="who")
    table, _ = skald.anonymise(frame, JOB)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == published.column_names
    assert table["sex"].value_counts().to_dict() == published.to_pandas()["sex"].value_counts().to_dict()
    assert list(table.index) == list(range(len(published)))
    with pytest.raises(skald.SkaldError, match="'note' holds values of several types") as told:
        skald.anonymise(frame.assign(note=["a canary", 1] * 150), JOB)
    assert "canary" not in str(told.value)


def test_the_report_is_shown_and_at_hand(temporary: Path) -> None:
    _, report = skald.anonymise(TABLE, JOB, {"privacy.k": 6})
    assert report.manifest["privacy"]["k"] == 6
    assert "Verified." in str(report._repr_html_())
    assert str(report.page).startswith("<!DOCTYPE html>")
    assert report.report is not None
    assert report.report["came_out"]["released"] == report.manifest["released"]


def test_a_job_file_without_source_and_target_serves_tables(tmp_path: Path, published: pa.Table, temporary: Path) -> None:
    job = people_job(tmp_path, TABLE, source=None, target=None)
    table, _ = skald.anonymise(TABLE, job)
    assert table.equals(published.cast(table.schema))


@pytest.mark.parametrize(
    ("job", "settings", "said"),
    [
        (job_of(), {}, "source: the table is read"),
        (JOB, {"target": "releases"}, "target: the table is read"),
        (JOB, {"source.path": "x"}, "source: the table is read"),
        (JOB, {"privacy.k": 1000}, "k = 1,000 cannot be met"),
        (JOB, {"overlaps": "refuse"}, "overlaps: a table that is given back is held against no earlier release"),
        (JOB | {"overlaps": "refuse"}, {}, "overlaps: a table that is given back is held against no earlier release"),
    ],
)
def test_what_cannot_be_is_an_error_and_leaves_nothing(job: Any, settings: dict[str, Any], said: str, temporary: Path) -> None:
    with pytest.raises(skald.SkaldError, match=said):
        skald.anonymise(TABLE, job, settings)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ([1, 2], "'list' is no table"),
        (pa.table([pa.array([1]), pa.array([2])], ["age", "age"]), "called 'age'"),
        (pa.table({"sex": pa.array(["a canary"])}).filter([False]), "The source"),
        (pl.DataFrame({"sex": ["a canary"]}), "The source lacks"),
    ],
)
def test_what_is_no_table_for_the_job_is_told_without_a_value(frame: Any, said: str, temporary: Path) -> None:
    with pytest.raises(skald.SkaldError, match=said) as told:
        skald.anonymise(frame, JOB)
    assert "canary" not in str(told.value)


def test_tables_and_jobs_of_another_form_are_told_which_is_missing(tmp_path: Path) -> None:
    several = {"tables": {"person": {}}}
    for name, job in (("one", JOB), ("several", several | {"version": 2}), ("no version", several)):
        (tmp_path / name).write_text(yaml.safe_dump(job))
    (tmp_path / "cut").write_text("privacy: {k: [")
    wrong: list[tuple[Any, Any, str]] = [
        (TABLE, None, "'NoneType' is no job"),
        ({"person": TABLE}, None, "'NoneType' is no job"),
        (TABLE, 5, "'int' is no job"),
        *(({"person": TABLE}, job, "need a job that names them under tables") for job in (JOB, tmp_path / "one", str(tmp_path / "one"))),
        *((TABLE, job, "and one table was given") for job in (several, tmp_path / "several", tmp_path / "no version")),
        # What cannot be read is of neither form.
        ({"person": TABLE}, tmp_path / "cut", "cut"),
        ({"person": TABLE}, tmp_path / "none", "none"),
    ]
    for frame, job, said in wrong:
        with pytest.raises(skald.SkaldError) as told:
            skald.anonymise(frame, job)
        assert said in str(told.value), (job, str(told.value))
        assert isinstance(told.value, FrameError) == ("table" in said), job
    for call in (skald.run, skald.plan):
        with pytest.raises(skald.SkaldError, match="The job given: 1 fault in the job:\n  - 'NoneType' is no job"):
            call(None)  # type: ignore[operator]
        with pytest.raises(skald.SkaldError, match="must be a dict of dotted keys"):
            call("job.yaml", ["privacy.k=10"])  # type: ignore[operator]


@pytest.mark.slow
def test_a_table_is_no_release_that_the_folder_of_jobs_would_know(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for k in (5, 6):
        _, report = skald.anonymise(TABLE, JOB, {"privacy.k": k})
        assert report.manifest["overlaps"] is None
        assert "Earlier releases were not looked for." in str(report.page)
        assert "No earlier release was found" not in str(report.page)
    assert sorted(tmp_path.iterdir()) == before
