"""Where persons count, every search finds what a full enumeration finds that counts them one by one, and claims no more than it knows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from math import floor, inf, log, prod
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.columns.domains import Node
from core.histograms.histogram import Histogram
from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.certificate import Examination
from core.lattice.objectives import prices_of
from core.lattice.search import Search, SearchResult
from core.privacy.models import DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from core.units.persons import RowPersons
from tests.core.units.tables_of_people import People, tables_of_people
from tests.house.replaced import ROLLUPS_LARGE, ROLLUPS_SHRINK
from tests.oracles.hierarchies import built
from tests.oracles.lattice import all_nodes, class_sizes
from tests.oracles.persons import best_node, losses, passing_nodes, people_of, values_of
from tests.oracles.tables import Example, nodes_of, observed

OBJECTIVES = st.sampled_from(["dm_star", "dm_all", "c_avg"])
LIMITS = st.sampled_from([Fraction(0), Fraction(1)]) | st.fractions(0, 1, max_denominator=10)
UNLIMITED = 1 << 40


def oracle(table: People) -> tuple[list[tuple[object, ...]], list[int | None], list[object]]:
    return table.example.rows, table.people, table.example.ladders


def check(found: SearchResult | None, table: People, k: int, limit: Fraction, objective: str, root: Node | None = None) -> None:
    best = best_node(*oracle(table), k, limit, objective, root)
    if found is None or best is None:
        assert found is best
        return
    loss = losses(*oracle(table), best, k)
    assert found.node == best
    assert (found.loss.suppressed, found.loss.dm_star, found.loss.dm_all) == (loss.suppressed, loss.dm_star, loss.dm_all)


@given(tables_of_people(), st.integers(1, 8))
def test_who_is_in_a_class_stays_in_it_when_it_grows(table: People, k: int) -> None:
    for node in all_nodes(table.example.ladders):
        finer = losses(*oracle(table), node, k).suppressed
        for axis, level in enumerate(node):
            if level + 1 < len(table.example.ladders[axis]):
                assert losses(*oracle(table), (*node[:axis], level + 1, *node[axis + 1 :]), k).suppressed <= finer


@pytest.mark.slow
@given(st.data(), st.integers(1, 8), LIMITS, OBJECTIVES, st.booleans())
@settings(max_examples=150)
def test_the_search_finds_the_best_node(data: st.DataObject, k: int, limit: Fraction, objective: str, small: bool) -> None:
    table = data.draw(tables_of_people())
    root = data.draw(nodes_of(table.example) | st.just((0,) * len(table.example.hierarchies)))
    with patch(ROLLUPS_LARGE, 2 if small else 1 << 20), patch(ROLLUPS_SHRINK, 2):
        search = Search(
            table.example.histogram(root), table.example.hierarchies, Promise(k), floor(limit * len(table.people)), objective,
            persons=table.persons(root, 2),
        )  # fmt: skip
        found = search.run()
    check(found, table, k, limit, objective, root)
    assert found is None or found.nodes_passing == len(passing_nodes(*oracle(table), k, limit, root))
    everywhere = passing_nodes(*oracle(table), k, limit)
    outside = {node for node in everywhere if any(level < first for level, first in zip(node, root, strict=True))}
    assert found is None or len(outside) <= found.unexamined


@pytest.mark.ci
@given(st.data(), st.integers(1, 8), LIMITS, st.sampled_from(["precision", "gcp", "entropy", "c_avg"]))
@settings(max_examples=60)
def test_branch_and_bound_and_the_whole_lattice_agree_on_every_objective(
    data: st.DataObject, k: int, limit: Fraction, objective: str
) -> None:
    table = data.draw(tables_of_people())
    root, hierarchies = (0,) * len(table.example.hierarchies), table.example.hierarchies
    prices, most = prices_of(objective, hierarchies, table.example.domains), floor(limit * len(table.people))
    given_, persons = (table.example.histogram(root), hierarchies, Promise(k), most, objective), table.persons(root)
    whole = Search(*given_, prices=prices, persons=persons).run()
    branched = BranchAndBound(Evaluations(*given_, effort=UNLIMITED, most_cached_cells=100, prices=prices, persons=persons)).run()
    assert (whole and (whole.node, whole.loss)) == (branched and (branched.node, branched.loss))


@pytest.mark.slow
@given(st.data(), st.integers(1, 8), LIMITS, OBJECTIVES, st.integers(0, 30))
@settings(max_examples=150)
def test_branch_and_bound_finds_the_best_node(data: st.DataObject, k: int, limit: Fraction, objective: str, cells: int) -> None:
    table = data.draw(tables_of_people())
    root = (0,) * len(table.example.hierarchies)
    with patch(ROLLUPS_LARGE, 2):
        found = BranchAndBound(
            Evaluations(
                table.example.histogram(root),
                table.example.hierarchies,
                Promise(k),
                floor(limit * len(table.people)),
                objective,
                effort=UNLIMITED,
                most_cached_cells=cells,
                persons=table.persons(root, 2),
            )
        ).run()
    check(found, table, k, limit, objective)


@pytest.mark.ci
@given(st.data(), st.integers(1, 8), LIMITS, OBJECTIVES, st.integers(1, 12))
@settings(max_examples=80)
def test_an_effort_that_ends_never_claims_more_than_it_knows(
    data: st.DataObject, k: int, limit: Fraction, objective: str, effort: int
) -> None:
    table = data.draw(tables_of_people())
    root = (0,) * len(table.example.hierarchies)
    most = floor(limit * len(table.people))
    branching = BranchAndBound(
        Evaluations(
            table.example.histogram(root),
            table.example.hierarchies,
            Promise(k),
            most,
            objective,
            effort=effort,
            most_cached_cells=100,
            persons=table.persons(root),
        )
    )
    found, best = branching.run(), best_node(*oracle(table), k, limit, objective)
    if found is None or best is None:
        return
    loss = losses(*oracle(table), best, k)
    least = inf if loss.suppressed == len(table.people) else getattr(loss, objective)
    assert found.bound is not None
    # The least loss as the search tells it: a fraction is a float there.
    assert found.bound <= float(least)
    if not found.unexamined:
        assert found.node == best


@pytest.mark.slow
@given(st.data(), st.integers(1, 8), st.fractions(0, 1, max_denominator=8), OBJECTIVES, st.sampled_from([1, 2, 24]))
@settings(max_examples=150)
def test_a_certificate_over_several_roots_is_never_false(
    data: st.DataObject, k: int, limit: Fraction, objective: str, most_roots: int
) -> None:
    table = data.draw(tables_of_people())
    rows, _, ladders = oracle(table)
    hierarchies, most_cells = table.example.hierarchies, data.draw(st.integers(1, 40))

    def product_of(node: Node) -> int:
        return prod(len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, node, strict=True))

    def count(roots: Sequence[Node]) -> Iterator[Histogram]:
        return (table.example.histogram(root) for root in roots)

    def has_too_many_cells(nodes: Sequence[Node], most: int) -> list[bool]:
        return [len(class_sizes(rows, ladders, node)) > most for node in nodes]

    first = data.draw(st.sampled_from([node for node in all_nodes(ladders) if product_of(node) <= most_cells]))
    examination = Examination(
        hierarchies, Promise(k), len(rows), k, floor(limit * len(rows)), objective, most_cells, 30, most_roots,
        persons_of=table.persons_of,
    )  # fmt: skip
    found, best = examination.run(table.example.histogram(first), count, has_too_many_cells), best_node(*oracle(table), k, limit, objective)
    if found is None or best is None:
        assert found is best
        return
    assert found.node in passing_nodes(*oracle(table), k, limit)
    if not found.unexamined:
        assert found.node == best


def suppressed(table: People, node: Node, k: int, least: float, kind: str) -> tuple[int, int]:
    """Records in classes that lack k people or l values of people, and Σ|E|² over the others + s²; the last column is sensitive."""
    rows, ladders = [row[:-1] for row in table.example.rows], table.example.ladders[:-1]
    values: list[Hashable] = [row[-1] for row in table.example.rows]
    groups = [tuple(ladder[level][value] for ladder, level, value in zip(ladders, node, row, strict=True)) for row in rows]
    people, spread = people_of(rows, table.people, ladders, node), values_of(table.people, groups, values)
    sizes: dict[Hashable, int] = defaultdict(int)
    for group in groups:
        sizes[group] += 1
    lost = squares = 0
    for group, size in sizes.items():
        counts = list(spread[group].values())
        total = sum(counts)
        entropy = -sum(count / total * log(count / total) for count in counts)
        lacks = len(counts) < least if kind == "distinct" else not counts or entropy < log(least) - 1e-9
        if len(people[group]) < k or lacks:
            lost += size
        else:
            squares += size**2
    return lost, squares + lost**2


@pytest.mark.ci
@given(st.data(), st.integers(1, 4), st.sampled_from([2, 3]), st.sampled_from(["distinct", "entropy"]), LIMITS, st.booleans())
@settings(max_examples=150)
def test_the_best_node_keeps_l_where_everybody_counts_once_for_each_value(
    data: st.DataObject, k: int, least: int, kind: str, limit: Fraction, branched: bool
) -> None:
    table = data.draw(tables_of_people(3).filter(lambda table: len(table.example.domains) > 1))
    domain, most = table.example.domains[-1], floor(limit * len(table.people))
    axes = (*table.example.hierarchies[:-1], exact_hierarchy(domain))
    of_column: PrivacyModel = DistinctDiversity(domain.qid, least) if kind == "distinct" else EntropyDiversity(domain.qid, least)
    root = (0,) * len(axes)
    model, histogram, persons = Promise(k, (of_column,)), table.example.histogram(root), table.persons(root, 2)
    if branched:
        found = BranchAndBound(
            Evaluations(
                histogram, axes, model, most, "dm_star", effort=UNLIMITED, most_cached_cells=50, sensitive=[domain], persons=persons
            )
        ).run()
    else:
        found = Search(histogram, axes, model, most, sensitive=[domain], persons=persons).run()
    costs = {node: suppressed(table, node, k, least, kind) for node in all_nodes(table.example.ladders[:-1])}
    everything = len(table.people)
    passing = [(lost == everything, 0 if lost == everything else squares) for lost, squares in costs.values() if lost <= most]
    assert (found is None) == (not passing)
    if found:
        assert costs[found.node[:-1]] == (found.loss.suppressed, found.loss.dm_star)
        nothing = found.loss.suppressed == everything
        assert (nothing, 0 if nothing else found.loss.dm_star) == min(passing)


def test_two_safe_classes_can_make_an_unsafe_one_so_nothing_is_tagged_by_entropy() -> None:
    """Five people of each value in both classes, and the same five have the second one: together ten have the first, five the second."""
    people = [*range(10), *range(10, 15), *range(5, 10)]
    values = np.array([person >= 5 and person < 10 for person in people], np.int64)
    persons, halves = RowPersons.of_records(np.array(people, np.int32)), np.arange(20) // 10

    def fails(classes: NDArray[np.int64]) -> list[bool]:
        counts = persons.count(classes * 2 + values, 4)
        present = np.flatnonzero(counts)
        spread = Spread(present // 2, present % 2, counts[present], np.array([10, 5]))
        size = int(classes.max()) + 1
        return EntropyDiversity("value", 2).failing(persons.count(classes, size), {"value": spread}).tolist()

    assert fails(halves) == [False, False]
    assert fails(halves * 0) == [True]


@pytest.mark.parametrize(
    ("rows", "people"),
    [
        ([(0, 1), (2, 1), (0, 0), (3, 1)], [2, 2, 2, 2]), ([(3, 2), (0, 2), (2, 1), (1, 2)], [1, 1, 0, 1]),
        ([(0, 2), (0, 0), (0, 0), (1, 2)], [1, 1, 1, 1]), ([(2, 2), (1, 0), (1, 0), (0, 2)], [1, 0, 0, 1]),
    ],
)  # fmt: skip
def test_a_class_that_fails_by_persons_may_keep_the_promise_when_it_grows(rows: list[tuple[int, int]], people: list[int | None]) -> None:
    """A person has a value once, however many of the classes that fall together they had it in."""
    domains = tuple(observed(name, [row[place] for row in rows], pa.int64()) for place, name in enumerate(("age", "s")))
    axes = (built({"widths": [2, 4]}, domains[0]), exact_hierarchy(domains[1]))
    table, costs = People(Example(rows, domains, axes), people), dict[int, int]()
    for level, groups in enumerate(table.example.ladders[0]):
        members, held = defaultdict[Hashable, int](int), defaultdict[Hashable, set[tuple[int, int | None]]](set)
        for (age, value), person in zip(rows, people, strict=True):
            members[groups[age]] += 1
            held[groups[age]].add((value, person))
        falling = [sorted(Counter(value for value, _ in whose).values(), reverse=True) for whose in held.values()]
        if all(most < 2 * sum(others) for most, *others in falling):
            costs[level] = sum(size**2 for size in members.values())
    promise, root = Promise(1, (RecursiveDiversity("s", Fraction(2), 2),)), (0, 0)
    given_ = table.example.histogram(root), axes, promise, 0
    best = (min(costs, key=lambda level: (costs[level], level)), 0)
    found = Search(*given_, sensitive=[domains[1]], persons=table.persons(root)).run()
    assert found is not None
    assert found.node == best
    for cells in (0, 50):
        branched = BranchAndBound(
            Evaluations(*given_, "dm_star", effort=UNLIMITED, most_cached_cells=cells, sensitive=[domains[1]], persons=table.persons(root))
        ).run()
        assert branched is not None
        assert branched.node == best
