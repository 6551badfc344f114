"""Intervals of advantages are those of the papers, and verdicts follow from them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.attacks.attacked_tables import Guesses, added_guesses, advantage_interval, wilson_interval

GUESSES = Guesses("linkage", None, "all", 100, 30, 100, 10, accepted=0.5)
counts = st.integers(1, 500).flatmap(lambda guesses: st.tuples(st.integers(0, guesses), st.just(guesses)))


def test_intervals_are_those_of_the_papers() -> None:
    # Newcombe 1998 (Statistics in Medicine 17:857 and 17:873), examples of 81 of 263, and of 56 of 70 beside 48 of 80.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert advantage_interval(56, 70, 48, 80)[1:] == pytest.approx((0.0524, 0.3339), abs=5e-5)


@given(mine=counts, others=counts)
def test_an_interval_holds_its_share_and_more_deviations_widen_it(mine: tuple[int, int], others: tuple[int, int]) -> None:
    advantage, low, high = advantage_interval(*mine, *others)
    _, lower, higher = advantage_interval(*mine, *others, 4.5)
    assert lower <= low + 1e-12 <= advantage + 2e-12
    assert advantage <= high + 1e-12 <= higher + 2e-12
    assert advantage == pytest.approx(mine[0] / mine[1] - others[0] / others[1])


def test_nobody_of_a_control_group_is_no_uncertainty() -> None:
    assert advantage_interval(3, 10, 0, 0)[:2] == (0.3, wilson_interval(3, 10)[0])


@pytest.mark.parametrize(
    ("guesses", "verdict"),
    [
        (GUESSES, "told"),
        (replace(GUESSES, accepted=0.0), "told"),
        (replace(GUESSES, right=10), "safe"),
        (replace(GUESSES, right=95, accepted=0.3), "broken"),
        (replace(GUESSES, right=95, accepted=1.0), "told"),
        (replace(GUESSES, right=1, promised=True), "broken"),
        (replace(GUESSES, right=0, promised=True), "safe"),
        (replace(GUESSES, right=0, control_right=50, promised=True), "safe"),
    ],
)
def test_a_verdict_is_broken_only_beyond_doubt(guesses: Guesses, verdict: str) -> None:
    assert guesses.figures().verdict == verdict


def test_figures_add_up_over_people_who_are_attacked_in_turn() -> None:
    added = added_guesses([GUESSES, replace(GUESSES, guesses=300, right=60, accepted=0.1)])
    assert (added.guesses, added.right, added.control_guesses, added.control_right) == (400, 90, 200, 20)
    assert added.accepted == pytest.approx(0.2)
