"""What stands for values of a column, as the recount works it out: means of groups, and how far values lie from them."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recount.labels.published_values import ValueCount, ValuePublication, as_column, publication_of
from schemas.job.identifiers import Publishing


def means_of(values: dict[int, int], least: int) -> ValuePublication:
    """Publish means of values, of which each has so many persons of one record."""
    counts = [ValueCount(value, people, people, people) for value, people in values.items()]
    return publication_of(counts, 0, 0, pa.int64(), Publishing(microaggregate=least), 1)


def test_a_value_lies_from_its_mean_a_quarter_of_the_way_to_the_means_beside_it_on_average() -> None:
    found = means_of({0: 1, 1: 1, 10: 1, 11: 1, 40: 1, 41: 1}, 2)
    assert found.published == [0.5, 0.5, 10.5, 10.5, 40.5, 40.5, None]
    assert found.error == [10 / 4, 10 / 4, 20 / 4, 20 / 4, 30 / 4, 30 / 4, 0.0]
    assert found.changed == [True] * 6 + [False]


def test_of_fewer_people_than_a_group_must_have_nothing_is_published() -> None:
    assert means_of({3: 1, 4: 1}, 5) == ValuePublication([None] * 3, [True, True, False], [0.0] * 3)


def test_a_value_of_many_is_joined_by_the_few_beside_it() -> None:
    """One person is too few for a group, so that there is one group of all, though it has more than twice as many as it must."""
    assert means_of({4: 1, 12: 4}, 2).published == [(4 + 4 * 12) / 5] * 2 + [None]


@given(st.dictionaries(st.integers(-50, 50), st.integers(1, 4), min_size=1, max_size=12), st.integers(2, 4), st.integers(0, 4))
@example({0: 1, 1: 2, 2: 1, 9: 1, 10: 1}, 2, 0)
def test_what_stands_for_rare_values_does_not_hang_on_those_that_k_people_have(values: dict[int, int], k: int, nulls: int) -> None:
    """Where persons are named, who has a shared value counts at it no more; where each record counts, it is counted all the same."""
    rest = sum(people for people in values.values() if people < k)
    found = []
    for counts_shared in (True, False):
        firsts = {value: people if counts_shared or people < k else 0 for value, people in values.items()}
        counts = [ValueCount(value, values[value], firsts[value], values[value]) for value in sorted(values)]
        found.append(publication_of(counts, nulls, rest, pa.int64(), "shared", k))
    assert found[0] == found[1]


COUNTS = [ValueCount(value, people, people, people) for value, people in ((-7, 1), (2, 3), (5, 1), (9, 2))]


def test_numbers_are_rounded_to_the_nearest_multiple_and_lie_a_quarter_of_it_away_on_average() -> None:
    way = Publishing(round=Decimal(8))
    assert publication_of(COUNTS, 1, 0, pa.int64(), way, 2) == ValuePublication(
        [-8, 0, 8, 8, None], [True] * 4 + [False], [2.0] * 4 + [0.0]
    )
    halves = [ValueCount(value, 1, 1, 1) for value in (-0.75, 0.2, 0.5)]
    assert publication_of(halves, 0, 0, pa.float64(), Publishing(round=Decimal("0.5")), 2).published == [-1.0, 0.0, 0.5, None]
    exact = [ValueCount(Decimal(value), 1, 1, 1) for value in ("-0.26", "1.00")]
    assert publication_of(exact, 0, 0, pa.decimal128(5, 2), Publishing(round=Decimal("0.5")), 2).published == [Decimal("-0.5"), 1, None]


@pytest.mark.parametrize(
    ("ends", "published", "changed"),
    [
        ({"top": 5}, [-7, 2, 5, 5], [False, False, True, True]),
        ({"bottom": 2}, [2, 2, 5, 9], [True, True, False, False]),
        ({"bottom": 2, "top": 5}, [2, 2, 5, 5], [True, True, True, True]),
        ({"bottom": -9, "top": 20}, [-7, 2, 5, 9], [False] * 4),
    ],
    ids=str,
)
def test_values_beyond_an_end_are_that_end(ends: dict[str, int], published: list[int], changed: list[bool]) -> None:
    way = Publishing.model_validate(ends)
    for kind in (pa.int64(), pa.float32(), pa.decimal128(6, 1)):
        counts = [one._replace(value=as_column([one.value], kind).to_pylist()[0]) for one in COUNTS]
        found = publication_of(counts, 1, 0, kind, way, 2)
        assert (found.published, found.changed, found.error) == ([*published, None], [*changed, False], [0.0] * 5)


@pytest.mark.parametrize(
    ("kind", "end"), [(pa.decimal128(4, 2), Decimal("0.1")), (pa.float64(), 0.1), (pa.float32(), 0.10000000149011612)], ids=str
)
def test_an_end_is_the_value_of_the_column_that_is_nearest(kind: pa.DataType, end: Decimal | float) -> None:
    counts = [ValueCount(value, 2, 2, 2) for value in as_column([-3, 0, 4], kind).to_pylist()]
    for way, published in (("top", [-3, 0, end]), ("bottom", [end, end, 4])):
        found = publication_of(counts, 0, 0, kind, Publishing.model_validate({way: Decimal("0.1")}), 2).published
        assert found == [*published, None]
        assert as_column(found, kind).to_pylist() == found


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.int16(), pa.uint64()], ids=str)
def test_numbers_of_any_kind_become_those_of_the_column(kind: pa.DataType) -> None:
    found = as_column([Decimal(3), 4, 5.0, None], kind)
    assert (found.type, found.to_pylist()) == (kind, [3, 4, 5, None])
    if not pa.types.is_integer(kind):
        assert as_column([Decimal("0.25"), 0.5, None], kind).to_pylist() == [Decimal("0.25"), Decimal("0.5"), None]


def test_an_end_of_whole_numbers_is_exact_where_floats_would_round() -> None:
    counts = [ValueCount(value, 2, 2, 2) for value in (10**17, 10**17 + 5)]
    for way, published in (("top", [10**17, 10**17 + 3]), ("bottom", [10**17 + 3, 10**17 + 5])):
        found = publication_of(counts, 0, 0, pa.int64(), Publishing.model_validate({way: 10**17 + 3}), 2)
        assert found.published == [*published, None]


SHARED = [
    ("values that k have are published, others as one", {"a": 3, "b": 1, "c": 1, "d": 2}, 0, ["a", "other", "other", "d"], False),
    ("one of few is joined by the rarest that is shared", {"a": 3, "b": 1, "c": 2}, 0, ["a", "other", "other"], False),
    ("a value may be called as the others are", {"other": 3, "b": 1, "c": 1}, 0, ["other", "other*", "other*"], False),
    ("nulls of few are among the others", {"a": 3, "b": 1, "c": 1}, 1, ["a", "other", "other"], True),
    ("nulls of few alone are joined by a value", {"a": 3}, 1, ["other"], True),
    ("nulls of many stay", {"a": 3, "b": 1, "c": 1}, 2, ["a", "other", "other"], False),
    ("one of few without a shared value goes to the nulls of many", {"b": 1}, 2, [None], False),
    ("many others have a word without a shared value", {"b": 1, "c": 1}, 2, ["other", "other"], False),
]


@pytest.mark.parametrize(("values", "nulls", "published", "null_goes"), [case[1:] for case in SHARED], ids=[case[0] for case in SHARED])
def test_words_of_few_are_published_as_one(values: dict[str, int], nulls: int, published: list[str | None], null_goes: bool) -> None:
    counts = [ValueCount(value, people, people, people) for value, people in values.items()]
    rest = sum(people for people in values.values() if people < 2)
    found = publication_of(counts, nulls, rest, pa.string(), "shared", 2)
    assert found.published[:-1] == published
    assert found.changed == [value != word for value, word in zip(values, published, strict=True)] + [null_goes]
    assert (found.published[-1] is not None) == null_goes
    assert found.error == [0.0] * (len(values) + 1)


def test_truths_of_few_are_published_as_nulls() -> None:
    counts = [ValueCount(False, 1, 1, 1), ValueCount(True, 5, 5, 5)]
    assert publication_of(counts, 4, 1, pa.bool_(), "shared", 2).published == [None, None, None]
    assert publication_of(counts, 4, 1, pa.bool_(), "shared", 1).published == [False, True, None]


def ways_to_group(sizes: list[int], least: int) -> list[list[int]]:
    """Every way to put neighbours together, as the first of each group, with so many persons in each."""
    ways = [[0, *starts] for many in range(len(sizes)) for starts in combinations(range(1, len(sizes)), many)]
    return [way for way in ways if all(sum(sizes[first:after]) >= least for first, after in pairwise([*way, len(sizes)]))]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(1, 4)), min_size=2, max_size=6), st.integers(2, 3))
@example([(1, 1, 1), (1, 1, 1), (1, 1, 4), (1, 1, 1), (3, 1, 1)], 2)
def test_means_are_those_of_the_groups_with_the_least_squared_error(steps: list[tuple[int, int, int]], least: int) -> None:
    """Each value is above the one before; it has persons, and some records more than these."""
    counts, value = list[ValueCount](), 0
    for step, people, more in steps:
        value += step + 1
        counts.append(ValueCount(value, people, people, people + more))

    def error(means: list[float]) -> float:
        return sum((one.value - mean) ** 2 * one.records for one, mean in zip(counts, means, strict=True))

    def means_by(way: list[int]) -> list[float]:
        found = list[float]()
        for first, after in pairwise([*way, len(counts)]):
            some = counts[first:after]
            found += [sum(one.value * one.records for one in some) / sum(one.records for one in some)] * len(some)
        return found

    ways = [means_by(way) for way in ways_to_group([one.people for one in counts], least)]
    found = publication_of(counts, 0, 0, pa.int64(), Publishing(microaggregate=least), 1).published[:-1]
    if not ways:
        assert found == [None] * len(counts)
        return
    assert any(found == pytest.approx(way) for way in ways)
    assert error(found) == pytest.approx(min(map(error, ways)))


def test_of_groups_that_are_equally_good_the_last_one_is_the_smallest() -> None:
    assert means_of(dict.fromkeys(range(5), 1), 2).published == [1, 1, 1, 3.5, 3.5, None]


def test_few_nulls_take_the_number_of_the_fewest_people_with_them() -> None:
    counts = [ValueCount(value, people, people, people) for value, people in ((1, 5), (2, 3), (4, 4))]
    for nulls, kept in ((0, [1, 2, 4]), (1, [1, None, 4]), (3, [1, 2, 4])):
        found = publication_of(counts, nulls, 0, pa.int64(), "shared", 3)
        assert found == ValuePublication([*kept, None], [one is None for one in kept] + [False], [0.0] * 4)
