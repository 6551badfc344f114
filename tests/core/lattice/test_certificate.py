"""The examination of a whole lattice by several roots finds the best of all nodes, or says truly how many it does not know of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor, inf, prod

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Node
from core.histograms.histogram import Histogram
from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.certificate import Examination
from core.lattice.objectives import prices_of
from core.lattice.search import BARRED, Search, SearchResult
from core.privacy.models import EntropyDiversity
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from tests.core.units.tables_of_people import People
from tests.laws import tried
from tests.oracles.hierarchies import built
from tests.oracles.lattice import Losses, all_nodes, best_node, class_sizes, losses, passing_nodes
from tests.oracles.tables import Example, examples, nodes_of, observed

OBJECTIVES = st.sampled_from(["dm_star", "dm_all"])


def product_of(example: Example, node: Node) -> int:
    return prod(len(hierarchy.labels[level]) for hierarchy, level in zip(example.hierarchies, node, strict=True))


def examined(data: st.DataObject, example: Example, k: int, limit: Fraction, objective: str, most_roots: int) -> SearchResult | None:
    """Examine with a memory of a few cells, from any root that fits it; what is crowded is told or kept back at will, never invented."""
    most_cells = data.draw(st.integers(1, 40))
    most_suppressed = floor(limit * len(example.rows))
    fitting = [node for node in all_nodes(example.ladders) if product_of(example, node) <= most_cells]
    asked: list[Node] = []

    def count(roots: Sequence[Node]) -> Iterator[Histogram]:
        asked.extend(roots)
        bound = len(example.rows) // k + most_suppressed
        assert all(product_of(example, root) <= most_cells or bound <= most_cells for root in roots)
        return (example.histogram(root) for root in roots)

    def has_too_many_cells(nodes: Sequence[Node], most: int) -> list[bool]:
        return [len(class_sizes(example.rows, example.ladders, node)) > most and data.draw(st.booleans()) for node in nodes]

    first = data.draw(st.sampled_from(fitting))
    examination = Examination(example.hierarchies, Promise(k), len(example.rows), k, most_suppressed, objective, most_cells, 30, most_roots)
    found = examination.run(example.histogram(first), count, has_too_many_cells)
    assert len(asked) + 1 <= most_roots
    assert len({first, *asked}) == len(asked) + 1
    if found:
        assert found.roots == (first, *asked)
    return found


def value(example: Example, node: Node, k: int, objective: str) -> float:
    loss: Losses = losses(example.rows, example.ladders, node, k)
    if loss.suppressed == len(example.rows):
        return inf  # publishes nothing
    return loss.dm_star if objective == "dm_star" else loss.dm_all


@given(st.data(), examples(), st.integers(1, 8), st.fractions(0, 1, max_denominator=8), OBJECTIVES, st.sampled_from([1, 2, 3, 24]))
@tried(300)
def test_the_best_of_all_nodes_is_found_or_the_rest_is_counted(
    data: st.DataObject, example: Example, k: int, limit: Fraction, objective: str, most_roots: int
) -> None:
    found = examined(data, example, k, limit, objective, most_roots)
    best = best_node(example.rows, example.ladders, k, limit, objective)
    if found is None or best is None:
        assert found is best
        return
    passing = passing_nodes(example.rows, example.ladders, k, limit)
    assert found.node in passing
    assert found.nodes == len(list(all_nodes(example.ladders)))
    assert found.nodes_passing <= len(passing)
    if found.unexamined == 0:
        assert found.node == best
    mine = value(example, found.node, k, objective)
    assert sum(value(example, node, k, objective) < mine for node in passing) <= found.unexamined


@given(st.data(), examples(), st.integers(1, 8), st.fractions(0, 1, max_denominator=8), OBJECTIVES)
@tried(150)
def test_with_more_roots_no_less_is_known_and_no_node_is_rolled_up_twice(
    data: st.DataObject, example: Example, k: int, limit: Fraction, objective: str
) -> None:
    most_cells, most_suppressed = data.draw(st.integers(1, 40)), floor(limit * len(example.rows))
    first = data.draw(st.sampled_from([node for node in all_nodes(example.ladders) if product_of(example, node) <= most_cells]))
    known: list[tuple[int, int]] = []
    for most_roots in (1, 2, 4, 8, 1000):
        examination = Examination(
            example.hierarchies, Promise(k), len(example.rows), k, most_suppressed, objective, most_cells, 30, most_roots
        )
        found = examination.run(
            example.histogram(first), lambda roots: map(example.histogram, roots), lambda nodes, _: [False] * len(nodes)
        )
        if found and found.nodes_passing is not None:
            assert found.evaluated <= found.nodes
            known.append((found.nodes_passing, -found.unexamined))
    assert [passing for passing, _ in known] == sorted(passing for passing, _ in known)
    assert [left for _, left in known] == sorted(left for _, left in known)


@given(st.data(), examples(), st.integers(1, 8), st.fractions(0, 1, max_denominator=8), OBJECTIVES)
@tried(100)
def test_where_every_node_fits_the_optimum_is_always_certified(
    data: st.DataObject, example: Example, k: int, limit: Fraction, objective: str
) -> None:
    first = data.draw(st.sampled_from(list(all_nodes(example.ladders))))
    examination = Examination(
        example.hierarchies, Promise(k), len(example.rows), k, floor(limit * len(example.rows)), objective, 1 << 40, 30
    )
    found = examination.run(example.histogram(first), lambda roots: map(example.histogram, roots), lambda nodes, _: [False] * len(nodes))
    best = best_node(example.rows, example.ladders, k, limit, objective)
    assert (found and found.node) == best
    assert found is None or found.unexamined == 0


@given(st.data(), examples(), st.integers(2, 8), OBJECTIVES)
@tried(100)
def test_where_every_passing_node_fits_the_optimum_is_always_certified(
    data: st.DataObject, example: Example, k: int, objective: str
) -> None:
    most_cells = max(len(example.rows) // k, 1)
    fitting = [node for node in all_nodes(example.ladders) if product_of(example, node) <= most_cells]
    examination = Examination(example.hierarchies, Promise(k), len(example.rows), k, 0, objective, most_cells, 30, 1000)
    found = examination.run(
        example.histogram(data.draw(st.sampled_from(fitting))),
        lambda roots: map(example.histogram, roots),
        lambda nodes, most: [len(class_sizes(example.rows, example.ladders, node)) > most for node in nodes],
    )
    assert (found and found.node) == best_node(example.rows, example.ladders, k, Fraction(0), objective)
    assert found is None or found.unexamined == 0


@given(st.data(), examples(), st.integers(1, 8), st.fractions(0, 1, max_denominator=8), OBJECTIVES, st.sampled_from([1, 2, 24]))
@tried(150)
def test_nodes_that_tell_hidden_values_are_neither_chosen_nor_counted(
    data: st.DataObject, example: Example, k: int, limit: Fraction, objective: str, most_roots: int
) -> None:
    least = data.draw(nodes_of(example))
    hidden = [replace(hierarchy, least=level) for hierarchy, level in zip(example.hierarchies, least, strict=True)]
    first = data.draw(st.sampled_from(list(all_nodes(example.ladders, least))))
    most_suppressed = floor(limit * len(example.rows))
    examination = Examination(hidden, Promise(k), len(example.rows), k, most_suppressed, objective, 1 << 40, 30, most_roots)
    asked: list[Node] = []

    def count(roots: Sequence[Node]) -> Iterator[Histogram]:
        asked.extend(roots)
        return map(example.histogram, roots)

    found = examination.run(example.histogram(first), count, lambda nodes, _: [False] * len(nodes))
    best = best_node(example.rows, example.ladders, k, limit, objective, least)
    if found is None or best is None:
        assert found is best
        return
    allowed, passing = set(all_nodes(example.ladders, least)), passing_nodes(example.rows, example.ladders, k, limit, least)
    assert {found.node, *asked} <= allowed
    assert found.nodes == len(allowed)
    assert found.nodes_passing is not None
    assert found.nodes_passing <= len(passing)
    assert found.unexamined or found.node == best
    mine = value(example, found.node, k, objective)
    assert sum(value(example, node, k, objective) < mine for node in passing) <= found.unexamined
    branched = BranchAndBound(Evaluations(example.histogram(least), hidden, Promise(k), most_suppressed, objective, effort=1 << 40)).run()
    assert branched is not None
    assert (branched.node, branched.nodes, branched.unexamined) == (best, len(allowed), 0)
    searched = Search(example.histogram(least), hidden, Promise(k), most_suppressed, objective, 1 << 40).run()
    assert searched is not None
    assert (searched.node, searched.nodes, searched.unexamined) == (best, len(allowed), 0)
    assert searched.statuses is not None
    assert int((searched.statuses != BARRED).sum()) == len(allowed)


@pytest.mark.parametrize("most_roots", [1, 2, 3])
def test_no_more_roots_are_counted_than_are_allowed_though_many_are_wanted(most_roots: int) -> None:
    drawn = np.random.default_rng(5)
    rows = [tuple(drawn.integers(0, 8, 3).tolist()) for _ in range(60)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(3))
    axes = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
    example, asked = Example(rows, domains, axes), list[Node]()

    def count(roots: Sequence[Node]) -> Iterator[Histogram]:
        asked.extend(roots)
        return (example.histogram(root) for root in roots)

    examination = Examination(axes, Promise(2), len(rows), 2, 0, "dm_star", 40, 30, most_roots)
    found = examination.run(example.histogram((3, 3, 3)), count, lambda nodes, _most: [False] * len(nodes))
    assert found is not None
    assert len(asked) == most_roots - 1


@pytest.mark.parametrize(("most_cells", "optimal"), [(9, True), (8, True), (7, False)])
def test_roots_of_more_cells_than_fit_are_counted_where_those_that_may_pass_surely_do_not_have_too_many(
    most_cells: int, optimal: bool
) -> None:
    """Sixteen records fall into eight cells of two at every node, so that the finest one is the best; it could have 64."""
    rows = [(place, place) for place in range(8) for _ in range(2)]
    domains = tuple(observed(f"qid {place}", list(range(8)), pa.int64()) for place in range(2))
    axes = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
    example, asked = Example(rows, domains, axes), list[Node]()

    def has_too_many_cells(nodes: Sequence[Node], most: int) -> list[bool]:
        assert most == 8
        asked.extend(nodes)
        return [len(class_sizes(example.rows, example.ladders, node)) > most for node in nodes]

    examination = Examination(axes, Promise(2), len(rows), 2, 0, "dm_star", most_cells, 30)
    found = examination.run(example.histogram((3, 3)), lambda roots: map(example.histogram, roots), has_too_many_cells)
    assert found is not None
    assert asked
    assert (found.node == (0, 0), found.unexamined == 0) == (optimal, optimal)
    assert optimal or all(product_of(example, root) <= most_cells for root in found.roots)


@pytest.mark.parametrize(("rows", "most_cells", "certified"), [(20, 4, True), (20, 3, False), (4, 2, True), (4, 1, False)])
def test_a_node_is_counted_where_its_cells_or_those_that_may_pass_just_find_room(rows: int, most_cells: int, certified: bool) -> None:
    """The finest of three nodes has four cells; of four records two cells may have k = 2 at most, and so may its two."""
    values = [number % 4 if rows > 4 else number % 2 * 3 for number in range(rows)]
    domain = observed("q", [*values, *range(4)], pa.int64())
    example = Example([(value,) for value in values], (domain,), (built({"widths": [2, 4]}, domain),))
    examination = Examination(example.hierarchies, Promise(2), rows, 2, 0, "dm_star", most_cells, 30)
    found = examination.run(
        example.histogram((1,)),
        lambda roots: map(example.histogram, roots),
        lambda nodes, most: [len(class_sizes(example.rows, example.ladders, node)) > most for node in nodes],
    )
    assert found is not None
    assert (found.node == (0,), found.unexamined == 0) == (certified, certified)
    assert ((0,) in found.roots) is certified


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("first", [(1, 0), (0, 0)])
def test_of_nodes_that_cost_nothing_the_most_precise_is_found_whatever_root_is_counted_first(first: Node, named: bool) -> None:
    """Four values lie in a bin each, so that a bin tells as much as its value and is less precise."""
    rows = [(2 * place, value) for place in range(4) for value in range(2)]
    domains = tuple(observed(name, [row[place] for row in rows], pa.int64()) for place, name in enumerate(("age", "s")))
    axes = built({"widths": [2]}, domains[0]), exact_hierarchy(domains[1])
    example = Example(rows, domains, axes)
    persons = People(example, list(range(8))).persons_of if named else lambda root: None
    examination = Examination(
        axes, Promise(2, (EntropyDiversity("s", 2),)), len(rows), 2, 0, "entropy", 100, 30, 3, [domains[1]],
        prices_of("entropy", axes[:1], domains[:1], sensitive_axis_count=1), persons,
    )  # fmt: skip
    found = examination.run(example.histogram(first), lambda roots: map(example.histogram, roots), lambda nodes, most: [False] * len(nodes))
    assert found is not None
    assert (found.node, found.unexamined) == ((0, 0), 0)
