"""Exact search of one lattice over all tables' levels, and the persons suppressed at the best node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.lattice.lattice import LARGEST, Lattice
from core.lattice.objectives import ROUNDING, Pricing, objective_of
from core.relational.histories import (
    BYTES_EACH,
    NOWHERE,
    Lanes,
    class_of_each,
    combine_profiles,
    cost_of_lost,
    digests_of_numbers,
    digests_of_rows,
    estimate_choices,
    failing_persons,
    kept_persons,
)
from core.relational.search import NodeCost, best_node
from core.relational.sensitive import TablePromise
from schemas.errors.tables import HistoryError, LatticeSizeError
from schemas.job.job import privacy_content
from schemas.reading.model import FrozenModel
from tasks.engine.steps import run_for_item
from tasks.relational.making.profiles import (
    HistoryTables,
    ProfileAxis,
    branch_digests,
    branch_node,
    flat_groups,
    joined_columns,
    read_profile,
    seeds_of,
    unit_profiles,
)
from tasks.relational.making.published_values import privacy_ways
from tasks.relational.making.sensitive import promises_of_tables
from tasks.store.step import FileStep


def kept_by_known_rows(given: HistoryTables, node: Node, known_rows: int) -> NDArray[np.bool_]:
    """Return a mask of persons whose choices of known rows k share, (persons,); raise if memory is short.

    Args:
        known_rows: Rows of each table that an intruder knows.
    """
    tables = [rows for branch in given.job.tree.branches for rows in _rows_right_below(given, node, branch)]
    choices = estimate_choices([starts for starts, _ in tables], known_rows)
    if choices * BYTES_EACH > given.job.memory:
        raise HistoryError.too_many_choices(choices, choices * BYTES_EACH, can_bound=given.job.can_bound)
    of_unit = digests_of_numbers(combine_profiles(unit_profiles(given, node)), seeds_of(given, given.job.tree.unit, 0))
    return kept_persons(of_unit, tables, known_rows, given.job.privacy.k)


def _rows_right_below(given: HistoryTables, node: Node, branch: str) -> list[tuple[NDArray[np.int64], Lanes]]:
    """Return the row digests, and each person's offset into them, of each table of a branch.

    Only tables with rows right below the persons are returned.
    """
    of_branch, found = branch_node(given, node, branch), []
    _, below = branch_digests(given, of_branch)
    for table in given.job.tree.branch_tables(branch):
        numbers = given.numbers(table)
        mine = np.flatnonzero((numbers[1] != NOWHERE) & (numbers[0] == 0))
        if not len(mine):
            continue
        groups, starts = flat_groups(given.codings.get(table), dict(of_branch.levels)[table])
        lanes = below.get(table, np.zeros((0, 2), np.uint64))
        digests = digests_of_rows(numbers[3:], groups, starts, lanes, mine, seeds_of(given, table, 0))
        persons = numbers[2][mine].astype(np.int64)
        order = np.argsort(persons, kind="stable")
        found.append((np.searchsorted(persons[order], np.arange(given.persons + 1)).astype(np.int64), digests[order]))
    return found


class TablesOutcome(FrozenModel):
    """Chosen levels, loss, number of failing persons, and nodes evaluated by a search.

    Attributes:
        node: The level of each quasi-identifier, in the order of the job.
        failing: Persons who are left out.
        loss: The cost of the node, and ``evaluated`` of how many of all ``nodes`` histories were counted.
    """

    node: Node
    failing: int
    loss: float
    evaluated: int
    nodes: int


@dataclass(frozen=True)
class NodeCosts:
    """Calculator of losses of the lattice's nodes over all tables, with lower bounds."""

    given: HistoryTables

    @cached_property
    def value_penalties(self) -> list[list[NDArray[np.float64]]]:
        """The penalty of each domain value by axis and level, that of its group; each of shape (values,)."""
        priced, found = objective_of(self.given.job.objective), []
        assert isinstance(priced, Pricing)
        assert priced.groups is not None
        for axis in self.given.lattice_axes:
            hierarchy, domain = self.given.hierarchy(axis), self.given.codings[axis.table].domains[axis.place]
            levels = range(hierarchy.levels)
            found.append([priced.groups(hierarchy, domain, level)[hierarchy.groups[level]] for level in levels])
        return found

    @cached_property
    def base(self) -> list[NDArray[np.float64]]:
        """The loss of each level of each axis if no person is suppressed."""
        return [
            np.array([float(np.dot(penalty, self._records(axis, len(penalty)))) for penalty in levels])
            for axis, levels in zip(self.given.lattice_axes, self.value_penalties, strict=True)
        ]

    def _records(self, axis: ProfileAxis, size: int) -> NDArray[np.int64]:
        numbers = self.given.numbers(axis.table)
        return np.bincount(numbers[3 + axis.place][numbers[1] != NOWHERE], minlength=size)

    def floor(self, lattice: Lattice) -> NDArray[np.float64]:
        """Return a lower bound on the loss of each node and all coarser ones, in the lattice's shape."""
        total = np.zeros((1,) * len(self.base))
        for costs in np.ix_(*(cost[first:] for cost, first in zip(self.base, lattice.root, strict=True))):
            total = total + costs
        return total * ROUNDING

    def loss(self, node: Node, lost: NDArray[np.bool_]) -> float:
        """Return the loss of a node with some persons suppressed: each of their values costs 1."""
        total = sum(float(cost[level]) for cost, level in zip(self.base, node, strict=True))
        for table in self.given.codings if lost.any() else ():
            axes, numbers = self.given.axes_of([table]), self.given.numbers(table)
            extra, starts = joined_columns([1.0 - self.value_penalties[axis][node[axis]] for axis in axes], np.float64)
            total += cost_of_lost(numbers[3:], extra, starts, numbers[2], numbers[1], lost)
        return total


def history_numbers(given: HistoryTables, node: Node) -> NDArray[np.uint64]:
    """Return a number per person, equal for equal histories at this node; no digest, shape (persons,).

    Numbers of different nodes or sources have nothing to do with each other.
    """
    branches = [read_profile(given, branch_node(given, node, branch)) for branch in given.job.tree.branches]
    return combine_profiles([*unit_profiles(given, node), *branches])


def lattice_of_tables(given: HistoryTables) -> Lattice:
    """Return the lattice of the levels of all tables, of any size."""
    return Lattice.allowed([given.hierarchy(axis) for axis in given.lattice_axes])


def most_persons_left_out(given: HistoryTables) -> int:
    """Return how many persons ``suppression.limit`` lets a release leave out."""
    return floor(Fraction(given.job.suppression.limit) * given.persons)


def searched_lattice(given: HistoryTables) -> Lattice:
    """Return the lattice of all tables; raise ``LatticeSizeError`` if it has too many nodes."""
    lattice = lattice_of_tables(given)
    if lattice.nodes > LARGEST:
        raise LatticeSizeError.too_many_nodes(lattice.nodes, LARGEST)
    return lattice


def _search(given: HistoryTables, most: int, path: Path) -> int:
    job, lattice, costs = given.job, searched_lattice(given), NodeCosts(given)
    k = job.privacy.k
    if given.persons < k:
        raise HistoryError.too_few(k, given.persons)

    promises = promises_of_tables(given)

    def look_at_choices(node: Node, known: int) -> NodeCost:
        lost = ~kept_by_known_rows(given, node, known)
        failing = int(lost.sum())
        return NodeCost(failing, failing, costs.loss(node, lost) if failing <= most else np.inf)

    def look(node: Node) -> NodeCost:
        if job.privacy.known_rows is not None:
            return look_at_choices(node, job.privacy.known_rows)
        numbers = history_numbers(given, node)
        failing = failing_persons(numbers, k)
        if failing > most:
            return NodeCost(failing, failing, np.inf)
        if not failing and not promises:
            return NodeCost(0, 0, costs.loss(node, np.zeros(given.persons, np.bool_)))
        classes, sizes = class_of_each(numbers)
        if promises:
            failing = int(sizes[failing_histories(k, [one_table.relaxed for one_table in promises], classes, sizes)].sum())
        lost = failing_histories(k, promises, classes, sizes)
        suppressed = int(sizes[lost].sum())
        return NodeCost(failing, suppressed, costs.loss(node, lost[classes]) if suppressed <= most else np.inf)

    parts = [given.axes_of(job.tree.branch_tables(branch)) for branch in job.tree.branches]
    found = best_node(lattice, costs.floor(lattice), [given.axes_of([job.tree.unit]), *parts], most, look)
    if found is None:
        if job.privacy.known_rows is not None:
            raise HistoryError.choices_fail(k, job.privacy.known_rows, most, can_bound=job.can_bound)
        coarsest = failing_persons(history_numbers(given, lattice.top), k)
        if coarsest > most:
            ways = {"withholds": bool(job.suppression.rows), "can_bound": job.can_bound}
            raise HistoryError.top_fails(k, coarsest, given.persons, most_persons_left_out(given), **ways)
        raise HistoryError.values_fail(most_persons_left_out(given))
    outcome = TablesOutcome(
        node=found.node,
        failing=found.cost.suppressed,
        loss=found.cost.loss,
        evaluated=found.evaluated,
        nodes=found.nodes,
    )
    path.write_text(json.dumps(outcome.model_dump()))
    return 1


def failing_histories(k: int, promises: Sequence[TablePromise], classes: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of histories that fewer than k persons share or that break l or t."""
    failing = sizes < k
    for promise in promises:
        failing = failing | promise.failing(classes, sizes)
    return failing


def search_settings(given: HistoryTables) -> list[object]:
    """Return the job's settings that decide which persons are published, for step keys."""
    promised = [[table, privacy_content(one_table.table.job)] for table, one_table in given.tables.items()]
    return [
        promised,
        privacy_ways(given),
        given.job.privacy.k,
        given.job.privacy.known_rows,
        given.job.objective,
        given.run.secret.keyed("profiles"),
    ]


LEVELS = FileStep(
    "levels",
    make=_search,
    reads=lambda given, most: [given.key_of(given.job.tree.tables), most],
    settings=search_settings,
    phase="search",
    suffix=".json",
)
"""The best node of all tables at which no more than so many persons fail."""


def persons_keeping_promises(given: HistoryTables, numbers: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return a mask of the persons whose history satisfies k, l and t, shape (persons,)."""
    classes, sizes = class_of_each(numbers)
    return ~failing_histories(given.job.privacy.k, promises_of_tables(given), classes, sizes)[classes]


def search_levels(given: HistoryTables, most_left_out: int) -> TablesOutcome:
    """Return the best node at which at most ``most_left_out`` persons fail, stored or searched, or raise."""
    made = run_for_item(given.run, LEVELS, given, most_left_out, "search levels of all tables")
    return given.store.read_model(made, TablesOutcome)
