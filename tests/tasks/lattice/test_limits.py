"""How many records may be suppressed is reckoned exactly."""

from __future__ import annotations

import pytest

from tasks.lattice.promises import most_suppressed
from tests.core.recount.test_classes import job


@pytest.mark.parametrize(
    ("limit", "records", "most"), [(0.29, 100, 29), (0.07, 10_000, 700), (0, 50, 0), (1, 50, 50), (0.05, 39, 1), (0.1, 9, 0)]
)
def test_the_limit_allows_its_share_of_the_records_and_no_part_of_one(limit: float, records: int, most: int) -> None:
    assert most_suppressed(job(suppression={"limit": limit}), records) == most
