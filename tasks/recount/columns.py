"""Whether the columns of written files are those that the job publishes, in its order, and text where they must be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.recount.classes import column_faults
from schemas.errors.base import StorageError
from schemas.job.job import Job
from schemas.release.manifest import published_payload, published_qids
from schemas.tables import release_schema
from tasks.release.files import partition_of
from tasks.store.tables import checked

STRANGE = "a data file's columns are not those of the job, in its order and types"


def column_faults_of(job: Job, files: Sequence[Path]) -> list[str]:
    """Returns what is wrong with the columns of Parquet files, and with the first rows of each."""
    faults: list[str] = []
    for path in files:
        folders = [name for name, *_ in partition_of(path)]
        try:
            names = pq.read_schema(path).names
            faults += column_faults(job, [*names, *folders])
            if folders != job.output.partition_by or set(folders) & set(names):
                faults.append("a data file is not in the folders that output.partition_by asks for")
            expected = [name for name in _expected(job, names) if name not in folders]
            if not faults:
                text = published_qids(job) if job.suppression.as_text else []
                checked(_first_rows(path), release_schema(expected, text), "release")
        except (OSError, pa.ArrowException):
            faults.append("a data file cannot be read as Parquet")
        except StorageError:
            faults.append(STRANGE)
    return list(dict.fromkeys(faults))


def read_faults(job: Job, connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    """Returns what is wrong with the columns of files of another format, as DuckDB reads them."""
    types = {str(name): str(dtype) for name, dtype, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    names = list(types)
    if faults := column_faults(job, names):
        return faults
    masked = job.suppression.as_text and any(types[name] != "VARCHAR" for name in published_qids(job))
    return [STRANGE] if masked or names != _expected(job, names) else []


def _expected(job: Job, names: Sequence[str]) -> list[str]:
    qids, payload = published_qids(job), published_payload(job)
    return [*qids, *([name for name in names if name not in qids] if payload is None else payload)]


def _first_rows(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return pa.Table.from_batches(list(islice(file.iter_batches(1000), 1)), file.schema_arrow)
