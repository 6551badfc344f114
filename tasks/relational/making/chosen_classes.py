"""Choice of the published classes of persons, and the matching of the rows of each class.

Classes are cut in several ways; limits and sensitive values decide which classes and rows are published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.relational.alignment import NOBODY, LevelTables, aligned_rows, level_tables_of, levels_of_groups
from core.relational.histories import NOWHERE
from schemas.errors.tables import HistoryError
from tasks.engine.steps import run_for_item
from tasks.relational.making.levels import NodeCosts, TablesOutcome, failing_histories, most_persons_left_out, search_settings
from tasks.relational.making.person_classes import LEFT_OUT, WAYS, WantedClasses, Way, class_persons, code_ranks
from tasks.relational.making.profiles import HistoryTables
from tasks.relational.making.sensitive import promises_of_tables, suppress_broken_promises
from tasks.relational.making.withholding import choose_levels, write_published
from tasks.relational.making.writing import ReleasedTables
from tasks.store.step import FileStep
from tasks.store.store import Artifact

GROUP = "in_group"
"""The column of groups; levels are in ``level_0`` …."""


class Matching(NamedTuple):
    """The inputs of matching a table's rows: its name, persons' classes and the matched tables above.

    Attributes:
        classes: The classes of persons.
        above: The tables above it, matched already, by name.
    """

    table: str
    classes: Artifact
    above: dict[str, Artifact]


def classes_of_persons(given: HistoryTables, classes: Artifact) -> NDArray[np.int32]:
    """Return the class number of each person from the store, ``LEFT_OUT`` for none, shape (persons,)."""
    found: NDArray[np.int32] = np.load(given.store.path(classes))
    return found


def read_groups(given: HistoryTables, matched: Artifact) -> NDArray[np.uint32]:
    """Return the group number of each row from the store, ``NOBODY`` if unpublished, shape (rows,).

    These are withheld, or suppressed with their persons.
    """
    found: NDArray[np.uint32] = pq.read_table(given.store.path(matched), columns=[GROUP])[GROUP].to_numpy()
    return found


def level_tables_of_table(given: HistoryTables, table: str) -> LevelTables:
    """Return flat arrays of the levels and penalties of a table's QIDs for compiled kernels."""
    coding, penalties = given.codings.get(table), NodeCosts(given).value_penalties
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
    numbers, ranks, below = given.numbers(item.table), code_ranks(given, item.table), child_row_counts(given, item.table)
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


def child_row_counts(given: HistoryTables, table: str) -> NDArray[np.int64]:
    """Return how many child rows each row of a table has, shape (rows,)."""
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
    """Match the rows of each class's persons, parents first; return per table groups and levels of rows."""
    found: dict[str, Artifact] = {}
    for table in given.job.tree.tables:
        above = {name: found[name] for name in given.chain(table)}
        found[table] = run_for_item(given.run, MATCHED, given, Matching(table, classes, above), f"match rows of {table}")
    return found


Flags = NDArray[np.bool_]


class MatchedTables(NamedTuple):
    """Artefacts of persons' classes and of the groups and levels of each table's rows.

    Attributes:
        classes: The class of each person.
        matched: Group and levels of the rows of each table, by name.
        promised: Whether the classes are to keep what is promised of sensitive values too, and not k alone.
    """

    classes: Artifact
    matched: dict[str, Artifact]
    promised: bool

    @property
    def key(self) -> list[object]:
        """The key of the persons' classes and of their matched rows."""
        return [self.classes.sha256, sorted((table, artifact.sha256) for table, artifact in self.matched.items()), self.promised]


class ClassesOutcome(TablesOutcome):
    """Loss, broken limit and omitted classes of one way to cut persons into classes.

    Attributes:
        fault: The limit that it breaks: ``rows``, ``values`` or ``persons``; null where it breaks none.
        left_out: The classes that are left out.
    """

    fault: str | None
    left_out: list[int]


@dataclass(frozen=True)
class ChosenClasses:
    """The outcome of the chosen way, the published persons, and levels of the rows of each table.

    Attributes:
        outcome: What they come to.
        published: Who is published without which rows.
        matched: Group and levels of the rows of each table, by name.
    """

    outcome: ClassesOutcome
    published: Artifact
    matched: Mapping[str, Artifact]


def withheld_rows(given: HistoryTables, item: MatchedTables, published: Flags) -> dict[str, NDArray[np.int64]]:
    """Return by table below the unit the row numbers of published persons' unmatched rows.

    Args:
        published: Shape (persons,), who is published.
    """
    found = {}
    for table in given.job.tree.tables[1:]:
        numbers, groups = given.numbers(table), read_groups(given, item.matched[table])
        found[table] = np.flatnonzero((groups == NOBODY) & (numbers[1] != NOWHERE) & published[numbers[2]])
    return found


def _judge(given: HistoryTables, item: MatchedTables, path: Path) -> int:
    """Omit classes until limits and promises hold; write the outcome.

    First go the classes that lose most rows until the limit is kept, then those whose values break a promise.
    """
    job, classes = given.job, classes_of_persons(given, item.classes)
    count, most = int(classes.max(initial=LEFT_OUT)) + 1, most_persons_left_out(given)
    owners = np.where(classes == LEFT_OUT, count, classes).astype(np.int64)
    sizes = np.bincount(owners, minlength=count + 1)
    left_out = np.append(np.zeros(count, np.bool_), True)
    fault = None if _within_rows(given, item, (owners, sizes), left_out, most) else "rows"
    promises = promises_of_tables(given, withheld_rows(given, item, ~left_out[owners])) if item.promised else []
    if promises:
        left_out |= failing_histories(job.privacy.k, promises, owners, sizes)
    failing = int(sizes[left_out].sum())
    fault = fault or (("values" if promises else "rows") if failing > most else "persons" if failing == given.persons else None)
    outcome = ClassesOutcome(
        node=(),
        evaluated=0,
        nodes=0,
        fault=fault,
        left_out=np.flatnonzero(left_out[:-1]).tolist(),
        failing=failing,
        loss=_loss(given, item, ~left_out[owners]),
    )
    path.write_text(json.dumps(outcome.model_dump()))
    return 1


def _within_rows(
    given: HistoryTables, item: MatchedTables, members: tuple[NDArray[np.int64], NDArray[np.int64]], left_out: Flags, most: int
) -> bool:
    """Omit the classes that lose most rows per person until every table keeps its limit.

    Returned is whether at most ``most`` persons are omitted then.

    Args:
        members: The class of each person and the persons of each class.
        left_out: Shape (classes + 1,), written to.
        most: Persons who may be left out.
    """
    owners, sizes = members
    limit = Fraction(given.job.suppression.rows)
    lost = withheld_rows(given, item, ~left_out[owners])
    each = np.array([np.bincount(owners[given.numbers(table)[2][rows]], minlength=len(sizes)) for table, rows in lost.items()])
    if not len(each):
        return True
    budget = np.array([floor(limit * given.tables[table].rows) for table in lost])
    over = each.sum(axis=1) > budget
    if not over.any():
        return True
    shares = each[over].sum(axis=0) / np.maximum(sizes, 1)
    order = np.argsort(-shares, kind="stable")
    # After the first n of them are left out, so much is withheld of each table.
    rest = each.sum(axis=1)[:, None] - np.cumsum(each[:, order], axis=1)
    enough = int(np.flatnonzero((rest <= budget[:, None]).all(axis=0))[0]) + 1
    left_out[order[:enough]] = True
    return bool(sizes[left_out].sum() <= most)


def _loss(given: HistoryTables, item: MatchedTables, kept: Flags) -> float:
    """Return the loss of all values: published rows by their labels, all others 1 each."""
    total = 0.0
    for table in given.codings:
        numbers, matched = given.numbers(table), item.matched[table]
        lost = (read_groups(given, matched) == NOBODY) | ~kept[numbers[2]]
        there = numbers[1] != NOWHERE
        costs = penalties_of_aligned_rows(given, table, matched)
        total += float(costs[there & ~lost].sum()) + (len(numbers) - 3) * int((there & lost).sum())
    return total


def penalties_of_aligned_rows(given: HistoryTables, table: str, matched: Artifact) -> NDArray[np.float64]:
    """Return the summed penalties of each row's values at its matched levels, shape (rows,)."""
    numbers, ladders = given.numbers(table), level_tables_of_table(given, table)
    levels, total = pq.read_table(given.store.path(matched)), np.zeros(numbers.shape[1])
    for place in range(len(numbers) - 3):
        level = levels[f"level_{place}"].to_numpy().astype(np.int64)
        total += ladders.penalties[ladders.starts[place] + level * ladders.sizes[place] + numbers[3 + place]]
    return total


JUDGED = FileStep(
    "classes_judged",
    make=_judge,
    reads=lambda given, item: [given.key_of(given.job.tree.tables), item.key],
    settings=lambda given: [search_settings(given), str(given.job.suppression.limit), str(given.job.suppression.rows)],
    suffix=".json",
)
"""What publishing the classes of one way comes to."""


def _publish_classes(given: HistoryTables, item: tuple[MatchedTables, list[int]], path: Path) -> int:
    matched, left_out = item
    classes = classes_of_persons(given, matched.classes)
    kept = (classes != LEFT_OUT) & ~np.isin(classes, left_out)
    kept = suppress_broken_promises(given, kept, withheld_rows(given, matched, kept), classes.astype(np.int64))
    return write_published(given, kept, withheld_rows(given, matched, kept), path)


PUBLISHED_CLASSES = FileStep(
    "published_classes",
    make=_publish_classes,
    reads=lambda given, item: [given.key_of(given.job.tree.tables), item[0].key, item[1]],
    settings=search_settings,
)
"""Persons of the classes that are published, and rows that are withheld of them; as many persons as the artefact says it has rows."""


def choose_classes(given: HistoryTables) -> ChosenClasses:
    """Cut persons into classes in several ways, match rows, return the way of least loss; raise if none.

    Ways are put in order by k alone: that one was taken and no other must say nothing of the values of a class. The first is taken that
    leaves no more persons out than may be, which is a sum over all of them.
    """
    found = [(*_judged(given, WantedClasses(way, promised=False)), way) for way in WAYS]
    passing = [one_way for one_way in found if one_way[0].fault is None]
    if not passing:
        raise _refusal(given, [outcome.fault for outcome, *_ in found])
    passing.sort(key=lambda one_way: (one_way[0].loss, one_way[0].failing))
    outcome, matched, _ = passing[0]
    if any(table.table.job.privacy.columns for table in given.tables.values()):
        outcome, matched = _keeping_promises(given, [way for *_, way in passing])
    published = run_for_item(given.run, PUBLISHED_CLASSES, given, (matched, outcome.left_out), "persons of the chosen classes")
    if given.persons - published.rows > (most := most_persons_left_out(given)):
        raise HistoryError.values_fail_classes(most)
    if not published.rows:
        raise HistoryError.nobody_left(given.persons)
    return ChosenClasses(outcome, published, matched.matched)


def _keeping_promises(given: HistoryTables, ways: Sequence[Way]) -> tuple[ClassesOutcome, MatchedTables]:
    """Return the first way of cutting that keeps all promises and leaves out few enough persons, or raise."""
    faults = list[str | None]()
    for way in ways:
        outcome, matched = _judged(given, WantedClasses(way, promised=True))
        if outcome.fault is None:
            return outcome, matched
        faults.append(outcome.fault)
    raise _refusal(given, faults)


def _judged(given: HistoryTables, wanted: WantedClasses) -> tuple[ClassesOutcome, MatchedTables]:
    """Cut persons in one way and match their rows; return what publishing them comes to."""
    classes = class_persons(given, wanted)
    matched = MatchedTables(classes, match_rows(given, classes), wanted.promised)
    made = run_for_item(given.run, JUDGED, given, matched, f"loss of classes, {wanted.way}")
    return given.store.read_model(made, ClassesOutcome), matched


def _refusal(given: HistoryTables, faults: list[str | None]) -> HistoryError:
    most = most_persons_left_out(given)
    if "values" in faults:
        return HistoryError.values_fail_classes(most)
    if "rows" in faults:
        return HistoryError.rows_fail(most, can_bound=given.job.can_bound)
    return HistoryError.nobody_left(given.persons)


def choose_release(given: HistoryTables, release: str) -> tuple[TablesOutcome, ReleasedTables]:
    """Run the job's method, by levels or by classes; return the outcome and the tables to release."""
    if given.job.is_local:
        chosen = choose_classes(given)
        return chosen.outcome, ReleasedTables.of(given, (), chosen.published, release, chosen.matched)
    outcome, published = choose_levels(given)
    return outcome, ReleasedTables.of(given, outcome.node, published, release, {})


def penalties_of_rows(released: ReleasedTables, table: str) -> NDArray[np.float64]:
    """Return the summed penalties of each row's values at their published levels, shape (rows,)."""
    if not released.node:
        return penalties_of_aligned_rows(released, table, released.matched[table])
    numbers, total = released.numbers(table), np.zeros(released.tables[table].rows)
    of_nodes = NodeCosts(released).value_penalties
    for axis in released.axes_of([table]):
        total += of_nodes[axis][released.node[axis]][numbers[3 + released.lattice_axes[axis].place]]
    return total
