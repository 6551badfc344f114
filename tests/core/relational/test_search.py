"""The search over the levels of all tables finds what an enumeration finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Node
from core.lattice.lattice import Lattice
from core.relational.search import BestNode, NodeCost, best_node


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 12), st.integers(0, 2**32))
def test_the_best_node_is_that_of_an_enumeration(levels: list[int], most: int, seed: int) -> None:
    """Costs grow and failures shrink from finer to coarser levels, ties among both being frequent."""
    random, lattice = np.random.default_rng(seed), Lattice.from_exact_values(levels)
    base = [np.sort(random.integers(0, 5, size)).astype(float) for size in levels]
    fails = [np.sort(random.integers(0, 6, size))[::-1] for size in levels]
    looked: list[Node] = []
    # What l and t leave out besides is not monotone.
    extra = {node: int(random.integers(0, 3)) for node in lattice}

    def cost(node: Node) -> NodeCost:
        failing = sum(int(one[level]) for one, level in zip(fails, node, strict=True))
        return NodeCost(
            failing,
            failing + extra[node],
            sum(float(one[level]) for one, level in zip(base, node, strict=True)) + (failing + extra[node]) / 2,
        )

    def look(node: Node) -> NodeCost:
        looked.append(node)
        return cost(node)

    floor = np.zeros(lattice.shape)
    for axis, costs in enumerate(base):
        floor += costs.reshape([-1 if axis == place else 1 for place in range(len(levels))])
    half = len(levels) // 2
    found = best_node(lattice, floor, [list(range(half)), list(range(half, len(levels)))], most, look)
    passing = [node for node in lattice if cost(node).suppressed <= most]
    if not passing:
        assert found is None
        return
    assert isinstance(found, BestNode)
    ranked = min(passing, key=lambda node: (cost(node).loss, cost(node).suppressed, lattice.imprecision_of(node), node))
    assert found.node == ranked
    assert found.evaluated == len(looked) == len(set(looked)) <= found.nodes
