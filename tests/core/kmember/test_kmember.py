"""Classes of k-member clustering are those of the rule, cost what they publish, and only become cheaper."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.columns.data_parallel import limit_threads
from core.kmember.blocks import improve_blocks, make_best_steps
from core.kmember.class_dissolution import grow_classes
from core.kmember.classes import Classes, build_classes, cost_with, reprice_class
from core.kmember.partition import Effort, RecordsToGroup, record_digests
from core.kmember.set_labels import CodedRecords, bitset_words_for, block_of, price_with
from core.mondrian.partition import Rules, partition
from core.mondrian.ranks import CutAxis, ranks_of
from core.mondrian.recoding import cut_label_prices
from core.privacy.promise import Promise
from core.recoding.classes import Sets
from core.recoding.price_kernels import SIZE, UNIT, Prices
from core.recoding.prices import MOST_IN_TABLE, LabelPrices, generalise, label_prices
from core.units.persons import EVERY_RECORD, RowPersons
from tests.house.replaced import PRICES_MOST_IN_TABLE
from tests.laws import tried
from tests.oracles import clustering as oracle
from tests.oracles.records import Records as Table
from tests.oracles.records import mixed_records


@st.composite
def tables(draw: st.DrawFn, most: int = 40) -> tuple[Table, tuple[str | None, ...]]:
    """Records, and how each of their columns is published."""
    table = draw(mixed_records(most=most))
    return table, tuple(draw(st.sampled_from(["interval", *ANY] if number else ANY)) for number in table.numerical)


ANY = [None, "hierarchy", "set", "prefix"]


def labels_of(table: Table, ways: tuple[str | None, ...]) -> list[LabelPrices]:
    return [LabelPrices(*label) for label in zip(ways, table.domains, table.hierarchies, strict=True)]


def members_of(table: Table, ways: tuple[str | None, ...], k: int, people: NDArray[np.int32] | None = None) -> RecordsToGroup:
    axes = []
    for domain, numerical in zip(table.domains, table.numerical, strict=True):
        numbers = np.array(domain.values.to_pylist(), np.float64) if numerical else None
        axes.append(CutAxis(domain.qid, np.arange(domain.size), numbers, domain.nulls > 0))
    return RecordsToGroup(table.codes, axes, labels_of(table, ways), k, EVERY_RECORD if people is None else RowPersons.of_records(people))


def in_order(table: Table) -> list[int]:
    """The records as they are taken: by digest, equal ones as they stand."""
    return np.argsort(record_digests(table.codes), kind="stable").tolist()


def sets_of(classes: NDArray[np.int32]) -> Counter[frozenset[int]]:
    return Counter(frozenset(np.flatnonzero(classes == number).tolist()) for number in range(int(classes.max()) + 1))


def total(table: Table, ways: tuple[str | None, ...], classes: NDArray[np.int32]) -> int:
    return sum(len(made) * oracle.cost_of(table, ways, sorted(made)) for made in sets_of(classes))


@pytest.mark.ci
@given(tables(), st.integers(1, 6))
def test_greedy_classes_are_those_of_the_rule_written_out(drawn: tuple[Table, tuple[str | None, ...]], k: int) -> None:
    table, ways = drawn
    rows, k, order = len(table.rows), min(k, len(table.rows)), np.array(in_order(table), np.int32)
    records, prices = blocked(table, ways)
    classes = np.zeros(rows, np.int32)
    grow_classes(records, order, k, prices, classes, np.arange(rows // k), bitset_words_for(records))
    expected = oracle.k_member(order.tolist(), k, lambda made: oracle.cost_of(table, ways, made))
    assert sets_of(classes) == Counter(map(frozenset, expected))


def published(table: Table, ways: tuple[str | None, ...], classes: NDArray[np.int32]) -> int:
    """What all labels cost, in the whole numbers of prices."""
    told = label_prices(labels_of(table, ways), label_weight=1, class_value_weight=0)[0]
    records, _ = blocked(table, ways)
    made = build_classes(records, told, classes.copy(), 1)
    return int((made.prices * made.sizes).sum())


@pytest.mark.ci
@given(tables(), st.integers(1, 6), st.integers(0, 2), st.booleans())
def test_no_more_is_published_than_by_the_cuts_of_the_same_records(
    drawn: tuple[Table, tuple[str | None, ...]], k: int, passes: int, anew: bool
) -> None:
    table, ways = drawn
    k = min(k, len(table.rows))
    members = members_of(table, ways, k)
    told = cut_label_prices(members.labels, members.axes)
    ones = np.ones(len(table.rows), np.int64)
    cut = partition(ranks_of(table.codes, members.axes), ones, members.axes, Rules(Promise(k)), "ncp", cut_prices=told).of_rows()
    effort = Effort(1_000, 3, passes)
    classes, _ = members.clustered(effort, None if anew else cut)
    assert published(table, ways, classes) <= published(table, ways, cut)


@given(tables(), st.integers(1, 6), st.integers(1, 4), st.integers(4, 20))
def test_classes_have_k_to_2k_records_and_steps_make_them_cheaper(
    drawn: tuple[Table, tuple[str | None, ...]], k: int, rounds: int, block: int
) -> None:
    table, ways = drawn
    k = min(k, len(table.rows))
    members = members_of(table, ways, k)
    costs = []
    for effort in (Effort(block, 1, 0), Effort(block, 1, 2), Effort(block, rounds, 2)):
        classes, _ = members.clustered(effort)
        sizes = np.bincount(classes)
        assert sizes.min() >= k
        assert sizes.max() < 2 * k
        costs.append(total(table, ways, classes))
    assert costs == sorted(costs, reverse=True)


@given(tables(), st.integers(1, 5), st.data())
def test_classes_hold_k_persons_however_many_records_these_have(
    drawn: tuple[Table, tuple[str | None, ...]], k: int, data: st.DataObject
) -> None:
    table, ways = drawn
    rows = len(table.rows)
    people = np.array(data.draw(st.lists(st.integers(-1, 9) | st.just(0), min_size=rows, max_size=rows)), np.int32)
    k = min(k, len(set(people[people >= 0].tolist())))
    if k < 1:
        return
    classes, _ = members_of(table, ways, k, people).clustered(Effort(12, 3, 2))
    assert all(len({people[row] for row in made if people[row] >= 0}) >= k for made in sets_of(classes))


def blocked(table: Table, ways: tuple[str | None, ...]) -> tuple[CodedRecords, Prices]:
    """All records as one block."""
    prices, places, counted = label_prices(labels_of(table, ways))
    columns = np.ascontiguousarray(np.column_stack([place[table.codes[:, qid]] for qid, place in enumerate(places)]))
    scratch = np.zeros(int(prices.terms[:, SIZE].max()) + 1, np.int32)
    return block_of(columns, np.empty(0, np.int32), counted, prices, scratch), prices


def classes_in(table: Table, ways: tuple[str | None, ...], k: int) -> tuple[CodedRecords, Prices, Classes]:
    records, prices = blocked(table, ways)
    owners = (np.arange(len(table.rows)) % max(len(table.rows) // k, 1)).astype(np.int32)
    return records, prices, build_classes(records, prices, owners, k)


@given(tables(), st.integers(1, 5))
def test_a_class_costs_what_its_labels_do(drawn: tuple[Table, tuple[str | None, ...]], k: int) -> None:
    table, ways = drawn
    _, _, made = classes_in(table, ways, min(k, len(table.rows)))
    sets, expected = Sets.of(made.owners), np.zeros(int(made.owners.max()) + 1)
    for qid, (way, domain, hierarchy) in enumerate(zip(ways, table.domains, table.hierarchies, strict=True)):
        label = generalise(way, table.codes[:, qid], sets, domain, hierarchy, "text")
        counted = way == "prefix" or not table.numerical[qid]
        expected += 5 * label.penalties if way == "set" or not counted else 4 * label.penalties + label.covered
    assert made.prices[: len(expected)] / UNIT == pytest.approx(expected, abs=1e-3)
    assert made.prices[: len(expected)].tolist() == [
        oracle.cost_of(table, ways, np.flatnonzero(made.owners == number).tolist()) for number in range(len(expected))
    ]


@given(tables(most=16), st.integers(2, 5))
def test_no_record_that_leaves_makes_a_class_cheaper_than_its_core(drawn: tuple[Table, tuple[str | None, ...]], k: int) -> None:
    table, ways = drawn
    if len(table.rows) < 2 * k:
        return
    records, prices, made = classes_in(table, ways, k)
    for leaves, comes in combinations(range(len(table.rows)), 2):
        own = int(made.owners[leaves])
        if made.owners[comes] != own:
            left = [row for row in np.flatnonzero(made.owners == own).tolist() if row != leaves]
            after = price_with(made.without, leaves, records, comes, prices)
            assert after == oracle.cost_of(table, ways, [*left, comes])
            assert price_with(made.cores, own, records, comes, prices) <= after


@given(tables(), st.integers(1, 4))
def test_what_is_kept_of_classes_is_what_a_fresh_look_finds(drawn: tuple[Table, tuple[str | None, ...]], k: int) -> None:
    table, ways = drawn
    k = min(k, len(table.rows))
    records, prices, made = classes_in(table, ways, k)
    kept = made.prices.copy(), made.spared.copy()
    for number in range(len(made.sizes)):
        reprice_class(records, prices, made, number)
    assert np.array_equal(made.prices, kept[0])
    assert np.array_equal(made.spared, kept[1])


@pytest.mark.ci
@tried(40)
@given(tables(most=24), st.integers(2, 4), st.sampled_from([MOST_IN_TABLE, 0]))
def test_what_is_written_down_of_classes_is_what_they_cost_with_each_record(
    drawn: tuple[Table, tuple[str | None, ...]], k: int, most_in_table: int
) -> None:
    table, ways = drawn
    if len(table.rows) < 2 * k:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PRICES_MOST_IN_TABLE, most_in_table)
        records, labels, made = classes_in(table, ways, k)
    # Before and after steps, which write only what is another now.
    for _ in range(2):
        for number, row in product(np.flatnonzero(made.sizes).tolist(), range(len(table.rows))):
            for set_labels, costs in ((made.set_labels, made.costs), (made.cores, made.core_costs)):
                assert cost_with(records.values, costs, row, number) == price_with(set_labels, number, records, row, labels)
        make_best_steps(records, labels, made, k)


@tried(30)
@given(tables(most=8), st.integers(1, 3))
def test_nothing_costs_less_than_the_best_of_all_partitions(drawn: tuple[Table, tuple[str | None, ...]], k: int) -> None:
    table, ways = drawn
    k = min(k, len(table.rows))
    classes, _ = members_of(table, ways, k).clustered(Effort(1_000, 3, 3))
    least = oracle.fewest(range(len(table.rows)), k, lambda made: oracle.cost_of(table, ways, made))
    assert total(table, ways, classes) >= least


@given(tables(), st.integers(1, 5))
def test_blocks_are_worked_on_alone(drawn: tuple[Table, tuple[str | None, ...]], k: int) -> None:
    table, ways = drawn
    k = min(k, len(table.rows))
    records, prices = blocked(table, ways)
    counted, figures, none = label_prices(labels_of(table, ways))[2], np.zeros(3, np.int64), np.empty(0, np.int32)
    rows = len(table.rows)
    one, two = np.zeros(rows, np.int32), np.repeat(np.arange(2, dtype=np.int32), rows)
    once = improve_blocks(records.positions, none, counted, np.array([0, rows]), one, k, prices, prices, 2, True, figures)
    twice, starts = np.concatenate([records.positions] * 2), np.array([0, rows, 2 * rows])
    both = improve_blocks(twice, none, counted, starts, two, k, prices, prices, 2, True, figures)
    assert np.array_equal(both, np.concatenate([once, once + once.max() + 1]))


@given(tables(most=80), st.integers(1, 5), st.integers(2, 5), st.integers(4, 20))
def test_several_cores_make_the_classes_of_one(drawn: tuple[Table, tuple[str | None, ...]], k: int, threads: int, block: int) -> None:
    table, ways = drawn
    members, effort = members_of(table, ways, min(k, len(table.rows))), Effort(block, 3, 1)
    with limit_threads(1):
        alone, figures = members.clustered(effort)
    with limit_threads(threads):
        abreast, same = members.clustered(effort)
    assert abreast.tolist() == alone.tolist()
    assert same == figures
