"""The search finds the node that a full enumeration of the lattice finds, and says truly what it knows of the rest."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.histograms.cells import Cells, fits_array, roll_up
from core.histograms.projections import Bundles, LinearCounting, Projection
from core.histograms.record_rollups import RecordRollUps
from core.lattice.bounded_evaluations import Evaluations
from core.lattice.branch_and_bound import BranchAndBound
from core.lattice.lattice import Lattice
from core.lattice.node_classes import SuppressionPenalties
from core.lattice.objectives import LevelPrices, named_objective_value, prices_of, value_shares
from core.lattice.search import Search, SearchResult
from core.privacy.models import DistinctDiversity, EntropyDiversity, PrivacyModel
from core.privacy.promise import Promise
from core.units.class_table import exact_hierarchy
from tests.house.replaced import (
    CODING_WORD,
    HISTOGRAM_DENSE_PER_CELL,
    PROJECTIONS_BUNDLE,
    RECORD_ROLLUPS_FOLDED,
    RECORD_ROLLUPS_SHRINK,
    ROLLUPS_LARGE,
    ROLLUPS_SHRINK,
)
from tests.laws import tried
from tests.oracles.hierarchies import built
from tests.oracles.lattice import all_nodes, best_node, class_sizes, losses, passing_nodes
from tests.oracles.tables import Example, examples, nodes_of, observed

OBJECTIVES = st.sampled_from(["dm_star", "dm_all"])
EVERY_OBJECTIVE = st.sampled_from(["dm_star", "dm_all", "c_avg", "c_avg", "precision", "gcp", "gcp", "gcp_covered", "entropy"])
LIMITS = st.sampled_from([Fraction(0), Fraction(1)]) | st.fractions(0, 1, max_denominator=20)


def cases(draw: st.DrawFn) -> tuple[Example, int, Fraction]:
    example = draw(examples())
    k = draw(st.sampled_from([1, 2, 3, len(example.rows)]) | st.integers(1, len(example.rows) + 1))
    return example, k, draw(LIMITS)


def searched(example: Example, k: int, limit: Fraction, objective: str, root: tuple[int, ...], **options: Any) -> SearchResult | None:
    most = floor(limit * len(example.rows))
    return Search(example.histogram(root), example.hierarchies, Promise(k), most, objective, **options).run()


def check(found: SearchResult | None, example: Example, k: int, limit: Fraction, objective: str, root: tuple[int, ...]) -> None:
    best = best_node(example.rows, example.ladders, k, limit, objective, root)
    if found is None or best is None:
        assert found is best
        return
    loss = losses(example.rows, example.ladders, best, k)
    assert found.node == best
    assert (found.loss.suppressed, found.loss.dm_star, found.loss.dm_all) == (loss.suppressed, loss.dm_star, loss.dm_all)
    assert found.nodes_passing == len(passing_nodes(example.rows, example.ladders, k, limit, root))
    assert found.nodes == len(list(all_nodes(example.ladders, root)))


@given(st.data(), OBJECTIVES)
@tried(150)
def test_search_finds_what_a_full_enumeration_finds(data: st.DataObject, objective: str) -> None:
    example, k, limit = cases(data.draw)
    root = (0,) * len(example.hierarchies)
    found = searched(example, k, limit, objective, root)
    check(found, example, k, limit, objective, root)
    assert found is None or found.unexamined == 0


@given(st.data(), OBJECTIVES)
@tried(100)
def test_a_coarser_root_gives_the_best_of_its_own_lattice_and_never_a_false_certificate(data: st.DataObject, objective: str) -> None:
    example, k, limit = cases(data.draw)
    root = data.draw(nodes_of(example))
    found = searched(example, k, limit, objective, root)
    check(found, example, k, limit, objective, root)
    if found is not None:
        everywhere = passing_nodes(example.rows, example.ladders, k, limit)
        outside = {node for node in everywhere if any(level < first for level, first in zip(node, root, strict=True))}
        assert len(outside) <= found.unexamined
        if found.unexamined == 0:
            assert found.node == best_node(example.rows, example.ladders, k, limit, objective)


def models(column: str) -> st.SearchStrategy[PrivacyModel]:
    """Models by which a large class may fail, and by which a coarser node may suppress more."""
    return st.builds(DistinctDiversity, st.just(column), st.integers(1, 3)) | st.builds(EntropyDiversity, st.just(column), st.floats(1, 3))


@given(st.data(), EVERY_OBJECTIVE, st.booleans())
@tried(300)
def test_any_objective_finds_the_best_of_all_nodes_that_suppress_no_more_than_allowed(
    data: st.DataObject, objective: str, secret: bool
) -> None:
    example, k, limit = cases(data.draw)
    *axes, last = example.hierarchies
    secret = secret and len(axes) > 0
    sensitive = [example.domains[-1]] if secret else []
    model = Promise(min(k, 4), (data.draw(models(sensitive[0].qid)),)) if secret else Promise(k)
    hierarchies = (*axes, exact_hierarchy(example.domains[-1]) if secret else last)
    root = Example(example.rows, example.domains, hierarchies).histogram((0,) * len(hierarchies))
    qids, most = len(hierarchies) - secret, floor(limit * len(example.rows))
    prices = prices_of(objective, hierarchies[:qids], example.domains[:qids], int(secret))
    search, every = (Search(root, hierarchies, model, most, objective, sensitive=sensitive, prices=prices) for _ in range(2))
    nodes = product(*(range(hierarchy.levels) for hierarchy in hierarchies))
    ranks = [every.rank(node) for node in nodes if every.evaluate(node).suppressed <= most]
    found = search.run()
    assert (found is None) == (not ranks)
    assert found is None or search.rank(found.node) == min(ranks)


@given(st.data(), OBJECTIVES)
@tried(100)
def test_nodes_that_may_not_be_published_are_never_counted_as_unexamined(data: st.DataObject, objective: str) -> None:
    example, k, limit = cases(data.draw)
    least = data.draw(nodes_of(example))
    root = tuple(data.draw(st.integers(first, hierarchy.top)) for first, hierarchy in zip(least, example.hierarchies, strict=True))
    hidden = [replace(hierarchy, least=level) for hierarchy, level in zip(example.hierarchies, least, strict=True)]
    found = Search(example.histogram(root), hidden, Promise(k), floor(limit * len(example.rows)), objective).run()
    if found is not None:
        above = set(all_nodes(example.ladders, root))
        outside = passing_nodes(example.rows, example.ladders, k, limit, least) - above
        assert len(outside) <= found.unexamined <= len(list(all_nodes(example.ladders, least))) - len(above)


def test_a_node_is_found_though_all_coarser_ones_suppress_too_many() -> None:
    """Two records with two diseases join ten that share one: under entropy then twelve fail where ten did."""
    rows = [(0, 7), (0, 8)] + [(1, 7)] * 10
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    axes = (built({"widths": [100]}, domains[0]), exact_hierarchy(domains[1]))
    model = Promise(2, (EntropyDiversity("qid 1", 2),))
    found = Search(Example(rows, domains, axes).histogram((0, 0)), axes, model, 10, sensitive=[domains[1]]).run()
    assert found is not None
    assert (found.node, found.loss.suppressed) == ((0, 0), 10)


def test_a_node_is_found_though_all_coarser_ones_suppress_more_than_the_one_record_that_may_be() -> None:
    """Ten records with two diseases, as many of each; an eleventh that joins them makes one of the two too frequent."""
    rows = [(0, 7)] + [(1, 7)] * 5 + [(1, 8)] * 5
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    axes = (built({"widths": [100]}, domains[0]), exact_hierarchy(domains[1]))
    model = Promise(2, (EntropyDiversity("qid 1", 2),))
    found = Search(Example(rows, domains, axes).histogram((0, 0)), axes, model, 1, sensitive=[domains[1]]).run()
    assert found is not None
    assert (found.node, found.loss.suppressed) == ((0, 0), 1)


def test_a_node_is_found_though_finer_ones_publish_larger_classes_on_average_than_all_records_make() -> None:
    """Thirty records with one disease are lost at every level but the last; two single ones are a class of their own at width 8."""
    rows = [(-4096, 7)] * 30 + [(4096, 7)] * 5 + [(4096, 8)] * 5 + [(0, 7), (7, 8)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    axes = (built({"widths": [1, 2, 4, 8, 16, 32, 64]}, domains[0]), exact_hierarchy(domains[1]))
    model = Promise(2, (DistinctDiversity("qid 1", 2),))
    search = Search(Example(rows, domains, axes).histogram((0, 0)), axes, model, 32, "c_avg", sensitive=[domains[1]])
    found = search.run()
    assert found is not None
    assert (found.node, found.loss.suppressed) == ((3, 0), 30)
    assert {level: search.values[level, 0] for level in (0, 3)} == {0: 10, 3: 6}


@given(st.data(), OBJECTIVES, st.integers(0, 30))
@tried(60)
def test_intermediate_histograms_and_several_words_change_nothing(data: st.DataObject, objective: str, kept_cells: int) -> None:
    example, k, limit = cases(data.draw)
    root = (0,) * len(example.hierarchies)
    with (
        patch(ROLLUPS_LARGE, 2),
        patch(CODING_WORD, 8),
        patch(HISTOGRAM_DENSE_PER_CELL, 0),
        patch(ROLLUPS_SHRINK, 2),
    ):
        check(searched(example, k, limit, objective, root, most_cached_cells=kept_cells), example, k, limit, objective, root)


@given(st.data())
def test_a_roll_up_is_the_histogram_of_the_records(data: st.DataObject) -> None:
    example = data.draw(examples())
    node = data.draw(nodes_of(example))
    finer = tuple(data.draw(st.integers(0, level)) for level in node)
    rolled, counted = roll_up(example.histogram(finer), node, example.hierarchies), example.histogram(node)
    assert all(np.array_equal(one, other) for one, other in zip(rolled.words, counted.words, strict=True))
    assert rolled.counts.tolist() == counted.counts.tolist()
    assert sorted(rolled.counts.tolist()) == sorted(class_sizes(example.rows, example.ladders, node).values())
    assert rolled.records == len(example.rows)


@given(st.data(), st.integers(0, 20), st.booleans(), st.booleans())
def test_roll_ups_from_kept_histograms_are_those_from_the_root(data: st.DataObject, capacity: int, grids: bool, wide: bool) -> None:
    example = data.draw(examples())
    with (
        patch(ROLLUPS_LARGE, 2),
        patch(RECORD_ROLLUPS_FOLDED, 1),
        patch(RECORD_ROLLUPS_SHRINK, 2),
        patch("core.histograms.record_rollups.fits_array", fits_array if grids else lambda packing, cells: False),
        patch(CODING_WORD, 8 if wide else 1 << 62),
    ):
        root = example.histogram((0,) * len(example.hierarchies))
        decided = np.zeros([hierarchy.levels for hierarchy in example.hierarchies], np.int8)
        roll_ups = RecordRollUps(root, example.hierarchies, capacity, decided)
        for node in data.draw(st.lists(nodes_of(example), max_size=8)):
            rolled, keep = roll_up(root, node, example.hierarchies), data.draw(st.booleans())
            assert sorted(roll_ups.counts(node, keep=keep).tolist()) == sorted(rolled.counts.tolist())
            cells = roll_ups.cells(node, keep=keep)
            assert (cells.codes.tolist(), cells.counts.tolist()) == (rolled.codes.tolist(), rolled.counts.tolist())
            decided[node] = data.draw(st.sampled_from([-1, 0, 1]))


@given(st.data(), OBJECTIVES)
def test_search_rolls_up_no_more_nodes_than_there_are(data: st.DataObject, objective: str) -> None:
    example, k, limit = cases(data.draw)
    found = searched(example, k, limit, objective, (0,) * len(example.hierarchies))
    assert found is None or 0 <= found.evaluated <= found.nodes


def branching(*given: Any, **more: Any) -> BranchAndBound:
    return BranchAndBound(Evaluations(*given, **more))


@given(st.data(), st.sampled_from(["dm_star", "dm_all", "c_avg", "precision", "gcp", "entropy"]), st.booleans())
@tried(100)
def test_a_node_that_publishes_nothing_is_never_chosen_while_another_publishes(data: st.DataObject, objective: str, branch: bool) -> None:
    """Where all records may be suppressed, some objectives are lowest at the node that publishes none of them."""
    example = data.draw(examples())
    k = data.draw(st.integers(1, len(example.rows)))
    first, most = example.histogram((0,) * len(example.hierarchies)), len(example.rows)
    prices = prices_of(objective, example.hierarchies, example.domains)
    search = branching if branch else Search
    found = search(first, example.hierarchies, Promise(k), most, objective, prices=prices).run()
    assert found is not None
    assert found.loss.suppressed < len(example.rows)


@pytest.mark.parametrize("objective", ["precision", "gcp", "c_avg"])
@pytest.mark.parametrize("search", [Search, branching])
def test_two_records_that_are_alone_are_published_together_though_both_may_be_suppressed(objective: str, search: Any) -> None:
    domain = observed("qid", [0, 1], pa.int64())
    example = Example([(0,), (1,)], (domain,), (built({"widths": [2]}, domain),))
    prices = prices_of(objective, example.hierarchies, example.domains)
    found = search(example.histogram((0,)), example.hierarchies, Promise(2), 2, objective, prices=prices).run()
    assert (found.node, found.loss.suppressed) == ((1,), 0)


@given(examples())
def test_nothing_is_found_where_k_exceeds_the_records_and_none_may_be_suppressed(example: Example) -> None:
    root = (0,) * len(example.hierarchies)
    assert searched(example, len(example.rows) + 1, Fraction(0), "dm_star", root) is None


@given(st.data(), st.sampled_from([2, 1 << 19]))
def test_chunks_added_up_at_a_coarser_node_are_its_histogram(data: st.DataObject, bundle: int) -> None:
    example = data.draw(examples())
    node = data.draw(nodes_of(example))
    finest = example.histogram((0,) * len(node))
    cut = data.draw(st.integers(0, finest.cells))
    with patch(PROJECTIONS_BUNDLE, bundle):
        bundles = Bundles(finest.packing)
        projection = Projection(finest.node, node, example.hierarchies, finest.records)
        for part in (slice(None, cut), slice(cut, None)):
            projection.add(bundles, bundles.codes(tuple(word[part] for word in finest.words)), finest.counts[part])
    added, counted = projection.result(), example.histogram(node)
    assert added.counts.tolist() == counted.counts.tolist()
    assert [word.tolist() for word in added.words] == [word.tolist() for word in counted.words]


@given(st.data(), st.integers(0, 30))
def test_a_crowd_never_counts_more_cells_than_there_are_and_misses_few(data: st.DataObject, most: int) -> None:
    example = data.draw(examples())
    node = data.draw(nodes_of(example))
    finest = example.histogram((0,) * len(node))
    counting_bitmap = LinearCounting(finest.node, node, example.hierarchies, most)
    bundles = Bundles(finest.packing)
    codes = bundles.codes(finest.words)
    for _ in range(2):
        counting_bitmap.add(bundles, codes)
    assert counting_bitmap.at_least <= example.histogram(node).cells
    shares = 1 << data.draw(st.integers(0, LinearCounting.bytes_for(most).bit_length() - 1))
    shared = LinearCounting(finest.node, node, example.hierarchies, most, shares)
    for share in range(shares):
        if share:
            shared.start_next_share()
        shared.add(bundles, codes)
    assert shared.at_least == counting_bitmap.at_least
    roomy = LinearCounting(finest.node, node, example.hierarchies, 1 << 16)
    roomy.add(bundles, codes)
    assert roomy.at_least == example.histogram(node).cells


def test_a_cheap_node_that_suppresses_too_many_is_not_the_best_though_all_it_is_tagged_by_allows_it() -> None:
    """Two of three classes have two diseases, as tagging asks, but one nine times as often: twenty records are more than the limit."""
    rows = [(place, place if number else 1 - place) for place in range(2) for number in range(10)] + [(2, 0), (2, 0), (2, 1), (2, 1)]
    domains = tuple(observed(f"qid {place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    axes = (built({"widths": [100]}, domains[0]), exact_hierarchy(domains[1]))
    model = Promise(2, (EntropyDiversity("qid 1", 2),))
    search = Search(Example(rows, domains, axes).histogram((0, 0)), axes, model, 3, "dm_all", sensitive=[domains[1]])
    found = search.run()
    assert found is not None
    assert (found.node, found.loss.suppressed) == ((1, 0), 0)
    assert search.evaluate((0, 0)).dm_all < found.loss.dm_all


def test_no_bound_of_prices_is_above_their_sum_also_below_nothing() -> None:
    """What a relative price takes off may leave less than nothing, if only by a rounding: a factor would lift that."""
    prices = LevelPrices((np.array([-1.0, 2.0]), np.array([-0.5, 0.25, 3.0])))
    lattice = Lattice.from_exact_values((2, 3))
    floor_of = prices.floor(lattice)
    assert all(floor_of[node] <= prices.cost(node) for node in lattice)


def test_a_group_covers_its_share_of_the_distinct_values_and_a_single_one_nothing() -> None:
    domain = observed("qid", [1, 1, 1, 2, 3, 4, 5, 6, 7, 8], pa.int64())
    hierarchy = built({"widths": [2, 4]}, domain)
    assert [value_shares(hierarchy, domain, level).tolist() for level in range(3)] == [
        [0.0] * 8,
        [0.0, 2 / 8, 2 / 8, 2 / 8, 0.0],
        [3 / 8, 4 / 8, 0.0],
    ]


def test_suppressing_costs_what_a_group_does_not_cost_yet_and_nothing_for_a_sensitive_value() -> None:
    domains = tuple(observed(name, list(range(8)), pa.int64()) for name in ("qid", "secret"))
    axes = built({"widths": [2, 4]}, domains[0]), exact_hierarchy(domains[1])
    prices = prices_of("gcp_covered", axes[:1], domains[:1], sensitive_axis_count=1)
    assert prices is not None
    lost = Cells((0, 0), np.array([[0, 1], [1, 2], [5, 5]], np.uint32), np.array([1, 3, 2]))
    added = SuppressionPenalties(prices, axes, finer=True).of(lost, (2, 0))
    # A single value costs nothing, a group of two a quarter, one of four half of what a suppressed value costs.
    assert added.tolist() == [[6 * 1.0, 6 * 3 / 4, 6 * 1 / 2], [0.0] * 3]


@pytest.mark.parametrize(("finer", "node", "costs"), [
    (True, (1, 0), [15 / 4, 15 / 4]), (True, (2, 0), [15 / 4, 15 / 4, 5 / 2]),
    (False, (1, 0), [15 / 4, 15 / 4]), (False, (2, 0), [5 / 2, 5 / 2, 5 / 2]),
])  # fmt: skip
def test_what_suppressing_costs_below_the_level_of_the_cells_is_what_it_costs_there(
    finer: bool, node: tuple[int, int], costs: list[float]
) -> None:
    """Of five records in groups of two of eight values; where finer levels are not asked for, the coarsest stands for all."""
    domains = tuple(observed(name, list(range(8)), pa.int64()) for name in ("qid", "other"))
    axes = tuple(built({"widths": [2, 4]}, domain) for domain in domains)
    prices = prices_of("gcp_covered", axes[:1], domains[:1], sensitive_axis_count=1)
    assert prices is not None
    lost = Cells((1, 0), np.array([[0, 1], [2, 5]], np.uint32), np.array([3, 2]))
    assert SuppressionPenalties(prices, axes, finer=finer).of(lost, node).tolist() == [costs, [0.0] * len(costs)]


def test_prices_of_a_column_are_multiplied_by_its_weight_and_those_of_none_stay() -> None:
    prices = LevelPrices((np.array([0.0, 2.0]), np.array([1.0, 3.0]), np.zeros(1)), ((np.array([4.0]), np.array([5.0])),) * 2 + ((),))
    found = prices.weighted([2.0, 0.5])
    assert [cost.tolist() for cost in found.base] == [[0, 4], [0.5, 1.5], [0]]
    assert [[more.tolist() for more in levels] for levels in found.extra] == [[[8], [10]], [[2], [2.5]], []]
    assert found.weights == (2.0, 0.5)
    assert prices.weighted([]) is prices
    assert [found.cost(node) for node in ((0, 0, 0), (1, 0, 0), (1, 1, 0))] == [0.5, 4.5, 5.5]


@pytest.mark.parametrize(
    ("name", "prices", "said"),
    [
        ("dm_star", None, {}), ("precision", None, {}), ("gcp", None, {}), ("gcp_covered", None, {}),
        ("gcp", LevelPrices((np.zeros(1),), (), (3.0, 1.0)), {"weighted": 12.0 * 2 / (40 * 4)}),
        ("precision", LevelPrices((np.zeros(1),), (), (3.0, 1.0)), {}),
    ],
)  # fmt: skip
def test_a_release_tells_a_weighted_mean_by_a_name_of_its_own(name: str, prices: LevelPrices | None, said: dict[str, float]) -> None:
    assert named_objective_value(name, 12.0, 40, prices) == said
