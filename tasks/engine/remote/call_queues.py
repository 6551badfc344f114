"""Queues of calls for workers, in the run folder or in a bucket, and the names of paths in them."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from schemas.errors.runners import RunnerError, WithdrawnError
from tasks.engine.remote.codec import PathName
from tasks.store.files import private_folder, write_atomically
from tasks.store.place import Bucket
from tasks.store.store import Store
from tasks.store.work import BELOW, CALLS, BucketWork, scratch_folder
from tasks.store.work_folder import FolderWork


@dataclass(frozen=True)
class FolderQueue:
    """Queue of a phase's encrypted calls, as files of a folder that all workers reach by the same path.

    Attributes:
        folder: In the run's folder.
    """

    folder: Path

    def add_call(self, name: str, content: bytes) -> None:
        """Write a call's encrypted content as a file of the queue, readable by its owner alone."""
        write_atomically(self.folder / name, lambda part: part.write_bytes(content))

    def take(self, name: str) -> bytes:
        """Return a call's encrypted content, leaving it queued; raise if it is withdrawn or not reachable."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            # A folder without the file means that it was withdrawn; no folder, that this machine does not have it.
            raise (WithdrawnError() if self.folder.is_dir() else RunnerError.not_shared(str(self.folder))) from None
        except OSError:
            raise RunnerError.not_shared(str(self.folder)) from None

    def remove(self, name: str) -> None:
        """Remove a call from the queue, if it is there."""
        (self.folder / name).unlink(missing_ok=True)

    def path_name(self, path: Path) -> PathName:
        """Return the machine-independent name of a path: the path itself."""
        return PathName("everywhere", str(path))

    def path_of(self, name: PathName) -> Path:
        """Return the path in a name from ``path_name``, the same on every machine."""
        return Path(name.text)

    def store_name(self, store: Store) -> str:
        """Return the name by which workers find a store: its folder, which all of them share."""
        return str(store.folder)

    def store(self, name: str) -> Store:
        """Return the store of a named folder, the same object for each call of this process."""
        return _store_in(Path(name))


@cache
def _store_in(folder: Path) -> Store:
    """Return the store of a folder; the calls of a worker share one."""
    return Store(folder)


@dataclass(frozen=True)
class BucketQueue:
    """Queue of a run's encrypted calls, as objects in its work's bucket, with paths relative to the work.

    Attributes:
        bucket: That holds the work.
        folder: Where it is at hand on the machine of the flow; another on that of each worker.
    """

    bucket: Bucket
    folder: Path

    def add_call(self, name: str, content: bytes) -> None:
        """Write a call's encrypted content as an object of the bucket."""
        self.bucket.write(f"{CALLS}/{name}", content)

    def take(self, name: str) -> bytes:
        """Return a call's encrypted content, leaving it queued; raise ``WithdrawnError`` if it is gone."""
        content = self.bucket.read(f"{CALLS}/{name}")
        if content is None:
            raise WithdrawnError
        return content

    def remove(self, name: str) -> None:
        """Remove a call from the queue, if it is there."""
        self.bucket.remove([f"{CALLS}/{name}"])

    def path_name(self, path: Path) -> PathName:
        """Return the machine-independent name of a path, relative to the work if it lies there."""
        within = path.is_relative_to(self.folder)
        return PathName("work", path.relative_to(self.folder).as_posix()) if within else PathName("everywhere", str(path))

    def path_of(self, name: PathName) -> Path:
        """Return this machine's path for a name from ``path_name``; fetch an artefact from the bucket."""
        kind, path = name
        if kind == "everywhere":
            return Path(path)
        store, folder = _at_hand(self)
        return store.path_named(path.removeprefix(f"{BELOW}/")) if path.startswith(f"{BELOW}/") else folder / path

    def store_name(self, store: Store) -> str:
        """Return the machine-independent name of the store: the bucket's address."""
        return self.bucket.location

    def store(self, name: str) -> Store:
        """Return this machine's local store for the bucket, the same object for each call."""
        return _at_hand(self)[0]


CallQueue = FolderQueue | BucketQueue


def queue_of(work: FolderWork | BucketWork, spill: Path, phase: str) -> CallQueue:
    """Return the queue for the calls of a phase, in the work's bucket or a private folder in ``spill``."""
    if isinstance(work, BucketWork):
        return BucketQueue(work.bucket, work.folder)
    return FolderQueue(private_folder(spill / "calls" / phase))


class _AtHand(NamedTuple):
    """A worker's local copy of a run's work."""

    store: Store
    folder: Path
    left: ExitStack


_TURN = threading.Lock()
_HERE: dict[BucketQueue, _AtHand] = {}
"""By run: workers of a cluster may work for several at a time."""


def _at_hand(queue: BucketQueue) -> tuple[Store, Path]:
    with _TURN:
        if queue not in _HERE:
            # One run at a time holds the lease of a bucket: what an earlier one left here, because its head died, is nobody's.
            _forget([other for other in _HERE if other.bucket == queue.bucket])
            left = ExitStack()
            folder = left.enter_context(scratch_folder())
            _HERE[queue] = _AtHand(Store(folder / BELOW, queue.bucket.below(BELOW)), folder, left)
        return _HERE[queue][:2]


def remove_local_copies(queue: BucketQueue | None = None) -> None:
    """Remove this process's local copies of a run's work, or of all runs' work.

    Args:
        queue: Where the calls of the run lie; of all runs if it is left out.
    """
    with _TURN:
        _forget([queue] if queue else list(_HERE))


def _forget(queues: Sequence[BucketQueue]) -> None:
    for queue in queues:
        if here := _HERE.pop(queue, None):
            here.left.close()


atexit.register(remove_local_copies)
