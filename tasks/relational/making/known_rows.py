"""Persons to publish where an intruder knows few rows: each choice of rows is shared by k persons."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.relational.histories import combine_profiles
from core.relational.kernels import NOWHERE, Lanes, digests_of_numbers, digests_of_rows
from core.relational.known_rows import BYTES_EACH, kept_persons, number_of_choices
from schemas.errors.tables import HistoryError
from tasks.relational.making.profiles import HistoryTables, branch_node, digests_of_rows_below, flat_groups, person_profiles, seeds_of


def kept_by_known_rows(given: HistoryTables, node: Node, most: int) -> NDArray[np.bool_]:
    """Return which persons are published at a node if an intruder knows few rows, shape (persons,).

    Args:
        given: The tables.
        node: The level of each quasi-identifier.
        most: Rows of each table that an intruder knows.
    """
    tables = [rows for branch in given.job.tree.branches for rows in _rows_right_below(given, node, branch)]
    choices = number_of_choices([starts for starts, _ in tables], most)
    if choices * BYTES_EACH > given.job.memory:
        raise HistoryError.too_many_choices(choices, choices * BYTES_EACH)
    of_unit = digests_of_numbers(combine_profiles(person_profiles(given, node)), seeds_of(given, given.job.tree.unit, 0))
    return kept_persons(of_unit, tables, most, given.job.privacy.k)


def _rows_right_below(given: HistoryTables, node: Node, branch: str) -> list[tuple[NDArray[np.int64], Lanes]]:
    """Return the row digests, and each person's offset into them, of each table of a branch.

    Only tables with rows right below the persons are returned.
    """
    of_branch, found = branch_node(given, node, branch), []
    below = digests_of_rows_below(given, of_branch)
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
