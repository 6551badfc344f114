"""The order of records depends on what they are and not on where they stood."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.recoding.release_order import canonical_record_order, number_combinations, record_hashes
from tests.laws import tried


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from(["a", "b", None])), max_size=40), st.randoms())
def test_records_in_another_order_come_into_the_same_order(rows: list[tuple], random) -> None:
    turned = list(rows)
    random.shuffle(turned)
    assert ordered(rows) == ordered(turned)
    assert [row[:2] for row in ordered(rows)] == sorted(row[:2] for row in rows)


def ordered(rows: list[tuple]) -> list[tuple]:
    codes = [np.array([row[position] for row in rows], np.int64) for position in range(2)]
    marked = record_hashes([pa.array([row[2] for row in rows], pa.string())], len(rows))
    return [rows[place] for place in canonical_record_order(codes, [4, 3], marked)]


def test_marks_do_not_depend_on_how_a_column_is_stored_or_on_its_neighbours() -> None:
    plain = pa.array(["x", None, "y", "x"])
    assert record_hashes([plain], 4).tolist() == record_hashes([plain.dictionary_encode()], 4).tolist()
    assert record_hashes([plain.slice(2)], 2).tolist() == record_hashes([plain], 4).tolist()[2:]


def test_marks_tell_bits_apart() -> None:
    found = record_hashes([pa.array([0.0, -0.0, float("nan"), 1.0])], 4)
    assert len(set(found.tolist())) == 4


def test_records_without_further_columns_have_one_mark() -> None:
    assert record_hashes([], 3).tolist() == [0, 0, 0]


@example([(0, 0), (0, 1), (1, 1), (1, 1)])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20).map(sorted))
def test_records_have_one_number_where_all_of_their_codes_are_alike(rows: list[tuple[int, int]]) -> None:
    places = {row: place for place, row in enumerate(sorted(set(rows)))}
    assert number_combinations(np.array(rows, np.int64)).tolist() == [places[row] for row in rows]


@pytest.mark.parametrize("size", [4, 1 << 40], ids=["one word", "two words"])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), max_size=12), st.booleans())
@tried(30)
def test_records_are_sorted_by_codes_then_by_hash_and_then_by_person(size: int, rows: list[tuple[int, ...]], named: bool) -> None:
    first, second, marked, digests = (
        np.array([row[place] for row in rows], kind) for place, kind in enumerate([np.int64] * 2 + [np.uint64] * 2)
    )
    order = canonical_record_order([first, second], [size, size], marked, digests if named else None)
    assert sorted(order.tolist()) == list(range(len(rows)))
    kept = 4 if named else 3
    assert [rows[place][:kept] for place in order] == sorted(row[:kept] for row in rows)
