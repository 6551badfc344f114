"""A table of classes counts what Python counts record by record, and putting classes together counts nobody twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.privacy.models import DistinctDiversity, Spread
from core.privacy.promise import Promise
from core.units.class_table import ClassMembers, ClassTable, SelectedPersons
from core.units.persons import EVERY_RECORD, RowPersons
from core.units.unit import Records, Unit

VALUES = 3
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 5), st.integers(-1, 4), st.integers(0, VALUES - 1)), min_size=1, max_size=40)
"""Records: whose they are, their class or none, and their sensitive value."""
Row = tuple[int | None, int, int]


def table_of(rows: list[Row], *, persons: bool) -> ClassTable:
    """The table of five classes, of which some may be empty."""
    owners, codes = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    records = EVERY_RECORD.count(owners, 5)
    if not persons:
        spread = EVERY_RECORD.spread(owners, codes, np.bincount(codes, minlength=VALUES))
        return ClassTable(records, records, {"x": spread})
    unit = RowPersons.of_records(np.array([-1 if row[0] is None else row[0] for row in rows], np.int32))
    known = unit.persons
    whole = known.count(codes, VALUES)
    whose = SelectedPersons(type(known)(known.per_cell, known.shares, {"x": whole}), {"x": codes}, np.arange(len(rows)))
    return ClassTable.of_members(records, ClassMembers(whose, owners))


def counted(rows: list[Row], *, persons: bool) -> tuple[list[int], Counter[tuple[int, int]]]:
    """Units of each class, and of each class and value, one by one."""
    if not persons:
        return [sum(row[1] == one for row in rows) for one in range(5)], Counter(row[1:] for row in rows if row[1] >= 0)
    units = [len({row[0] for row in rows if row[1] == one} - {None}) for one in range(5)]
    return units, Counter(pair[1:] for pair in {row for row in rows if row[0] is not None and row[1] >= 0})


def entries(spread: Spread) -> dict[tuple[int, int], int]:
    owners, values = spread.owners.tolist(), spread.values.tolist()
    assert list(zip(owners, values, strict=True)) == sorted(set(zip(owners, values, strict=True)))
    return dict(zip(zip(owners, values, strict=True), spread.counts.tolist(), strict=True))


def same(table: ClassTable, rows: list[Row], *, persons: bool) -> None:
    units, values = counted(rows, persons=persons)
    assert table.units.tolist() == units[: len(table.units)]
    assert table.records.tolist() == counted(rows, persons=False)[0][: len(table.records)]
    assert entries(table.spreads["x"]) == values


@given(ROWS, st.booleans())
def test_a_table_counts_each_class(rows: list[Row], persons: bool) -> None:
    same(table_of(rows, persons=persons), rows, persons=persons)


@given(ROWS, st.booleans(), st.lists(st.integers(-1, 4), min_size=5, max_size=5))
def test_classes_are_put_together_as_their_records_are(rows: list[Row], persons: bool, coarser: list[int]) -> None:
    together = [(who, coarser[one] if one >= 0 else -1, value) for who, one, value in rows]
    same(table_of(rows, persons=persons).grouped(np.array(coarser), 5), together, persons=persons)


def test_what_is_in_no_class_is_in_none_of_coarser_ones_however_few_they_are() -> None:
    rows: list[Row] = [(1, 0, 0), (2, 1, 0), (None, 0, 1), (3, 0, 2), (4, -1, 1), (1, 1, 2)]
    one = table_of(rows, persons=True).grouped(np.array([0, -1, -1, -1, -1]), 1)
    same(one.grouped(np.array([0]), 1), [(who, 0 if number == 0 else -1, value) for who, number, value in rows], persons=True)


def test_units_that_are_not_records_are_put_together_by_themselves() -> None:
    made = ClassTable(np.array([5, 3, 2]), np.array([2, 1, 1]), {}).grouped(np.array([0, 0, -1]), 1)
    assert (made.records.tolist(), made.units.tolist()) == ([8], [3])


@given(ROWS, st.booleans(), st.sets(st.integers(0, 4)), st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_some_of_the_classes_are_put_together_alike(rows: list[Row], persons: bool, kept: set[int], coarser: list[int]) -> None:
    taken, places = (
        table_of(rows, persons=persons).take(np.array(sorted(kept), np.intp)),
        {one: place for place, one in enumerate(sorted(kept))},
    )
    mine = [(who, places.get(one, -1), value) for who, one, value in rows]
    same(taken, mine, persons=persons)
    together = [(who, coarser[one] if one >= 0 else -1, value) for who, one, value in mine]
    same(taken.grouped(np.array(coarser)[: len(kept)], 5), together, persons=persons)


@given(ROWS, st.booleans(), st.integers(1, 4), st.integers(1, 3), st.sets(st.integers(0, 4)))
def test_a_union_fails_as_its_records_do(rows: list[Row], persons: bool, k: int, least: int, marked: set[int]) -> None:
    union = table_of(rows, persons=persons).union(np.isin(np.arange(5), sorted(marked)))
    mine = [row for row in rows if row[1] in marked and (row[0] is not None or not persons)]
    units = len({row[0] for row in mine}) if persons else len(mine)
    failing = union.failing(Promise(k, (DistinctDiversity("x", least),)))
    assert failing.tolist() == [units < k or len({row[2] for row in mine}) < least]


@given(ROWS, st.lists(st.integers(1, 9), min_size=40, max_size=40))
def test_rows_of_several_records_count_these(rows: list[Row], weights: list[int]) -> None:
    owners, codes = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    unit: Unit = Records(np.array(weights[: len(rows)]))
    expected: Counter[tuple[int, int]] = Counter()
    for (_, one, value), weight in zip(rows, weights, strict=False):
        expected[one, value] += weight if one >= 0 else 0
    assert unit.count(owners, 5).tolist() == [sum(expected[one, value] for value in range(VALUES)) for one in range(5)]
    assert entries(unit.spread(owners, codes, np.ones(VALUES, np.int64))) == +expected


def test_rows_that_are_taken_keep_their_records() -> None:
    rows = np.array([3, 0, 3], np.intp)
    found = Records(np.array([4, 5, 6, 7])).take(rows)
    assert found.per_cell is not None
    assert found.per_cell.tolist() == [7, 4, 7]
    assert Records().take(rows).per_cell is None
