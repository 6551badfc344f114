"""What is published of columns: both sides agree, nothing points at fewer than k people, and single values change nothing."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.formats.published import read_published_values
from core.recoding.publishing import CountedValues, cut_groups, is_number, published_values
from core.recount.labels.published_values import ValueCount, as_column, plain_values, publication_of
from schemas.job.identifiers import Publishing, Way
from tests.core.recoding.held_values import fewest_sharing, held_values, is_value

KINDS = [
    pa.int64(), pa.int16(), pa.float64(), pa.float32(), pa.decimal128(10, 2), pa.decimal128(30, 4), pa.string(), pa.bool_(), pa.date32(),
    pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s", "UTC"),
]  # fmt: skip


def made(seed: int, kind: pa.DataType) -> tuple[pa.Array, list[int | None], int]:
    """Return a column with nulls and a heavy tail, whose records are of persons or each of one, and k."""
    chance = random.Random(seed)
    rows, k, wide, nulls = chance.choice([3, 20, 100, 250]), chance.choice([2, 3, 5, 12]), chance.choice([3, 40, 1000]), chance.random() / 5

    def value() -> Any:
        whole = int(chance.gauss(50, wide))
        if pa.types.is_floating(kind):
            found: Any = chance.choice([float("nan"), float("inf")]) if chance.random() < 0.01 else whole / chance.choice([1, 4, 7])
        elif pa.types.is_decimal(kind):
            found = Decimal(whole) / 4
        elif pa.types.is_string(kind):
            found = chance.choice(["other", "other*", "a", "b", str(whole)])
        elif pa.types.is_boolean(kind):
            found = chance.random() < 0.02
        elif pa.types.is_date(kind):
            found = date(2020, 1, 1) + timedelta(days=whole)
        elif pa.types.is_timestamp(kind):
            found = datetime(2020, 1, 1) + timedelta(seconds=whole * chance.choice([1, 60, 86_400]))
        else:
            found = whole
        return None if chance.random() < nulls else found

    owned = chance.random() < 0.6
    persons = [(chance.randrange(rows) if chance.random() < 0.97 else None) if owned else row for row in range(rows)]
    return pa.array([value() for _ in range(rows)], kind), persons, k


def ways(kind: pa.DataType) -> list[Way]:
    numeric = [
        Publishing(microaggregate=2), Publishing(round=Decimal(5)), Publishing(round=Decimal(100)),
        Publishing(top=Decimal(80), bottom=Decimal(10)), Publishing(top=Decimal(60)),
    ]  # fmt: skip
    return ["shared", *(numeric if is_number(kind) else [])]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(seed=st.integers(0, 10**6), which=st.integers(0, 9))
@example(seed=165, which=0)  # of texts: nulls of two persons, and a value of one
@settings(max_examples=12)
def test_recount_and_writer_publish_the_same_and_nothing_of_fewer_than_k_people(kind: pa.DataType, seed: int, which: int) -> None:
    column, persons, k = made(seed, kind)
    way = ways(kind)[which % len(ways(kind))]
    grouped = isinstance(way, Publishing) and way.microaggregate is not None
    held = held_values(column, persons, k, every=grouped)
    published = published_values(held.writer, way, k).apply(column).to_pylist()
    out = pa.float64() if grouped else kind
    again = publication_of(held.recount, held.nulls, held.rest, kind, way, k)
    typed = as_column(again.published, out).to_pylist()
    known = dict(zip(plain_values(held.writer.values), typed, strict=False))
    assert published == [known[value] if is_value(value) else typed[-1] for value in plain_values(column)]
    # Of fewer than k people in all there is no release.
    if (way == "shared" or grouped) and len(set(published)) > 1 and len({*persons} - {None}) >= k:
        assert fewest_sharing(published, persons) >= k


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_is_published_outlives_its_file_and_dictionaries(kind: pa.DataType, tmp_path: Path) -> None:
    column, persons, k = made(7, kind)
    values = published_values(held_values(column, persons, k, every=False).writer, "shared", k)
    values.write(tmp_path / "values.arrow")
    read = read_published_values(tmp_path / "values.arrow")
    assert read.apply(column).equals(values.apply(column))
    if pa.types.is_string(kind):
        assert read.apply(column.dictionary_encode()).to_pylist() == values.apply(column).to_pylist()


def test_rare_texts_are_a_word_that_no_shared_text_is_and_a_rare_one_changes_it_not() -> None:
    def published(texts: list[str | None]) -> list[Any]:
        column = pa.array(texts, pa.string())
        counted = held_values(column, list(range(len(texts))), 3, every=False).writer
        result: list[Any] = published_values(counted, "shared", 3).apply(column).to_pylist()
        return result

    assert published(["a"] * 3 + ["x", "y", "z"]) == ["a"] * 3 + ["other"] * 3
    # Nothing else is shared but nulls: a word of its own would be that of one person.
    assert published([None] * 3 + ["x"]) == [None] * 4
    # Whether one person's text is this very word follows from nothing.
    assert published(["a"] * 3 + ["x", "y", "other"]) == published(["a"] * 3 + ["x", "y", "z"])
    assert published(["other"] * 3 + ["x", "y", "z"]) == ["other"] * 3 + ["other*"] * 3
    # Two are too few: the rarest of the others joins them. Nulls stay where they are enough.
    assert published(["a"] * 4 + ["b"] * 3 + ["x", "y"]) == ["a"] * 4 + ["other"] * 5
    assert published(["a"] * 3 + [None] * 3) == ["a"] * 3 + [None] * 3
    assert published(["a"] * 3 + [None] * 2 + ["x"]) == ["other"] * 6


@given(st.integers(0, 10**6), st.integers(1, 10**9))
@settings(max_examples=40)
def test_how_high_the_highest_are_is_not_published(seed: int, more: int) -> None:
    drawn = np.sort(np.random.default_rng(seed).integers(0, 5_000, 200))
    higher = drawn.copy()
    # Fewer than k people are moved further out, where nobody else is.
    higher[-3:] = drawn[-1] + more + np.arange(3)
    published = []
    for numbers in (drawn, higher):
        column = pa.array(numbers)
        counted = held_values(column, list(range(200)), 12, every=False).writer
        published.append(published_values(counted, "shared", 12).apply(column).to_pylist())
    assert max(one for one in published[1] if one is not None) <= drawn[-4]
    assert published[1].count(None) in {0, *range(12, 201)}


def least_error(numbers: list[float], records: list[int], people: list[int], least: int) -> float:
    """Return the squared error of the best groups, of all there are."""

    def error(first: int, after: int) -> float:
        held = np.repeat(numbers[first:after], records[first:after])
        return float(((held - held.mean()) ** 2).sum())

    found = []
    for size in range(len(numbers)):
        for inner in combinations(range(1, len(numbers)), size):
            cuts = [0, *inner, len(numbers)]
            parts = list(pairwise(cuts))
            if all(sum(people[first:after]) >= least for first, after in parts):
                found.append(sum(error(*part) for part in parts))
    return min(found)


@given(st.data())
@settings(max_examples=30)
def test_groups_have_the_least_error_of_all(data: st.DataObject) -> None:
    numbers = sorted(data.draw(st.sets(st.integers(-100, 100), min_size=1, max_size=7)))
    counts = st.lists(st.integers(1, 4), min_size=len(numbers), max_size=len(numbers))
    records, people = data.draw(counts), data.draw(counts)
    least = data.draw(st.integers(1, min(sum(people), 8)))
    exact = [float(one) for one in numbers]
    starts = cut_groups(np.array(exact), np.array(records), np.array(people), least).tolist()
    cuts = [*starts, len(numbers)]
    parts = [np.repeat(exact[first:after], records[first:after]) for first, after in pairwise(cuts)]
    assert all(sum(people[first:after]) >= least for first, after in pairwise(cuts))
    assert sum(((part - part.mean()) ** 2).sum() for part in parts) == pytest.approx(least_error(exact, records, people, least))


@pytest.mark.parametrize(("values", "least"), [(400, 2), (400, 7), (2500, 1000)])
def test_the_recount_finds_the_groups_of_many_values_that_the_writer_finds(values: int, least: int) -> None:
    random = np.random.default_rng(values + least)
    numbers = np.sort(random.choice(10**6, values, replace=False)) / 8
    drawn, records = random.integers(0, 5, values), random.integers(1, 9, values)
    written = published_values(CountedValues(pa.array(numbers), drawn, drawn, records, 0, 0), Publishing(microaggregate=least), 1)
    counts = [ValueCount(*one) for one in zip(numbers.tolist(), drawn.tolist(), drawn.tolist(), records.tolist(), strict=True)]
    recounted = publication_of(counts, 0, 0, pa.float64(), Publishing(microaggregate=least), 1)
    assert [*written.apply(pa.array(numbers)).to_pylist(), None] == recounted.published


def test_persons_with_many_values_each_take_the_recount_no_more_memory() -> None:
    """Six persons have three thousand values, so that a group of five people may hold all of these."""
    values, drawn = pa.array(np.arange(3000.0)), np.isin(np.arange(3000), [3, 500, 1200, 1600, 2400, 2999]).astype(np.int64)
    counts = [ValueCount(float(value), 1, one, 1) for value, one in enumerate(drawn.tolist())]
    tracemalloc.start()
    found = publication_of(counts, 0, 0, pa.float64(), Publishing(microaggregate=3), 1).published
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    written = published_values(CountedValues(values, drawn, drawn, np.ones(3000, np.int64), 0, 0), Publishing(microaggregate=3), 1)
    assert found == [*written.apply(values).to_pylist(), None]
    assert peak < 100_000_000


@pytest.mark.parametrize(("least", "seed"), [(2, 1), (3, 2), (5, 3)])
def test_of_values_between_two_drawn_ones_a_group_begins_at_one_of_sixteen(least: int, seed: int) -> None:
    """The best groups of all begin elsewhere, and are hardly better: brute force tries the allowed ones."""
    random = np.random.default_rng(seed)
    numbers, drawn = np.sort(random.choice(10**6, 400, replace=False)) / 8, np.zeros(400, np.int64)
    drawn[random.choice(400, 3 * least - 1, replace=False)] = 1
    records = random.integers(1, 9, 400)
    starts = cut_groups(numbers, records, drawn, least).tolist()

    def error(groups: Sequence[int]) -> float:
        parts = [np.repeat(numbers[first:after], records[first:after]) for first, after in pairwise([*groups, 400])]
        return sum(float(((part - part.mean()) ** 2).sum()) for part in parts)

    some, begin = set[int](), 0
    for end in [*np.flatnonzero(drawn).tolist(), 400]:
        stretch = list(range(begin, end))
        some |= {end} | set(stretch[:: next(step for step in range(1, 401) if len(stretch[::step]) <= 16)])
        begin = end + 1
    some -= {0, 400}
    held = np.append(0, np.cumsum(drawn))
    ways = [[0], *([0, one] for one in some)]
    allowed = [way for way in ways if all(held[after] - held[first] >= least for first, after in pairwise([*way, 400]))]
    assert error(starts) == pytest.approx(min(map(error, allowed))) and set(starts[1:]) <= some
    ways = [[0], *([0, one] for one in range(1, 400))]
    best = min(error(way) for way in ways if all(held[after] - held[first] >= least for first, after in pairwise([*way, 400])))
    assert error(starts) <= 1.05 * best


def test_the_recount_finds_the_groups_of_the_writer_where_squares_are_too_large() -> None:
    numbers, records, ones = np.array([-16, -2, 3, 7, 12, 17]) * 1e307, np.array([3, 1, 7, 1, 5, 1]), np.ones(6, np.int64)
    written = published_values(CountedValues(pa.array(numbers), ones, ones, records, 0, 0), Publishing(microaggregate=2), 1)
    counts = [ValueCount(*one) for one in zip(numbers.tolist(), [1] * 6, [1] * 6, records.tolist(), strict=True)]
    recounted = publication_of(counts, 0, 0, pa.float64(), Publishing(microaggregate=2), 1)
    assert [*written.apply(pa.array(numbers)).to_pylist(), None] == recounted.published


@pytest.mark.parametrize("first", [Decimal("5104.4"), Decimal("1733.3"), 2**60], ids=str)
def test_both_take_the_same_one_of_groups_that_are_as_good(first: Decimal | int) -> None:
    """Even steps make many such: the last digit of the doubles decides, and beyond 2^53 not all integers have one."""
    column = pa.array([first + step * (Decimal("0.2") if isinstance(first, Decimal) else 2) for step in range(31)])
    held = held_values(column, list(range(31)), 3, every=True)
    recounted = publication_of(held.recount, 0, 0, column.type, Publishing(microaggregate=3), 3)
    published = published_values(held.writer, Publishing(microaggregate=3), 3).apply(column)
    assert [*published.to_pylist(), None] == recounted.published


def test_means_keep_the_sum() -> None:
    column = pa.array(np.round(np.exp(np.random.default_rng(1).normal(8, 1, 500)), 2))
    counted = held_values(column, list(range(500)), 12, every=True).writer
    published = published_values(counted, Publishing(microaggregate=5), 12).apply(column)
    assert sum(published.to_pylist()) == pytest.approx(sum(column.to_pylist()), rel=1e-12)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_a_zero_that_was_rounded_does_not_tell_whether_the_value_was_below_it(kind: pa.DataType) -> None:
    column = pa.array([-2.5, -0.25, 0.0, 0.25, -2.75], kind)
    published = published_values(held_values(column, list(range(5)), 2, every=False).writer, Publishing(round=Decimal(5)), 2).apply(column)
    assert list(map(str, published.to_pylist())) == ["0.0", "0.0", "0.0", "0.0", "-5.0"]
