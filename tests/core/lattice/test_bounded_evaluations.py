"""What is said of all nodes between two holds of each of them, for every objective and privacy model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import floor
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.lattice.bounded_evaluations import Evaluations, Steps
from core.lattice.objectives import prices_of
from core.lattice.search import Search
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from schemas.errors.signals import SpentError
from tests.core.units.tables_of_people import People
from tests.house.replaced import BOUNDED_EVALUATIONS_KEPT_NODES, ROLLUPS_LARGE
from tests.laws import tried
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, Row, examples, nested, observed

OBJECTIVES = st.sampled_from(["dm_star", "dm_star", "dm_all", "dm_all", "c_avg", "precision", "gcp", "entropy"])
UNLIMITED = 1 << 40


def models(column: str) -> st.SearchStrategy[PrivacyModel]:
    return (
        st.builds(DistinctDiversity, st.just(column), st.integers(1, 3))
        | st.builds(EntropyDiversity, st.just(column), st.floats(1, 3))
        | st.builds(RecursiveDiversity, st.just(column), st.fractions(1, 4, max_denominator=4), st.integers(1, 3))
        | st.builds(Closeness, st.just(column), st.floats(0, 1))
    )


@st.composite
def has_too_many_cells(draw: st.DrawFn) -> Example:
    """A table of few distinct values, so that classes are large, many of one sensitive value, and ties are many."""
    columns = [st.integers(0, draw(st.integers(1, 2))) for _ in range(draw(st.integers(1, 3)))]
    rows = draw(st.lists(st.tuples(*columns, st.sampled_from([0, 0, 0, 1])), min_size=1, max_size=40))
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(len(rows[0])))
    return Example(rows, domains, tuple(nested(draw, domain) for domain in domains))


def evaluations(draw: st.DrawFn, objective: str, effort: int = UNLIMITED) -> Evaluations:
    """The nodes of a random table, of which the last column may be sensitive."""
    example = draw(examples() | has_too_many_cells())
    *hierarchies, last = example.hierarchies
    k, most = draw(st.integers(1, 10)), floor(draw(st.fractions(0, 1, max_denominator=20)) * len(example.rows))
    promise = Promise(k)
    secret = [example.domains[-1]] if hierarchies and draw(st.booleans()) else []
    if secret:
        last = exact_hierarchy(secret[0])
        promise = Promise(k, (draw(models(secret[0].qid)),))
    axes = (*hierarchies, last)
    histogram = Example(example.rows, example.domains, axes).histogram((0,) * len(axes))
    qids = len(axes) - len(secret)
    prices = prices_of(objective, axes[:qids], example.domains[:qids], len(secret))
    return Evaluations(histogram, axes, promise, most, objective, effort=effort, most_cached_cells=100, sensitive=secret, prices=prices)


def region(draw: st.DrawFn, nodes: Evaluations) -> tuple[Steps, Steps]:
    high = tuple(draw(st.integers(0, top)) for top in nodes.top)
    return tuple(draw(st.integers(0, step)) for step in high), high


def between(low: Steps, high: Steps) -> list[Steps]:
    return list(product(*(range(first, last + 1) for first, last in zip(low, high, strict=True))))


def admitted(nodes: Evaluations, steps: Steps) -> bool:
    return nodes.evaluate(steps).loss.suppressed <= nodes.most_suppressed


@given(st.data(), OBJECTIVES)
@tried(250)
def test_no_passing_node_of_a_region_has_a_value_below_the_bound(data: st.DataObject, objective: str) -> None:
    nodes = evaluations(data.draw, objective)
    low, high = region(data.draw, nodes)
    assume(nodes.passes(high))
    bound = nodes.bound(low, high)
    assert all(nodes.evaluate(steps).value >= bound for steps in between(low, high) if admitted(nodes, steps))


@given(st.data(), OBJECTIVES)
@tried(200)
def test_a_finer_region_has_no_higher_bound_and_a_node_that_fails_has_no_finer_one_that_passes(data: st.DataObject, objective: str) -> None:
    nodes = evaluations(data.draw, objective)
    low, high = region(data.draw, nodes)
    middle = tuple(data.draw(st.integers(first, last)) for first, last in zip(low, high, strict=True))
    if nodes.passes(high):
        assert nodes.bound(low, high) <= nodes.bound(middle, high)
    if not nodes.passes(middle):
        assert not any(admitted(nodes, steps) for steps in between(low, middle))


@given(st.data(), OBJECTIVES)
@tried(250)
def test_a_region_that_is_beaten_holds_no_better_node(data: st.DataObject, objective: str) -> None:
    nodes = evaluations(data.draw, objective)
    seen = data.draw(st.lists(st.tuples(*(st.integers(0, top) for top in nodes.top)), max_size=3))
    for steps in seen:
        nodes.evaluate(steps)
    low, high = region(data.draw, nodes)
    assume(nodes.passes(high))
    beaten, best = nodes.cannot_improve(nodes.bound(low, high), low, high), nodes.best
    if beaten:
        assert best is not None
        assert not any(nodes.rank(steps, nodes.evaluate(steps)) < best for steps in between(low, high) if admitted(nodes, steps))


@given(st.data(), OBJECTIVES)
@tried(100)
def test_the_best_is_kept_and_levels_that_merge_nothing_are_never_better(data: st.DataObject, objective: str) -> None:
    nodes = evaluations(data.draw, objective)
    ranks = [nodes.rank(steps, nodes.evaluate(steps)) for steps in between(nodes.bottom, nodes.top) if admitted(nodes, steps)]
    assert nodes.best == min(ranks, default=None)
    for hierarchy, levels in zip(nodes.hierarchies, nodes.levels, strict=True):
        for level in set(range(hierarchy.levels)) - set(levels):
            assert (hierarchy.groups[level] == hierarchy.groups[level - 1]).all()


@given(st.data(), st.integers(0, 5))
@tried(30)
def test_no_more_nodes_are_rolled_up_than_the_effort_allows(data: st.DataObject, effort: int) -> None:
    nodes = evaluations(data.draw, "dm_star", effort)
    every = between(nodes.bottom, nodes.top)
    for steps in every[:effort]:
        nodes.evaluate(steps)
    assert nodes.spent == min(effort, len(every))
    for steps in every[effort : effort + 1]:
        with pytest.raises(SpentError):
            nodes.evaluate(steps)


def table(rows: Sequence[Row]) -> Example:
    """A table whose columns can be left as they are or suppressed."""
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(len(rows[0])))
    return Example(list(rows), domains, tuple(built({"widths": [100]}, domain) for domain in domains))


def with_secret(rows: Sequence[Row], model: Promise, most: int, objective: str) -> Evaluations:
    example = table(rows)
    axes = (*example.hierarchies[:-1], exact_hierarchy(example.domains[-1]))
    histogram = Example(example.rows, example.domains, axes).histogram((0,) * len(axes))
    return Evaluations(histogram, axes, model, most, objective, effort=UNLIMITED, most_cached_cells=100, sensitive=[example.domains[-1]])


@pytest.mark.parametrize(("objective", "value"), [("dm_star", 4**2 + 6**2), ("dm_all", 4**2 + 6**2), ("c_avg", 4)])
def test_a_large_class_that_is_suppressed_is_within_the_bound(objective: str, value: int) -> None:
    model = Promise(2, (DistinctDiversity("qid 1", 2),))
    nodes = with_secret([(0, 7)] * 6 + [(1, 7), (1, 7), (1, 8), (1, 8)], model, 6, objective)
    assert nodes.evaluate(nodes.bottom).value == value
    assert nodes.bound(nodes.bottom, nodes.bottom) <= value


def test_a_coarser_node_that_suppresses_too_many_cuts_no_finer_one_where_the_model_is_not_monotone() -> None:
    nodes = with_secret([(0, 7), (0, 8)] + [(1, 7)] * 10, Promise(2, (EntropyDiversity("qid 1", 2),)), 10, "dm_star")
    assert (nodes.evaluate(nodes.bottom).loss.suppressed, nodes.evaluate(nodes.top).loss.suppressed) == (10, 12)
    assert nodes.passes(nodes.top)
    assert nodes.best is not None
    assert nodes.steps == nodes.bottom


def test_a_tie_is_beaten_only_where_no_node_of_the_region_is_more_precise() -> None:
    rows = [(0, 5), (1, 5), (2, 6), (3, 6)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    example = Example(rows, domains, (built({"widths": [2, 100]}, domains[0]), built({"widths": [100]}, domains[1])))
    nodes = Evaluations(example.histogram((0, 0)), example.hierarchies, Promise(2), 0, "dm_star", effort=UNLIMITED)
    # (1, 0) publishes the same classes as (1, 1) and is more precise; (0, 0) and (0, 1) fail, with a bound as high as that value.
    nodes.evaluate((1, 1))
    assert nodes.bound((0, 0), (1, 1)) == nodes.bound((0, 1), (1, 1)) == nodes.value
    assert not nodes.cannot_improve(nodes.bound((0, 0), (1, 1)), (0, 0), (1, 1))
    nodes.evaluate((1, 0))
    assert not nodes.cannot_improve(nodes.bound((0, 0), (1, 1)), (0, 0), (1, 1))
    assert nodes.cannot_improve(nodes.bound((0, 1), (1, 1)), (0, 1), (1, 1))


def test_what_is_suppressed_is_counted_in_full_where_as_many_records_as_allowed_surely_are() -> None:
    """The other class has two values, which is all that is sure of it, and too little entropy."""
    rows = [(0, 7)] * 4 + [(0, 8), (1, 7)]
    nodes = with_secret(rows, Promise(1, (EntropyDiversity("qid 1", 2),)), 1, "dm_star")
    seen = nodes.evaluate(nodes.bottom)
    assert (seen.least, seen.loss.suppressed) == (1, 6)
    assert nodes.best is None


def test_nodes_that_are_forgotten_are_rolled_up_again_to_the_same() -> None:
    rows = [(age, zip_code) for age in range(4) for zip_code in range(4)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    example = Example(rows, domains, tuple(built({"widths": [2, 100]}, domain) for domain in domains))
    with patch(BOUNDED_EVALUATIONS_KEPT_NODES, 4):
        nodes = Evaluations(example.histogram((0, 0)), example.hierarchies, Promise(2), 0, "dm_star", effort=UNLIMITED)
        every = between(nodes.bottom, nodes.top)
        seen = [nodes.evaluate(steps) for steps in every]
        assert nodes.evaluate(every[-1]) is seen[-1]
        assert (nodes.evaluate(every[0]), nodes.spent) == (seen[0], len(every) + 1)


@pytest.mark.parametrize(("objective", "value"), [("dm_star", 4**2 + 6**2), ("dm_all", 4**2 + 6**2), ("c_avg", 4)])
def test_a_large_class_of_one_person_is_within_the_bound(objective: str, value: int) -> None:
    """Six records of one person are suppressed at the finest node; of four persons, who have one each, nobody is."""
    values = [0] * 6 + [1] * 4
    domain = observed("q", values, pa.int64())
    people = People(Example([(one,) for one in values], (domain,), (built({"widths": [2]}, domain),)), [0] * 6 + [1, 2, 3, 4])
    nodes = Evaluations(
        people.example.histogram((0,)), people.example.hierarchies, Promise(2), 6, objective, effort=UNLIMITED, persons=people.persons((0,))
    )
    seen = nodes.evaluate(nodes.bottom)
    assert (seen.value, seen.loss.suppressed) == (value, 6)
    assert nodes.bound(nodes.bottom, nodes.bottom) <= value


@pytest.mark.parametrize("objective", ["gcp", "gcp_covered", "entropy", "precision"])
@pytest.mark.parametrize("most", [0, 3, 12])
def test_what_is_suppressed_costs_what_the_search_of_the_whole_lattice_says(objective: str, most: int) -> None:
    rows: list[Row] = [(place % 5, place // 3) for place in range(12)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    axes = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
    given_ = Example(rows, domains, axes).histogram((0, 0)), axes, Promise(2), most, objective
    prices = prices_of(objective, axes, domains)
    whole, nodes = Search(*given_, prices=prices), Evaluations(*given_, effort=UNLIMITED, most_cached_cells=100, prices=prices)
    priced = 0
    for steps in between(nodes.bottom, nodes.top):
        if whole.evaluate(nodes.node(steps)).suppressed <= most:
            assert nodes.evaluate(steps).value == pytest.approx(whole.values[nodes.node(steps)])
            priced += 1
    assert priced > 1


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("secret", [True, False])
@pytest.mark.parametrize("objective", ["gcp", "entropy"])
def test_what_is_known_of_a_node_does_not_depend_on_which_cells_are_at_hand(objective: str, secret: bool, named: bool) -> None:
    rows: list[Row] = [tuple(row) for row in np.random.default_rng(5).integers(0, 8, (60, 3)).tolist()]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(3))
    axes = [built({"widths": [2, 4]}, domain) for domain in domains]
    sensitive = [domains[-1]] if secret else []
    axes[-1:] = [exact_hierarchy(domains[-1])] if secret else axes[-1:]
    qids, promise = 3 - len(sensitive), Promise(3, (DistinctDiversity("qid 2", 2),) if secret else ())
    people = People(Example(rows, domains, tuple(axes)), [place // 2 for place in range(len(rows))])
    root = people.example.histogram((0, 0, 0))
    prices = prices_of(objective, axes[:qids], domains[:qids], len(sensitive))
    persons = people.persons_of(root) if named else None

    def nodes() -> Evaluations:
        return Evaluations(
            root,
            axes,
            promise,
            20,
            objective,
            effort=UNLIMITED,
            most_cached_cells=1000,
            sensitive=sensitive,
            prices=prices,
            persons=persons,
        )

    with patch(ROLLUPS_LARGE, 2):
        kept, differing = nodes(), 0
        for steps in between(kept.bottom, kept.top):
            alone, *_, ways = nodes().evaluate(steps)
            loss, *_, known = kept.evaluate(steps, keep=True)
            assert loss == alone
            assert known.tolist() == ways.tolist()
            differing += any(len(set(row[: level + 1])) > 1 for row, level in zip(known.tolist(), kept.node(steps), strict=False))
    assert bool(differing) == (not secret and not named), "what a finer node pays is known where the cells of the root are at hand"
