"""What a draft asks of sensitive columns holds of the values that it publishes, of which rare ones are one value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.job.job import load_job
from tasks.planning.draft import draft_job
from tasks.planning.open_sources import SourceOptions

ROWS = 240
RARE = [f"code {number}" for number in range(ROWS)]


def drafted(folder: Path, icd10: list[Any]) -> dict[str, Any]:
    """Returns the l of a draft for records with some diagnoses."""
    table = pa.table({"age": [20 + number % 50 for number in range(ROWS)], "icd10": pa.array(icd10, pa.string())})
    pq.write_table(table, folder / "people.parquet")
    draft_job(SourceOptions((str(folder / "people.parquet"),)), folder / "job.yaml")
    load_job(folder / "job.yaml")
    job = yaml.safe_load((folder / "job.yaml").read_text())
    assert [one["name"] for one in job["columns"]["sensitive"]] == ["icd10"]
    return dict(job["privacy"].get("l", {}))


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        pytest.param(RARE, None, id="no value is shared: all become other"),
        pytest.param(["flu"] * 120 + RARE[120:], 2, id="one value is shared, the others are other"),
        pytest.param(["flu"] * 80 + ["cold"] * 80 + RARE[160:], 3, id="other is a value too"),
        pytest.param(["flu", " Flu", "FLU", "flu "] * 60, None, id="spellings of one value"),
        pytest.param(["yes"] * 100 + ["no"] * 80 + ["n/a"] * 60, 2, id="words for nothing are no value"),
        pytest.param(["flu"] * 200 + ["cold"] * 40, None, id="too few records have another value"),
    ],
)
def test_a_class_is_asked_for_no_more_values_than_are_published(tmp_path: Path, values: list[Any], asked: int | None) -> None:
    assert drafted(tmp_path, values) == ({"icd10": {"distinct": asked}} if asked else {})
