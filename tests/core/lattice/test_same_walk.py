"""Searches go the same way on every machine and in every version: what they find with little effort, and how many nodes they look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from core.columns.domains import Domain, Node
from core.histograms.histogram import Histogram
from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.certificate import Examination
from core.lattice.objectives import prices_of
from core.lattice.search import UNEXAMINED, Search
from core.privacy.models import DistinctDiversity
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from tests.core.units.tables_of_people import People
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
        one = BranchAndBound(
            Evaluations(
                example.histogram((0,) * 4),
                example.hierarchies,
                Promise(3),
                4,
                objective,
                effort=effort,
                most_cached_cells=100,
                prices=prices,
            )
        ).run()
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
        assert one.statuses is not None
        assert int((one.statuses == UNEXAMINED).sum()) == one.unexamined
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


def test_a_weighted_cost_is_told_per_value_of_a_quasi_identifier() -> None:
    """The last column is sensitive, and costs nothing."""
    example, weights = table_of("gcp"), (1.0, 2.0, 2.0)
    *axes, _ = example.hierarchies
    axes.append(exact_hierarchy(example.domains[-1]))
    root = Example(example.rows, example.domains, tuple(axes)).histogram((0,) * 4)
    prices = prices_of("gcp", axes[:3], example.domains[:3], 1, weights=weights)
    given = root, axes, Promise(3, (DistinctDiversity("qid 3", 2),)), 4, "gcp"
    whole = Search(*given, sensitive=[example.domains[-1]], prices=prices).run()
    branched = BranchAndBound(Evaluations(*given, sensitive=[example.domains[-1]], prices=prices)).run()
    assert whole is not None
    assert branched is not None
    assert branched.bound is not None
    assert whole.measured == branched.measured == {"weighted": pytest.approx(branched.bound * 3 / (40 * 3 * sum(weights)))}


def searched_for_people(objective: str, *, secret: bool) -> list[tuple[Node, int, int]]:
    """Search for two people in each class, of 25 who have the records; return node, suppressed and evaluated of three searches."""
    example = table_of(objective)
    axes, sensitive = list(example.hierarchies), list[Domain]()
    if secret:
        axes[-1], sensitive = exact_hierarchy(example.domains[-1]), [example.domains[-1]]
    table = People(Example(example.rows, example.domains, tuple(axes)), np.random.default_rng(3).integers(0, 25, 40).tolist())
    qids, root = 4 - len(sensitive), (0,) * 4
    prices = prices_of(objective, axes[:qids], example.domains[:qids], len(sensitive))
    promise = Promise(2, (DistinctDiversity("qid 3", 2),)) if secret else Promise(2)
    given = table.example.histogram(root), axes, promise, 4, objective
    more = {"sensitive": sensitive, "prices": prices, "persons": table.persons(root, 2)}
    found = [
        Search(*given, **more).run(),
        *(BranchAndBound(Evaluations(*given, effort=effort, most_cached_cells=100, **more)).run() for effort in (14, 1 << 40)),
    ]
    return [(one.node, one.loss.suppressed, one.evaluated) for one in found if one]


OF_PEOPLE: dict[tuple[str, bool], list[tuple[Node, int, int]]] = {
    ("dm_star", False): [((2, 0, 1, 3), 3, 48), ((2, 0, 2, 3), 0, 14), ((2, 0, 1, 3), 3, 78)],
    ("dm_star", True): [((0, 2, 2, 0), 4, 18), ((0, 2, 2, 0), 4, 14), ((0, 2, 2, 0), 4, 30)],
    ("c_avg", False): [((2, 2, 1, 1), 4, 71), ((2, 3, 0, 2), 3, 14), ((2, 2, 1, 1), 4, 95)],
    ("c_avg", True): [((2, 2, 0, 0), 4, 29), ((2, 2, 0, 0), 4, 14), ((2, 2, 0, 0), 4, 35)],
    ("gcp", False): [((1, 2, 2, 2), 0, 47), ((1, 3, 1, 3), 1, 14), ((1, 2, 2, 2), 0, 48)],
    ("gcp", True): [((2, 1, 1, 0), 2, 18), ((1, 1, 2, 0), 3, 14), ((2, 1, 1, 0), 2, 27)],
}


@pytest.mark.parametrize(("objective", "secret"), OF_PEOPLE)
def test_where_people_count_both_searches_find_the_same_and_go_the_way_that_they_always_went(objective: str, secret: bool) -> None:
    found = searched_for_people(objective, secret=secret)
    assert found == OF_PEOPLE[objective, secret]
    assert found[0][:2] == found[2][:2]
