"""Counts and associations of labels are those of records taken one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.columns.domains import Domain
from core.evaluation.accuracy import (
    BANDS,
    band_shares,
    bands_of,
    cramers_v_of_pairs,
    draw_counts,
    estimated_counts,
    exact_counts,
    features_of,
)
from core.evaluation.utility import Meaning, Predicate, exact_meaning
from tests.laws import tried


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Meaning, list[set[int]]]:
    """Label over six codes."""
    sets = draw(st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=5))
    labels = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    return Meaning(labels, np.array([code for one in sets for code in sorted(one)]), 6, np.zeros(len(sets))), sets


@tried(30)
@given(labelled(), labelled(), st.data())
def test_a_record_counts_by_the_share_of_what_it_may_be(
    first: tuple[Meaning, list[set[int]]], second: tuple[Meaning, list[set[int]]], data: st.DataObject
) -> None:
    codes = [np.array(data.draw(st.lists(st.integers(0, len(sets) - 1), min_size=7, max_size=7))) for _, sets in (first, second)]
    weights = [np.arange(1, 7), np.array([5, 0, 0, 1, 1, 0])]
    queries = draw_counts([0], weights, 2, 20, 3)
    assert queries == draw_counts([0], weights, 2, 20, 3)
    expected = []
    for query in queries:
        asked = [set(range(part.first, part.last + 1)) for part in query]
        assert asked[1] <= {0, 3, 4}
        reach = [[len(one & mine) / len(one) for one in sets] for mine, (_, sets) in zip(asked, (first, second), strict=True)]
        expected.append(sum(reach[0][one] * reach[1][other] for one, other in zip(*codes, strict=True)))
    assert estimated_counts(queries, codes, [first[0], second[0]]) == pytest.approx(expected)


@tried(30)
@given(labelled(), st.integers(0, 5), st.integers(0, 5))
def test_a_share_of_a_range_is_the_same_by_runs_and_by_sets(made: tuple[Meaning, list[set[int]]], one_end: int, other_end: int) -> None:
    meaning, sets = made
    first, last = sorted((one_end, other_end))
    expected = [len(one & set(range(first, last + 1))) / len(one) for one in sets]
    assert meaning.share_of_range(first, last).tolist() == meaning.share(Predicate(0, first, last).chosen(6)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9))
def test_records_that_are_counted_exactly_are_those_that_values_alone_stand_for(rows: list[tuple[int, int]]) -> None:
    codes = [np.array(column) for column in zip(*rows, strict=True)]
    queries = draw_counts([0], [np.arange(1, 7), np.array([5, 0, 0, 1, 1, 0])], 2, 20, 3)
    assert exact_counts(queries, codes).tolist() == estimated_counts(queries, codes, [exact_meaning(6)] * 2).tolist()


def test_what_is_withheld_hangs_together_with_nothing() -> None:
    codes, star = np.arange(600) % 6, Meaning(np.zeros(6, int), np.arange(6), 6, np.ones(1))
    raw = band_shares(exact_meaning(6), np.arange(6))
    [whole] = cramers_v_of_pairs([codes, codes], [raw, raw]).values()
    [none] = cramers_v_of_pairs([codes, np.zeros(600, int)], [raw, band_shares(star, np.arange(6))]).values()
    assert (whole, none) == (pytest.approx(1), pytest.approx(0))


def test_features_of_a_set_are_the_mean_of_those_of_its_values() -> None:
    for values in (pa.array([1, 4, 9, 30]), pa.array(["a", "b", "c", "d"])):
        domain = Domain("x", values, np.array([5, 1, 3, 2]), 4)
        assert bands_of(domain, BANDS).tolist()[-1] == bands_of(domain, BANDS).max()
        raw = features_of(exact_meaning(5), domain)
        pair = features_of(Meaning(np.array([0, 0]), np.array([1, 4]), 5, np.zeros(1)), domain)
        assert pair[0] == pytest.approx(raw[[1, 4]].mean(axis=0))
        assert len(np.unique(raw, axis=0)) == 5
