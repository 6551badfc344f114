"""Mondrian's classes are those of a plain recursion, on records and on cells, for every score, mode and rule."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.data_parallel import limit_threads
from core.mondrian.partition import MODES, SCORES, Mode, Rules, Score, _cores_for, partition
from core.mondrian.ranks import CutAxis, ranks_of, scale_of_fragment
from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel, RecursiveDiversity, Spread
from core.privacy.promise import Promise
from tests.laws import tried
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


def axes_of(columns: list[Column]) -> list[CutAxis]:
    return [axis_of(f"qid {position}", column) for position, column in enumerate(columns)]


def axis_of(name: str, column: Column) -> CutAxis:
    numbers = np.array([value for value in column.values if value is not None], np.float64)
    nulls = None in column.values
    return CutAxis(name, np.arange(len(column.values)), numbers if column.numerical else None, nulls)


@st.composite
def models(draw: st.DrawFn) -> tuple[PrivacyModel, ...]:
    """One or two models of the one sensitive column, which has four values."""
    drawn = draw(st.sampled_from(["distinct", "entropy", "recursive", "equal", "ordered", "hierarchical", "two"]))
    t = draw(st.sampled_from([0.1, 0.25, 0.4, 0.7]))
    groups = (np.array([0, 0, 1, 1]), np.zeros(4, np.int64))
    known: dict[str, PrivacyModel] = {
        "distinct": DistinctDiversity("s", draw(st.integers(1, 3))),
        "entropy": EntropyDiversity("s", draw(st.sampled_from([1, 1.5, 2, 2.5]))),
        "recursive": RecursiveDiversity("s", Fraction(draw(st.integers(1, 6)), 2), draw(st.integers(1, 3))),
        "equal": Closeness("s", t),
        "ordered": Closeness("s", t, np.array([2, 0, 1, 3])),
        "hierarchical": Closeness("s", t, None, groups),
    }
    return (DistinctDiversity("s", 2), Closeness("s", t)) if drawn == "two" else (known[drawn],)


def rules_of(sensitive: list[int], k: int, kept: tuple[PrivacyModel, ...]) -> Rules:
    return Rules(Promise(k, kept), ("s",) if kept else (), (np.bincount(sensitive, minlength=4),) if kept else (), "next")


def classes_of(table: Table, k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...] = ()) -> list[list[int]]:
    records, columns, sensitive = table
    codes = np.array(sensitive, np.int32)[:, None].copy() if kept else None
    # Two bytes as in runs, where they hold the ranks.
    dtype = np.uint16 if max((max(record, default=0) for record in records), default=0) < 1 << 16 else np.int32
    ranks, weights = np.array(records, dtype), np.ones(len(records), np.int64)
    made = partition(ranks, weights, axes_of(columns), rules_of(sensitive, k, kept), score, mode=mode, sensitive=codes)
    return [sorted(part.tolist()) for part in np.split(made.order, made.starts[1:-1])]


def expected(table: Table, k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...] = ()) -> Mondrian:
    _, columns, sensitive = table
    whole = np.bincount(sensitive, minlength=4)

    def accepts(node: list[int]) -> bool:
        counts = np.bincount([sensitive[number] for number in node], minlength=4)
        values = np.flatnonzero(counts)
        spread = Spread(np.zeros(len(values), np.int64), values, counts[values], whole)
        return not any(one.failing(np.array([len(node)]), {"s": spread})[0] for one in kept)

    return Mondrian(columns, k, score, mode, accepts)


KS, HOW, MADE = st.integers(1, 8), st.sampled_from(sorted(MODES)), st.sampled_from(sorted(SCORES))


@pytest.mark.slow
@given(tables(), KS, MADE, HOW)
@tried(150)
def test_classes_are_those_of_a_plain_recursion(table: Table, k: int, score: Score, mode: Mode) -> None:
    plain = expected(table, k, score, mode).classes(table[0])
    assert classes_of(table, k, score, mode) == [sorted(part) for part in plain]


@pytest.mark.slow
@given(tables(), st.integers(1, 4), MADE, HOW, models())
@tried(150)
def test_every_privacy_model_holds_on_both_sides_of_every_cut(
    table: Table, k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...]
) -> None:
    oracle = expected(table, k, score, mode, kept)
    found = classes_of(table, k, score, mode, kept)
    assert found == [sorted(part) for part in oracle.classes(table[0])]
    if oracle.keeps(list(range(len(table[0])))):
        assert all(oracle.keeps(part) for part in found)


@pytest.mark.slow
@given(tables(), st.integers(1, 8), st.sampled_from(sorted(SCORES)), st.sampled_from(["strict", "median"]))
def test_cells_are_partitioned_as_their_records_are(table: Table, k: int, score: Score, mode: Mode) -> None:
    records, columns, _ = table
    cells = Counter(records)
    made = partition(
        np.array(list(cells), np.uint16), np.array(list(cells.values())), axes_of(columns), Rules(Promise(k)), score, mode=mode
    ).of_rows()
    by_cell = dict(zip(cells, made.tolist(), strict=True))
    plain = expected(table, k, score, mode).classes(records)
    shared = [{by_cell[records[number]] for number in part} for part in plain]
    assert all(len(part) == 1 for part in shared)
    assert len(set().union(*shared)) == len(plain)


@pytest.mark.slow
@given(tables(), st.integers(1, 8), st.sampled_from(sorted(SCORES)), st.randoms(use_true_random=False))
def test_row_order_does_not_change_strict_classes(table: Table, k: int, score: Score, random) -> None:
    records, columns, _ = table
    shuffled = list(records)
    random.shuffle(shuffled)

    def found(rows: list[Record]) -> list[list[Record]]:
        parts = classes_of((rows, columns, [0] * len(rows)), k, score, "strict")
        return sorted(sorted(rows[number] for number in part) for part in parts)

    assert found(records) == found(shuffled)


@given(tables(), st.integers(1, 8))
def test_spans_of_a_fragment_are_those_of_its_rows(table: Table, k: int) -> None:
    records, columns, _ = table
    part = records[: max(1, len(records) // 2)]
    ranks = np.array(part, np.uint16)
    made = partition(
        ranks, np.ones(len(part), np.int64), axes_of(columns), Rules(Promise(k)), scale=scale_of_fragment(axes_of(columns), ranks)
    )
    whole = {qid: sorted({record[qid] for record in part}) for qid in range(len(columns))}
    plain = Mondrian(columns, k, whole=whole).classes(part)
    assert [sorted(rows.tolist()) for rows in np.split(made.order, made.starts[1:-1])] == [sorted(rows) for rows in plain]


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 100_000])
def test_wide_domains_are_cut_as_narrow_ones_are(size: int) -> None:
    values = [number * (size // 5) for number in range(5)]
    column = Column(range(size), numerical=True)
    table: Table = ([(value,) for value in values for _ in range(3)], [column], [0] * 15)
    assert [len(part) for part in classes_of(table, 3, "ncp", "strict")] == [3] * 5
    assert [len(part) for part in classes_of(table, 3, "representativity", "strict")] == [3] * 5


def test_classes_of_a_constant_table_are_one() -> None:
    table: Table = ([(0, 0)] * 20, [Column([7], numerical=True), Column([3], numerical=False)], [0] * 20)
    for mode in MODES:
        assert len(classes_of(table, 2, "representativity", mode)) == 1


def test_the_normalised_span_is_of_steps_between_ranks_and_not_of_ranks() -> None:
    """All of a domain of two is a whole span, seven tenths of one of ten are not: the first is cut, though it has fewer values."""
    columns = [Column([0, 1], numerical=False), Column(list(range(10)), numerical=True)]
    records: list[Record] = [(number % 2, number) for number in range(8)]
    assert classes_of((records, columns, [0] * 8), 4, "normalised_span", "strict") == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_of_cuts_that_save_as_much_the_first_is_made() -> None:
    table: Table = ([(value,) for value in range(5)], [Column(list(range(5)), numerical=True)], [0] * 5)
    assert classes_of(table, 2, "ncp", "strict") == [[0, 1], [2, 3, 4]]


def test_ranks_beyond_two_bytes_are_kept() -> None:
    size = (1 << 16) + 1
    axis = CutAxis("qid", np.arange(size)[::-1].copy(), None, nulls=False)
    assert ranks_of(np.array([[0], [1], [size - 1]]), [axis]).tolist() == [[size - 1], [size - 2], [0]]


@pytest.mark.ci
@pytest.mark.parametrize("score", SCORES)
def test_fewer_cores_cut_where_their_arrays_would_take_more_than_they_may(score: Score) -> None:
    def cores(values: int) -> int:
        return _cores_for([CutAxis("x", np.arange(values), np.arange(values, dtype=np.float64), nulls=False)] * 4, score)

    with limit_threads(16):
        assert cores(1_000) == 16
        assert 1 <= cores(1_000_000) <= 2
        assert cores(50_000_000) == 1
