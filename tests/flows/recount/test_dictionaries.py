"""A source whose values are encoded by dictionaries has the figures of one whose values are not."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.job.job import load_job
from tasks.recount.recount import verify_release
from tests.conftest import Anonymise
from tests.jobs import digests, two_column_job

DAY, NOON = date(2020, 1, 1), datetime(2020, 1, 1, 12, tzinfo=UTC)
COLUMNS: dict[str, tuple[list[Any], pa.DataType, dict[str, Any]]] = {
    "texts": (list("ab"), pa.string(), {"prefix": [1]}),
    "long texts": ([f"{number:03d}" for number in range(40)], pa.string(), {"prefix": [3, 2, 1]}),
    "numbers": (list(range(40)), pa.int32(), {"widths": [1, 5, 10]}),
    "fractions": ([number / 4 for number in range(40)], pa.float64(), {"widths": [0.5, 2]}),
    "days": ([DAY + timedelta(number) for number in range(40)], pa.date32(), {"date": ["month", "year"]}),
    "moments": ([NOON + timedelta(number) for number in range(40)], pa.timestamp("us", "UTC"), {"date": ["day", "year"]}),
}  # fmt: skip


@pytest.mark.ci
@pytest.mark.parametrize("method", ["skald", "mondrian"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_dictionary_changes_no_figure_and_no_byte(kind: str, method: str, anonymise: Anonymise, tmp_path: Path) -> None:
    values, dtype, hierarchy = COLUMNS[kind]
    drawn = np.random.default_rng(2).integers(0, len(values), 120)
    plain = pa.array([values[place] for place in drawn], dtype)
    made = []
    for name, column in (("plain", plain), ("encoded", plain.dictionary_encode())):
        table = pa.table({"q": column, "s": ["x", "y", "z"] * 40})
        job = two_column_job(tmp_path / name, table, hierarchy, method={"name": method}, privacy={"k": 4}, suppression={"limit": 0.1})
        release = anonymise(job)
        verify_release(load_job(job), release.folder)
        made.append((release.manifest.ncp, release.manifest.loss, digests(release.folder)))
    assert made[0] == made[1]
