"""The step that searches hands what it found on to what makes the recoding, unless all of it was kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.lattice import recodings

JOB = SimpleNamespace(columns=SimpleNamespace(person=[]), privacy=SimpleNamespace(k=2), memory=1)


class Searched:
    """A search whose parts are named, and what they were handed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **named: Any) -> None:
        self.handed: dict[str, tuple[Any, ...]] = {}
        loss = SimpleNamespace(suppressed=0)
        self.found = SimpleNamespace(loss=loss, statuses=None)
        made = SimpleNamespace(local=None, recoding="recoding")
        outcome = SimpleNamespace(node=(0,), model_copy=lambda update: update)
        parts: dict[str, Any] = {
            "SEARCH": SimpleNamespace(key=lambda *_: "key"), "_kept": lambda *_: None, "load_histogram": lambda *_: "counted",
            "check_persons": lambda *_: None, "promise_of": lambda *_: "promise", "has_given_node": lambda _job: False,
            "Sought": lambda *_: SimpleNamespace(source_members=lambda *_: "members"), "ChunkSums": lambda *_: "chunks",
            "examine": lambda *given: self._noted("examine", given, self.found), "below": lambda *_: "below", "give_back": lambda: None,
            "keeps_linked": lambda _job: False, "_outcome": lambda *given: self._noted("outcome", given, outcome),
            "recode_locally": lambda *given: self._noted("locally", given, made),
            "recode_node": lambda *given: self._noted("node", given, made),
            "read_cells": lambda *_: SimpleNamespace(model_copy=lambda update: update),
        }  # fmt: skip
        for name, part in (parts | named).items():
            monkeypatch.setattr(recodings, name, part)

    def _noted(self, name: str, given: tuple[Any, ...], answer: Any) -> Any:
        self.handed[name] = given
        return answer

    def run(self, folder: Path, *, is_local: bool = False) -> Any:
        job = SimpleNamespace(**vars(JOB), suppression=SimpleNamespace(is_local=is_local))
        given: Any = SimpleNamespace(job=job, store=folder, coding=SimpleNamespace(records=9, sensitive=()))
        return recodings._search(given, recodings.SearchedCells((0,), *[()] * 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("is_local", [True, False])
def test_the_node_that_was_found_and_its_cells_are_handed_on_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_local: bool
) -> None:
    search = Searched(monkeypatch)
    assert search.run(tmp_path, is_local=is_local) == {"later": None, "withheld": None}
    assert search.handed["examine"][3:] == ("counted", "chunks")
    assert search.handed["outcome"][1:3] == ("below", search.found)
    assert search.handed["locally" if is_local else "node"][3:5] == (search.found, "below")
    assert ("locally" in search.handed) == is_local


@pytest.mark.parametrize(("has_map", "passing", "is_enough"), [(True, 5, True), (True, None, True), (False, None, True), (False, 5, False)])
def test_what_was_kept_is_taken_if_its_picture_is_there_or_it_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_map: bool, passing: int | None, is_enough: bool
) -> None:
    kept = SimpleNamespace(node=(0,))
    outcome = SimpleNamespace(nodes_passing=passing)
    search = Searched(monkeypatch, _kept=lambda *_: kept, has_map=lambda *_: has_map, read_outcome=lambda *_: outcome)
    assert (search.run(tmp_path) is kept) == is_enough
    assert bool(search.handed) != is_enough
