"""Many equal records take a few bytes of Parquet and stand in one file of a release: they are refused before they take the memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors.values import ValuesError
from tests.conftest import Anonymise
from tests.jobs import two_column_job


@pytest.mark.ci
def test_equal_records_beyond_the_memory_are_refused_with_what_they_need(anonymise: Anonymise, tmp_path: Path) -> None:
    rows = 4_000_000
    nulls = pa.table({"q": pa.nulls(rows, pa.int64()), "s": pa.nulls(rows, pa.string())})
    job = two_column_job(tmp_path, nulls.slice(0, 10), {"widths": [5]}, memory="100MB")
    [file] = (tmp_path / "people").glob("*.parquet")
    pq.write_table(nulls, file)
    assert file.stat().st_size < 100_000
    with pytest.raises(ValuesError, match="4,000,000 records stand in one file of the release.*Raise 'memory' to 128 MB"):
        anonymise(job)
    assert anonymise(job, "memory=200MB").manifest.released == rows
