"""Rows withheld of persons who fail at the best node, so that they need not be left out; limited table by table."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.node import Node
from core.relational.histories import joined
from core.relational.kernels import NOWHERE, digests_of_numbers, digests_of_rows
from core.relational.withholding import FailingRows, rows_to_withhold
from tasks.engine.steps import one
from tasks.relational.making.levels import TablesOutcome, history_numbers, is_promised, search_levels
from tasks.relational.making.profiles import HistoryTables, branch_node, flat_groups, lanes_below, person_profiles, profile_sums, seeds_of
from tasks.store.step import FileStep
from tasks.store.store import Artifact


def _withhold(given: HistoryTables, node: Node, path: Path) -> int:
    """Writes the rows that are withheld, ``table`` and ``row``, and with the unit's name the persons who are saved by it."""
    names, rows = list[str](), list[NDArray[np.int64]]()
    kept = is_promised(given, history_numbers(given, node)) if given.job.suppression.rows else np.ones(given.persons, np.bool_)
    persons = np.flatnonzero(~kept)
    if len(persons):
        where, failing = _failing_rows(given, node, kept)
        of_unit = digests_of_numbers(joined(person_profiles(given, node)), seeds_of(given, given.job.tree.unit, 0))
        histories = of_unit[persons]
        sums = np.zeros((len(persons) + 1, 2), np.uint64)
        np.add.at(sums, np.repeat(np.arange(len(persons)), np.diff(failing.starts)), failing.digests)
        shared = _histories_of_all(given, node, of_unit)
        limit = Fraction(given.job.suppression.rows)
        budget = np.array([floor(limit * given.tables[table].rows) for table in given.job.tree.tables], np.int64)
        saved, withheld = rows_to_withhold(histories + sums[:-1], failing, shared[kept], given.job.privacy.k, budget)
        names, rows = [given.job.tree.unit], [persons[saved]]
        for number, table in enumerate(given.job.tree.tables):
            mine = withheld[where[withheld, 0] == number]
            names.append(table)
            rows.append(np.sort(where[mine, 1]))
    column = pa.array([name for name, some in zip(names, rows, strict=True) for _ in range(len(some))], pa.string())
    pq.write_table(pa.table({"table": column, "row": np.concatenate([np.zeros(0, np.int64), *rows])}), path)
    return len(column)


def _failing_rows(given: HistoryTables, node: Node, kept: NDArray[np.bool_]) -> tuple[NDArray[np.int64], FailingRows]:
    """Returns table and row of each row right below a person who fails, and what is asked of these rows, in the order of persons."""
    tree, parts = given.job.tree, []
    for branch in tree.branches:
        of_branch = branch_node(given, node, branch)
        below, weights = lanes_below(given, of_branch), _rows_below(given, branch)
        for table in tree.within(branch):
            numbers = given.numbers(table)
            mine = np.flatnonzero((numbers[1] != NOWHERE) & (numbers[0] == 0) & ~kept[numbers[2]])
            groups, starts = flat_groups(given.codings.get(table), dict(of_branch.levels)[table])
            seeds = seeds_of(given, table, 0)
            digests = digests_of_rows(numbers[3:], groups, starts, below.get(table, np.zeros((0, 2), np.uint64)), mine, seeds)
            place = np.full(len(mine), tree.tables.index(table))
            parts.append((numbers[2][mine].astype(np.int64), np.stack([place, mine], axis=1), digests, weights[table][mine]))
    persons, where, digests, weights_of = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(persons, kind="stable")
    starts = np.searchsorted(persons[order], np.append(np.flatnonzero(~kept), len(kept)))
    return where[order], FailingRows(starts.astype(np.int64), digests[order], weights_of[order])


def _rows_below(given: HistoryTables, branch: str) -> dict[str, NDArray[np.int64]]:
    """Returns how many rows of each table each row of a branch takes with it, itself among them; by table, shape (rows, tables)."""
    tree = given.job.tree
    found = {table: np.zeros((given.tables[table].rows, len(tree.tables)), np.int64) for table in tree.within(branch)}
    for table in reversed(tree.within(branch)):
        numbers = given.numbers(table)
        found[table][:, tree.tables.index(table)] += 1
        for depth, above in enumerate(given.chain(table)):
            if depth:
                mine = np.flatnonzero((numbers[1] != NOWHERE) & (numbers[0] == depth))
                np.add.at(found[above], numbers[1][mine], found[table][mine])
    return found


def _histories_of_all(given: HistoryTables, node: Node, of_unit: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns the digest of each person's history, which is the sum of those of the person's row and of all rows right below it."""
    total = of_unit.copy()
    for branch in given.job.tree.branches:
        total += profile_sums(given, branch_node(given, node, branch))
    return total


WITHHELD = FileStep(
    "withheld",
    make=_withhold,
    reads=lambda given, node: [given.key_of(given.job.tree.tables), node],
    settings=lambda given: [given.job.privacy.k, str(given.job.suppression.rows), given.run.secret.keyed("profiles")],
)
"""Rows that are withheld, and persons who are saved by it."""


TRIES = (1.0, 0.5, 0.25, 0.125, 0.0)
"""Which parts of the share of rows are tried as further persons who may fail before rows are withheld."""


def choose_levels(given: HistoryTables) -> tuple[TablesOutcome, Artifact, Artifact]:
    """Chooses levels, and withholds the fewest rows that bring persons who fail there into a history of k.

    The limit is of persons who are left out in the end. Where rows may be withheld more persons may fail before, as many more as rows may
    be; if too many of them are left out then, levels are chosen at which fewer fail.

    Returns:
        What the search found, who is published as they are, and rows withheld with those who are published without them.

    Raises:
        HistoryError: no node keeps the promise within the limits.
        SkaldError: whatever a step raises.
    """
    share, most = given.job.suppression.rows, floor(Fraction(given.job.suppression.limit) * given.persons)
    for part in TRIES if share else (0.0,):
        outcome, kept = search_levels(given, most + floor(Fraction(part) * Fraction(share) * given.persons))
        withheld = one(given.run, WITHHELD, given, outcome.node, "rows to withhold")
        table = pq.read_table(given.store.path(withheld), columns=["table"])["table"].to_pylist()
        if outcome.failing - table.count(given.job.tree.unit) <= most:
            return outcome, kept, withheld
    msg = "levels at which no more persons fail than may be left out leave out no more"
    raise AssertionError(msg)
