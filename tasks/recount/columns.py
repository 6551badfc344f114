"""Whether the columns of written files are those that the job publishes, in its order, and text where they must be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.recount.classes import column_faults
from schemas.job.job import Job
from schemas.release.manifest import published_payload, published_qids
from tasks.release.files import partition_of

WRONG_COLUMNS = "a data file's columns are not those of the job, in its order and types"

HELD, BUFFERS = 5, 1 << 18
"""Row groups that DuckDB may hold of a file for each thread, on its way from pages to hashes, and bytes of buffers for each column."""


def are_wide(job: Job, files: Sequence[Path]) -> bool:
    """Tells whether the threads of a recount cannot all read whole records within the job's memory.

    Args:
        job: Gives memory and threads.
        files: The data files, of which one has row groups like another.
    """
    if files[0].suffix != ".parquet":
        return False
    footer = pq.read_metadata(files[0])
    largest = max((footer.row_group(number).total_byte_size for number in range(footer.num_row_groups)), default=0)
    return takes_much(job, largest, footer.num_columns)


def takes_much(job: Job, largest: int, columns: int) -> bool:
    """Tells whether threads that read whole records take more than there is for them.

    Args:
        job: Gives memory and threads.
        largest: Bytes of the largest row group.
        columns: How many it has.
    """
    threads = job.threads or len(os.sched_getaffinity(0))
    return bool(threads * (HELD * largest + BUFFERS * columns) > job.memory // 2)


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
                faults += _unexpected(pq.read_schema(path), expected, text)
        except (OSError, pa.ArrowException):
            faults.append("a data file cannot be read as Parquet")
    # Once each, however many files have it.
    return list(dict.fromkeys(faults))


def read_faults(job: Job, connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    """Returns what is wrong with the columns of files of another format, as DuckDB reads them."""
    types = {str(name): str(dtype) for name, dtype, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    names = list(types)
    if faults := column_faults(job, names):
        return faults
    masked = job.suppression.as_text and any(types[name] != "VARCHAR" for name in published_qids(job))
    return [WRONG_COLUMNS] if masked or names != _expected(job, names) else []


def _expected(job: Job, names: Sequence[str]) -> list[str]:
    qids, payload = published_qids(job), published_payload(job)
    return [*qids, *([name for name in names if name not in qids] if payload is None else payload)]


def _unexpected(schema: pa.Schema, columns: Sequence[str], text: Sequence[str]) -> list[str]:
    """Returns whether a file has other columns or another order, or anything but text where a ``*`` may stand."""
    wrong = [name for name in text if name in schema.names and not _is_text(schema.field(name).type)]
    return [WRONG_COLUMNS] if schema.names != columns or wrong else []


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pt.is_string(dtype) or pt.is_large_string(dtype) or pt.is_string_view(dtype))
