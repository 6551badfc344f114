"""A node that linked people lead to, or that another release names, is the one that is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest

from core.lattice.search import SearchResult
from core.privacy.models import Closeness, DistinctDiversity
from core.privacy.promise import Promise
from core.units.losses import Loss, loss_of
from schemas.errors.base import PrivacyError, StorageError
from schemas.errors.methods import LevelsError, ReplayError
from schemas.job.job import Job
from schemas.release.evidence import MANIFEST
from schemas.release.manifest import Manifest
from tasks.lattice import optimum
from tasks.lattice.linked_people import LinkedPeople
from tasks.lattice.promises import promise_of
from tasks.lattice.recodings import has_map, write_map
from tasks.store.place import place_of
from tasks.store.store import Store
from tests.core.recount.test_classes import manifest
from tests.jobs import job_of
from tests.oracles.hierarchies import built
from tests.oracles.tables import Example, observed


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
    monkeypatch.setattr(optimum, "replayed_manifest", lambda _job: manifest)
    hierarchies = [SimpleNamespace(qid="age", top=3), SimpleNamespace(qid="zip", top=1)]
    coding: Any = SimpleNamespace(hierarchies=hierarchies, sensitive=["s"] * sensitive)

    def job_with(**levels: list[int]) -> Job:
        return Job.model_validate(job_of(method={"name": "skald", "levels": levels}))

    job = job_with()
    assert optimum.replayed_root(job, coding) == optimum.replayed_root(job_with(age=[1, 2]), coding) == (2, 1, *[0] * sensitive)
    for levels in ({"age": [0, 1]}, {"age": [3, 3], "zip": [1, 1]}):
        with pytest.raises(ReplayError, match="'age' at levels that"):
            optimum.replayed_root(job_with(**levels), coding)
    hierarchies[0].top = 4
    with pytest.raises(ReplayError, match="age"):
        optimum.replayed_root(job, coding)


def test_a_map_that_was_kept_is_there_for_its_search_alone(tmp_path: Path) -> None:
    store, key = Store(tmp_path), "0" * 64
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [2]}}], "sensitive": ["disease"]}
    assert not has_map(store, key)
    write_map(Job.model_validate(job_of(columns=columns)), np.zeros((3,), np.int8), (1,), store, key)
    assert has_map(store, key)
    assert not has_map(store, "1" * 64)


def test_a_node_that_is_named_is_looked_at_alone_and_may_suppress_no_more_than_the_limit() -> None:
    rows = [(1, 4), (1, 4), (1, 5), (2, 4), (2, 5), (4, 5)]
    domains = tuple(observed(f"q{place}", [row[place] for row in rows], pa.int64()) for place in range(2))
    axes = tuple(built({"widths": [2]}, domain) for domain in domains)
    counted = Example(rows, domains, axes).histogram((0, 1))
    coding: Any = SimpleNamespace(hierarchies=axes, sensitive=(), axes=axes, records=6)
    sought: Any = SimpleNamespace(promise=Promise(2), selected_persons=lambda *_: None)

    def applied(limit: float, replayed: str | None = None) -> SearchResult:
        one = Job.model_validate(job_of(suppression={"limit": limit}, **({"replay": replayed} if replayed else {})))
        return optimum.apply_given_node(one, coding, sought, counted)

    # By 1 and 4 to 5 there are three records, by 2 two, and by 4 one, who is too few.
    found = applied(0.2)
    assert (found.node, found.loss.suppressed, found.loss.dm_star) == ((0, 1), 1, 3**2 + 2**2 + 1)
    assert (found.nodes, found.evaluated, found.unexamined, found.roots) == (9, 1, 8, ((0, 1),))
    with pytest.raises(LevelsError):
        applied(0.1)
    with pytest.raises(PrivacyError, match="people-1"):
        applied(0.1, "people-1")


def test_the_promise_of_a_job_is_made_of_each_of_its_models() -> None:
    pay, sick = observed("pay", [3, 1, 7, None], pa.int64()), observed("sick", ["a", "b"], pa.string())
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": {"widths": [2]}}], "sensitive": ["sick", "pay"]}
    privacy = {"k": 4, "l": {"sick": {"distinct": 2}}, "t": {"pay": {"t": 0.25, "distance": "ordered"}}}
    coding: Any = SimpleNamespace(sensitive=(sick, pay))
    made = promise_of(Job.model_validate(job_of(columns=columns, privacy=privacy)), coding)
    assert made.k == 4
    by_column = {one.column: one for one in made.models if isinstance(one, DistinctDiversity | Closeness)}
    assert {name: type(one) for name, one in by_column.items()} == {"sick": DistinctDiversity, "pay": Closeness}


class Replayed:
    """A target, in a folder or a store, with releases of which each replays another one, or none."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, address: str | None = None) -> None:
        self.folder, self.address, self.mine = folder, address, {"age": "a"}
        monkeypatch.setattr(optimum, "read_secrets", lambda _job: [])
        monkeypatch.setattr(optimum, "hierarchies_as_in", lambda *_: self.mine)

    def release(self, name: str, **said: Any) -> None:
        text = manifest(**({"release": name, "hierarchies": {"age": "a"}} | said)).model_dump_json()
        place_of(self.address or str(self.folder)).write(f"{name}/{MANIFEST}", text.encode())

    def of(self, name: str, **more: Any) -> Manifest:
        places = {"target_path": self.folder, "target_address": self.address, "replay_path": self.folder / name}
        return optimum.replayed_manifest(SimpleNamespace(replay=Path(name), method=SimpleNamespace(name="skald"), **places, **more))  # type: ignore[arg-type]


@pytest.fixture(params=["folder", "store"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replayed]:
    if request.param == "folder":
        yield Replayed(tmp_path, monkeypatch)
        return
    yield Replayed(tmp_path, monkeypatch, "memory://replayed")
    fsspec.filesystem("memory").rm("/replayed", recursive=True)


def test_a_replay_goes_back_to_the_release_that_replays_none(target: Replayed) -> None:
    target.release("people-1")
    target.release("people-2", replay_of="people-1")
    target.release("people-3", replay_of="people-2")
    assert [target.of(f"people-{number}").release for number in (1, 2, 3)] == ["people-1"] * 3
    target.release("other", method="mondrian")
    target.release("circle", replay_of="circle")
    target.release("elsewhere", replay_of="../people-1")
    target.release("changed", hierarchies={"age": "b"})
    for name in ("other", "circle", "elsewhere", "changed"):
        with pytest.raises(ReplayError):
            target.of(name)
    with pytest.raises(StorageError):
        target.of("gone")
    target.release("people-5", replay_of="people-4")
    target.release("people-6", replay_of="people-5")
    with pytest.raises(ReplayError, match="'people-5' replayed 'people-4', which is not in the same folder"):
        target.of("people-6")


@pytest.mark.parametrize("is_its_own", [True, False])
def test_a_release_that_notes_no_hierarchies_is_replayed_by_the_job_that_made_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_its_own: bool
) -> None:
    target, asked = Replayed(tmp_path, monkeypatch), list[Any]()
    target.release("people-1", hierarchies={})
    changed = {"model_copy": lambda update: update}
    monkeypatch.setattr(optimum, "is_of_job", lambda *given: asked.append(given) or is_its_own)
    if is_its_own:
        assert target.of("people-1", **changed).release == "people-1"
    else:
        with pytest.raises(ReplayError):
            target.of("people-1", **changed)
    [(manifest_of_it, without, secrets)] = asked
    assert (manifest_of_it.release, without, secrets) == ("people-1", {"replay": None}, [])


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ({"zip": "b", "age": "a"}, "'zip'"), ({"zip": "z", "age": "b"}, "'age'"), ({"age": "b", "zip": "b"}, "'zip' and 'age'"),
        ({"zip": "z"}, "'age'"), ({"zip": "z", "age": "a", "sex": "s"}, "'sex'"), ({"sex": "s", "zip": "b"}, "'zip', 'age' and 'sex'"),
        ({"age": "a", "zip": "z"}, "'zip' and 'age'"),
    ],
)  # fmt: skip
def test_each_quasi_identifier_that_is_another_one_in_a_release_is_named_once_and_all_if_only_their_order_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: dict[str, str], named: str
) -> None:
    target = Replayed(tmp_path, monkeypatch)
    target.mine = {"zip": "z", "age": "a"}
    target.release("people-1", hierarchies=theirs)
    with pytest.raises(ReplayError, match=re.escape(f"of release 'people-1' are not those of this job ({named}), so")):
        target.of("people-1")
