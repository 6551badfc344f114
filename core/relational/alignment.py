"""Alignment of the rows of a class's persons: each group has one row of each person.

The rows of a group are published alike. Compiled by numba.

A class gets as many groups of rows as its person with fewest rows has, because a further group costs no more than the rows that it keeps.
Persons come one after the other, those with fewest rows first. Which rows of a person go to the groups is the best choice that keeps the
order of both, by dynamic programming (Needleman and Wunsch, J. Mol. Biol. 1970). The other rows are withheld.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.compiling.compiled import compiler
from core.hierarchies.hierarchy import Hierarchy

kernel = compiler("relational.alignment")

Integers = NDArray[np.int64]
Numbers = NDArray[np.uint32]
NOBODY = np.uint32(0xFFFFFFFF)
"""The group of a row that is in none."""
MOST_CELLS = 1 << 22
"""Steps of the choice of a person's rows that are held; where there are more, rows are taken at even distances."""


class LevelTables(NamedTuple):
    """Levels of several quasi-identifiers as arrays for kernels.

    Attributes:
        groups: The group of every code, column after column, level after level.
        penalties: What a value costs at each level, laid out like ``groups``.
        starts: Shape (columns,), where those of each column begin.
        sizes: Shape (columns,), codes of each column.
        least: Shape (columns,), the finest level that may be published.
    """

    groups: Numbers
    penalties: NDArray[np.float64]
    starts: Integers
    sizes: Integers
    least: Integers


@dataclass(frozen=True)
class AlignedRows:
    """Groups of aligned rows: the group of each row and the size of each group.

    Attributes:
        groups: Shape (rows,), the group of each row, ``NOBODY`` of one that is withheld.
        sizes: Shape (groups,), rows of each.
    """

    groups: Numbers
    sizes: Integers


def level_tables_of(hierarchies: tuple[Hierarchy, ...], penalties: list[list[NDArray[np.float64]]]) -> LevelTables:
    """Convert hierarchies and penalties to the arrays that kernels read.

    Args:
        hierarchies: One for each quasi-identifier.
        penalties: What each code costs, by quasi-identifier and level.
    """
    lengths = [one.levels * len(one.groups[0]) for one in hierarchies]
    groups = [level for one in hierarchies for level in one.groups]
    return LevelTables(
        np.concatenate([*groups, np.zeros(0, np.uint32)]).astype(np.uint32, copy=False),
        np.concatenate([*(level for one in penalties for level in one), np.zeros(0)]),
        np.cumsum([0, *lengths])[:-1].astype(np.int64),
        np.array([len(one.groups[0]) for one in hierarchies], np.int64),
        np.array([one.least for one in hierarchies], np.int64),
    )


@kernel
def levels_of_groups(codes: Numbers, groups: Numbers, group_count: int, level_tables: LevelTables) -> NDArray[np.uint8]:
    """Return the finest permitted level at which a group shares a label, shape (columns, groups).

    Args:
        codes: Shape (columns, rows).
        groups: Shape (rows,), the group of each row, ``NOBODY`` of one that is in none.
    """
    found = np.zeros((codes.shape[0], group_count), np.uint8)
    first = np.full(group_count, -1, np.int64)
    for row in range(groups.shape[0]):
        group = groups[row]
        if group == NOBODY:
            continue
        for column in range(codes.shape[0]):
            if first[group] < 0:
                found[column, group] = level_tables.least[column]
            else:
                found[column, group] = _level(column, codes[column, first[group]], codes[column, row], found[column, group], level_tables)
        if first[group] < 0:
            first[group] = row
    return found


@kernel
def _level(column: int, one: int, other: int, level: int, tables: LevelTables) -> int:
    """Return the finest level, from a given one upwards, at which two codes have the same label."""
    size = tables.sizes[column]
    place = tables.starts[column] + level * size
    while tables.groups[place + one] != tables.groups[place + other]:
        level += 1
        place += size
    return level


@kernel
def _cost(
    codes: Numbers,
    row: int,
    below: int,
    group: int,
    joined: int,
    heads: Integers,
    levels: Any,
    least: Any,
    tables: LevelTables,
    lost: float,
) -> float:
    """Return the cost of adding a row to a group of ``joined`` rows.

    Args:
        codes: Shape (columns, rows).
        below: Rows that hang from it.
        group: The group, as it is now.
        joined: Rows that it has.
        heads: Shape (groups,), a row of each.
        levels: Shape (groups, columns), the level of its labels.
        least: Shape (groups,), the fewest rows that hang from one of its rows.
        tables: The levels.
        lost: What a row below costs that finds no partner.
    """
    total = float(lost * abs(below - least[group]) * (joined if below < least[group] else 1))
    for column in range(codes.shape[0]):
        head, old = codes[column, heads[group]], levels[group, column]
        new = _level(column, head, codes[column, row], old, tables)
        first, size = tables.starts[column] + head, tables.sizes[column]
        total += float((joined + 1) * tables.penalties[first + new * size] - joined * tables.penalties[first + old * size])
    return total


@kernel
def matched_rows(
    codes: Numbers,
    rows: Integers,
    below: Integers,
    rows_per_group: int,
    heads: Integers,
    levels: Any,
    least: Any,
    tables: LevelTables,
    lost: float,
) -> Integers:
    """Return the person's rows that best match the groups, shape (groups,), as ascending positions.

    Positions are those in ``rows``. The choice of least cost that keeps the order of rows and groups is taken; where it would
    take too long to find, rows at even distances are.

    Args:
        codes: Shape (columns, rows).
        rows: Shape (mine,), the person's rows in order, no fewer than there are groups.
        below: Shape (rows of the table,), rows that hang from each.
        rows_per_group: Rows that each group has.
        heads: Shape (groups,), a row of each.
        levels: Shape (groups, columns), the level of its labels.
        least: Shape (groups,), the fewest rows that hang from one of its rows.
        tables: The levels.
        lost: What a row below costs that finds no partner.
    """
    many, spare = heads.shape[0], rows.shape[0] - heads.shape[0]
    chosen = np.arange(many)
    if not spare:
        return chosen
    if many * (spare + 1) > MOST_CELLS:
        for group in range(many):
            chosen[group] = group * (rows.shape[0] - 1) // max(many - 1, 1)
        return chosen
    # best[s]: the least cost of the groups so far with s rows left over before; takes: whether the row there was taken at this place.
    best, takes = np.zeros(spare + 1), np.zeros((many, spare + 1), np.bool_)
    for group in range(many):
        for left in range(spare + 1):
            row = rows[group + left]
            cost = best[left] + _cost(codes, row, below[row], group, rows_per_group, heads, levels, least, tables, lost)
            if left and best[left - 1] <= cost:
                best[left] = best[left - 1]
            else:
                best[left] = cost
                takes[group, left] = True
    left = spare
    for group in range(many - 1, -1, -1):
        while not takes[group, left]:
            left -= 1
        chosen[group] = group + left
    return chosen


@kernel
def _aligned(
    codes: Numbers,
    below: Integers,
    order: Integers,
    members: Integers,
    sets: Integers,
    persons: Integers,
    tables: LevelTables,
    lost: float,
) -> tuple[Numbers, Integers]:
    """Return the group of each row and the size of each group.

    Arguments are those of ``aligned_rows``, with the ends of ``members`` and ``sets``.
    """
    columns, found = codes.shape[0], np.full(below.shape[0], NOBODY, np.uint32)
    sizes, groups = np.zeros(order.shape[0], np.int64), 0
    for place in range(sets.shape[0] - 1):
        first, last = sets[place], sets[place + 1]
        lengths = members[first + 1 : last + 1] - members[first:last]
        if last - first < persons[place]:
            # Somebody has no row.
            continue
        fewest = lengths.min()
        turns = np.argsort(lengths, kind="mergesort")
        heads = order[members[first + turns[0]] : members[first + turns[0]] + fewest].copy()
        levels, least = np.zeros((fewest, columns), np.int64), below[heads]
        for column in range(columns):
            levels[:, column] = tables.least[column]
        found[heads] = (groups + np.arange(fewest)).astype(np.uint32)
        for joined in range(1, turns.shape[0]):
            member = first + turns[joined]
            mine = order[members[member] : members[member + 1]]
            chosen = matched_rows(codes, mine, below, joined, heads, levels, least, tables, lost)
            for group in range(fewest):
                row = mine[chosen[group]]
                for column in range(columns):
                    levels[group, column] = _level(column, codes[column, heads[group]], codes[column, row], levels[group, column], tables)
                least[group] = min(least[group], below[row])
                found[row] = groups + group
        sizes[groups : groups + fewest] = persons[place]
        groups += fewest
    return found, sizes[:groups].copy()


LOST = 1.0
"""What a row below costs that finds no partner, as much as one value that is not published."""


def aligned_rows(
    codes: Numbers, below: Integers, owners: tuple[Integers, Integers], ranks: Integers, persons: Integers, tables: LevelTables
) -> AlignedRows:
    """Align the rows of each set's members into groups of one row each; withhold the rows left over.

    There are as many groups as the member with fewest rows has rows.

    Args:
        codes: Shape (columns, rows), the code of each value.
        below: Shape (rows,), how many rows hang from each.
        owners: The set of each row, -1 of one that is left out, and the member of the set; both of shape (rows,).
        ranks: Shape (columns, rows), by which rows of a member are ordered.
        persons: Shape (sets,), members of each set, those without rows too.
        tables: The levels of the columns.
    """
    sets, members = owners
    rows = np.flatnonzero(sets >= 0)
    keys = [*(column[rows] for column in ranks[::-1]), -below[rows], members[rows], sets[rows]]
    order = rows[np.lexsort(keys)]
    new_set = np.append(True, np.diff(sets[order]) != 0)[: len(order)]
    new_member = new_set | np.append(True, np.diff(members[order]) != 0)[: len(order)]
    starts = np.append(np.flatnonzero(new_member), len(order))
    begins = np.append(np.flatnonzero(new_set[starts[:-1]]), len(starts) - 1)
    sizes = persons[sets[order[starts[begins[:-1]]]]]
    found, groups = _aligned(codes, below, order, starts, begins, sizes, tables, LOST)
    return AlignedRows(found, groups)
