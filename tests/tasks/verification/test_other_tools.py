"""What another tool wrote is recounted without a manifest, and what is ours is refused without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SkaldError, VerificationError
from schemas.job.job import Job
from tasks.release.files import TABLE
from tasks.verification.file_forms import faults_outside_table
from tasks.verification.release import VerificationContext, verify_published
from tests.jobs import job_of


def job_of_ages() -> Job:
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [10]}}], "insensitive": ["note"]}
    return Job.model_validate(job_of(columns=columns, privacy={"k": 2}))


def written(folder: Path) -> Path:
    """Four records of two classes, as any tool could write them."""
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.table({"age": ["[0 - 9]"] * 2 + ["[10 - 19]"] * 2, "note": list("abcd")}), folder / "data" / "part-0.parquet")
    return folder


def verified(release: Path, job: Job | None, key: bytes | None = None) -> Any:
    return verify_published(job, release, VerificationContext(str(release), key=key))


def test_the_files_of_another_tool_are_counted(tmp_path: Path) -> None:
    found = verified(written(tmp_path / "others"), job_of_ages())
    assert (found.manifest, found.recount.records, found.recount.classes, found.recount.min_class) == (None, 4, 2, 2)
    assert found.unverified == found.recount.unverified


@pytest.mark.parametrize("beside", ["report.html", "manifest.sig", ""])
def test_a_release_of_ours_without_its_manifest_is_none(tmp_path: Path, beside: str) -> None:
    release = written(tmp_path / ("others" if beside else "people-0123456789abcdef"))
    if beside:
        (release / beside).write_text("")
    with pytest.raises(VerificationError, match=r"manifest\.json is missing"):
        verified(release, job_of_ages())


def test_without_a_manifest_no_key_signed_it_and_without_a_job_nothing_is_known(tmp_path: Path) -> None:
    release = written(tmp_path / "others")
    with pytest.raises(VerificationError, match="there is no signature of the key"):
        verified(release, job_of_ages(), b"k" * 32)
    with pytest.raises(SkaldError, match="without one, a job is needed"):
        verified(release, None)


@pytest.mark.parametrize("beside", [None, "CREATE VIEW seen AS SELECT 1"])
def test_the_database_of_another_tool_holds_its_table_alone(tmp_path: Path, beside: str | None) -> None:
    release = tmp_path / "others"
    (release / "data").mkdir(parents=True)
    with duckdb.connect(release / "data" / "others.duckdb") as made:
        made.execute(f"CREATE TABLE {TABLE} AS SELECT unnest(['[0 - 9]', '[0 - 9]']) AS age, unnest(['a', 'b']) AS note")
        if beside:
            made.execute(beside)
    if beside:
        with pytest.raises(VerificationError, match=f"holds views beside the table '{TABLE}'"):
            verified(release, job_of_ages())
    else:
        assert verified(release, job_of_ages()).recount.records == 2


def faults_of(folder: Path, *statements: str) -> list[str]:
    """The faults of a DuckDB file with the table of a release, after some statements."""
    path = folder / "release.duckdb"
    with duckdb.connect(path) as made:
        made.execute(f"CREATE TABLE {TABLE} AS SELECT range AS v FROM range(10)")
        for statement in statements:
            made.execute(statement)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS written (READ_ONLY)")
        return faults_outside_table(connection, path)


def test_whatever_a_database_holds_beside_its_table_is_named(tmp_path: Path) -> None:
    beside = {
        "tables": f"CREATE TABLE other AS FROM {TABLE}", "views": "CREATE VIEW seen AS SELECT 1", "schemas": "CREATE SCHEMA more",
        "sequences": "CREATE SEQUENCE numbers", "macros": "CREATE MACRO twice(n) AS 2 * n", "types": "CREATE TYPE word AS ENUM ('a')",
        "indexes": f"CREATE INDEX fast ON {TABLE} (v)", "comments": f"COMMENT ON TABLE {TABLE} IS 'hidden'",
    }  # fmt: skip
    assert faults_of(tmp_path, *beside.values())[0] == f"the DuckDB file holds {', '.join(beside)} beside the table '{TABLE}'"


def test_bytes_behind_a_database_and_free_blocks_belong_to_no_table(tmp_path: Path) -> None:
    assert faults_of(tmp_path) == []
    path, fault = tmp_path / "release.duckdb", ["the DuckDB file holds blocks or bytes that belong to no table"]
    with path.open("ab") as file:
        file.write(b"more")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS written (READ_ONLY)")
        assert faults_outside_table(connection, path) == fault
    (tmp_path / "full").mkdir()
    many = "CREATE TABLE many AS SELECT md5(range::VARCHAR) AS text FROM range(20000)"
    assert faults_of(tmp_path / "full", many, "CHECKPOINT", "DROP TABLE many", "CHECKPOINT") == fault
