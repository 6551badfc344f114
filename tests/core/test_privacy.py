"""k-anonymity: classes below k fail, and no union of classes is worse than its worst part."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.privacy import KAnonymity

COUNTS = st.lists(st.integers(1, 50), min_size=1, max_size=20)


@given(COUNTS, st.integers(1, 60))
def test_exactly_the_classes_below_k_fail(counts: list[int], k: int) -> None:
    assert KAnonymity(k).fails(np.array(counts, np.int64)).tolist() == [count < k for count in counts]


def test_a_class_of_exactly_k_records_is_safe() -> None:
    assert KAnonymity(5).fails(np.array([4, 5, 6])).tolist() == [True, False, False]


@given(COUNTS, st.integers(1, 60))
def test_a_union_never_fails_where_one_of_its_parts_is_safe(counts: list[int], k: int) -> None:
    model = KAnonymity(k)
    union = np.array([sum(counts)], np.int64)
    assert model.fails(np.array(counts, np.int64)).all() or not model.fails(union)[0]


def test_no_class_is_no_fault() -> None:
    assert KAnonymity(5).fails(np.empty(0, np.int64)).tolist() == []
