"""Rows that are withheld: whoever is saved has a history of k, no choice passes the budget, and single rows are found where they do."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.relational.withholding import FailingRows, rows_to_withhold

K = 3
VALUES = np.array([[3, 5], [1_000_003, 7], [11, 1_000_033]], np.uint64)
"""The digest of each kind of row: sums of a few of them are equal only where the multisets are."""


def digest(kinds: list[int]) -> tuple[int, int]:
    first, second = (sum(int(VALUES[kind, lane]) for kind in kinds) for lane in range(2))
    return first, second


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=9),
    st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=3),
    st.integers(0, 12),
)
def test_who_is_saved_shares_a_history_with_k(persons: list[list[int]], known: list[list[int]], budget: int) -> None:
    """Persons fail, whatever they share; ``known`` are histories that k others share."""
    starts = np.cumsum([0, *map(len, persons)])
    kinds = np.array([kind for person in persons for kind in person], np.int64)
    rows = FailingRows(starts, VALUES[kinds].reshape(-1, 2), np.ones((len(kinds), 1), np.int64))
    histories = np.array([digest(person) for person in persons], np.uint64)
    shared = np.array([digest(one) for one in known], np.uint64).reshape(-1, 2)
    saved, withheld = rows_to_withhold(histories, rows, shared, K, np.array([budget]))
    assert len(withheld) == len(set(withheld.tolist())) <= budget
    left = [[kind for row, kind in enumerate(person, int(starts[number])) if row not in withheld] for number, person in enumerate(persons)]
    together = Counter(digest(left[number]) for number in np.flatnonzero(saved))
    for number, person in enumerate(persons):
        if saved[number]:
            assert together[digest(left[number])] >= K or digest(left[number]) in {digest(one) for one in known}
        else:
            assert left[number] == person
    # Nobody is left out who lacks one row to a history that k share, as long as rows may be withheld.
    if len(withheld) < budget:
        one_less = {
            tuple(sorted(person[:place] + person[place + 1 :]))
            for number, person in enumerate(persons)
            if not saved[number]
            for place in range(len(person))
        }
        assert not one_less & {tuple(sorted(one)) for one in known}
