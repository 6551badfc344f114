"""Matching of the rows of each class of persons, table by table, into groups with the same labels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.relational.alignment import NOBODY, LevelTables, aligned_rows, level_tables_of, levels_of_groups
from core.relational.kernels import NOWHERE
from tasks.engine.steps import one
from tasks.relational.making.levels import NodeCosts, search_settings
from tasks.relational.making.person_classes import LEFT_OUT, code_ranks
from tasks.relational.making.profiles import HistoryTables
from tasks.store.step import FileStep
from tasks.store.store import Artifact

GROUP = "in_group"
"""The column of groups; levels are in ``level_0`` …."""


class Matching(NamedTuple):
    """A table whose rows are to be matched, with the classes of persons.

    Attributes:
        table: Its name.
        classes: The classes of persons.
        above: The tables above it, matched already, by name.
    """

    table: str
    classes: Artifact
    above: dict[str, Artifact]


def classes_of_persons(given: HistoryTables, classes: Artifact) -> NDArray[np.int32]:
    """Read the class number of each person, shape (persons,)."""
    found: NDArray[np.int32] = np.load(given.store.path(classes))
    return found


def read_groups(given: HistoryTables, matched: Artifact) -> NDArray[np.uint32]:
    """Read the group number of each row, shape (rows,); ``NOBODY`` for rows that are not published.

    These are withheld, or suppressed with their persons.
    """
    found: NDArray[np.uint32] = pq.read_table(given.store.path(matched), columns=[GROUP])[GROUP].to_numpy()
    return found


def level_tables_of_table(given: HistoryTables, table: str) -> LevelTables:
    """Return the levels and penalties of a table's quasi-identifiers in the kernels' form."""
    coding, penalties = given.codings.get(table), NodeCosts(given).penalties
    return level_tables_of(coding.hierarchies if coding else (), [penalties[axis] for axis in given.axes_of([table])])


def _match(given: HistoryTables, item: Matching, path: Path) -> int:
    """Write the group of each row, and the level at which each of its values is published."""
    numbers, ladders = given.numbers(item.table), level_tables_of_table(given, item.table)
    groups, count = _unit_groups(given, item) if not given.chain(item.table) else _row_groups(given, item, ladders)
    levels = levels_of_groups(numbers[3:], groups, count, ladders)
    inside = np.where(groups == NOBODY, 0, groups)
    columns = {GROUP: groups} | {
        f"level_{place}": level[inside] if count else np.zeros(len(groups), np.uint8) for place, level in enumerate(levels)
    }
    pq.write_table(pa.table(columns), path, row_group_size=122_880)
    return int((groups != NOBODY).sum())


def _unit_groups(given: HistoryTables, item: Matching) -> tuple[NDArray[np.uint32], int]:
    classes = classes_of_persons(given, item.classes)
    return np.where(classes == LEFT_OUT, NOBODY, classes.astype(np.uint32)), int(classes.max(initial=-1)) + 1


def _row_groups(given: HistoryTables, item: Matching, ladders: LevelTables) -> tuple[NDArray[np.uint32], int]:
    """Align the rows of a table, one parent table after the other; return groups and their number."""
    numbers, ranks, below = given.numbers(item.table), code_ranks(given, item.table), rows_right_below(given, item.table)
    found, count = np.full(numbers.shape[1], NOBODY, np.uint32), 0
    for depth, above in enumerate(given.chain(item.table)):
        sets_above = read_groups(given, item.above[above])
        persons = np.bincount(sets_above[sets_above != NOBODY])
        mine = np.flatnonzero((numbers[1] != NOWHERE) & (numbers[0] == depth))
        sets, members = np.full(numbers.shape[1], -1, np.int64), np.zeros(numbers.shape[1], np.int64)
        members[mine] = numbers[1][mine]
        owners = sets_above[members[mine]]
        sets[mine] = np.where(owners == NOBODY, -1, owners.astype(np.int64))
        made = aligned_rows(numbers[3:], below, (sets, members), ranks, persons, ladders)
        there = made.groups != NOBODY
        found[there] = made.groups[there] + np.uint32(count)
        count += len(made.sizes)
    return found, count


def rows_right_below(given: HistoryTables, table: str) -> NDArray[np.int64]:
    """Count the rows that hang directly from each row of a table, shape (rows,)."""
    found = np.zeros(given.tables[table].rows, np.int64)
    for other in given.job.tree.tables_below(table):
        numbers = given.numbers(other)
        mine = (numbers[1] != NOWHERE) & (numbers[0] == given.chain(other).index(table))
        found += np.bincount(numbers[1][mine], minlength=len(found))
    return found


MATCHED = FileStep(
    "matched",
    make=_match,
    reads=lambda given, item: [
        given.key_of(given.job.tree.tables),
        item.table,
        item.classes.sha256,
        sorted((table, artifact.sha256) for table, artifact in item.above.items()),
    ],
    settings=search_settings,
)
"""The group and the levels of each row of a table; as many rows as the artefact says are published, if their persons are."""


def match_rows(given: HistoryTables, classes: Artifact) -> dict[str, Artifact]:
    """Match the rows of all tables, parents first; return an artefact for each table."""
    found: dict[str, Artifact] = {}
    for table in given.job.tree.tables:
        above = {name: found[name] for name in given.chain(table)}
        found[table] = one(given.run, MATCHED, given, Matching(table, classes, above), f"match rows of {table}")
    return found
