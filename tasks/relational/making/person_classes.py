"""Classes of persons by Mondrian, cut by persons' columns, row counts and row values (DESIGN.md, 13)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.relational.histories import NOWHERE, class_of_each
from core.relational.person_cuts import (
    PersonAxis,
    Splits,
    allowed_classes,
    cut_persons,
    leaf_ranks,
    rank_profiles,
    row_count_axis,
    value_axis,
)
from core.relational.sensitive import TablePromise
from schemas.errors.tables import HistoryError
from tasks.engine.steps import run_for_item
from tasks.relational.making.levels import NodeCosts, failing_histories, history_numbers, most_persons_left_out, search_settings
from tasks.relational.making.profiles import HistoryTables
from tasks.relational.making.sensitive import promises_of_tables
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.store.tables import write_array

Way = Literal["own", "apart", "together"]
WAYS: tuple[Way, ...] = ("own", "apart", "together")
"""Persons with unlike numbers of rows cut apart first, then by their own values alone or by those of their rows too; or all axes alike."""
LEFT_OUT = -1
"""The class of a person who is left out."""
BYTES_OF_AXIS = 24
"""What an axis takes for each person while persons are cut, about; each quasi-identifier of a row takes as much for each row."""


def code_ranks(given: HistoryTables, table: str) -> NDArray[np.int64]:
    """Return the rank of each row's values in the order of cutting, shape (qids, rows)."""
    numbers = given.numbers(table)
    ranks = np.zeros((len(numbers) - 3, numbers.shape[1]), np.int64)
    for place, hierarchy in enumerate(coding.hierarchies if (coding := given.codings.get(table)) else ()):
        ranks[place] = leaf_ranks(hierarchy)[numbers[3 + place]]
    return ranks


def person_axes(given: HistoryTables, *, of_rows: bool) -> list[PersonAxis]:
    """Return the axes that cut persons: own values, row counts and, by ``of_rows``, values of rows.

    What a column below counts is how many values of it a person has; half of them go by the least, half by the greatest.
    """
    tree, penalties, found = given.job.tree, NodeCosts(given).value_penalties, list[PersonAxis]()

    def axes_of(table: str, place: int, columns: Iterable[tuple[NDArray[np.int64], float]]) -> list[PersonAxis]:
        costs = penalties[given.axes_of([table])[place]]
        return [value_axis(given.codings[table].hierarchies[place], costs, ranks, weight) for ranks, weight in columns]

    for place, ranks in enumerate(code_ranks(given, tree.unit)):
        found += axes_of(tree.unit, place, [(ranks, 1.0)])
    for table in tree.tables[1:]:
        numbers = given.numbers(table)
        mine = np.flatnonzero(numbers[1] != NOWHERE)
        persons = numbers[2][mine].astype(np.int64)
        found.append(row_count_axis(np.bincount(persons, minlength=given.persons), float(max(len(numbers) - 3, 1))))
        half = len(mine) / given.persons / 2
        for place, ranks in enumerate(code_ranks(given, table) if of_rows else ()):
            profiles = rank_profiles(persons, ranks[mine], given.persons)
            found += axes_of(table, place, zip(profiles, (half, half, half / 2), strict=True))
    return found


def shape_classes(given: HistoryTables, k: int, most_left_out: int) -> list[NDArray[np.int64]]:
    """Return arrays of persons with equal row counts, k or more each; others are merged or left out.

    Others who are fewer than k are left out where that is allowed, and else put to the fewest persons who are alike.
    """
    top = tuple(given.hierarchy(axis).top for axis in given.lattice_axes)
    shapes, sizes = class_of_each(history_numbers(given, top))
    # Numbers of histories are of a secret; the first person of each says in which order they come.
    order = np.argsort(shapes, kind="stable")
    groups = sorted(np.split(order, np.cumsum(sizes)[:-1]), key=lambda members: int(members[0]))
    alike = [members for members in groups if len(members) >= k]
    others = np.sort(np.concatenate([np.zeros(0, np.int64), *(members for members in groups if len(members) < k)]))
    if not len(others) or (len(others) < k and len(others) <= most_left_out and alike):
        return alike
    if len(others) < k:
        fewest = min(range(len(alike)), key=lambda place: len(alike[place]))
        others = np.sort(np.concatenate([others, alike.pop(fewest)]))
    return [*alike, others]


class WantedClasses(NamedTuple):
    """The way to cut persons into classes, and whether classes must keep l and t besides k.

    Attributes:
        promised: Whether classes keep what is promised of sensitive values too, and not k alone.
    """

    way: Way
    promised: bool


def _cut(given: HistoryTables, wanted: WantedClasses, path: Path) -> int:
    """Write the class of each person, from 0; -1 for suppressed persons."""
    way = wanted.way
    k = given.job.privacy.k
    roots = [np.arange(given.persons)] if way == "together" else shape_classes(given, k, most_persons_left_out(given))
    axes = person_axes(given, of_rows=way != "own")
    trees, promises = [cut_persons(axes, root, k) for root in roots], promises_of_tables(given) if wanted.promised else []
    classes = allowed_classes(trees, _splits(promises, k, given.persons))
    found = np.full(given.persons, LEFT_OUT, np.int32)
    if classes:
        found[np.concatenate(classes)] = np.repeat(np.arange(len(classes), dtype=np.int32), list(map(len, classes)))
    write_array(path, found)
    return len(classes)


def _splits(promises: list[TablePromise], k: int, persons: int) -> Splits:
    """Return a function that says which cuts are made.

    Both halves keep the promises, and a refusal would disclose no value.
    """

    def splits(members: NDArray[np.int64], cuts: NDArray[np.int64]) -> NDArray[np.bool_]:
        # Persons who are not asked are in a half of their own.
        halves = np.full(persons, 2 * len(cuts), np.int64)
        for number, (first, middle, end) in enumerate(cuts):
            halves[members[first:middle]] = 2 * number
            halves[members[middle:end]] = 2 * number + 1
        sizes = np.bincount(halves, minlength=2 * len(cuts) + 1)
        failing = failing_histories(k, promises, halves, sizes)[:-1].reshape(-1, 2)
        kept = ~(failing[:, 0] | failing[:, 1])
        for promise in promises:
            kept &= ~promise.disclosing(halves, sizes[:-1])
        return kept

    return splits


PERSON_CLASSES = FileStep(
    "person_classes",
    make=_cut,
    reads=lambda given, wanted: [given.key_of(given.job.tree.tables), *wanted],
    settings=lambda given: [search_settings(given), str(given.job.suppression.limit)],
    phase="search",
    suffix=".npy",
)
"""The class of each person; as many classes as the artefact says it has rows."""


def class_persons(given: HistoryTables, wanted: WantedClasses) -> Artifact:
    """Return the artefact of each person's class, stored or cut; raise below k or if memory is short."""
    if given.persons < given.job.privacy.k:
        raise HistoryError.too_few(given.job.privacy.k, given.persons)
    axes = [len(given.tables[table].qids) for table in given.job.tree.tables]
    rows = [given.tables[table].rows for table in given.job.tree.tables]
    needed = BYTES_OF_AXIS * given.persons * (axes[0] + sum(1 + 3 * below for below in axes[1:]))
    needed += BYTES_OF_AXIS * max((many * (1 + qids) for many, qids in zip(rows[1:], axes[1:], strict=True)), default=0)
    if needed > given.job.memory:
        raise HistoryError.memory_too_small_for_persons(given.persons, needed)
    return run_for_item(given.run, PERSON_CLASSES, given, wanted, f"classes of persons, {wanted.way}")
