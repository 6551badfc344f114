"""What a worker has of a run's work stays until that run is over, whatever other runs it works for meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.engine.remote.call_queues import BucketQueue, PathName, remove_local_copies
from tasks.store.place import Bucket


@pytest.fixture(autouse=True)
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tasks.store.files.gettempdir", lambda: str(tmp_path))
    yield
    remove_local_copies()
    assert not list(tmp_path.iterdir())


def queue(prefix: str, head: str = "head") -> BucketQueue:
    return BucketQueue(Bucket(f"s3://bucket/{prefix}"), Path("/tmp", head))


def here(one: BucketQueue) -> Path:
    return one.path_of(PathName("work", "spill")).parent


def test_runs_that_share_a_worker_leave_each_others_work_alone() -> None:
    one, other = here(queue("one")), here(queue("other"))
    assert one != other
    assert here(queue("one")) == one
    assert queue("one").store("") is queue("one").store("")
    remove_local_copies(queue("other"))
    assert one.is_dir()
    assert not other.exists()
    remove_local_copies(queue("never seen"))
    assert here(queue("one")) == one


def test_what_a_dead_head_left_on_a_worker_goes_when_its_work_is_taken_over() -> None:
    dead, heir = here(queue("one")), here(queue("one", "heir"))
    assert heir.is_dir()
    assert not dead.exists()
