"""The number by which a recount chooses classes is one that statements take, and another each time."""

from __future__ import annotations

from tasks.recount.truth import drawn_number


def test_a_drawn_number_has_64_bits_at_most_and_each_is_another() -> None:
    drawn = [drawn_number() for _ in range(64)]
    assert len(set(drawn)) == len(drawn)
    assert max(drawn) < 2**64
