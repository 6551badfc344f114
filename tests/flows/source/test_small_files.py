"""Small files that unpack to gigabytes take no more of the machine than a job may, and end in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyarrow import ipc

from schemas.errors.values import ValuesError
from tests.conftest import Anonymise
from tests.jobs import two_column_job
from tests.places import ROOT

MEMORY, BESIDE = 512_000_000, 300_000_000
"""Bytes of the job, and what program and libraries take beside it."""
MEGABYTE, ROWS = 1_000_000, 3_000
MEASURED = """
import re, sys
from pathlib import Path
from flows import cli
sys.argv = ["skald", "run", "job.yaml", "--direct"]
try:
    cli.main()
finally:
    Path("peak").write_text(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""
"""Runs the job and writes down its peak in kB. What the system tells of an ended child holds the peak of the parent, too."""


def equal(rows: int, size: int) -> pa.Table:
    """Return records of a few ages, with the same text in each."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * size])
    return pa.table({"age": 30 + np.arange(rows) % 3, "text": text})


def parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, compression="zstd", store_schema=False)


def changes(path: Path, table: pa.Table) -> None:
    plain = pa.table({"age": table["age"], "text": table["text"].cast(pa.string())})
    pq.write_table(plain, path, compression="zstd", use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}, write_batch_size=16)


def arrow(path: Path, table: pa.Table) -> None:
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)


def cost_of(folder: Path, role: str, form: str) -> tuple[int, int, str]:
    """Run a job on ``in`` of a folder; return exit code, bytes at most and what was printed."""
    job = {
        "version": 1,
        "name": "small",
        "source": {"path": "in", "format": form},
        "target": "releases",
        "memory": "512MB",
        "columns": {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [5, 10]}}], role: ["text"]},
        "privacy": {"k": 5},
        "method": {"name": "skald"},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    with (folder / "printed").open("wb") as printed:
        command = [sys.executable, "-c", MEASURED]
        code = subprocess.call(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=printed, stderr=printed)
    return code, int((folder / "peak").read_text()) * 1024, " ".join((folder / "printed").read_text().split())


@pytest.mark.ci
def test_a_value_of_64_megabytes_in_three_thousand_records_is_refused_at_once(tmp_path: Path) -> None:
    parquet(tmp_path / "in", equal(ROWS, 64 * MEGABYTE))
    assert (tmp_path / "in").stat().st_size < 20_000
    code, peak, said = cost_of(tmp_path, "insensitive", "parquet")
    assert (code, "holds values of more than 16 MB" in said) == (2, True), said
    assert peak < MEMORY + BESIDE


@pytest.mark.slow
@pytest.mark.parametrize(("write", "form"), [(parquet, "parquet"), (changes, "parquet"), (arrow, "arrow")])
@pytest.mark.parametrize("role", ["insensitive", "identifiers"])
def test_a_small_file_takes_no_more_than_memory_and_what_programs_take(
    tmp_path: Path, write: Callable[[Path, pa.Table], None], form: str, role: str
) -> None:
    rows = 900 if write is changes else ROWS
    write(tmp_path / "in", equal(rows, MEGABYTE))
    assert (tmp_path / "in").stat().st_size < 60_000
    code, peak, said = cost_of(tmp_path, role, form)
    # Equal records are one file, whose values every reader would unpack; what is left out is in none.
    assert (code, "many equal records share" in said) == ((2, True) if role == "insensitive" else (0, False)), said
    assert peak < MEMORY + BESIDE


@pytest.mark.slow
def test_equal_records_beyond_the_memory_are_refused_with_what_they_need(anonymise: Anonymise, tmp_path: Path) -> None:
    rows = 4_000_000
    nulls = pa.table({"q": pa.nulls(rows, pa.int64()), "s": pa.nulls(rows, pa.string())})
    job = two_column_job(tmp_path, nulls.slice(0, 10), {"widths": [5]}, memory="100MB")
    [file] = (tmp_path / "people").glob("*.parquet")
    pq.write_table(nulls, file)
    assert file.stat().st_size < 100_000
    with pytest.raises(ValuesError, match=r"4,000,000 records stand in one file of the release.*Raise 'memory' to 128 MB"):
        anonymise(job)
    assert anonymise(job, "memory=200MB").manifest.released == rows
