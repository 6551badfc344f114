"""Profiles of persons: a number per person for each branch of tables and node of levels, kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.columns.domains import Node
from core.hierarchies.hierarchy import Hierarchy
from core.relational.histories import Lanes, Profile, add_rows, number_profiles
from schemas.errors.tables import HistoryError
from tasks.counting.coding import Coding
from tasks.engine.steps import run_for_item
from tasks.relational.making.linking import ALIGNED, Linking
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.store.tables import write_array

BYTES_EACH = 64
"""What a person takes in memory while histories are counted, about; each table below takes some more."""
OF_BRANCH = 8


@dataclass(frozen=True)
class ProfileAxis:
    """A quasi-identifier of one of the tables: the table's name and the position in it."""

    table: str
    place: int


@dataclass(frozen=True)
class HistoryTables(Linking):
    """All tables with their rows as arrays of numbers: row above, person and codes.

    Attributes:
        aligned: Depth, row above, person and codes of each row, by table.
        codings: Domains and hierarchies of the tables that have quasi-identifiers.
    """

    aligned: dict[str, Artifact]
    codings: dict[str, Coding]

    @cached_property
    def lattice_axes(self) -> tuple[ProfileAxis, ...]:
        """Axes of the joint lattice: one per quasi-identifier of each table, in the order of the job."""
        return tuple(ProfileAxis(table, place) for table in self.job.tables for place in range(len(self.tables[table].qids)))

    def axes_of(self, tables: Sequence[str]) -> list[int]:
        """Return the positions in ``lattice_axes`` of the quasi-identifiers of some tables."""
        return [position for position, axis in enumerate(self.lattice_axes) if axis.table in tables]

    def hierarchy(self, axis: ProfileAxis) -> Hierarchy:
        """Return the hierarchy of a quasi-identifier."""
        return self.codings[axis.table].hierarchies[axis.place]

    def levels_of(self, node: Node, table: str) -> Node:
        """Return the part of a joint node that holds the levels of one table's quasi-identifiers."""
        return tuple(node[position] for position in self.axes_of([table]))

    @property
    def persons(self) -> int:
        """Number of persons in the source."""
        return self.tables[self.job.tree.unit].rows

    def numbers(self, table: str) -> NDArray[np.uint32]:
        """Return a table's rows, memory-mapped: depth, row above, person, codes; shape (3 + qids, rows)."""
        read: NDArray[np.uint32] = np.asarray(np.load(self.store.path(self.aligned[table]), mmap_mode="c"))
        return read

    def key_of(self, tables: Sequence[str]) -> list[object]:
        """Return the key of some tables' histories, without levels."""
        return [[table, self.aligned[table].sha256, self.codings[table].key if table in self.codings else None] for table in tables]


@dataclass(frozen=True)
class BranchNode:
    """A table right below the unit, and the levels of it and of all tables below it."""

    branch: str
    levels: tuple[tuple[str, Node], ...]


def flat_groups(coding: Coding | None, levels: Node) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the groups of all codes at a node, column after column, and the offset of each column."""
    groups = [hierarchy.groups[level] for hierarchy, level in zip(coding.hierarchies, levels, strict=True)] if coding else []
    return joined_columns(groups, np.uint32)


def joined_columns(columns: Sequence[NDArray[Any]], kind: type[np.generic]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate arrays as one type; return the result and the offset of each array in it."""
    starts = np.cumsum([0, *(len(column) for column in columns)])[:-1].astype(np.int64)
    return np.concatenate([*columns, np.zeros(0, kind)]).astype(kind, copy=False), starts


def branch_digests(given: HistoryTables, node: BranchNode) -> tuple[Lanes, dict[str, Lanes]]:
    """Return digests of all rows of a branch below each person, and by parent table below each row.

    Digests of rows are added to those of their parent rows; shapes (persons, 2) and (rows, 2), uint64.
    """
    tree, levels, persons = given.job.tree, dict(node.levels), np.zeros((given.persons, 2), np.uint64)
    nothing = np.zeros((0, 2), np.uint64)
    below = {
        table: np.zeros((given.tables[table].rows, 2), np.uint64) for table in tree.branch_tables(node.branch) if tree.tables_below(table)
    }
    for table in reversed(tree.branch_tables(node.branch)):
        numbers, (groups, starts) = given.numbers(table), flat_groups(given.codings.get(table), levels[table])
        for depth, above in enumerate(given.chain(table)):
            sums = persons if not depth else below[above]
            add_rows(
                numbers[3:], groups, starts, below.get(table, nothing), numbers[1], numbers[0], depth, seeds_of(given, table, depth), sums
            )
    return persons, below


def seeds_of(given: HistoryTables, table: str, depth: int) -> Lanes:
    """Derive two secret seeds for the digests of a table's rows at one depth, shape (2,)."""
    digits = given.run.secret.keyed("profiles", table, depth)
    return np.array([int(digits[:16], 16), int(digits[16:32], 16)], np.uint64)


def _profile(given: HistoryTables, node: BranchNode, path: Path) -> int:
    profile = number_profiles(branch_digests(given, node)[0])
    write_array(path, profile.numbers)
    return profile.size


PROFILES = FileStep(
    "profiles",
    make=_profile,
    # Persons may come who have no row in the branch.
    reads=lambda given, node: [given.persons, given.key_of(given.job.tree.branch_tables(node.branch)), node.branch, node.levels],
    settings=lambda given: given.run.secret.keyed("profiles"),
    suffix=".npy",
)
"""The number of each person's profile in one branch at one node; as many different ones as the artefact says it has rows."""


def read_profile(given: HistoryTables, node: BranchNode) -> Profile:
    """Return each person's profile number in a branch at a node, stored or computed, shape (persons,)."""
    made = PROFILES.result(given, node)
    return Profile(np.load(given.store.path(made)), made.rows)


def unit_profiles(given: HistoryTables, node: Node) -> list[Profile]:
    """Return profiles of persons by their own table: one equal for all, then one per quasi-identifier."""
    unit = given.job.tree.unit
    numbers = given.numbers(unit)
    parts = [Profile(np.zeros(given.persons, np.uint32), 1)]
    for position in given.axes_of([unit]):
        axis = given.lattice_axes[position]
        hierarchy = given.hierarchy(axis)
        groups = hierarchy.groups[node[position]]
        parts.append(Profile(groups[numbers[3 + axis.place]], len(hierarchy.labels[node[position]])))
    return parts


def branch_node(given: HistoryTables, node: Node, branch: str) -> BranchNode:
    """Return the part of a node that concerns one branch."""
    return BranchNode(branch, tuple((table, given.levels_of(node, table)) for table in given.job.tree.branch_tables(branch)))


def align_rows(linking: Linking) -> HistoryTables:
    """Write all rows as numbers, load hierarchies; return the tables; raise if memory is too small."""
    unit, tree = linking.tables[linking.job.tree.unit], linking.job.tree
    needed = unit.rows * (BYTES_EACH + OF_BRANCH * len(tree.branches))
    needed += 16 * max(
        (sum(linking.tables[table].rows for table in tree.branch_tables(one) if tree.tables_below(table)) for one in tree.branches),
        default=0,
    )
    if needed > linking.job.memory:
        raise HistoryError.memory_too_small_for_persons(unit.rows, needed)
    aligned = {table: run_for_item(linking.run, ALIGNED, linking, table, f"rows of {table} as numbers") for table in tree.tables}
    codings = {name: coding for name, table in linking.tables.items() if (coding := table.coding(linking.store))}
    return HistoryTables(linking.run, linking.job, linking.tables, linking.linked, aligned, codings)
