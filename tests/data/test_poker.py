"""Poker hands are dealt without replacement, classed as the repository classes them, and as frequent as probability says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from data.poker import BLOCK, QIDS, draw_hands, hand_classes, make_poker
from schemas.job.job import load_job
from tests.places import ROOT


@pytest.mark.parametrize(
    ("hand", "suits", "ranks"),
    [
        (0, [1, 2, 3, 4, 1], [1, 3, 5, 7, 9]),
        (1, [1, 2, 3, 4, 1], [4, 4, 5, 7, 9]),
        (2, [1, 2, 3, 4, 1], [4, 9, 4, 7, 9]),
        (3, [1, 2, 3, 4, 1], [4, 4, 4, 7, 9]),
        (4, [1, 2, 3, 4, 1], [5, 1, 4, 2, 3]),
        (4, [1, 2, 3, 4, 1], [10, 1, 13, 12, 11]),
        (5, [2, 2, 2, 2, 2], [1, 3, 5, 7, 9]),
        (6, [1, 2, 3, 4, 1], [4, 9, 4, 9, 9]),
        (7, [1, 2, 3, 4, 1], [4, 4, 4, 4, 9]),
        (8, [2, 2, 2, 2, 2], [5, 1, 4, 2, 3]),
        (9, [2, 2, 2, 2, 2], [10, 1, 13, 12, 11]),
    ],
)
def test_hands_have_the_class_of_the_repository(hand: int, suits: list[int], ranks: list[int]) -> None:
    assert hand_classes(np.array([suits]), np.array([ranks])).tolist() == [hand]


def test_cards_of_a_hand_are_different_and_every_card_is_as_likely_in_every_place() -> None:
    frame = pl.DataFrame(draw_hands(0, 0))
    assert frame.height == BLOCK
    cards = np.stack([frame[f"suit_{card}"].cast(int) * 13 + frame[f"rank_{card}"].cast(int) for card in range(1, 6)], axis=1)
    assert (np.diff(np.sort(cards, axis=1), axis=1) > 0).all()
    for place in range(5):
        counts = np.unique(cards[:, place], return_counts=True)[1]
        assert len(counts) == 52
        assert abs(counts - BLOCK / 52).max() < 6 * (BLOCK / 52) ** 0.5
    assert frame["hand"].value_counts().sort("hand")["count"].to_numpy()[:2] / BLOCK == pytest.approx([0.501, 0.4226], abs=0.01)


def test_files_hold_the_same_hands_however_many_they_are(tmp_path: Path) -> None:
    one, many = make_poker(tmp_path / "one", 70_000, 1, 3), make_poker(tmp_path / "many", 70_000, 4, 3)
    whole = pl.read_parquet(one)
    assert whole.equals(pl.concat([pl.read_parquet(path) for path in many]))
    assert whole.columns == [*QIDS, "hand"]
    assert not whole.equals(pl.read_parquet(make_poker(tmp_path / "other", 70_000, 1, 4)))


def test_what_cannot_be_made_is_refused(tmp_path: Path) -> None:
    for rows, files, seed in [(0, None, 0), (2, 3, 0), (5, None, -1)]:
        with pytest.raises(ValueError):
            make_poker(tmp_path, rows, files, seed)
    make_poker(tmp_path, 10, 5)
    with pytest.raises(ValueError, match="another data set"):
        make_poker(tmp_path, 10, 2)


def test_the_example_job_is_read() -> None:
    job = load_job(ROOT / "data" / "jobs" / "poker.yaml")
    assert [qid.name for qid in job.columns.quasi_identifiers] == list(QIDS)
