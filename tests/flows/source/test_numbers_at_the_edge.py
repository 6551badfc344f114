"""Numbers that floats do not tell apart, zeros of either sign and values of nobody are published by every method, with finite losses."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.job.method import METHODS
from tests.conftest import Anonymise
from tests.jobs import job_of, write_job

ROWS = 40


def column(values: list[Any], dtype: pa.DataType) -> pa.Array:
    return pa.array([values[row * 7 % ROWS % len(values)] for row in range(ROWS)], dtype)


EDGES: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "digits": (column([Decimal(10**25 + step) for step in range(8)], pa.decimal128(38, 0)), {"widths": [1, 2, 8]}),
    "cents": (column([10**18 + Decimal(step) / 100 for step in range(5)], pa.decimal128(38, 2)), {"widths": [0.01, 0.04]}),
    "whole": (column([2**63 - 1 - step for step in range(4)], pa.int64()), {"widths": [1, 2, 8]}),
    "unsigned": (column([2**64 - 1 - step for step in range(4)], pa.uint64()), {"widths": [1, 2, 8]}),
    "zeros": (column([-0.0, 1.0, 2.0, 3.0], pa.float64()), {"tree": {"few": ["0.0", "1.0"], "more": ["2.0", "3"]}}),
}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_publishes_numbers_at_the_edge_with_losses_from_0_to_1(anonymise: Anonymise, tmp_path: Path, method: str) -> None:
    qids = [{"name": name, "hierarchy": hierarchy} for name, (_, hierarchy) in EDGES.items()]
    job = job_of(source={"path": "a.parquet"}, columns={"quasi_identifiers": qids, "sensitive": ["s"]}, suppression={"limit": 0.1})
    pq.write_table(pa.table({name: values for name, (values, _) in EDGES.items()} | {"s": range(ROWS)}), tmp_path / "a.parquet")
    manifest = anonymise(write_job(tmp_path, job), f"method={{name: {method}}}").manifest
    assert manifest.released >= 36
    assert all(isfinite(loss) for loss in manifest.loss.values())
    assert 0 < manifest.loss["gcp"] <= 1


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_only_nobody_has_is_a_place_for_the_method_and_for_the_recount(
    anonymise: Anonymise, tmp_path: Path, method: str
) -> None:
    """Without it the ordered distance of the others is larger: six methods were told that their classes break the promise."""
    people = [row // 2 if row % 10 else None for row in range(60)]
    values = [50 if person is None else row // 2 % 4 for row, person in enumerate(people)]
    table = pa.table({"p": pa.array(people, pa.int64()), "q": [row // 2 % 6 for row in range(60)], "s": values})
    pq.write_table(table, tmp_path / "a.parquet")
    columns = {"person": "p", "quasi_identifiers": [{"name": "q", "hierarchy": {"widths": [1, 2, 6]}}], "sensitive": ["s"]}
    privacy = {"k": 2, "t": {"s": {"t": 0.3, "distance": "ordered"}}}
    job = job_of(source={"path": "a.parquet"}, columns=columns, privacy=privacy, suppression={"limit": 0.5})
    assert anonymise(write_job(tmp_path, job), f"method={{name: {method}}}").manifest.privacy["t"]["s"]["t"] == 0.3
