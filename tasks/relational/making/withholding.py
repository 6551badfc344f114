"""Rows withheld from persons who fail at the best node, so that the persons stay; limited per table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.domains import Node
from core.relational.histories import NOWHERE, class_of_each, combine_profiles, digests_of_numbers, digests_of_rows, number_profiles
from core.relational.withholding import FailingRows, rows_to_withhold
from schemas.errors.tables import HistoryError
from tasks.engine.steps import run_for_item
from tasks.relational.making.levels import (
    TablesOutcome,
    failing_histories,
    history_numbers,
    kept_by_known_rows,
    most_persons_left_out,
    persons_keeping_promises,
    search_levels,
    search_settings,
)
from tasks.relational.making.profiles import (
    HistoryTables,
    branch_digests,
    branch_node,
    flat_groups,
    seeds_of,
    unit_profiles,
)
from tasks.relational.making.sensitive import promises_of_tables, suppress_broken_promises
from tasks.store.step import FileStep
from tasks.store.store import Artifact


@dataclass(frozen=True)
class ChosenLevels:
    """The chosen node, and whether rows are withheld at it."""

    node: Node
    withholds: bool


def _publish(given: HistoryTables, chosen: ChosenLevels, path: Path) -> int:
    """Write published persons and withheld rows as ``table`` and ``row``.

    Rows with the unit's name are published persons, rows with another table's name are withheld.
    """
    node, known = chosen.node, given.job.privacy.known_rows
    withheld: dict[str, NDArray[np.int64]] = {}
    if known is not None:
        kept = kept_by_known_rows(given, node, known)
    elif not chosen.withholds:
        numbers = history_numbers(given, node)
        kept = suppress_broken_promises(given, persons_keeping_promises(given, numbers), withheld, class_of_each(numbers)[0])
    else:
        kept, withheld = _saved(given, node)
    return write_published(given, kept, withheld, path)


def write_published(given: HistoryTables, published: NDArray[np.bool_], withheld: Mapping[str, NDArray[np.int64]], path: Path) -> int:
    """Write rows ``table``, ``row`` of published persons and withheld rows; return the person count."""
    found = {given.job.tree.unit: np.flatnonzero(published)} | dict(withheld)
    names = [pa.array([name], pa.string()).take(pa.array(np.zeros(len(rows), np.int64))) for name, rows in found.items()]
    pq.write_table(pa.table({"table": pa.concat_arrays(names), "row": np.concatenate(list(found.values()))}), path)
    return int(published.sum())


def _saved(given: HistoryTables, node: Node) -> tuple[NDArray[np.bool_], dict[str, NDArray[np.int64]]]:
    """Withhold rows of persons who fail k; then suppress histories that break a promise.

    Who loses rows follows from quasi-identifiers alone, because l and t are asked afterwards.
    """
    k = given.job.privacy.k
    classes, sizes = class_of_each(history_numbers(given, node))
    is_shared = sizes >= k
    kept = is_shared[classes]
    if kept.all():
        return suppress_broken_promises(given, persons_keeping_promises(given, history_numbers(given, node)), {}, classes), {}
    persons, (where, failing) = np.flatnonzero(~kept), _failing_rows(given, node, kept)
    of_unit = digests_of_numbers(combine_profiles(unit_profiles(given, node)), seeds_of(given, given.job.tree.unit, 0))
    histories = _histories_of_all(given, node, of_unit)
    limit = Fraction(given.job.suppression.rows)
    budget = np.array([floor(limit * given.tables[table].rows) for table in given.job.tree.tables], np.int64)
    # One person stands for all who share a history.
    one_of_each = np.zeros(len(sizes), np.int64)
    one_of_each[classes] = np.arange(given.persons)
    saved, gone = rows_to_withhold(histories[persons], failing, histories[one_of_each[is_shared]], k, budget)
    kept[persons[saved]] = True
    # The digest of a history without some rows is a difference.
    whose = np.repeat(persons, np.diff(failing.starts))
    np.subtract.at(histories, whose[gone], failing.digests[gone])
    places = {table: where[gone][where[gone, 0] == number, 1] for number, table in enumerate(given.job.tree.tables)}
    withheld = {table: np.sort(rows) for table, rows in places.items() if table != given.job.tree.unit}
    if promises := promises_of_tables(given, withheld):
        members = np.flatnonzero(kept)
        profile = number_profiles(histories[members])
        # Whoever is left out is in a class that is not asked.
        owners = np.full(given.persons, profile.size, np.int64)
        owners[members] = profile.numbers
        failed = failing_histories(k, promises, owners, np.bincount(owners, minlength=profile.size + 1))
        kept[members] = ~failed[profile.numbers]
        kept = suppress_broken_promises(given, kept, withheld, owners)
    return kept, withheld


def _failing_rows(given: HistoryTables, node: Node, kept: NDArray[np.bool_]) -> tuple[NDArray[np.int64], FailingRows]:
    """Return table and number of each row right below a failing person, and the data to choose rows by.

    Rows are in the order of persons.
    """
    tree, parts = given.job.tree, []
    for branch in tree.branches:
        of_branch = branch_node(given, node, branch)
        (_, below), weights = branch_digests(given, of_branch), _rows_below(given, branch)
        for table in tree.branch_tables(branch):
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
    """Count the rows of each table below each row of a branch, itself included, shape (rows, tables).

    These rows are withheld with it.
    """
    tree = given.job.tree
    found = {table: np.zeros((given.tables[table].rows, len(tree.tables)), np.int64) for table in tree.branch_tables(branch)}
    for table in reversed(tree.branch_tables(branch)):
        numbers = given.numbers(table)
        found[table][:, tree.tables.index(table)] += 1
        for depth, above in enumerate(given.chain(table)):
            if depth:
                mine = np.flatnonzero((numbers[1] != NOWHERE) & (numbers[0] == depth))
                np.add.at(found[above], numbers[1][mine], found[table][mine])
    return found


def _histories_of_all(given: HistoryTables, node: Node, of_unit: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the digest of each person's history, shape (persons,).

    It is the sum of the digests of the person's row and of all rows right below it.
    """
    total = of_unit.copy()
    for branch in given.job.tree.branches:
        total += branch_digests(given, branch_node(given, node, branch))[0]
    return total


PUBLISHED_ROWS = FileStep(
    "published",
    make=_publish,
    reads=lambda given, chosen: [given.key_of(given.job.tree.tables), chosen.node, chosen.withholds],
    settings=lambda given: [search_settings(given), str(given.job.suppression.rows)],
)
"""Persons who are published, and rows that are withheld of them; as many persons as the artefact says it has rows."""


TRIES = (1.0, 0.5, 0.25, 0.125, 0.0)
"""Which parts of the share of rows are tried as further persons who may fail before rows are withheld."""


def choose_levels(given: HistoryTables) -> tuple[TablesOutcome, Artifact]:
    """Return the best levels, and published persons with rows withheld; raise if too many are left out.

    The limit is of persons who are left out in the end. Where rows may be withheld more persons may fail before, as many more as rows may
    be; if too many of them are left out then, levels are chosen at which fewer fail. Where few rows are known, none is withheld.
    """
    share, most = given.job.suppression.rows, most_persons_left_out(given)
    has_rows = bool(given.job.tree.branches)
    for part in TRIES if share and has_rows and given.job.privacy.known_rows is None else ():
        outcome = search_levels(given, most + floor(Fraction(part) * Fraction(share) * given.persons))
        published = run_for_item(given.run, PUBLISHED_ROWS, given, ChosenLevels(outcome.node, withholds=True), "rows to withhold")
        if published.rows and given.persons - published.rows <= most:
            return outcome, published
    outcome = search_levels(given, most)
    published = run_for_item(given.run, PUBLISHED_ROWS, given, ChosenLevels(outcome.node, withholds=False), "persons of the best node")
    if given.persons - published.rows > most:
        raise HistoryError.values_fail(most)
    if not published.rows:
        raise HistoryError.nobody_left(given.persons)
    return outcome, published
