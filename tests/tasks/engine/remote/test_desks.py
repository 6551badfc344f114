"""What a worker has of a run's work stays until that run is over, whatever other runs it works for meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.engine.remote.desks import BucketDesk, let_go
from tasks.store.bucket import Bucket


@pytest.fixture(autouse=True)
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tasks.store.bucket_work.gettempdir", lambda: str(tmp_path))
    yield
    let_go()
    assert not list(tmp_path.iterdir())


def desk(prefix: str, head: str = "head") -> BucketDesk:
    return BucketDesk(Bucket(f"s3://bucket/{prefix}"), Path("/tmp", head))


def here(one: BucketDesk) -> Path:
    return one.path(["work", "spill"]).parent


def test_runs_that_share_a_worker_leave_each_others_work_alone() -> None:
    one, other = here(desk("one")), here(desk("other"))
    assert one != other
    assert here(desk("one")) == one
    assert desk("one").store("") is desk("one").store("")
    let_go(desk("other"))
    assert one.is_dir()
    assert not other.exists()
    let_go(desk("never seen"))
    assert here(desk("one")) == one


def test_what_a_dead_head_left_on_a_worker_goes_when_its_work_is_taken_over() -> None:
    dead, heir = here(desk("one")), here(desk("one", "heir"))
    assert heir.is_dir()
    assert not dead.exists()
