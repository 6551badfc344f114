"""Pools of classes of single records keep l and t, and tell nobody's value to somebody who knows how they are made."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy.models import DistinctDiversity
from tests.laws import tried
from tests.oracles.attacked import People, by_records
from tests.oracles.minimality import told

METHODS = ["rayden", "canon", "mondrian_cof", "clustering", "kmember"]
TABLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.sampled_from([0, 0, 1, 2])), min_size=4, max_size=6).map(sorted)


@pytest.mark.promise
@pytest.mark.slow
@given(TABLES, st.sampled_from(METHODS), st.integers(1, 2), st.none() | st.lists(st.integers(0, 5), min_size=7, max_size=7))
@tried(30)
def test_nobodys_value_is_told_by_classes_that_were_pooled(table: list[Any], method: str, k: int, whose: list[int] | None) -> None:
    people = People([row[:2] for row in table], whose and whose[: len(table)], k, lambda null: DistinctDiversity("x", 2, null))
    values = [row[2] for row in table]
    classes = by_records(people, values, method)
    found = told(classes, values, [0, 1, 2], lambda world: by_records(people, world, method))
    # Where somebody has several records in a class, that it bounds who holds a value excludes some ways to give its values to records.
    alone = [members for members in classes if not people.whose or len({people.whose[row] for row in members}) == len(members)]
    assert not found & {row for members in alone for row in members}
    assert all(len({values[person] for person in members}) >= 2 for members in classes)


@pytest.mark.parametrize("method", METHODS)
def test_classes_that_keep_the_model_stay_as_they_are(method: str) -> None:
    rows = [(number, 0) for number in range(8)]
    kept = by_records(People(rows, None, 2, lambda null: DistinctDiversity("x", 1, null)), [0, 1] * 4, method)
    assert by_records(People(rows, None, 2, lambda null: DistinctDiversity("x", 2, null)), list(range(8)), method) == kept
