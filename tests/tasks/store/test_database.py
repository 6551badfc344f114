"""What DuckDB lacks is said as what it is, however its rows are read."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SourceError, StorageError
from schemas.job.job import load_job
from tasks.store.database import attached_sql, connect, database_kept_open, parquet_sql
from tests.jobs import people, people_job
from tests.places import ROOT

LATE = "SELECT CASE WHEN row = 400000 THEN error('{}') ELSE row END FROM range(500000) AS rows(row)"
"""Fails when most rows were read."""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Out of Memory Error: could not allocate block", "memory"),
        ("IO Error: Could not write file: No space left on device", "No space left on device"),
    ],
)
def test_what_is_lacking_while_rows_are_read_is_told(tmp_path: Path, said: str, told: str) -> None:
    job = load_job(people_job(tmp_path, people(3)))
    with pytest.raises(StorageError, match=told), connect(job, tmp_path / "spill") as database:
        for _ in database.sql(LATE.format(said)).to_arrow_reader(1000):
            pass


def test_errors_of_the_system_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), connect(load_job(people_job(tmp_path, people(3))), tmp_path / "spill"):
        (tmp_path / "nowhere").read_bytes()


@pytest.mark.parametrize("folder", ["in[1]", "in[1", "a*b?", "[[]]", "q=7"])
def test_files_below_any_folder_are_read_as_they_are(tmp_path: Path, folder: str) -> None:
    places = [tmp_path / one for one in (folder, "in1", "axbx", "[", "]")]
    for number, place in enumerate(places):
        place.mkdir()
        pq.write_table(pa.table({"q": [number]}), place / "t.parquet")
    with connect(load_job(people_job(tmp_path, people(3))), tmp_path / "spill") as database:
        for number, place in enumerate(places):
            assert database.sql(f"FROM {parquet_sql([place / 't.parquet'])}").fetchall() == [(number,)]
        assert len(database.sql(f"FROM {parquet_sql([place / 't.parquet' for place in places])}").fetchall()) == len(places)


def test_every_statement_names_files_by_what_finds_no_other_file() -> None:
    """What ``[…]`` stands for is said in docstrings alone."""
    named = re.compile(r"(?:read_csv|read_parquet|sniff_csv)\((?!\{files_sql\(|\{files\}|\$files|\{literal\(file_pattern\(|\[…\])")
    found = [
        path.name for room in ("core", "tasks", "flows") for path in (ROOT / room).rglob("*.py") if named.search(path.read_text("utf-8"))
    ]
    assert not found


@pytest.mark.parametrize("folder", ["in\\x", "in?"])
def test_a_duckdb_file_that_would_be_taken_for_another_is_refused(tmp_path: Path, folder: str) -> None:
    for number, place in enumerate((folder, "in/x")):
        (tmp_path / place).mkdir(parents=True)
        with duckdb.connect(str(tmp_path / "made.duckdb")) as made:
            made.execute(f"CREATE TABLE t AS SELECT {number} AS q")
        (tmp_path / "made.duckdb").rename(tmp_path / place / "t.duckdb")
    with pytest.raises(SourceError, match="cannot be opened as a DuckDB file"):
        attached_sql(tmp_path / folder / "t.duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {attached_sql(tmp_path / 'in/x/t.duckdb')} AS other (READ_ONLY)")
        assert connection.execute("FROM other.t").fetchall() == [(1,)]


def test_every_statement_attaches_a_file_by_what_opens_no_other() -> None:
    found = [
        path.name
        for room in ("core", "tasks", "flows")
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"ATTACH (?:OR REPLACE )?\{(?!attached_sql\()", path.read_text("utf-8"))
    ]
    assert not found


def test_one_database_serves_all_who_share_it_and_nobody_else(tmp_path: Path) -> None:
    job = load_job(people_job(tmp_path, people(3)))
    with database_kept_open():
        with connect(job, tmp_path / "spill", shared=True) as first:
            first.execute("CREATE TABLE numbers AS SELECT 1 AS number")
            first.execute("CREATE TEMP TABLE own AS SELECT 1 AS number")
        with connect(job, tmp_path / "spill", shared=True) as second:
            assert second.sql("FROM numbers").fetchall() == [(1,)]
            with pytest.raises(duckdb.CatalogException, match="own"):
                second.sql("FROM own")
        with connect(job, tmp_path / "spill") as apart, pytest.raises(duckdb.CatalogException, match="numbers"):
            apart.sql("FROM numbers")
    with connect(job, tmp_path / "spill", shared=True) as later, pytest.raises(duckdb.CatalogException, match="numbers"):
        later.sql("FROM numbers")
