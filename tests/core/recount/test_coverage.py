"""Counts of what labels cover never accuse a true release, and find every false one where labels are disjoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.recount.coverage import count_covered_rows, unmatched_records
from core.recount.labels.label_spans import Spans
from tests.oracles.matching import matched

SIZE = 6
RANGES = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda ends: (min(ends), max(ends)))
SETS = st.sets(st.integers(0, SIZE - 1), min_size=1)
RECORDS = st.lists(st.integers(0, SIZE - 1), max_size=8)


def spans_of(ranges: list[tuple[int, int]], sets: list[set[int]] | None = None, nulls: Sequence[int] = ()) -> Spans:
    listed = sets or []
    low = [low for low, _ in ranges] + [min(one) for one in listed]
    high = [high for _, high in ranges] + [max(one) + 1 for one in listed]
    members = {len(ranges) + number: np.array(sorted(one)) for number, one in enumerate(listed)}
    return Spans(np.array(low), np.array(high), members, np.array(nulls, np.int64), SIZE - 1)


def covers_of(spans: Spans, label: int) -> list[int]:
    return spans.covered(label).tolist()


def counts(parts: list[list[int]], size: int) -> np.ndarray:
    return np.array([[Counter(part)[place] for place in range(size)] for part in parts], np.int64)


@st.composite
def labelled(draw: st.DrawFn) -> Spans:
    ranges = draw(st.lists(RANGES, min_size=1, max_size=4))
    # The last position is that of the null: what covers it already need not name it.
    beside = [number for number, (_, high) in enumerate(ranges) if high < SIZE and draw(st.booleans())]
    return spans_of(ranges, draw(st.lists(SETS, max_size=2)), beside)


@given(labelled(), st.data(), st.integers(1, 3))
def test_no_more_records_are_accused_than_have_no_source(spans: Spans, data: st.DataObject, parts: int) -> None:
    labels = st.lists(st.integers(0, len(spans.low) - 1), max_size=8)
    released = data.draw(st.lists(labels, min_size=parts, max_size=parts))
    source = data.draw(st.lists(RECORDS, min_size=parts, max_size=parts))
    lacking = sum(
        len(mine) - matched([covers_of(spans, label) for label in mine], values) for mine, values in zip(released, source, strict=True)
    )
    assert unmatched_records(spans, counts(released, len(spans.low)), counts(source, SIZE)) <= lacking


@given(labelled(), st.data())
def test_a_true_release_is_never_accused(spans: Spans, data: st.DataObject) -> None:
    source, released = data.draw(RECORDS), []
    for value in source:
        fitting = [label for label in range(len(spans.low)) if value in covers_of(spans, label)]
        if fitting and data.draw(st.integers(0, 4)):
            released.append(data.draw(st.sampled_from(fitting)))
    assert unmatched_records(spans, counts([released], len(spans.low)), counts([source], SIZE)) == 0


@given(st.lists(st.integers(0, SIZE), min_size=2, max_size=6, unique=True).map(sorted), st.data())
def test_where_labels_are_disjoint_every_record_without_a_source_is_found(edges: list[int], data: st.DataObject) -> None:
    spans = spans_of(list(pairwise(edges)))
    released, source = data.draw(st.lists(st.integers(0, len(spans.low) - 1), max_size=8)), data.draw(RECORDS)
    lacking = len(released) - matched([covers_of(spans, label) for label in released], source)
    assert unmatched_records(spans, counts([released], len(spans.low)), counts([source], SIZE)) == lacking
    owners = spans.label_of_positions(SIZE)
    assert owners is not None
    assert owners.tolist() == [
        next((label for label in range(len(spans.low)) if place in covers_of(spans, label)), -1) for place in range(SIZE)
    ]


@given(labelled())
def test_labels_that_overlap_own_nothing(spans: Spans) -> None:
    held = Counter(place for label in range(len(spans.low)) for place in range(spans.low[label], spans.high[label]))
    assert (spans.label_of_positions(SIZE) is None) == (bool(spans.sets) or len(spans.nulls) > 0 or max(held.values(), default=0) > 1)


@pytest.mark.parametrize(
    ("ranges", "released", "source", "lacking"),
    [
        ([(0, 2), (1, 3)], [0, 0, 0], [0, 1], 1),
        ([(0, 2), (0, 3)], [0, 0, 1], [0, 2, 2], 1),
        ([(0, 1), (0, 2), (0, 6)], [0, 1, 2, 2], [0, 3, 4, 5], 1),
        ([(4, 6), (3, 6), (0, 6)], [0, 1, 2, 2], [5, 0, 1, 2], 1),
        ([(0, 3), (3, 6)], [1, 1, 1], [0, 3, 4, 5], 0),
        ([(0, 3), (2, 6)], [1, 1, 1], [0, 3, 4, 5], 0),
        ([(0, 3), (2, 6)], [1, 1, 1, 1], [0, 0, 3, 4, 5], 1),
        ([(0, 0)], [0], [0], 1),
    ],
)
def test_each_way_of_having_too_few_values_is_found(
    ranges: list[tuple[int, int]], released: list[int], source: list[int], lacking: int
) -> None:
    assert unmatched_records(spans_of(ranges), counts([released], len(ranges)), counts([source], SIZE)) == lacking


def test_a_value_that_no_label_covers_must_be_among_the_missing() -> None:
    """Of three records two are published, under labels that leave two of the values out."""
    spans = spans_of([], [{0, 5}, {1, 5}])
    assert unmatched_records(spans, counts([[0, 1]], 2), counts([[3, 3, 5]], SIZE)) == 1
    assert unmatched_records(spans, counts([[0, 1]], 2), counts([[3, 1, 5]], SIZE)) == 0


def test_parts_are_looked_at_apart() -> None:
    spans = spans_of([(0, 1), (1, 2)])
    swapped = counts([[0], [1]], 2)
    assert unmatched_records(spans, swapped.sum(axis=0, keepdims=True), counts([[1, 0]], SIZE)) == 0
    assert unmatched_records(spans, swapped, counts([[1], [0]], SIZE)) == 2


def test_rows_are_within_the_labels_of_a_class_if_every_label_covers_their_value() -> None:
    # Of four values and a null: a range, two ranges that meet, a set, all, and one that covers nulls besides.
    one = Spans(np.array([0, 0, 2, 0, 0]), np.array([2, 4, 4, 5, 5]), {3: np.array([0, 3])}, np.array([0], np.int64), 4)
    other = Spans(np.array([0, 1]), np.array([1, 3]), {}, np.array([], np.int64), 3)
    covered = [{0, 1, 4}, {0, 1, 2, 3}, {2, 3}, {0, 3}, {0, 1, 2, 3, 4}], [{0}, {1, 2}]
    places = np.array([(here, there) for here in range(5) for there in range(4)])
    weights = np.arange(1, len(places) + 1)
    labels = np.array([(here, there) for here in range(5) for there in range(2)])
    expected = [
        sum(
            int(weight) for (x, y), weight in zip(places.tolist(), weights, strict=True) if x in covered[0][here] and y in covered[1][there]
        )
        for here, there in labels.tolist()
    ]
    assert count_covered_rows([one, other], labels, places, weights).tolist() == expected
