"""A node that linked people lead to, or that another release names, is the one that is reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.lattice.search import SearchResult
from core.losses.losses import Loss, loss_of
from schemas.errors.methods import ReplayError
from schemas.job.job import Job
from tasks.lattice import replay
from tasks.lattice.lattice_maps import has_map, keep_map
from tasks.lattice.linked_people import LinkedPeople
from tasks.store.store import Store
from tests.jobs import job_of


def loss(*failing: int) -> Loss:
    return loss_of(np.array([5, 3, 2]), np.isin(np.arange(3), failing))


def linked(node: tuple[int, ...], of: Loss) -> LinkedPeople:
    nothing: Any = np.zeros(0, np.int64)
    return LinkedPeople(node, nothing, nothing, nothing, nothing, of, [], 0, evaluated=7)


def test_a_certificate_holds_where_linked_people_lose_nothing_more_at_the_same_node() -> None:
    found = SearchResult((1, 0), loss(2), 3, 6, 4, 0, ((0, 0),), measured={"entropy": 0.5})
    assert linked((1, 0), loss(2)).with_linked_loss(found) is found
    for node, lost in (((1, 0), loss(1, 2)), ((0, 1), loss(2)), ((1, 1), loss(0))):
        expected = replace(found, node=node, loss=lost, measured={}, evaluated=11)
        assert linked(node, lost).with_linked_loss(found) == expected


@pytest.mark.parametrize("sensitive", [0, 1, 2])
def test_the_node_of_a_replay_has_the_levels_of_the_release_and_none_of_sensitive_axes(
    monkeypatch: pytest.MonkeyPatch, sensitive: int
) -> None:
    manifest = SimpleNamespace(node=(2, 1), tops={"age": 3, "zip": 1}, release="people-0")
    monkeypatch.setattr(replay, "replayed_manifest", lambda _job: manifest)
    hierarchies = [SimpleNamespace(qid="age", top=3), SimpleNamespace(qid="zip", top=1)]
    job: Any = SimpleNamespace()
    coding: Any = SimpleNamespace(hierarchies=hierarchies, sensitive=["s"] * sensitive)
    assert replay.replayed_root(job, coding) == (2, 1, *[0] * sensitive)
    hierarchies[0].top = 4
    with pytest.raises(ReplayError, match="age"):
        replay.replayed_root(job, coding)


def test_a_map_that_was_kept_is_there_for_its_search_alone(tmp_path: Path) -> None:
    store, key = Store(tmp_path), "0" * 64
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [2]}}], "sensitive": ["disease"]}
    assert not has_map(store, key)
    keep_map(Job.model_validate(job_of(columns=columns)), np.zeros((3,), np.int8), (1,), store, key)
    assert has_map(store, key)
    assert not has_map(store, "1" * 64)
