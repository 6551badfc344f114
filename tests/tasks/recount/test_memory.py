"""What a recount holds at a time is reckoned as a reader of its words would."""

from __future__ import annotations

import numpy as np
import pytest

from core.recount.labels.label_spans import Spans
from schemas.job.job import Job
from tasks.recount.published_labels import PublishedLabels
from tasks.recount.rows import takes_much
from tests.jobs import job_of


def test_the_bytes_of_labels_are_those_of_all_that_is_held_for_each_value() -> None:
    three, four = np.zeros(3, np.int64), np.zeros(4, np.int64)
    spans = Spans(three, three)
    assert PublishedLabels(0, "q", ('"q"',), spans, three, four, three, None, False).nbytes == 4 * 8 + 3 * 8
    assert PublishedLabels(0, "q", ('"q"',), spans, three, four, three, np.zeros(3, np.int32), False).nbytes == 4 * 8 + 3 * 8 + 3 * 4


@pytest.mark.parametrize(
    ("threads", "largest", "columns", "much"),
    # Of 256 MB, half is for reading: two threads with five times a row group of 12 MB are within it, and of 13 MB are not.
    [(2, 12_000_000, 1, False), (2, 13_000_000, 1, True), (1, 24_000_000, 1, False), (2, 1_000, 200, False), (2, 1_000, 300, True)],
)
def test_row_groups_that_all_threads_read_at_once_take_much_from_half_the_memory_on(
    threads: int, largest: int, columns: int, much: bool
) -> None:
    assert takes_much(Job.model_validate(job_of(threads=threads)), largest, columns) is much
