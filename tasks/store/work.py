"""Work of a job during a run: a folder with its lock, or a prefix of a bucket with a lease.

Work in a bucket is at hand in a private folder of this machine for as long as a command lasts. Artefacts are looked after by their store.
Beside them a work folder keeps small files that change: the secret of its ids, what is known of earlier releases, digests of files that
need not be read again, states of vaults. They are copied here when work begins, and what changed is put back at the end of each phase and
before anything is published: first as objects named by their digests, then one object that lists them all is put over the one that was
read. So another machine finds them all of one moment, whatever a listing tells, and a run whose lease was taken over changes nothing any
more.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from schemas.errors.folders import WorkError
from schemas.job.job import Job
from tasks.store.files import file_digest, locked_file, private_folder, random_temporary_folder, write_atomically
from tasks.store.keys import StepCode, json_with_digest, unsealed_text
from tasks.store.lease import NAME as LEASE
from tasks.store.lease import Lease, renewed_lease, take_lease
from tasks.store.place import Bucket, work_of
from tasks.store.store import Store
from tasks.store.work_folder import (
    CONTENT_WORDS,
    LOCK,
    MARK,
    CleanOutcome,
    FolderWork,
    check_folders_disjoint,
    check_own_work_folder,
    clear_staging,
    make_work_folder,
    remove_own_work,
    restore_mark,
)

BELOW, CALLS, LIST, FILES = "artifacts", "calls", "kept.json", "kept"
"""Folders of a prefix for artefacts and for calls that wait for a worker; the list of small files, and their folder."""
KEPT_FILES = ("secret", "vaults/*", "registry/*", f"{BELOW}/*.json", f"{BELOW}/releases/*.record")
_NAME = re.compile(rf"secret|(vaults|registry)/[^/.][^/]*|{BELOW}/[^/.][^/]*\.json|{BELOW}/releases/[^/.][^/]*\.record")
REGISTRY = "registry/"
LISTED = StepCode("listed", "tasks.store.work")


class KeptWork(NamedTuple):
    """SHA-256 and time of change, in ns, of a small file of the work."""

    sha256: str
    changed: int


_LIST = TypeAdapter(dict[str, KeptWork])


@dataclass
class BucketWork:
    """A job's work in a bucket while this run holds its lease, with small files copied to this machine.

    Attributes:
        store: Its artefacts.
        folder: Where it is at hand.
        bucket: The prefix.
        lease: By which it is held.
    """

    store: Store
    folder: Path
    bucket: Bucket
    lease: Lease
    _listed: dict[str, KeptWork] = field(default_factory=dict)
    _tag: str | None = None

    @property
    def generation(self) -> int:
        """How often the lease was taken, this run included."""
        return self.lease.generation

    def keep(self) -> None:
        """Upload small files that changed, replacing their list in the bucket at once."""
        there = _kept(self.folder)
        if there == self._listed:
            return
        self.lease.renew()
        bucket, known = self.bucket, {one.sha256 for one in self._listed.values()}
        for name, kept in there.items():
            if kept.sha256 not in known:
                bucket.upload(self.folder / name, f"{FILES}/{kept.sha256}", kept.sha256)
        content = _said(there)
        tag = bucket.replace(LIST, content, self._tag) if self._tag else bucket.create(LIST, content)
        if tag is None:
            raise WorkError.lease_lost(bucket.location)
        self._listed, self._tag = there, tag
        bucket.remove([f"{FILES}/{digest}" for digest in known - {one.sha256 for one in there.values()}])

    def check(self) -> None:
        """Renew the lease; raise ``WorkError`` if another run has taken the work over."""
        self.lease.renew()

    def raise_if_lost(self) -> None:
        """Raise ``WorkError`` if a renewal found that the work was taken over; ask no store."""
        self.lease.raise_if_lost()


HeldWork = FolderWork | BucketWork
"""The work of a run while it is held: by the lock of its folder, or by a lease in a bucket."""


@contextmanager
def hold_work(job: Job) -> Iterator[HeldWork]:
    """Yield a job's work, its folder locked or its bucket's lease held; raise ``BusyError`` if in use."""
    check_folders_disjoint(job)
    place = work_of(job)
    if isinstance(place, Bucket):
        with work_in_bucket(job, place) as work:
            yield work
    else:
        with _locked(make_work_folder(job)) as folder:
            try:
                yield FolderWork(Store.at(folder), folder)
            finally:
                restore_mark(folder)


@contextmanager
def work_in_bucket(job: Job, bucket: Bucket) -> Iterator[BucketWork]:
    """Yield work in a bucket under its lease, small files copied here; upload them if no error."""
    _claim(bucket)
    with scratch_folder() as folder:
        lease = take_lease(bucket)
        with renewed_lease(lease):
            # Calls of a killed run: under the lease nobody takes them any more.
            bucket.remove(bucket.names(CALLS))
            listed, tag = _copy(bucket, folder)
            # What a run that was taken over still made would lie there after the next one has removed its own.
            work = BucketWork(Store(folder / BELOW, bucket.below(BELOW), lease.lease_check), folder, bucket, lease, listed, tag)
            with _at_hand(job, folder), _copied_lists(job, work.store):
                yield work
            # Not after an error, which says what is the matter: each phase that came to its end has been kept.
            work.keep()


@contextmanager
def read_only_store(job: Job) -> Iterator[Store]:
    """Yield a job's store without a lock, for commands that only read.

    Small files of work in a bucket are on this machine meanwhile.
    """
    place = work_of(job)
    if not isinstance(place, Bucket):
        yield Store(job.work_path / BELOW)
        return
    with scratch_folder() as folder, _at_hand(job, folder):
        _copy(place, folder)
        yield Store(folder / BELOW, place.below(BELOW))


@contextmanager
def idle_folder(job: Job) -> Iterator[Path | None]:
    """Yield the locked work folder of a job, None if missing or empty; raise while a run uses it.

    What killed runs left in its target is removed.
    """
    if work_of(job).folder is None:
        raise WorkError.kept_by_rules_of_the_bucket()
    work = job.work_path
    # Both before anything is removed: `work` may be a slip that names a folder of somebody else's.
    check_folders_disjoint(job)
    check_own_work_folder(work)
    if not work.is_dir() or not any(work.iterdir()):
        clear_staging(job)
        yield None
        return
    with _locked(work):
        clear_staging(job)
        yield work


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    # The system drops the lock when the process ends, so that SIGKILL leaves nothing to clear by hand.
    with locked_file(folder / LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB):
        yield folder


def clean_work(job: Job) -> CleanOutcome:
    """Remove a job's work and what killed runs left in its target; return the bytes and entries left.

    Raises ``WorkError`` while a run uses the work.
    """
    place = work_of(job)
    if isinstance(place, Bucket):
        check_folders_disjoint(job)
        return clear_bucket(place, job)
    with idle_folder(job) as work:
        if not work:
            return CleanOutcome(0, 0, 0)
        outcome = remove_own_work(work)
    # Once the lock is closed: until then a file system over a network keeps it under another name. A link to a folder stays.
    with suppress(OSError):
        work.rmdir()
    return outcome


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a private temporary folder for work, removed after; clear those of killed processes."""
    with random_temporary_folder("work") as folder:
        # What is made in there is scratch and nobody's release, as in every work folder.
        (private_folder(folder) / MARK).write_text(CONTENT_WORDS)
        yield folder


@contextmanager
def _at_hand(job: Job, folder: Path) -> Iterator[None]:
    job.set_local_work(folder)
    try:
        yield
    finally:
        job.set_local_work(None)


@contextmanager
def _copied_lists(job: Job, store: Store) -> Iterator[None]:
    """Keep the job's hierarchy files among the artefacts, where workers on other machines find them."""
    listed = [one for one in job.hierarchies if one.listed_in is not None]
    for hierarchy in listed:
        # What cannot be read is told of by who reads it.
        with suppress(OSError):
            content = hierarchy.file_content(job.folder)
            key = LISTED.key(hashlib.sha256(content).hexdigest())
            hierarchy.use_copy(store.path(store.make("listed", key, ".csv", partial(_write, content))))
    try:
        yield
    finally:
        for hierarchy in listed:
            hierarchy.use_copy(None)


def _write(content: bytes, part: Path) -> int:
    part.write_bytes(content)
    return 1


def _claim(bucket: Bucket) -> None:
    if bucket.entry(MARK):
        return
    # Another run may have made the mark, and begun, between the two looks.
    if bucket.sizes() and not bucket.entry(MARK):
        raise WorkError.not_ours(bucket.location)
    bucket.create(MARK, CONTENT_WORDS.encode())


def _copy(bucket: Bucket, folder: Path) -> tuple[dict[str, KeptWork], str | None]:
    """Copy the small files of work to this machine; return their list and its tag."""
    there = bucket.entry(LIST)
    if there is None:
        return {}, None
    listed = _read(bucket)
    for name, kept in listed.items():
        path = folder / name
        private_folder(path.parent)
        write_atomically(path, lambda part, kept=kept: _fetch(bucket, kept, part))  # type: ignore[misc]
        os.utime(path, ns=(kept.changed, kept.changed))
    return listed, there.tag


def _read(bucket: Bucket) -> dict[str, KeptWork]:
    try:
        listed = _LIST.validate_python(unsealed_text(bucket.read(LIST) or b""))
    except ValidationError:
        raise WorkError.damaged(bucket.location_of(LIST)) from None
    # Whoever can write there chooses the names.
    if not all(map(_NAME.fullmatch, listed)):
        raise WorkError.damaged(bucket.location_of(LIST))
    return listed


def _fetch(bucket: Bucket, kept: KeptWork, part: Path) -> int:
    name = f"{FILES}/{kept.sha256}"
    if not bucket.download(name, part, kept.sha256):
        raise WorkError.damaged(bucket.location_of(name))
    return 0


def _kept(folder: Path) -> dict[str, KeptWork]:
    paths = {path.relative_to(folder).as_posix(): path for pattern in KEPT_FILES for path in sorted(folder.glob(pattern)) if path.is_file()}
    # Names with a dot in front are half written.
    return {name: KeptWork(file_digest(path), path.stat().st_mtime_ns) for name, path in paths.items() if _NAME.fullmatch(name)}


def clear_bucket(bucket: Bucket, job: Job) -> CleanOutcome:
    """Remove a job's staging and work in a bucket but for registered releases; return as ``clean_work``.

    The lease stays, and the mark beside it: another run may wait for it, and its generation must not begin anew.
    """
    if not bucket.entry(MARK):
        if bucket.sizes():
            raise WorkError.not_ours(bucket.location)
        return CleanOutcome(0, 0, 0)
    lease = take_lease(bucket)
    with renewed_lease(lease):
        lease.renew()
        clear_staging(job)
        there, found = bucket.sizes(), bucket.entry(LIST)
        stays = {name: kept for name, kept in (_read(bucket) if found else {}).items() if name.startswith(REGISTRY)}
        if found and stays:
            # The list first: without what it names it would be one that was altered.
            bucket.replace(LIST, _said(stays), found.tag)
        kept = {MARK, LEASE} | ({LIST, *(f"{FILES}/{one.sha256}" for one in stays.values())} if stays else set())
        ours = {name: size for name, size in there.items() if _is_ours(name) and name not in kept}
        bucket.remove(sorted(ours, key=lambda name: (name != LIST, name)))
    return CleanOutcome(sum(ours.values()), sum(not _is_ours(name) for name in there), 0)


def _said(listed: Mapping[str, KeptWork]) -> bytes:
    return json_with_digest({name: list(kept) for name, kept in listed.items()}).encode()


def _is_ours(name: str) -> bool:
    return name in (MARK, LEASE, LIST) or name.startswith((f"{BELOW}/", f"{FILES}/", f"{CALLS}/"))
