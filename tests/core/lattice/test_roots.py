"""The root is the finest node that surely fits the memory, and depends on nothing else."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.hierarchies.hierarchy import Hierarchy
from core.lattice.lattice import BYTES_PER_BIN, BYTES_PER_CELL, BYTES_PER_CODE, bins, dense_root, most_cells, occupied_root
from tests.house.replaced import ROOTS_LARGEST
from tests.oracles.hierarchies import built, domain_of
from tests.oracles.lattice import Node, all_nodes, class_sizes, precision
from tests.oracles.tables import Example, examples, nodes_of

Chosen = Callable[..., Node | None]


def medical() -> list[Hierarchy]:
    """The five QIDs of the paper's Table I, with as many values as it counts."""
    blood = domain_of([f"{group}{sign}" for group in ("A", "AB", "B", "O") for sign in "+-"], pa.string())
    professions = [f"profession {number:02}" for number in range(16)]
    tree = {half: {f"{half} {part}": professions[start : start + 4] for part, start in enumerate(starts)} for half, starts in HALVES}
    doubling = [2**power for power in range(11)]
    return [
        built({"tree": {"A": ["A+", "A-"], "AB": ["AB+", "AB-"], "B": ["B+", "B-"], "O": ["O+", "O-"]}}, blood),
        built({"tree": tree}, domain_of(professions, pa.string())),
        built({"widths": doubling[:7]}, domain_of(list(range(19, 86)), pa.int64())),
        built({"widths": [0.1, 1, 2, 4, 8]}, domain_of([tenth / 10 for tenth in range(120, 361)], pa.float64())),
        built({"widths": doubling, "encode": True}, domain_of([110_001 + 37 * rank**2 for rank in range(1_347)], pa.int64())),
    ]


HALVES = (("Service", (0, 4)), ("Non-Service", (8, 12)))


def finest(example: Example, cost: dict[Node, int], budget: int) -> Node | None:
    fitting = [node for node in all_nodes(example.ladders) if cost[node] <= budget]
    return min(fitting, key=lambda node: (-precision(example.ladders, node), node), default=None)


def test_equation_1_on_the_numbers_of_the_paper() -> None:
    hierarchies = medical()
    assert bins(hierarchies, (0, 0, 0, 0, 0)) == 8 * 16 * 67 * 241 * 1_347 + 1
    # Ages 19-85 in bins of 4 aligned to 0: [16 - 19] … [84 - 87].
    assert bins(hierarchies, (1, 2, 2, 5, 11)) == 4 * 2 * 18 * 1 * 1 + 1
    assert bins(hierarchies, tuple(hierarchy.top for hierarchy in hierarchies)) == 2


def test_with_memory_for_every_bin_the_dense_root_is_the_values_themselves() -> None:
    hierarchies = medical()
    whole = 16 * bins(hierarchies, (0, 0, 0, 0, 0))
    assert dense_root(hierarchies, whole) == (0, 0, 0, 0, 0)
    root = dense_root(hierarchies, whole - 1)
    assert root is not None
    assert root != (0, 0, 0, 0, 0)
    assert BYTES_PER_BIN * bins(hierarchies, root) < whole


@given(st.data())
def test_the_dense_root_is_the_most_precise_node_whose_bins_fit(data: st.DataObject) -> None:
    example = data.draw(examples())
    nodes = list(all_nodes(example.ladders))
    axes = [hierarchy.axes for hierarchy in example.hierarchies]
    cost = {node: prod(axis[level] for axis, level in zip(axes, node, strict=True)) + 1 for node in nodes}
    budget = data.draw(st.sampled_from(sorted(cost.values())) | st.integers(0, 200))
    spare = data.draw(st.integers(0, 15))
    assert dense_root(example.hierarchies, 16 * budget + spare) == finest(example, cost, budget)


@given(st.data())
def test_the_occupied_root_is_the_most_precise_node_whose_cells_surely_fit(data: st.DataObject) -> None:
    example = data.draw(examples())
    records = len(example.rows)
    nodes = list(all_nodes(example.ladders))
    groups = [[len(set(level.values())) for level in ladder] for ladder in example.ladders]
    cost = {node: min(records, prod(sizes[level] for sizes, level in zip(groups, node, strict=True))) for node in nodes}
    budget = data.draw(st.sampled_from(sorted(cost.values())) | st.integers(0, 60))
    assert occupied_root(example.hierarchies, BYTES_PER_CELL * budget, records) == finest(example, cost, budget)


@given(st.data())
def test_no_node_has_more_occupied_cells_than_were_bounded(data: st.DataObject) -> None:
    example = data.draw(examples())
    node = data.draw(nodes_of(example))
    assert len(class_sizes(example.rows, example.ladders, node)) <= most_cells(example.hierarchies, node, len(example.rows))


@given(st.sets(st.integers(-20, 20), min_size=1), st.sets(st.floats(0, 5, width=16), min_size=1), st.integers(0, 5_000))
def test_the_dense_root_depends_on_the_values_and_not_on_how_often_they_occur(ages: set[int], sizes: set[float], memory: int) -> None:
    domains = [domain_of(sorted(ages), pa.int64()), domain_of(sorted(sizes), pa.float64())]
    has_too_many_cells = [Domain(domain.qid, domain.values, domain.counts * 1_000, domain.nulls) for domain in domains]
    once, often = ([built({"widths": [1, 2, 4]}, domain) for domain in each] for each in (domains, has_too_many_cells))
    assert dense_root(once, memory) == dense_root(often, memory)


@given(examples(), st.integers(0, 5_000), st.integers(0, 5_000))
def test_more_memory_never_gives_a_less_precise_root(example: Example, memory: int, more: int) -> None:
    for root in (dense_root, lambda hierarchies, size: occupied_root(hierarchies, size, len(example.rows))):
        less_room, more_room = root(example.hierarchies, memory), root(example.hierarchies, memory + more)
        if less_room is not None:
            assert more_room is not None
            assert precision(example.ladders, more_room) >= precision(example.ladders, less_room)


@pytest.mark.parametrize("memory", [0, 31])
def test_there_is_no_dense_root_where_not_even_one_bin_and_the_suppressed_fit(memory: int) -> None:
    hierarchies = [built({"widths": [2]}, domain_of(np.arange(5)))]
    assert dense_root(hierarchies, memory) is None
    assert dense_root(hierarchies, 32) == (2,)


def test_there_is_no_occupied_root_where_not_even_one_cell_fits() -> None:
    hierarchies = [built({"widths": [2]}, domain_of(np.arange(5)))]
    assert occupied_root(hierarchies, 63, 100) is None
    assert occupied_root(hierarchies, 64, 100) == (2,)


def test_where_not_even_the_coarsest_node_of_a_lattice_too_large_to_hold_fits_there_is_no_root() -> None:
    hierarchies = [built({"widths": [2]}, domain_of(np.arange(5)))]
    room = BYTES_PER_CELL + BYTES_PER_CODE
    with patch(ROOTS_LARGEST, 0):
        assert [dense_root(hierarchies, memory) for memory in (31, 32)] == [None, (2,)]
        assert [occupied_root(hierarchies, memory, 100) for memory in (room - 1, room)] == [None, (2,)]


@given(st.data(), st.sampled_from([dense_root, occupied_root]))
def test_the_root_of_a_lattice_too_large_to_hold_fits_and_none_of_its_finer_neighbours_does(data: st.DataObject, chosen: Chosen) -> None:
    example = data.draw(examples())
    records, memory = len(example.rows), data.draw(st.integers(0, 10_000))
    wide = BYTES_PER_CELL + BYTES_PER_CODE * len(example.hierarchies)
    with patch(ROOTS_LARGEST, 0):
        root = chosen(example.hierarchies, memory) if chosen is dense_root else chosen(example.hierarchies, memory, records)

    def fits(node: Node) -> bool:
        if chosen is dense_root:
            return BYTES_PER_BIN * bins(example.hierarchies, node) <= memory
        return wide * most_cells(example.hierarchies, node, records) <= memory

    top = tuple(hierarchy.top for hierarchy in example.hierarchies)
    finest = (0,) * len(top)
    assert (root is None) == (not fits(top))
    if root is not None:
        assert fits(root)
        assert root == finest or not fits(finest)
        assert not any(fits((*root[:axis], level - 1, *root[axis + 1 :])) for axis, level in enumerate(root) if level)


def test_a_lattice_of_as_many_nodes_as_can_be_held_is_searched_as_a_whole_for_its_root() -> None:
    """Beyond that, one step after the other ends at a node that is less precise, and the codes of a cell count too."""
    axes = [built({"widths": widths}, domain_of(np.arange(size))) for widths, size in (([2], 2), ([2, 4], 3))]
    for most, dense, occupied in ((12, (1, 0), (1, 0)), (11, (0, 2), (0, 2))):
        with patch(ROOTS_LARGEST, most):
            assert dense_root(axes, 64) == dense
            assert occupied_root(axes, 3 * (BYTES_PER_CELL + 2 * BYTES_PER_CODE), 100) == occupied
