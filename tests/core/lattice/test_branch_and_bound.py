"""Branch and bound finds what a full enumeration finds; ended early, it never claims to be closer to the optimum than it is."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound, dive, improve_by_walks
from core.lattice.objectives import prices_of
from core.lattice.search import Search, SearchResult
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from core.units.losses import Loss
from tests.house.replaced import (
    BOUNDED_EVALUATIONS_KEPT_NODES,
    BOUNDED_EVALUATIONS_MOST_READ_AGAIN,
    BRANCH_AND_BOUND_MOST_REGIONS,
    CELLS_SMALL_DENSE,
    CODING_WORD,
    RECORD_ROLLUPS_LEAST_BUNDLE,
    ROLLUPS_LARGE,
    ROLLUPS_SHRINK,
)
from tests.laws import tried
from tests.oracles.hierarchies import built
from tests.oracles.lattice import Losses, all_nodes, best_node, losses, passing_nodes, rank
from tests.oracles.tables import Example, Row, examples, nodes_of, observed

OBJECTIVES = st.sampled_from(["dm_star", "dm_all"])
FURTHER = st.sampled_from(["c_avg", "precision", "gcp", "gcp_covered", "entropy"])
LIMITS = st.sampled_from([Fraction(0), Fraction(1)]) | st.fractions(0, 1, max_denominator=20)
UNLIMITED = 1 << 40


def cases(draw: st.DrawFn) -> tuple[Example, int, Fraction]:
    example = draw(examples())
    return example, draw(st.integers(1, 8) | st.just(len(example.rows) + 1)), draw(LIMITS)


def searched(
    example: Example, k: int, limit: Fraction, objective: str, effort: int = UNLIMITED, root: tuple[int, ...] = (), cells: int = 100
) -> SearchResult | None:
    histogram = example.histogram(root or (0,) * len(example.hierarchies))
    most, prices = floor(limit * len(example.rows)), prices_of(objective, example.hierarchies, example.domains)
    return BranchAndBound(
        Evaluations(histogram, example.hierarchies, Promise(k), most, objective, effort=effort, most_cached_cells=cells, prices=prices)
    ).run()


def value(loss: Losses | Loss, objective: str) -> float:
    if loss.dm_star == loss.suppressed**2:
        return inf  # publishes nothing
    return loss.dm_star if objective == "dm_star" else loss.dm_all


def check_optimum(
    found: SearchResult | None, example: Example, k: int, limit: Fraction, objective: str, root: tuple[int, ...] = ()
) -> None:
    best = best_node(example.rows, example.ladders, k, limit, objective, root or None)
    if found is None or best is None:
        assert found is best
        return
    loss = losses(example.rows, example.ladders, best, k)
    assert found.node == best
    assert (found.loss.suppressed, found.loss.dm_star, found.loss.dm_all) == (loss.suppressed, loss.dm_star, loss.dm_all)
    assert found.bound == value(loss, objective)
    assert found.gap == 0
    everywhere = len(list(all_nodes(example.ladders)))
    assert found.nodes == everywhere
    assert found.evaluated <= everywhere
    assert found.unexamined == everywhere - len(list(all_nodes(example.ladders, root or None)))


@given(st.data(), OBJECTIVES)
@tried(200)
def test_without_a_limit_to_the_effort_the_outcome_is_that_of_a_full_enumeration(data: st.DataObject, objective: str) -> None:
    example, k, limit = cases(data.draw)
    check_optimum(searched(example, k, limit, objective), example, k, limit, objective)


@given(st.data(), OBJECTIVES)
@tried(60)
def test_above_a_coarser_root_the_best_is_found_and_the_rest_is_counted(data: st.DataObject, objective: str) -> None:
    example, k, limit = cases(data.draw)
    root = data.draw(nodes_of(example))
    check_optimum(searched(example, k, limit, objective, root=root), example, k, limit, objective, root)


@pytest.mark.ci
@given(st.data(), OBJECTIVES, st.integers(0, 30), st.integers(1, 3), st.integers(1, 8))
@tried(100)
def test_small_memories_and_several_words_change_nothing(data: st.DataObject, objective: str, cells: int, regions: int, nodes: int) -> None:
    example, k, limit = cases(data.draw)
    with (
        patch(ROLLUPS_LARGE, 2),
        patch(ROLLUPS_SHRINK, 2),
        patch(CELLS_SMALL_DENSE, 0),
        patch(CODING_WORD, data.draw(st.sampled_from([8, 1 << 62]))),
        patch(RECORD_ROLLUPS_LEAST_BUNDLE, data.draw(st.sampled_from([1, 6, 1 << 10]))),
        patch(BRANCH_AND_BOUND_MOST_REGIONS, regions),
        patch(BOUNDED_EVALUATIONS_KEPT_NODES, nodes + 1),
    ):
        found = searched(example, k, limit, objective, cells=cells)
    best = best_node(example.rows, example.ladders, k, limit, objective)
    assert (found and found.node) == best
    assert found is None or (found.unexamined, found.gap) == (0, 0)


@given(st.data(), OBJECTIVES, st.integers(1, 60))
@tried(300)
def test_ended_early_the_bound_is_never_above_the_optimum_nor_the_best_found_below_it(
    data: st.DataObject, objective: str, effort: int
) -> None:
    example, k, limit = cases(data.draw)
    found = searched(example, k, limit, objective, effort)
    best = best_node(example.rows, example.ladders, k, limit, objective)
    if found is None:
        assert best is None
        return
    assert best is not None
    passing = passing_nodes(example.rows, example.ladders, k, limit)
    assert found.node in passing
    assert found.evaluated <= effort
    mine, optimum = (losses(example.rows, example.ladders, node, k) for node in (found.node, best))
    assert value(found.loss, objective) == value(mine, objective)
    assert found.bound is not None
    assert found.bound <= value(optimum, objective) <= value(mine, objective)
    if found.gap is not None:
        assert value(mine, objective) <= (1 + found.gap) * value(optimum, objective) * (1 + 1e-9)
    ranks = {node: rank(example.rows, example.ladders, k, objective, node) for node in passing}
    assert sum(other < ranks[found.node] for other in ranks.values()) <= found.unexamined
    if found.unexamined == 0:
        assert found.node == best


def widths_over(rows: Sequence[Row], *widths: Sequence[int]) -> Example:
    """A table of whole numbers, each column with bins of its own."""
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(len(widths)))
    return Example(list(rows), domains, tuple(built({"widths": list(own)}, domain) for own, domain in zip(widths, domains, strict=True)))


def test_ended_early_a_node_of_the_same_value_that_is_more_precise_counts_among_those_that_could_be_better() -> None:
    example = widths_over([(5, 3, 3), (3, 0, 3), (5, 1, 4), (1, 4, 4)], [1, 3], [2, 4], [1])
    case = (example, 3, Fraction(3, 8), "dm_star")
    early, best = searched(*case, effort=3), searched(*case)
    assert early is not None
    assert best is not None
    assert (early.loss.dm_star, early.bound) == (best.loss.dm_star, best.loss.dm_star)
    assert early.node != best.node
    assert early.unexamined > 0


def test_ended_early_the_bound_is_the_least_of_all_that_is_left() -> None:
    rows = [(5, 1), (2, 1), (5, 5), (1, 2), (5, 5), (1, 1), (5, 4), (4, 4), (2, 3), (1, 2), (3, 2), (4, 4)]
    case = (widths_over(rows, [1, 2, 4], [2, 4]), 4, Fraction(1, 2), "dm_all")
    early, best = searched(*case, effort=11), searched(*case)
    assert early is not None
    assert best is not None
    assert early.bound is not None
    assert early.bound <= best.loss.dm_all < early.loss.dm_all


def test_regions_that_tie_with_the_best_stay_where_there_is_room_for_few() -> None:
    rows = [(5, 3, 4), (5, 4, 2), (2, 0, 3), (4, 3, 5), (5, 4, 1), (1, 0, 0), (2, 4, 3), (2, 0, 1)]
    example, limit = widths_over(rows, [1, 3], [1, 2, 4], [1, 2, 4]), Fraction(1, 4)
    with patch(BRANCH_AND_BOUND_MOST_REGIONS, 1):
        check_optimum(searched(example, 3, limit, "dm_star"), example, 3, limit, "dm_star")


@given(st.data(), OBJECTIVES | FURTHER, st.integers(1, 60), st.booleans())
@tried(40)
def test_the_same_effort_gives_the_same_node_whatever_is_kept(data: st.DataObject, objective: str, effort: int, large: bool) -> None:
    example, k, limit = cases(data.draw)
    with patch(ROLLUPS_LARGE, 2), patch(BOUNDED_EVALUATIONS_MOST_READ_AGAIN, 0 if large else 1 << 18):
        assert searched(example, k, limit, objective, effort, cells=0) == searched(example, k, limit, objective, effort, cells=1_000)


@given(st.data(), st.sampled_from(["gcp", "gcp_covered", "entropy"]), st.integers(1, 60))
@tried(60)
def test_ended_early_at_prices_the_bound_is_below_the_cost_of_the_optimum_though_all_may_be_suppressed(
    data: st.DataObject, objective: str, effort: int
) -> None:
    example, k, _ = cases(data.draw)
    early, best = (searched(example, k, Fraction(1), objective, effort) for effort in (effort, UNLIMITED))
    assume(best is not None and early is not None)
    assert early is not None
    assert best is not None
    assert early.bound is not None
    assert best.bound is not None
    assert early.bound <= best.bound * (1 + 1e-9) + 1e-9
    assert best.gap in {0, None}


@given(st.data(), OBJECTIVES)
@tried(40)
def test_more_effort_never_gives_a_worse_node(data: st.DataObject, objective: str) -> None:
    example, k, limit = cases(data.draw)
    found = [searched(example, k, limit, objective, effort) for effort in (1, 5, 20, 80, UNLIMITED)]
    assume(found[0] is not None)
    values = [value(one.loss, objective) for one in found if one]
    assert len(values) == len(found)
    assert values == sorted(values, reverse=True)


@given(st.data(), FURTHER, st.booleans())
@tried(60)
def test_the_further_objectives_are_searched_as_the_whole_lattice_is(data: st.DataObject, objective: str, large: bool) -> None:
    example, k, limit = cases(data.draw)
    histogram, most = example.histogram((0,) * len(example.hierarchies)), floor(limit * len(example.rows))
    prices = prices_of(objective, example.hierarchies, example.domains)
    with patch(BOUNDED_EVALUATIONS_MOST_READ_AGAIN, 0 if large else 1 << 18):
        found = BranchAndBound(
            Evaluations(histogram, example.hierarchies, Promise(k), most, objective, effort=UNLIMITED, prices=prices)
        ).run()
    same(found, Search(histogram, example.hierarchies, Promise(k), most, objective, prices=prices).run())


@given(st.data(), OBJECTIVES | FURTHER)
@tried(100)
def test_sensitive_values_are_looked_at_as_the_search_of_the_whole_lattice_does(data: st.DataObject, objective: str) -> None:
    """Entropy, recursive diversity and closeness let a coarser node suppress more; only what they imply may cut."""
    example = data.draw(examples(4, 30).filter(lambda example: len(example.hierarchies) > 1))
    *hierarchies, _ = example.hierarchies
    secret = example.domains[-1]
    axes = (*hierarchies, exact_hierarchy(secret))
    histogram = Example(example.rows, example.domains, axes).histogram((0,) * len(axes))
    model = Promise(data.draw(st.integers(1, 4)), (data.draw(models(secret.qid)),))
    most = floor(data.draw(LIMITS) * len(example.rows))
    prices = prices_of(objective, hierarchies, example.domains[:-1], 1)
    found = BranchAndBound(
        Evaluations(histogram, axes, model, most, objective, effort=UNLIMITED, most_cached_cells=100, sensitive=[secret], prices=prices)
    ).run()
    same(found, Search(histogram, axes, model, most, objective, sensitive=[secret], prices=prices).run())


def models(column: str) -> st.SearchStrategy[PrivacyModel]:
    return (
        st.builds(DistinctDiversity, st.just(column), st.integers(1, 3))
        | st.builds(EntropyDiversity, st.just(column), st.floats(1, 3))
        | st.builds(RecursiveDiversity, st.just(column), st.fractions(1, 4, max_denominator=4), st.integers(1, 3))
        | st.builds(Closeness, st.just(column), st.floats(0, 1))
    )


def same(found: SearchResult | None, whole: SearchResult | None) -> None:
    if found is None or whole is None:
        assert found is whole
        return
    assert (found.node, found.loss, found.nodes, found.unexamined) == (whole.node, whole.loss, whole.nodes, 0)
    assert found.measured == whole.measured


def test_a_lattice_of_10_to_the_24_nodes_is_searched_to_the_end() -> None:
    """Forty columns number the records; a level up they are numbered by fours, then by eights. 3^40 nodes tie with the best."""
    rows = [(number,) * 40 for number in range(32)]
    domains = tuple(observed(f"qid {place}", list(range(32)), pa.int64()) for place in range(40))
    example = Example(rows, domains, tuple(built({"widths": [4, 8]}, domain) for domain in domains))
    found = BranchAndBound(Evaluations(example.histogram((0,) * 40), example.hierarchies, Promise(4), 0, effort=2_000)).run()
    assert found is not None
    assert found.nodes == 4**40
    assert found.node == (1,) * 40
    assert (found.unexamined, found.gap, found.loss.dm_star) == (0, 0, 8 * 4**2)


@pytest.mark.parametrize("seed", [0, 12, 13, 25])
def test_walks_from_a_node_made_coarser_find_the_best_where_those_from_the_ends_do_not(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    rows: list[Row] = [tuple(drawn.integers(0, 8, 3).tolist()) for _ in range(40)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(3))
    axes = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
    example = Example(rows, domains, axes)
    nodes = Evaluations(example.histogram((0, 0, 0)), axes, Promise(3), 4, "dm_star", effort=UNLIMITED, most_cached_cells=100)
    for _ in improve_by_walks(nodes):
        pass
    assert nodes.best is not None
    assert nodes.best[-1] == best_node(example.rows, example.ladders, 3, Fraction(1, 10), "dm_star", (0, 0, 0))


def test_walks_that_look_at_the_value_alone_find_what_those_by_the_records_lost_do_not() -> None:
    """With walks of the second kind alone the best that is found here costs 274."""
    drawn = np.random.default_rng(197)
    rows: list[Row] = [tuple(drawn.integers(0, 8, 5).tolist()) for _ in range(60)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(5))
    axes = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
    nodes = Evaluations(
        Example(rows, domains, axes).histogram((0,) * 5), axes, Promise(3), 4, "dm_star", effort=UNLIMITED, most_cached_cells=100
    )
    for _ in improve_by_walks(nodes):
        pass
    assert nodes.best is not None
    assert (nodes.best[0], nodes.best[-1]) == (268, (1, 3, 3, 2, 2))


def test_of_levels_that_cannot_be_better_no_finer_ones_are_left_out_with_them() -> None:
    """The best lies at the third level of the first QID, whose coarser ones are cut."""
    rows = [(4, 21), (0, 1), (4, 15), (11, 3), (16, 15), (15, 14), (5, 6), (15, 2), (2, 7)]
    example, limit = widths_over(rows, [1, 3, 6, 12], [1, 2, 4, 8, 16]), Fraction(1, 2)
    check_optimum(searched(example, 2, limit, "dm_all"), example, 2, limit, "dm_all")


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_of_steps_that_lower_nothing_those_come_first_that_surely_lose_fewer_records(weight: float) -> None:
    """The classes are of the same mean size at all nodes that the walk passes; what they lose by less than the whole model differs."""
    rows = [(3, 3, 1, 0), (3, 3, 1, 1), (1, 2, 3, 0), (1, 3, 0, 2), (2, 2, 3, 1)]
    domains = tuple(observed(f"qid {place}", list(range(4 if place < 3 else 3)), pa.int64()) for place in range(4))
    axes = (*(built({"widths": [2]}, domain) for domain in domains[:3]), exact_hierarchy(domains[3]))
    histogram = Example(rows, domains, axes).histogram((0,) * 4)
    promise = Promise(2, (RecursiveDiversity(domains[3].qid, Fraction(2), 2),))
    nodes = Evaluations(histogram, axes, promise, 4, "c_avg", effort=UNLIMITED, most_cached_cells=100, sensitive=[domains[3]])
    assert dive(nodes, nodes.top, weight=weight) == (0, 1, 2, 0)
    assert nodes.best is not None
    assert nodes.best[-1] == (0, 1, 2, 0)
