"""The front of nodes holds the optimum of every share, and nothing on it is beaten."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example as also
from hypothesis import given
from hypothesis import strategies as st

from core.lattice.objectives import prices_of
from core.lattice.pareto_front import MOST_SHOWN, SHARES, SURELY, ParetoNode, _thinned, _unbeaten, find_pareto_nodes
from core.lattice.search import Search
from core.privacy.promise import Promise
from tests.laws import tried
from tests.oracles.hierarchies import built
from tests.oracles.lattice import all_nodes, losses
from tests.oracles.tables import Example, examples, observed

TIED = [(1, None), (None, 0), (None, None), (0, None), (0, None)]
"""At k = 2 either column as it is costs the same and suppresses one record; the second makes the larger class."""


def front(example: Example, k: int) -> tuple[list, Search]:
    root, domains = (0,) * len(example.hierarchies), example.domains
    prices = prices_of("gcp", example.hierarchies, domains)

    def search(most: int) -> Search:
        return Search(example.histogram(root), example.hierarchies, Promise(k), most, "gcp", prices=prices)

    return find_pareto_nodes(search, len(example.rows), len(root)), search(len(example.rows))


def tied() -> Example:
    domains = tuple(observed(f"qid {place}", [row[place] for row in TIED], pa.int64()) for place in range(2))
    return Example(TIED, domains, tuple(built({"widths": [1]}, domain) for domain in domains))


@tried(40)
@also(tied(), 2)
@given(examples(), st.integers(1, 4))
def test_the_front_holds_the_optimum_of_every_share_and_nothing_beaten(example: Example, k: int) -> None:
    nodes, search = front(example, k)
    records = len(example.rows)
    every = []
    for node in all_nodes(example.ladders, (0,) * len(example.hierarchies)):
        suppressed = losses(example.rows, example.ladders, node, k).suppressed
        search.evaluate(node)
        every.append((search.values[node] / (records * len(node)), suppressed))
    for share in SHARES:
        allowed = [gcp for gcp, suppressed in every if suppressed <= floor(Fraction(share) * records)]
        shown = [one.gcp for one in nodes if one.optimal and round(one.suppressed * records) <= floor(share * records)]
        assert (min(allowed, default=None) is None) == (not shown) or min(allowed) == float("inf")
        assert not shown or abs(min(shown) - min(allowed)) < 1e-9
    for one in nodes:
        for other in nodes:
            mine, theirs = (one.gcp, one.suppressed, one.risk), (other.gcp, other.suppressed, other.risk)
            assert one is other or not all(a <= b for a, b in zip(mine, theirs, strict=True))


def test_where_nothing_can_be_published_there_is_no_front() -> None:
    assert front(tied(), 6)[0] == []


def test_a_search_tells_what_its_node_costs_for_each_record_and_weight() -> None:
    example = tied()
    prices = prices_of("gcp", example.hierarchies, example.domains, weights=(1.0, 3.0))
    search = Search(example.histogram((0, 0)), example.hierarchies, Promise(2), len(TIED), "gcp", prices=prices)
    found = search.run()
    assert found is not None
    assert found.measured == {"weighted": pytest.approx(search.values[found.node] / (len(TIED) * 4))}
    assert search.values[found.node] > 0


def test_a_node_is_optimal_only_within_the_suppression_for_which_it_costs_least() -> None:
    """With nothing suppressed (0,) is the best at 10; (1,) costs less and suppresses, and (2,) suppresses as much and costs least."""
    values, suppressed = {(0,): 10.0, (1,): 8.0, (2,): 5.0}, {(0,): 0, (1,): 4, (2,): 5}
    risks = {(0,): 0.3, (1,): 0.1, (2,): 0.2}

    def search(most: int) -> Any:
        best = min((node for node in values if suppressed[node] <= most), key=values.__getitem__)
        losses = {node: SimpleNamespace(suppressed=many) for node, many in suppressed.items()}
        return SimpleNamespace(run=lambda: SimpleNamespace(node=best), values=values, losses=losses, risk=risks.__getitem__)

    found = find_pareto_nodes(search, 100, 1)
    assert {one.node: one.optimal for one in found} == {(0,): True, (1,): False, (2,): True}


@pytest.mark.parametrize(("more", "optimal"), [(0.0, True), (SURELY / 2, True), (3 * SURELY, False), (0.1, False)])
def test_a_node_that_costs_as_much_as_the_best_but_for_rounding_is_optimal_too(more: float, optimal: bool) -> None:
    values, made = {(0,): 10.0, (1,): 10.0 * (1 + more), (2,): 1.0, (3,): 2.0}, list[Any]()
    suppressed, risks = {(0,): 0, (1,): 0, (2,): 21, (3,): 20}, {(0,): 0.3, (1,): 0.1, (2,): 0.05, (3,): 0.2}

    def search(most: int) -> Any:
        losses = {node: SimpleNamespace(suppressed=many) for node, many in suppressed.items()}
        made.append(SimpleNamespace(run=lambda: SimpleNamespace(node=(0,)), values=values, losses=losses, risk=risks.__getitem__))
        return made[-1]

    found = {one.node: one.optimal for one in find_pareto_nodes(search, 101, 1)}
    assert found[1,] == optimal
    # A fifth of the records may be suppressed, and no more.
    assert (3,) in found
    assert (2,) not in found
    # What another share permits is priced in each search.
    assert [one.most_priced for one in made] == [20] * len(SHARES)


@pytest.mark.parametrize("more", [0.0, SURELY / 2, SURELY, 2 * SURELY])
def test_of_two_that_differ_by_rounding_alone_the_first_stays_and_of_others_the_lower(more: float) -> None:
    close = more <= SURELY
    assert _unbeaten(np.array([[0.0, 0.5, 0.5], [more, 0.5, 0.5]])).tolist() == [True, False]
    assert _unbeaten(np.array([[more, 0.5, 0.5], [0.0, 0.5, 0.5]])).tolist() == [close, not close]
    assert _unbeaten(np.array([[more, 0.0, 0.5], [0.0, 0.5, 0.5]])).tolist() == [True, not close]


def test_of_many_nodes_that_are_no_optimum_some_are_shown_evenly_spread() -> None:
    nodes = [ParetoNode((place,), place / 100, 0.0, 1 - place / 100, place == 50) for place in range(100)]
    shown = [one.node[0] for one in _thinned(nodes)]
    assert (len(shown), shown[0], shown[-1], 50 in shown) == (MOST_SHOWN, 0, 99, True)
    assert max(after - before for before, after in pairwise(shown)) <= 6
    assert _thinned(nodes[:10]) == nodes[:10]
    assert _thinned(nodes[50:51]) == nodes[50:51]
    for optimal, shown in ((MOST_SHOWN + 1, MOST_SHOWN + 1), (MOST_SHOWN, MOST_SHOWN), (MOST_SHOWN - 1, MOST_SHOWN)):
        nodes = [ParetoNode((place,), place / 100, 0.0, 0.0, place < optimal) for place in range(MOST_SHOWN + 6)]
        assert _thinned(nodes) == nodes[:shown]
