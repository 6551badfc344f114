"""How many records may be suppressed, and which levels a job may name, is reckoned exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors.hierarchies import HierarchyError
from tasks.counting.coding import Coding
from tasks.lattice.promises import most_suppressed, named_node, searched_axes
from tests.core.recount.test_classes import job
from tests.oracles.hierarchies import built
from tests.oracles.tables import observed


@pytest.mark.parametrize(
    ("limit", "records", "most"), [(0.29, 100, 29), (0.07, 10_000, 700), (0, 50, 0), (1, 50, 50), (0.05, 39, 1), (0.1, 9, 0)]
)
def test_the_limit_allows_its_share_of_the_records_and_no_part_of_one(limit: float, records: int, most: int) -> None:
    assert most_suppressed(job(suppression={"limit": limit}), records) == most


def coding_of(least: int, sensitive: int = 0) -> Coding:
    """Two columns of three levels above their values, of which the first publishes none below ``least``."""
    domains = [observed(name, [1, 2, 3, 4], pa.int64()) for name in ("q0", "q1", *"st"[:sensitive])]
    first, second = (built({"widths": [2, 4]}, domain) for domain in domains[:2])
    return Coding(tuple(domains[:2]), (replace(first, least=least), second), ("", ""), tuple(domains[2:]))


def job_with(**method: Any) -> Any:
    qids = [{"name": name, "hierarchy": {"widths": [2, 4]}} for name in ("q0", "q1")]
    return job(columns={"quasi_identifiers": qids, "sensitive": ["s", "t"]}, method={"name": "skald"} | method)


@pytest.mark.parametrize(
    ("node", "fault"),
    [([3, 3], ""), ([1, 0], ""), ([4, 0], "q0"), ([1, 4], "q1"), ([0, 0], "q0"), (None, "")],
    ids=str,
)
@pytest.mark.parametrize("sensitive", [0, 1, 2])
def test_a_node_has_a_level_of_each_hierarchy_that_may_be_published(node: list[int] | None, fault: str, sensitive: int) -> None:
    named = job_with(**({"node": node} if node else {}))
    if fault:
        with pytest.raises(HierarchyError, match=f"'{fault}'"):
            named_node(named, coding_of(1, sensitive))
    else:
        assert named_node(named, coding_of(1, sensitive)) == ((*node, *[0] * sensitive) if node else None)


@pytest.mark.parametrize(("levels", "fault"), [([1, 3], False), ([0, 1], False), ([0, 0], True), ([1, 4], True), ([3, 3], False)], ids=str)
def test_levels_are_searched_within_those_that_may_be_published(levels: list[int], fault: bool) -> None:
    coding = coding_of(1, 2)
    if fault:
        with pytest.raises(HierarchyError, match="'q0'"):
            searched_axes(job_with(levels={"q0": levels}), coding)
        return
    first, *others = searched_axes(job_with(levels={"q0": levels}), coding)
    assert (first.least, first.top) == (max(levels[0], 1), levels[1])
    assert others == list(coding.axes[1:])
    assert searched_axes(job_with(), coding) == coding.axes
