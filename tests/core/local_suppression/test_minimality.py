"""Stars, masks and rounds tell nobody's value to somebody who knows all quasi-identifiers, the algorithm and the levels of all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy.models import Closeness, DistinctDiversity, EntropyDiversity, PrivacyModel
from core.recoding.recoding import Treatment
from tests.laws import tried
from tests.oracles.attacked import People, by_levels
from tests.oracles.minimality import told

VALUES = st.sampled_from([0, 0, 1, None])
TABLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), VALUES), min_size=4, max_size=5).map(lambda rows: sorted(rows, key=str))
MODELS: dict[str, Any] = {
    "distinct": lambda null: DistinctDiversity("x", 2, null),
    "entropy": lambda null: EntropyDiversity("x", 1.6, null),
    "close": lambda _: Closeness("x", 0.4),
}


def model_of(name: str, null: int | None) -> PrivacyModel:
    model: PrivacyModel = MODELS[name](null)
    return model


@pytest.mark.promise
@pytest.mark.slow
@given(TABLES, st.sampled_from(sorted(MODELS)), st.sampled_from(["drop", "mask", "cell"]), st.integers(0, 2))
@tried(12)
def test_nobody_who_is_published_is_told_by_what_became_of_rare_records(
    table: list[tuple[int, int, int | None]], name: str, treatment: Treatment, rounds: int
) -> None:
    people, values = People([row[:2] for row in table], None, 2, lambda null: model_of(name, null)), [row[2] for row in table]
    node = (1, 0)
    classes, _ = by_levels(people, values, treatment, rounds, 1, node)
    found = told(classes, values, [0, 1, None], lambda world: by_levels(people, world, treatment, rounds, 1, node))
    assert not found & {person for members in classes for person in members}


@pytest.mark.parametrize("treatment", ["mask", "cell"])
def test_what_enough_share_and_fails_is_left_out_and_not_published_among_rare_records(treatment: Treatment) -> None:
    rows = [(0, 0), (0, 0), (0, 0), (1, 0), (2, 0), (3, 0)]
    people = People(rows, None, 2, lambda null: DistinctDiversity("x", 2, null))
    classes, _ = by_levels(people, [0, 0, 0, 0, 1, 2], treatment, 0, 1, (0, 0))
    assert classes == [[3, 4, 5]]
