"""Nobody is counted twice in a combination that occurs again, and one that does not is told apart from it."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.units.pairs import ALONE, count_different, positions_of_repeated_keys


@given(st.lists(st.integers(-(2**61), 2**61) | st.integers(0, 5), max_size=60))
def test_equal_keys_that_occur_again_have_a_place_of_their_own(keys: list[int]) -> None:
    places, size = positions_of_repeated_keys(np.array(keys, np.int64))
    again = {key for key, times in Counter(keys).items() if times > 1}
    assert all((place == ALONE) == (key not in again) for key, place in zip(keys, places.tolist(), strict=True))
    assert len({(key, place) for key, place in zip(keys, places.tolist(), strict=True) if key in again}) == len(again) == size
    assert {place for place in places.tolist() if place != ALONE} == set(range(size))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2**64 - 1) | st.integers(0, 4)), max_size=80))
def test_everybody_counts_once_for_each_owner(records: list[tuple[int, int]]) -> None:
    owners, persons = np.array([owner for owner, _ in records], np.int32), np.array([person for _, person in records], np.uint64)
    found = count_different(owners, persons, 7)
    assert found.tolist() == [len({person for mine, person in records if mine == owner}) for owner in range(7)]
