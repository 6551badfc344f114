"""Predictive tagging labels exactly what asking every node would, and asks about far fewer."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Node
from core.lattice.lattice import FAILS, PASSES, Lattice, middle_first, most_precise, tag
from tests.oracles.hierarchies import built
from tests.oracles.tables import observed


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """Up to five hierarchies; the root is the finest node or any other."""
    levels = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    root = tuple(draw(st.just(0) | st.integers(0, highest - 1)) for highest in levels)
    return Lattice(levels, root)


@st.composite
def predicates(draw: st.DrawFn, lattice: Lattice) -> Callable[[Node], bool]:
    """A monotone predicate: true at or above any of some nodes, or where a weighted height is reached."""
    if draw(st.booleans()):
        weights = draw(st.tuples(*(st.integers(0, 5) for _ in lattice.levels)))
        least = draw(st.integers(0, 40))
        return lambda node: sum(weight * level for weight, level in zip(weights, node, strict=True)) >= least
    corner = st.tuples(*(st.integers(0, highest) for highest in lattice.top))
    corners = draw(st.lists(corner, max_size=4))
    return lambda node: any(all(level >= least for level, least in zip(node, corner, strict=True)) for corner in corners)


def every_node(lattice: Lattice) -> list[Node]:
    return list(product(*(range(first, highest + 1) for first, highest in zip(lattice.root, lattice.top, strict=True))))


def prec(lattice: Lattice, node: Node) -> Fraction:
    steps = [Fraction(level, highest) if highest else Fraction(0) for level, highest in zip(node, lattice.top, strict=True)]
    return 1 - sum(steps, Fraction(0)) / len(steps)


def recorded(predicate: Callable[[Node], bool]) -> tuple[Callable[[Node], bool], list[Node]]:
    asked: list[Node] = []
    return lambda node: asked.append(node) or predicate(node), asked


@given(st.data())
def test_tags_are_those_of_asking_every_node(data: st.DataObject) -> None:
    lattice = data.draw(lattices())
    predicate = data.draw(predicates(lattice))
    tags = tag(lattice, predicate)
    assert tags.shape == lattice.shape
    assert {node: int(tags[lattice.position(node)]) for node in every_node(lattice)} == {
        node: int(PASSES if predicate(node) else FAILS) for node in every_node(lattice)
    }


@given(st.data())
def test_only_nodes_that_no_earlier_answer_decides_are_asked(data: st.DataObject) -> None:
    lattice = data.draw(lattices())
    predicate = data.draw(predicates(lattice))
    passes, asked = recorded(predicate)
    tag(lattice, passes)
    assert 1 <= len(asked) <= lattice.nodes
    for position, node in enumerate(asked):
        for earlier in asked[:position]:
            finer = all(level <= other for level, other in zip(node, earlier, strict=True))
            coarser = all(level >= other for level, other in zip(node, earlier, strict=True))
            assert not (coarser if predicate(earlier) else finer)


@given(st.data())
def test_the_first_node_asked_is_in_the_middle_level(data: st.DataObject) -> None:
    lattice = data.draw(lattices())
    passes, asked = recorded(data.draw(predicates(lattice)))
    tag(lattice, passes)
    height = sum(lattice.top) - sum(lattice.root)
    assert sum(asked[0]) - sum(lattice.root) == (height + 1) // 2


@given(lattices())
def test_the_order_begins_in_the_middle_of_the_middle_level(lattice: Lattice) -> None:
    first = lattice.axes_of(int(middle_first(lattice)[0]))
    height = sum(lattice.top) - sum(lattice.root)
    assert abs(2 * sum(first) - height) <= 1
    if all(size % 2 for size in lattice.shape):
        assert first == tuple(size // 2 for size in lattice.shape)


@given(lattices())
def test_the_order_from_the_middle_holds_every_node_once_and_the_most_decisive_first(lattice: Lattice) -> None:
    order = middle_first(lattice)
    assert sorted(order.tolist()) == list(range(lattice.nodes))
    decided = []
    for flat in order.tolist():
        axes = lattice.axes_of(flat)
        above = np.prod([size - step for step, size in zip(axes, lattice.shape, strict=True)])
        below = np.prod([step + 1 for step in axes])
        decided.append((-min(above, below), flat))
    assert decided == sorted(decided)


def test_a_chain_of_a_thousand_nodes_costs_ten_answers() -> None:
    for least in (0, 1, 499, 500, 501, 1_022, 1_023):
        passes, asked = recorded(lambda node, least=least: node[0] >= least)
        assert (tag(Lattice.from_exact_values([1_023]), passes) == PASSES).sum() == 1_023 - least
        assert len(asked) <= 10


def test_a_lattice_of_thousands_of_nodes_is_tagged_by_asking_less_than_half_of_it() -> None:
    lattice = Lattice.from_exact_values([2, 5, 2, 3, 4, 3, 3, 3])
    passes, asked = recorded(lambda node: sum(node) >= 8)
    tag(lattice, passes)
    assert lattice.nodes == 6_480
    assert len(asked) < 6_480 // 2


@given(st.data())
def test_the_most_precise_node_is_that_of_exact_fractions(data: st.DataObject) -> None:
    lattice = data.draw(lattices())
    predicate = data.draw(predicates(lattice))
    passing = [node for node in every_node(lattice) if predicate(node)]
    best = min(passing, key=lambda node: (-prec(lattice, node), node), default=None)
    assert most_precise(lattice, tag(lattice, predicate)) == best


@given(lattices())
def test_precision_is_one_minus_the_mean_share_of_the_way_up(lattice: Lattice) -> None:
    assert [lattice.precision(node) for node in lattice] == [prec(lattice, node) for node in every_node(lattice)]


@pytest.mark.parametrize(
    ("levels", "node", "precision"),
    [((2, 2), (0, 0), 1), ((2, 2), (1, 1), 0), ((4, 8), (1, 7), Fraction(1, 3)), ((3, 3, 3), (1, 0, 0), Fraction(5, 6))],
)
def test_precision_of_worked_examples(levels: tuple[int, ...], node: Node, precision: Fraction) -> None:
    assert Lattice.from_exact_values(levels).precision(node) == precision


@given(lattices())
def test_nodes_and_positions_are_each_other_s_inverse(lattice: Lattice) -> None:
    assert list(lattice) == every_node(lattice)
    assert len(list(lattice)) == lattice.nodes
    for flat, node in enumerate(lattice):
        assert lattice.at(lattice.position(node)) == lattice.at(flat) == node


@given(st.data())
def test_above_and_below_are_all_coarser_and_all_finer_nodes(data: st.DataObject) -> None:
    lattice = data.draw(lattices())
    node = data.draw(st.sampled_from(every_node(lattice)))
    for cut, belongs in ((lattice.above(node), np.greater_equal), (lattice.below(node), np.less_equal)):
        marked = np.zeros(lattice.shape, bool)
        marked[cut] = True
        for other in every_node(lattice):
            assert marked[lattice.position(other)] == belongs(other, node).all()


@pytest.mark.parametrize("root", [(0, 0, 0), (1, 0, 2), (3, 1, 0)])
def test_the_imprecision_of_all_nodes_is_that_of_each_above_whatever_root(root: tuple[int, ...]) -> None:
    domains = [observed(f"q{place}", list(range(8)), pa.int64()) for place in range(3)]
    axes = [built({"widths": widths}, domain) for widths, domain in zip(([2, 4], [4], [2, 4]), domains, strict=True)]
    lattice = Lattice.above_root(axes, root)
    found = lattice.imprecision
    for place in np.ndindex(*lattice.shape):
        node = tuple(low + step for low, step in zip(root, place, strict=True))
        assert found[place] == lattice.imprecision_of(node)
        exact = sum((Fraction(level, axis.top) for level, axis in zip(node, axes, strict=True)), Fraction(0))
        assert Fraction(int(found[place]), lattice.unit) == exact


def test_a_lattice_of_no_column_has_one_node_that_is_as_fine_and_as_coarse_as_can_be() -> None:
    lattice = Lattice((), ())
    assert (list(lattice), lattice.top, lattice.nodes) == ([()], (), 1)
    for found in (lattice.imprecision, lattice.heights):
        assert (found.shape, found.tolist()) == ((), 0)


@given(lattices())
def test_heights_are_levels_above_the_root(lattice: Lattice) -> None:
    found = lattice.heights
    assert [int(found[lattice.position(node)]) for node in lattice] == [sum(node) - sum(lattice.root) for node in lattice]
