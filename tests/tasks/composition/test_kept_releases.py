"""How many releases keep their artefacts is what a policy of retention says: one at least, and no more than are kept at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.composition import registry
from tasks.composition.registry import remove_unneeded

OLDEST = {1: 900, 2: 800, 3: 700, 10: 100}
"""When the artefacts of so many of the newest releases were used last."""
NOW, DAY = 1_000 * 86_400 * 10**9, 86_400 * 10**9


@pytest.fixture
def pruned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[int, str]]:
    """What is removed: all that was used before a moment, but what so many releases need."""
    found: list[tuple[int, str]] = []

    @contextmanager
    def idle(_job: Any) -> Iterator[Path]:
        yield tmp_path

    store = SimpleNamespace(prune_unused=lambda moment, kept: found.append((moment, kept)))
    monkeypatch.setattr(registry, "idle_folder", idle)
    monkeypatch.setattr(registry, "Store", SimpleNamespace(at=lambda _work: store))
    monkeypatch.setattr(registry, "oldest_release_kept", lambda _store, most: OLDEST.get(most))
    monkeypatch.setattr(registry, "count_releases_since", lambda _store, moment: 2 if moment <= NOW - 5 * DAY else 0)
    monkeypatch.setattr(registry, "forget_older", lambda _store, most: f"of {most}")
    monkeypatch.setattr(time, "time_ns", lambda: NOW)
    return found


@pytest.mark.parametrize(
    ("last", "days", "expected"),
    [
        (3, None, (700, "of 3")), (1, None, (900, "of 1")), (0, None, (900, "of 1")), (50, None, (100, "of 10")), (None, 1, (900, "of 1")),
        (None, 7, (800, "of 2")), (3, 7, (700, "of 3")), (1, 7, (800, "of 2")),
    ],
)  # fmt: skip
def test_what_so_many_releases_need_and_what_was_used_of_late_stays(
    pruned: list[tuple[int, str]], last: int | None, days: float | None, expected: tuple[int, str]
) -> None:
    job: Any = None
    remove_unneeded(job, last, days)
    assert pruned == [expected]


def test_where_there_are_no_more_releases_than_are_kept_all_stays_unless_days_have_gone_by(
    pruned: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    job: Any = None
    remove_unneeded(job, 5, None)
    assert pruned == []
    monkeypatch.delitem(OLDEST, 1)
    remove_unneeded(job, None, 1)
    assert pruned == [(NOW - DAY, "of 1")]
