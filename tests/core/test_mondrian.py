"""Mondrian's classes are those of a plain recursion, on records and on cells, for every score, mode and rule."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.mondrian import MODES, SCORES, Axis, Mode, Rules, Score, narrowed, partition
from tests.oracles.mondrian import Column, Mondrian, Record

Table = tuple[list[Record], list[Column], list[int]]


@st.composite
def tables(draw: st.DrawFn, most: int = 60) -> Table:
    """Records of up to four QIDs, numerical or not, with or without nulls, and a sensitive value each."""
    columns = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 9))
        numerical = draw(st.booleans())
        numbers = sorted(draw(st.lists(st.integers(-50, 50), min_size=size, max_size=size, unique=True)))
        columns.append(Column([*numbers, *([None] if draw(st.booleans()) else [])], numerical))
    record = st.tuples(*(st.integers(0, len(column.values) - 1) for column in columns))
    records = draw(st.lists(record, min_size=1, max_size=most))
    # Every value of a domain is held by some record.
    records += [tuple(min(number, len(column.values) - 1) for column in columns) for number in range(max(len(c.values) for c in columns))]
    sensitive = draw(st.lists(st.integers(0, 3), min_size=len(records), max_size=len(records)))
    return records, columns, sensitive


def axes_of(columns: list[Column]) -> list[Axis]:
    return [axis_of(f"qid {position}", column) for position, column in enumerate(columns)]


def axis_of(name: str, column: Column) -> Axis:
    numbers = np.array([value for value in column.values if value is not None], np.float64)
    nulls = None in column.values
    return Axis(name, np.arange(len(column.values)), numbers if column.numerical else None, nulls)


def classes_of(table: Table, rules: Rules, score: Score, mode: Mode) -> list[list[int]]:
    records, columns, sensitive = table
    codes = np.array([sensitive] * len(rules.diversity), np.int32).reshape(-1, len(records)).T.copy()
    made = partition(
        np.array(records, np.uint32), np.ones(len(records), np.int64), axes_of(columns), rules, score, mode=mode, sensitive=codes
    )
    return [sorted(part.tolist()) for part in np.split(made.order, made.starts[1:-1])]


def expected(table: Table, rules: Rules, score: Score, mode: Mode) -> Mondrian:
    _, columns, sensitive = table
    return Mondrian(columns, rules.k, max(rules.diversity, default=1), score, mode, [sensitive])


@given(tables(), st.integers(1, 8), st.integers(1, 3), st.sampled_from(sorted(SCORES)), st.sampled_from(sorted(MODES)))
@settings(max_examples=400)
def test_classes_are_those_of_a_plain_recursion(table: Table, k: int, diversity: int, score: Score, mode: Mode) -> None:
    rules = Rules(k, (diversity,))
    plain = expected(table, rules, score, mode).classes(table[0])
    assert classes_of(table, rules, score, mode) == [sorted(part) for part in plain]


@given(tables(), st.integers(1, 8), st.sampled_from(sorted(SCORES)), st.sampled_from(["strict", "median"]))
def test_cells_are_partitioned_as_their_records_are(table: Table, k: int, score: Score, mode: Mode) -> None:
    records, columns, _ = table
    cells = Counter(records)
    made = partition(
        np.array(list(cells), np.uint16), np.array(list(cells.values())), axes_of(columns), Rules(k), score, mode=mode
    ).of_rows()
    by_cell = dict(zip(cells, made.tolist(), strict=True))
    plain = expected(table, Rules(k), score, mode).classes(records)
    shared = [{by_cell[records[number]] for number in part} for part in plain]
    assert all(len(part) == 1 for part in shared)
    assert len(set().union(*shared)) == len(plain)


@given(tables(), st.integers(1, 8), st.integers(1, 3), st.sampled_from(sorted(SCORES)), st.sampled_from(sorted(MODES)))
def test_every_class_keeps_the_rules_if_the_table_does(table: Table, k: int, diversity: int, score: Score, mode: Mode) -> None:
    rules = Rules(k, (diversity,))
    oracle = expected(table, rules, score, mode)
    if oracle.keeps(list(range(len(table[0])))):
        assert all(oracle.keeps(part) for part in classes_of(table, rules, score, mode))


@given(tables(), st.integers(1, 8), st.sampled_from(sorted(SCORES)), st.randoms(use_true_random=False))
def test_row_order_does_not_change_strict_classes(table: Table, k: int, score: Score, random) -> None:
    records, columns, _ = table
    shuffled = list(records)
    random.shuffle(shuffled)

    def found(rows: list[Record]) -> list[list[Record]]:
        parts = classes_of((rows, columns, [0] * len(rows)), Rules(k), score, "strict")
        return sorted(sorted(rows[number] for number in part) for part in parts)

    assert found(records) == found(shuffled)


@given(tables(), st.integers(1, 8))
def test_spans_of_a_fragment_are_those_of_its_rows(table: Table, k: int) -> None:
    records, columns, _ = table
    part = records[: max(1, len(records) // 2)]
    ranks = np.array(part, np.uint16)
    made = partition(ranks, np.ones(len(part), np.int64), axes_of(columns), Rules(k), scale=narrowed(axes_of(columns), ranks))
    whole = {qid: sorted({record[qid] for record in part}) for qid in range(len(columns))}
    plain = Mondrian(columns, k, whole=whole).classes(part)
    assert [sorted(rows.tolist()) for rows in np.split(made.order, made.starts[1:-1])] == [sorted(rows) for rows in plain]


@pytest.mark.parametrize("size", [5, 100_000])
def test_wide_domains_are_cut_as_narrow_ones_are(size: int) -> None:
    values = [number * (size // 5) for number in range(5)]
    column = Column(range(size), numerical=True)
    table: Table = ([(value,) for value in values for _ in range(3)], [column], [0] * 15)
    assert [len(part) for part in classes_of(table, Rules(3), "ncp", "strict")] == [3] * 5
    assert [len(part) for part in classes_of(table, Rules(3), "representativity", "strict")] == [3] * 5


def test_classes_of_a_constant_table_are_one() -> None:
    table: Table = ([(0, 0)] * 20, [Column([7], numerical=True), Column([3], numerical=False)], [0] * 20)
    for mode in MODES:
        assert len(classes_of(table, Rules(2), "representativity", mode)) == 1
