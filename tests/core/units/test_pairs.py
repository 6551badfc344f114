"""Pairs of person and cell add up over chunks, and shares of the persons have nobody in common."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.units.digests import NOBODY
from core.units.pairs import ALONE, Pairs, merge_pairs, positions_of_repeated_keys

DIGESTS = st.sampled_from([0, 1, 2, 3, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]) | st.integers(0, 2**64 - 1)
RECORDS = st.lists(st.tuples(DIGESTS, st.integers(0, 5)), max_size=40)


def pairs_of(records: list[tuple[int, int]]) -> Pairs:
    return Pairs.of(np.array([one for one, _ in records], np.uint64), np.array([cell for _, cell in records], np.int64))


def listed(pairs: Pairs) -> dict[tuple[int, int], int]:
    return dict(zip(zip(pairs.persons.tolist(), pairs.cells.tolist(), strict=True), pairs.counts.tolist(), strict=True))


def counted(records: list[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter(record for record in records if record[0] != NOBODY)


@given(RECORDS)
def test_pairs_are_distinct_ascending_and_without_nobody(records: list[tuple[int, int]]) -> None:
    found = pairs_of(records)
    assert listed(found) == counted(records)
    keys = list(zip(found.persons.tolist(), found.cells.tolist(), strict=True))
    assert keys == sorted(set(keys))
    assert found.records == sum(counted(records).values())


@given(st.lists(RECORDS, max_size=4))
def test_pairs_of_chunks_add_up_in_whatever_order(chunks: list[list[tuple[int, int]]]) -> None:
    merged = merge_pairs([pairs_of(chunk) for chunk in chunks])
    assert listed(merged) == counted([record for chunk in chunks for record in chunk])
    again = merge_pairs([merge_pairs([pairs_of(chunk) for chunk in chunks[1:]]), *map(pairs_of, chunks[:1])])
    assert listed(again) == listed(merged)


@given(RECORDS, st.integers(1, 9))
def test_every_pair_is_in_one_share_and_a_person_is_in_no_two(records: list[tuple[int, int]], shares: int) -> None:
    whole = pairs_of(records)
    parts = [whole.share(number, shares) for number in range(shares)]
    assert [pair for part in parts for pair in listed(part)] == list(listed(whole))
    persons = [set(part.persons.tolist()) for part in parts]
    assert sum(map(len, persons)) == len(set().union(*persons))


@given(RECORDS, st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_pairs_move_to_coarser_cells(records: list[tuple[int, int]], places: list[int]) -> None:
    moved = merge_pairs([pairs_of(records).moved(np.array(places))])
    assert listed(moved) == counted([(person, places[cell]) for person, cell in records])


@given(st.lists(st.sampled_from([0, 1, 2, 3, 2**40, 2**62]), max_size=12))
def test_keys_that_repeat_have_a_place_of_their_own_and_others_none(keys: list[int]) -> None:
    places, shared = positions_of_repeated_keys(np.array(keys, np.int64))
    repeated = {key for key, many in Counter(keys).items() if many > 1}
    of_keys = {(key, place) for key, place in zip(keys, places.tolist(), strict=True) if key in repeated}
    assert shared == len(repeated) == len(of_keys)
    assert sorted(place for _, place in of_keys) == list(range(shared))
    assert all(place == ALONE for key, place in zip(keys, places.tolist(), strict=True) if key not in repeated)
