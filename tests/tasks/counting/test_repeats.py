"""What repeats is counted of the files that the run was begun with, also where a file lacks the column."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.base import SourceError
from schemas.job.job import load_job
from tasks.counting.repeats import REPEATED_VALUES, ColumnsReading, repeated_columns
from tasks.source.extracts import open_run
from tasks.source.sources import read_source
from tests.jobs import people, people_job

TABLE = people(60).drop_columns(["person"])


def evolving(folder: Path) -> Path:
    """A job on two files, of which the second lacks the identifier: nothing of it is read where identifiers are counted."""
    source = {"path": "people/*.parquet", "schema": "evolve"}
    job = people_job(folder, TABLE.append_column("person", pa.array([row // 3 for row in range(60)])), source=source)
    pq.write_table(TABLE, folder / "people" / "other.parquet")
    return job


def test_what_a_file_lacks_repeats_nowhere(tmp_path: Path) -> None:
    job = load_job(evolving(tmp_path))
    with open_run(job) as run:
        chunks = read_source(run).chunks
        given = ColumnsReading(("person",), run.store)
        parts = REPEATED_VALUES(given, chunks)
        assert sorted(part.rows for part in parts) == [0, 20]
        found = repeated_columns(given, parts)
    assert (found["person"].mean, found["person"].most) == (3.0, 3)


def test_a_file_that_lacks_the_column_only_since_it_changed_is_noticed(tmp_path: Path) -> None:
    """Without the column nothing else of the file is read that could tell."""
    job = load_job(evolving(tmp_path))
    with open_run(job) as run:
        chunks = read_source(run).chunks
        for chunk in chunks:
            for piece in chunk.pieces:
                pq.write_table(TABLE.slice(1), piece.file.path)
            with pytest.raises(SourceError, match="changed"):
                REPEATED_VALUES.result(ColumnsReading(("person",), run.store), chunk)
        assert not list((run.store.folder / "repeats").glob("*.record"))


@pytest.mark.parametrize(("part", "measured"), [(0, False), (Decimal("0.5"), True)])
def test_whole_decimals_have_no_fractions_though_their_doubles_may_have(tmp_path: Path, part: Decimal, measured: bool) -> None:
    """Arrow makes a double beside 3 of the 3 that has fifteen decimal places."""
    people_with = TABLE.append_column("person", pa.array([row // 3 + part for row in range(60)], pa.decimal128(38, 15)))
    with open_run(load_job(people_job(tmp_path, people_with))) as run:
        given = ColumnsReading(("person",), run.store)
        found = repeated_columns(given, REPEATED_VALUES(given, read_source(run).chunks))
    assert ("person" in found) != measured
