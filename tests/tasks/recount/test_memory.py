"""What a recount holds at a time is reckoned as a reader of its words would."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.recount.labels.label_spans import Spans
from schemas.job.job import Job
from tasks.recount import rows
from tasks.recount.published_labels import PublishedLabels
from tasks.recount.rows import exceeds_half_memory
from tests.jobs import job_of


def test_the_bytes_of_labels_are_those_of_all_that_is_held_for_each_value() -> None:
    three, four = np.zeros(3, np.int64), np.zeros(4, np.int64)
    spans = Spans(three, three)
    assert PublishedLabels(0, "q", ('"q"',), spans, three, four, three, None, False).nbytes == 4 * 8 + 3 * 8
    assert PublishedLabels(0, "q", ('"q"',), spans, three, four, three, np.zeros(3, np.int32), False).nbytes == 4 * 8 + 3 * 8 + 3 * 4


@pytest.mark.parametrize(
    ("threads", "largest", "columns", "much"),
    # Of 256 MB, half is for reading: two threads with five times a row group of 12 MB are within it, and of 13 MB are not.
    [(2, 12_000_000, 1, False), (2, 13_000_000, 1, True), (1, 24_000_000, 1, False),
     (1, 25_337_856, 5, False), (1, 25_337_857, 5, True), (2, 1_000, 200, False), (2, 1_000, 300, True)],
)  # fmt: skip
def test_row_groups_that_all_threads_read_at_once_take_much_from_half_the_memory_on(
    threads: int, largest: int, columns: int, much: bool
) -> None:
    assert exceeds_half_memory(Job.model_validate(job_of(threads=threads)), largest, columns) is much


def test_without_threads_in_the_job_as_many_read_as_the_process_has_cores() -> None:
    cores, job = os.sched_getaffinity(0), Job.model_validate(job_of())
    try:
        for some in ({min(cores)}, cores):
            os.sched_setaffinity(0, some)
            for largest in (12_000_000, 13_000_000, 25_000_000, 26_000_000):
                same = Job.model_validate(job_of(threads=len(some)))
                assert exceeds_half_memory(job, largest, 1) is exceeds_half_memory(same, largest, 1)
    finally:
        os.sched_setaffinity(0, cores)


def test_records_are_wide_by_the_largest_row_group_of_parquet_and_never_of_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, asked = Job.model_validate(job_of()), list[tuple[int, int]]()
    monkeypatch.setattr(rows, "exceeds_half_memory", lambda of, largest, columns: of is job and not asked.append((largest, columns)))
    table = pa.table({"a": range(1_000), "b": [str(number) for number in range(1_000)], "c": [0] * 1_000})
    with pq.ParquetWriter(tmp_path / "0.parquet", table.schema) as writer:
        for first, size in ((0, 100), (100, 800), (900, 100)):
            writer.write_table(table.slice(first, size))
    footer = pq.read_metadata(tmp_path / "0.parquet")
    assert rows.have_wide_records(job, [tmp_path / "0.parquet", tmp_path / "none.parquet"])
    assert asked == [(footer.row_group(1).total_byte_size, 3)]
    (tmp_path / "0.csv").write_text("a\n1\n")
    assert not rows.have_wide_records(job, [tmp_path / "0.csv"])
    pq.ParquetWriter(tmp_path / "empty.parquet", table.schema).close()
    assert rows.have_wide_records(job, [tmp_path / "empty.parquet"])
    assert asked[1:] == [(0, 3)]
