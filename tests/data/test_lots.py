"""What is promised of drawing by tickets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.patients import tickets


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=60))
def test_every_item_has_its_share_of_tickets_to_within_one(weights: list[int]) -> None:
    shares = 65_536 * np.array(weights) / sum(weights)
    drawn = tickets(np.array(weights, float))
    counts = np.bincount(drawn, minlength=len(weights))
    assert drawn.shape == (65_536,)
    assert (np.abs(counts - shares) <= 1).all()
    assert (counts >= 1).all()


@given(st.integers(1, 4_096))
def test_as_many_tickets_as_items_give_one_each(count: int) -> None:
    assert np.array_equal(tickets(np.ones(count), count), np.arange(count))


def test_items_of_no_weight_have_no_ticket() -> None:
    assert set(tickets(np.array([0.0, 1.0, 0.0, 2.0, 0.0])).tolist()) == {1, 3}


def test_an_item_that_could_never_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="1 of 2 weights are too small for 65536 tickets; draw from more tickets"):
        tickets(np.array([1.0, 1e-9]))
