"""A source format that the product does not know is one entry: schema, faults, plan, release, a drafted job and docs find it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import json

from docs.reference_pages import job_page
from schemas.errors.base import JobError
from schemas.job.formats import FORMATS, SourceFormat
from schemas.job.job import Job, load_job
from schemas.reading.registry import Code
from schemas.relational.tables_job import jobs_json_schema
from tasks.planning.draft import draft_job
from tasks.planning.open_sources import SourceOptions
from tasks.planning.samples import Sample
from tasks.recount.recount import verify_release
from tasks.source.locations import Located, Readable
from tasks.store.database import literal
from tasks.store.keys import StepCode
from tasks.store.store import Store
from tests.conftest import Anonymise
from tests.jobs import job_of, released, write_job
from tests.registries.shown import shown_plan, shown_report

STEP = StepCode("lines", __name__)
TABLE = pa.table({"age": [20 + number % 7 for number in range(90)], "disease": ["flu", "gout", "cough"] * 30})
STEP = StepCode("lines", __name__)


def lines_as_parquet(_job: Job, file: Located, store: Store) -> Readable:
    """Convert a file of JSON values, one a line."""
    assert file.path is not None

    def write(part: Path) -> int:
        table = json.read_json(file.path)
        pq.write_table(table, part)
        return len(table)

    made = store.make("converted", STEP.key(file.digest), ".parquet", write)
    return Readable(store.path(made), file.digest, file.stat, converted=made.sha256)


def lines_sample(_connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> Sample:
    """Read such files."""
    return Sample(f"read_json([{', '.join(literal(str(path)) for path in files)}], format = 'newline_delimited')", {"format": "lines"})


TOY = SourceFormat(
    name="lines",
    words="files of JSON lines",
    suffixes=(".jsonl",),
    convert=Code("tests.registries.test_toy_format:lines_as_parquet"),
    sample=Code("tests.registries.test_toy_format:lines_sample"),
)


def toy_job(folder: Path) -> Path:
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [1, 2, 4]}}], "sensitive": ["disease"]}
    pl.DataFrame(TABLE).write_ndjson(folder / "people.jsonl")
    return write_job(folder, job_of(source={"path": "people.jsonl"}, columns=columns))


@pytest.mark.ci
def test_a_source_format_is_one_entry(anonymise: Anonymise, tmp_path: Path) -> None:
    with FORMATS.having(TOY):
        job = toy_job(tmp_path)
        assert load_job(job).source.format == "lines"
        assert "lines" in jobs_json_schema()["$defs"]["Source"]["properties"]["format"]["enum"]
        assert "| `lines` | files of JSON lines | `.jsonl` |" in job_page()
        assert "source files of JSON lines" in shown_plan(job)
        made = anonymise(job)
        assert "files of JSON lines" in shown_report(made)
        assert sorted(released(made.folder)["disease"]) == sorted(TABLE["disease"].to_pylist())
        verify_release(load_job(job), made.folder)
    assert "lines" not in jobs_json_schema()["$defs"]["Source"]["properties"]["format"]["enum"]
    with pytest.raises(JobError, match="make it Parquet"):
        load_job(job)


def test_its_faults_come_from_the_entry(tmp_path: Path) -> None:
    with FORMATS.having(TOY):
        job = toy_job(tmp_path)
        with pytest.raises(JobError) as raised:
            load_job(job, ["source.delimiter=;", "source.hive=true", "source.table=t"])
        assert raised.value.faults == (
            "source: 'delimiter' only fit CSV files, but the format is lines; remove them or say format: csv "
            "(given by --set source.delimiter)",
            "source: 'hive' only fits Parquet files, but the format is lines; remove it (given by --set source.hive)",
            "source: 'table' only fit databases, but the format is lines; remove them (given by --set source.table)",
        )
        with pytest.raises(JobError, match="the paths are of different formats"):
            load_job(job, ["source.path=[a.jsonl, b.csv]"])
    with pytest.raises(JobError, match="must be 'parquet', 'csv', 'arrow', 'duckdb' or 'postgresql'"):
        load_job(job, ["source.format=lines"])


def test_a_job_is_drafted_from_it(tmp_path: Path) -> None:
    with FORMATS.having(TOY):
        toy_job(tmp_path)
        drafted = draft_job(SourceOptions((str(tmp_path / "people.jsonl"),)), tmp_path / "draft.yaml")
        assert ({proposal.profile.name for proposal in drafted.proposals}, drafted.records) == ({"age", "disease"}, 90)
        assert load_job(tmp_path / "draft.yaml").source.format == "lines"
