"""Searches go the same way on every machine and in every version: what they find with little effort, and how many nodes they look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from core.columns.domains import Node
from core.histograms.histogram import Histogram
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.certificate import Examination
from core.lattice.objectives import prices_of
from core.privacy.promise import Promise
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed

OBJECTIVES = ["dm_star", "dm_all", "c_avg", "precision", "gcp", "gcp_covered", "entropy"]
EFFORTS = (7, 14, 28, 1 << 40)
MEMORIES = ((24, 2), (60, 3), (200, 24))


def table_of(objective: str) -> Example:
    """Forty records of four columns, drawn anew for each objective."""
    drawn = np.random.default_rng(OBJECTIVES.index(objective))
    rows = [tuple(drawn.integers(0, 8, 4).tolist()) for _ in range(40)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(4))
    return Example(rows, domains, tuple(built({"widths": [2, 4] if place % 2 else [1, 3]}, one) for place, one in enumerate(domains)))


def counted(example: Example, roots: Sequence[Node]) -> Iterator[Histogram]:
    """Count the cells of some roots, of which there is one at least."""
    assert roots
    return map(example.histogram, roots)


def walked(objective: str) -> list[tuple[Node, int, int, float, float | None, dict[str, float]]]:
    """Search with more and more effort; return the node, how many were looked at and are left, the bound, the gap and the objective."""
    example, found = table_of(objective), []
    prices = prices_of(objective, example.hierarchies, example.domains)
    for effort in EFFORTS:
        one = BranchAndBound(example.histogram((0,) * 4), example.hierarchies, Promise(3), 4, objective, effort, 100, prices=prices).run()
        assert one is not None
        assert one.bound is not None
        gap, measured = one.gap and round(one.gap, 6), {name: round(share, 6) for name, share in one.measured.items()}
        found.append((one.node, one.evaluated, one.unexamined, round(one.bound, 6), gap, measured))
    return found


def examined(objective: str) -> list[tuple[Node, int, int, int | None, tuple[Node, ...]]]:
    """Examine with more and more memory; return the node, how many were looked at, are left and pass, and the further roots."""
    example, found = table_of(objective), []
    prices = prices_of(objective, example.hierarchies, example.domains)
    top = tuple(hierarchy.top for hierarchy in example.hierarchies)
    for most_cells, most_roots in MEMORIES:
        examination = Examination(example.hierarchies, Promise(3), 40, 3, 4, objective, most_cells, 30, most_roots, prices=prices)
        one = examination.run(example.histogram(top), partial(counted, example), lambda nodes, most: [False] * len(nodes))
        assert one is not None
        found.append((one.node, one.evaluated, one.unexamined, one.nodes_passing, one.roots[1:]))
    return found


WALKED: dict[str, list[tuple[Node, int, int, float, float | None, dict[str, float]]]] = {
    "dm_star": [
        ((0, 3, 2, 3), 7, 144, 118, 0.864407, {}),
        ((2, 0, 2, 3), 14, 144, 118, 0.779661, {}),
        ((2, 0, 2, 3), 28, 52, 118, 0.779661, {}),
        ((2, 3, 1, 1), 58, 0, 168, 0.0, {}),
    ],
    "dm_all": [
        ((2, 3, 0, 3), 7, 144, 112, 1.232143, {}),
        ((1, 3, 1, 3), 14, 144, 112, 0.75, {}),
        ((1, 3, 1, 3), 28, 64, 112, 0.75, {}),
        ((1, 3, 1, 3), 56, 0, 196, 0.0, {}),
    ],
    "c_avg": [
        ((0, 3, 2, 3), 7, 144, 3.0, 0.857143, {}),
        ((2, 0, 2, 3), 14, 144, 3.0, 0.666667, {}),
        ((1, 2, 2, 2), 28, 56, 3.0, 0.233333, {}),
        ((1, 2, 2, 2), 68, 0, 3.7, 0.0, {}),
    ],
    "precision": [
        ((0, 3, 2, 3), 7, 144, 0.0, None, {}),
        ((0, 3, 2, 3), 14, 144, 0.0, None, {}),
        ((1, 3, 2, 1), 28, 72, 6.0, 1.833333, {}),
        ((1, 3, 2, 1), 50, 0, 17.0, 0.0, {}),
    ],
    "gcp": [
        ((1, 3, 1, 3), 7, 144, 0.0, None, {}),
        ((1, 3, 1, 3), 14, 144, 0.0, None, {}),
        ((2, 2, 2, 1), 28, 46, 53.142857, 0.935484, {}),
        ((2, 2, 2, 1), 49, 0, 102.857143, 0.0, {}),
    ],
    "gcp_covered": [
        ((1, 3, 1, 3), 7, 144, 0.0, None, {}),
        ((1, 3, 1, 3), 14, 144, 0.0, None, {}),
        ((1, 2, 2, 2), 28, 46, 62.857143, 0.590909, {}),
        ((1, 2, 2, 2), 46, 0, 100.0, 0.0, {}),
    ],
    "entropy": [
        ((1, 3, 1, 3), 7, 144, 0.0, None, {}),
        ((1, 3, 1, 3), 14, 144, 0.0, None, {}),
        ((1, 3, 1, 3), 28, 64, 116.190077, 1.970549, {}),
        ((1, 3, 1, 3), 46, 0, 345.148301, 0.0, {}),
    ],
}
EXAMINED: dict[str, list[tuple[Node, int, int, int | None, tuple[Node, ...]]]] = {
    "dm_star": [
        ((2, 1, 2, 2), 7, 64, 9, ((1, 1, 2, 2),)),
        ((2, 1, 2, 2), 17, 17, 11, ((1, 1, 2, 1), (2, 1, 0, 2))),
        ((2, 3, 1, 1), 32, 0, 19, ((0, 1, 1, 2), (1, 0, 2, 0), (1, 2, 0, 1), (0, 3, 1, 0))),
    ],
    "dm_all": [
        ((2, 1, 2, 2), 7, 63, 9, ((1, 1, 2, 2),)),
        ((2, 1, 2, 2), 17, 16, 11, ((1, 1, 2, 1), (2, 1, 0, 2))),
        ((1, 3, 1, 3), 29, 0, 14, ((0, 1, 1, 2), (2, 1, 0, 0), (1, 0, 2, 0), (0, 2, 0, 3))),
    ],
    "c_avg": [
        ((1, 2, 2, 2), 7, 76, 10, ((1, 1, 2, 2),)),
        ((1, 2, 2, 2), 14, 21, 12, ((1, 1, 2, 1), (2, 0, 1, 2))),
        ((1, 2, 2, 2), 28, 0, 16, ((0, 1, 1, 2), (1, 0, 2, 0), (1, 2, 0, 1), (0, 3, 1, 0))),
    ],
    "precision": [
        ((2, 1, 2, 2), 7, 65, 9, ((1, 1, 2, 2),)),
        ((1, 3, 2, 1), 14, 32, 15, ((1, 1, 2, 1), (2, 0, 1, 2))),
        ((1, 3, 2, 1), 32, 0, 17, ((0, 1, 1, 2), (1, 0, 2, 0), (1, 2, 0, 1), (0, 0, 1, 3))),
    ],
    "gcp": [
        ((2, 1, 2, 2), 7, 61, 9, ((1, 1, 2, 2),)),
        ((2, 2, 2, 1), 15, 21, 11, ((1, 1, 2, 1), (2, 0, 1, 2))),
        ((2, 2, 2, 1), 29, 0, 16, ((0, 1, 1, 2), (1, 0, 2, 0), (1, 2, 0, 1))),
    ],
    "gcp_covered": [
        ((1, 2, 2, 2), 6, 73, 10, ((1, 1, 2, 2),)),
        ((1, 2, 2, 2), 12, 14, 12, ((1, 1, 2, 1), (2, 1, 0, 2))),
        ((1, 2, 2, 2), 27, 0, 15, ((0, 1, 1, 2), (1, 0, 2, 0), (1, 2, 0, 1), (0, 3, 1, 0))),
    ],
    "entropy": [
        ((2, 1, 2, 2), 7, 65, 9, ((1, 1, 2, 2),)),
        ((2, 2, 2, 1), 16, 24, 12, ((1, 1, 2, 1), (2, 0, 1, 2))),
        ((1, 3, 1, 3), 29, 0, 16, ((0, 1, 1, 2), (1, 0, 2, 0), (1, 2, 0, 1))),
    ],
}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_with_more_effort_a_search_comes_as_far_as_it_always_did(objective: str) -> None:
    assert walked(objective) == WALKED[objective]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_with_more_memory_an_examination_takes_the_roots_that_it_always_took(objective: str) -> None:
    assert examined(objective) == EXAMINED[objective]
