"""Who is kept where few rows are known: nobody with a rare choice, and no larger set has none."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.relational.histories import estimate_choices, kept_persons
from tests.oracles.relational.histories import rare_choices

KINDS = np.array([[3, 5], [1_000_003, 7], [11, 1_000_033]], np.uint64)
UNITS = np.array([[1 << 40, 1 << 41], [1 << 42, 1 << 43]], np.uint64)
ROWS = st.lists(st.integers(0, 2), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 1), ROWS, ROWS), min_size=1, max_size=7), st.integers(1, 2), st.integers(1, 3))
def test_the_largest_set_without_a_rare_choice_is_kept(persons: list[tuple[int, list[int], list[int]]], most: int, k: int) -> None:
    tables = []
    for place in (1, 2):
        starts = np.cumsum([0, *(len(person[place]) for person in persons)])
        # Each table has kinds of its own.
        rows = KINDS[[kind for person in persons for kind in person[place]] or []].reshape(-1, 2) << np.uint64(0 if place == 1 else 22)
        tables.append((starts, rows))
    kept = kept_persons(UNITS[[person[0] for person in persons]], tables, most, k)

    def is_safe(some: tuple[int, ...]) -> bool:
        return not rare_choices({one: persons[one][0] for one in some}, {one: persons[one][1:] for one in some}, most, k)

    assert is_safe(tuple(np.flatnonzero(kept).tolist()))
    largest = max(
        (some for size in range(len(persons) + 1) for some in combinations(range(len(persons)), size) if is_safe(some)), key=len, default=()
    )
    assert set(largest) == set(np.flatnonzero(kept).tolist())
    assert estimate_choices([starts for starts, _ in tables], most) >= len(persons)
