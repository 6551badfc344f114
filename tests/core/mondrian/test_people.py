"""Mondrian's classes of persons are those of a plain recursion that counts people in sets; no allowed cut of it is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.data_parallel import limit_threads
from core.mondrian.partition import MODES, SCORES, Mode, Partition, Rules, Score, partition
from core.privacy.models import PrivacyModel, Spread
from core.privacy.promise import Promise
from core.units.pairs import Pairs
from core.units.persons import EVERY_RECORD, RowPersons
from tests.core.mondrian.test_partition import KS, MADE, Table, axes_of, models, tables
from tests.house.replaced import PARTITION_FEW
from tests.laws import tried
from tests.oracles.mondrian import Mondrian
from tests.oracles.persons import values_of

Whose = list[int | None]


@st.composite
def counting_bitmaps(draw: st.DrawFn) -> tuple[Table, Whose]:
    """Records of a few people: some of one record, one of very many, some of nobody's."""
    table = draw(tables())
    size = draw(st.sampled_from([2, 8, 40]))
    person = st.one_of(st.none(), st.just(0), st.integers(0, size))
    return table, draw(st.lists(person, min_size=len(table[0]), max_size=len(table[0])))


def people_of(whose: Whose) -> RowPersons:
    return RowPersons.of_records(np.array([-1 if person is None else person for person in whose], np.int32))


def wholes(sensitive: list[int], whose: Whose) -> np.ndarray:
    """How many people have each value in the whole source."""
    counts = values_of(whose, [0] * len(whose), sensitive)[0]
    return np.array([counts[value] for value in range(4)], np.int64)


def classes_of(table: Table, whose: Whose, k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...] = ()) -> list[list[int]]:
    made = partition_of(table, whose, k, score, mode, kept)
    return [sorted(part.tolist()) for part in np.split(made.order, made.starts[1:-1])]


def partition_of(table: Table, whose: Whose | None, k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...] = ()) -> Partition:
    records, columns, sensitive = table
    codes = np.array(sensitive, np.int32)[:, None].copy() if kept else None
    counted = wholes(sensitive, list(range(len(records))) if whose is None else whose)
    rules = Rules(Promise(k, kept), ("s",), (counted,), "next") if kept else Rules(Promise(k))
    ranks, weights = np.array(records, np.uint16), np.ones(len(records), np.int64)
    unit = EVERY_RECORD if whose is None else people_of(whose)
    return partition(ranks, weights, axes_of(columns), rules, score, mode=mode, sensitive=codes, unit=unit)


def plain(table: Table, whose: Whose, k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...] = ()) -> Mondrian:
    _, columns, sensitive = table
    whole = wholes(sensitive, whose)

    def accepts(node: list[int]) -> bool:
        mine = [whose[number] for number in node]
        counts = values_of(mine, [0] * len(node), [sensitive[number] for number in node])[0]
        values = np.array(sorted(counts), np.int64)
        spread = Spread(np.zeros(len(values), np.int64), values, np.array([counts[value] for value in values.tolist()], np.int64), whole)
        return not any(one.failing(np.array([len(set(mine) - {None})]), {"s": spread})[0] for one in kept)

    return Mondrian(columns, k, score, mode, accepts, whose)


HOW = st.sampled_from(sorted(MODES))


@pytest.mark.slow
@given(counting_bitmaps(), KS, MADE, HOW)
@tried(150)
def test_classes_are_those_of_a_plain_recursion_that_counts_people(given: tuple[Table, Whose], k: int, score: Score, mode: Mode) -> None:
    table, whose = given
    assert classes_of(table, whose, k, score, mode) == [sorted(part) for part in plain(table, whose, k, score, mode).classes(table[0])]


@pytest.mark.slow
@given(counting_bitmaps(), st.integers(1, 4), MADE, HOW, models())
@tried(150)
def test_everybody_counts_once_for_each_value_on_both_sides_of_every_cut(
    given: tuple[Table, Whose], k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...]
) -> None:
    table, whose = given
    oracle = plain(table, whose, k, score, mode, kept)
    found = classes_of(table, whose, k, score, mode, kept)
    assert found == [sorted(part) for part in oracle.classes(table[0])]


@pytest.mark.slow
@given(counting_bitmaps(), st.integers(1, 5), MADE)
@tried(100)
def test_every_class_holds_k_people_and_no_allowed_cut_is_left(given: tuple[Table, Whose], k: int, score: Score) -> None:
    table, whose = given
    oracle = plain(table, whose, k, score, "strict")
    for part in classes_of(table, whose, k, score, "strict"):
        assert oracle.size(part) >= min(k, oracle.size(list(range(len(whose)))))
        assert oracle.halves(table[0], part) is None


THREADS = st.integers(2, 5)


@pytest.mark.slow
@given(counting_bitmaps(), st.integers(1, 4), st.sampled_from(sorted(SCORES)), HOW, st.just(()) | models(), THREADS)
def test_several_cores_make_the_classes_of_people_that_one_makes_row_by_row(
    given: tuple[Table, Whose], k: int, score: Score, mode: Mode, kept: tuple[PrivacyModel, ...], threads: int
) -> None:
    table, whose = given
    assert_alike(threads, lambda: partition_of(table, whose, k, score, mode, kept))


@given(tables(), st.integers(1, 4), st.sampled_from(sorted(SCORES)), HOW, THREADS)
def test_several_cores_make_the_classes_of_one_row_by_row(table: Table, k: int, score: Score, mode: Mode, threads: int) -> None:
    assert_alike(threads, lambda: partition_of(table, None, k, score, mode))


def assert_alike(threads: int, cut: Callable[[], Partition]) -> None:
    with limit_threads(1):
        alone = cut()
    with limit_threads(threads), patch(PARTITION_FEW, 0):
        abreast = cut()
    assert abreast.order.tolist() == alone.order.tolist()
    assert abreast.starts.tolist() == alone.starts.tolist()


@given(counting_bitmaps(), st.integers(1, 5), st.sampled_from(sorted(SCORES)), st.sampled_from(["strict", "median"]))
def test_cells_are_partitioned_as_their_records_are(given: tuple[Table, Whose], k: int, score: Score, mode: Mode) -> None:
    (records, columns, _), whose = given
    cells = sorted(set(records))
    sizes = Counter(records)
    # A person's digest is the number, and 0 is nobody; two chunks hold the records, so that a person is in a cell twice.
    digests = np.array([0 if person is None else person + 1 for person in whose], np.uint64)
    rows = np.array([cells.index(record) for record in records])
    pairs = [Pairs.of(digests[half::2], rows[half::2]) for half in range(2)]
    weights = np.array([sizes[cell] for cell in cells])
    made = partition(
        np.array(cells, np.uint16),
        weights,
        axes_of(columns),
        Rules(Promise(k)),
        score,
        mode=mode,
        unit=RowPersons.of_pairs(pairs, len(cells)),
    ).of_rows()
    found = [made[row] for row in rows]
    parts = Mondrian(columns, k, score, mode, people=whose).classes(records)
    assert all(len({found[number] for number in part}) == 1 for part in parts)
    assert len(set(found)) == len(parts)
