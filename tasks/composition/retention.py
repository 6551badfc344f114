"""Remove from a run folder what neither the newest releases need nor a recent run has used."""

from __future__ import annotations

import time
from pathlib import Path

from schemas.job.job import Job
from tasks.composition.release_history import MOST_RELEASES, forget_older, made_since, oldest_release_kept
from tasks.engine.runs import idle_folder
from tasks.store.store import Store

NS_OF_A_DAY = 24 * 60 * 60 * 10**9


def remove_unneeded(job: Job, last: int | None, days: float | None) -> int:
    """Removes the artefacts that the job's policy of retention does not keep; returns how many bytes that freed.

    The key of digests, the registry of releases and the newest release's artefacts always stay.

    Args:
        job: The job.
        last: Keep what this many of the newest releases need, ten at most.
        days: Keep what a run has used within so many days. Where both are given, what either keeps stays.

    Raises:
        StorageError: a run is at work in the folder, or it is not ours, or the work is in a bucket.
    """
    with idle_folder(job) as work:
        if work is None:
            return 0
        before = _size(work)
        _prune(Store.at(work), last, days)
        return before - _size(work)


def _prune(store: Store, last: int | None, days: float | None) -> None:
    recent = None if days is None else time.time_ns() - int(days * NS_OF_A_DAY)
    most = max(1, min(last or 1, MOST_RELEASES), 0 if recent is None else made_since(store, recent))
    oldest = oldest_release_kept(store, most)
    if oldest is None and last is not None:
        return  # there are no more releases than are to be kept
    kept = forget_older(store, most)
    store.prune_unused(min(moment for moment in (oldest, recent) if moment is not None), kept)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
