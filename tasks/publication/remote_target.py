"""Publication in an object store: data first, then the manifest, then ``CURRENT``; never over an old release.

The data files of a release are put under its own name by tasks, and recounted as they are read back from there. Whoever reads the store
takes for a release what has a manifest, and it is put there last, only if there is none. A run that dies before leaves no manifest, so no
release; the next one goes on with what is there, or takes it away where the data changed meanwhile. A run that is refused takes away what
it had put there.
"""

from __future__ import annotations

import re
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Protocol, TypeVar

from schemas.errors.base import SkaldError, StorageError
from schemas.errors.storage import ObjectStoreError, PointerError
from schemas.job.job import Job
from schemas.job.source import address_faults, is_address
from schemas.release.evidence import MANIFEST, SIGNATURE
from schemas.release.files import PublishedFile
from schemas.release.manifest import Manifest
from tasks.publication.deliveries import create_object, fetch_object, put_object, replace_object, unpublished
from tasks.publication.staging import Published, publish, published, unaltered_manifest
from tasks.release.manifest import MOST_BYTES, any_manifest_of, check_names, manifest_of
from tasks.store.bucket import file_system, object_within, sanitised_errors
from tasks.store.files import clear_temporary_folders, file_digest, temporary_folder
from tasks.store.keys import fingerprint_of

Read = TypeVar("Read")

CURRENT = "CURRENT"
TRIES, MOST_OF_MARK = 100, 100
"""How often the pointer is put over what was read, while others put theirs; and bytes of a mark."""
COPIED = re.compile(r"skald-release-[0-9a-f]{16}")
"""A copy of a release that is looked at, in the folder of temporary files."""


class TargetWork(Protocol):
    """Work while it is held, in a folder or in a bucket."""

    @property
    def generation(self) -> int:
        """How often it was taken over."""

    def check(self) -> None:
        """Make sure that no other run has taken over."""


def any_release(job: Job) -> bool:
    """Return whether the target may hold a release of the job already; a cheap look."""
    named = f"{job.name}-{'[0-9a-f]' * 16}"
    # Of work in a bucket nothing is at hand before its lease is held.
    if not (job.target_address and job.work_address) and any(job.target_path.glob(named)):
        return True
    if not job.target_address:
        return False
    system, root = file_system(job.target_address)
    with sanitised_errors(job.target_address):
        return bool(system.glob(f"{root}/{named}/{MANIFEST}"))


def is_published(job: Job, release: str) -> bool:
    """Return whether a release is in the target."""
    return _remote_manifest(job, release, any_manifest_of) is not None if job.target_address else (job.target_path / release).is_dir()


def recall(job: Job, release: str, work: TargetWork) -> Manifest | None:
    """Return the manifest of a release if it is published, and names it in ``CURRENT``.

    Args:
        job: Names the target.
        release: Its id.
        work: The work, while it is held.
    """
    return recalled_by(job, release, work, manifest_of, unaltered_manifest)


def recalled_by(
    job: Job, release: str, work: TargetWork, read: Callable[[bytes, str], Published], here: Callable[[Path], Published]
) -> Published | None:
    """Do what ``recall`` does for manifests of any kind.

    Args:
        job: Names the target.
        release: Its id.
        work: The work, while it is held.
        read: Reads the manifest that a store has; the address is for messages.
        here: Reads that of a release in a folder.
    """
    if not job.target_address:
        return published(job, release, here)
    if (manifest := _remote_manifest(job, release, read)) is None:
        return None
    system, root = file_system(job.target_address)
    with sanitised_errors(f"{job.target_address}/{release}"):
        there = set(system.find(f"{root}/{release}"))
        if lost := sum(f"{root}/{release}/{name}" not in there for name in manifest.listed):
            raise StorageError.altered(release, lost)
        _finish(job, system, root, release, work)
    return manifest


def lay_mark(job: Job, release: str, generation: int) -> None:
    """Let whatever a kill leaves of a release from here on be known as this job's, and be taken away.

    Args:
        job: Names the target.
        release: Its id.
        generation: Of the work's lease, so that a run that was taken over takes nothing away that its heir puts there.
    """
    system, root = unpublished(job, release)
    with sanitised_errors(job.release_location(release)):
        system.pipe_file(f"{root}/{release}/{_mark(job)}", str(generation).encode())


def publish_staged(job: Job, staging: Path, release: str, work: TargetWork, files: Sequence[PublishedFile]) -> None:
    """Publish a release whose data files were recounted in staging: by one rename, or in a store with its manifest last."""
    if not job.target_address:
        return publish(job, staging, release)
    lay_mark(job, release, work.generation)
    _put_data(job, staging, release, files)
    return deliver(job, staging, release, work)


def _put_data(job: Job, staging: Path, release: str, files: Sequence[PublishedFile]) -> None:
    system, root = unpublished(job, release)
    with sanitised_errors(job.release_location(release)):
        for file in files:
            put_object(system, staging / file.path, f"{root}/{release}/{file.path}")
        if wrong := sum(fetch_object(system, f"{root}/{release}/{file.path}") != file.sha256 for file in files):
            raise ObjectStoreError.differs(job.release_location(release), wrong)


def deliver(job: Job, staging: Path, release: str, work: TargetWork) -> None:
    """Put what stands beside the data of a release into the store, the manifest last; from then on there is a release.

    Args:
        job: Names the target.
        staging: Has report, manifest and, where there is a key, signature.
        release: Its data files are in the store, and verified.
        work: The work, while it is held; asked whether it is before the manifest is put.
    """
    place = job.release_location(release)
    system, root = file_system(str(job.target_address))
    files = [path for path in sorted(staging.iterdir()) if path.is_file() and path.name != MANIFEST]
    with sanitised_errors(place):
        for path in files:
            put_object(system, path, f"{root}/{release}/{path.name}")
        # Read back whole: what a store says it has taken is not yet what it gives.
        if wrong := sum(fetch_object(system, f"{root}/{release}/{path.name}") != file_digest(path) for path in files):
            raise ObjectStoreError.differs(place, wrong)
        work.check()
        try:
            create_object(system, staging / MANIFEST, f"{root}/{release}/{MANIFEST}")
        except FileExistsError:
            raise ObjectStoreError.exists(place) from None
        _finish(job, system, root, release, work)


@contextmanager
def withdrawn_if_refused(job: Job, release: str, work: TargetWork) -> Iterator[None]:
    """Take away what was put into the store of a release that is refused inside the block: nobody has verified it.

    What is only interrupted, by a full disk or a network that is down, stays for the run that goes on.

    Args:
        job: Names the target.
        release: Its id.
        work: The work, while it is held. Where another run has taken over, these may be its files by now: they stay.
    """
    try:
        yield
    except StorageError:
        raise
    except SkaldError:
        if job.target_address:
            # What the release was refused for is to be told; what is left here carries the mark.
            with suppress(StorageError):
                work.check()
                _withdraw(job, release, work.generation)
        raise


def _withdraw(job: Job, release: str, generation: int) -> None:
    system, root = file_system(str(job.target_address))
    with sanitised_errors(job.release_location(release)):
        if not system.exists(f"{root}/{release}/{MANIFEST}") and _generation(system, f"{root}/{release}/{_mark(job)}") <= generation:
            system.rm(f"{root}/{release}", recursive=True)


def _finish(job: Job, system: Any, root: str, release: str, work: TargetWork) -> None:
    """Name the release in ``CURRENT``, and take away what this job's runs left: marks, releases without manifest, local copies."""
    work.check()
    for _ in range(TRIES):
        if replace_object(system, f"{root}/{CURRENT}", f"{release}\n".encode()):
            break
        # Another run named its own meanwhile: that of another job, or one that has taken over, and then this one names none.
        work.check()
    else:
        raise PointerError.not_named(release, str(job.target_address))
    for mark in system.glob(f"{root}/{job.name}-{'[0-9a-f]' * 16}/{_mark(job)}"):
        left = mark.rsplit("/", 1)[0]
        if system.exists(f"{left}/{MANIFEST}"):
            system.rm_file(mark)
        elif _generation(system, mark) <= work.generation:
            # What another run is putting there by now has no manifest yet, either.
            work.check()
            system.rm(left, recursive=True)
    for folder in job.target_path.glob(f"{job.name}-{'[0-9a-f]' * 16}"):
        shutil.rmtree(folder, ignore_errors=True)


def _generation(system: Any, mark: str) -> float:
    """Return the generation of the lease under which a mark was laid; one that is not there is later than any."""
    try:
        # One that is empty is of before marks said so.
        return int(object_within(system, mark, MOST_OF_MARK) or 0)
    except (FileNotFoundError, ValueError):
        return inf


def _mark(job: Job) -> str:
    # Of this machine's run folder, or of work in a bucket, which is locked: what carries it is nobody else's.
    return f".staging-{fingerprint_of(*([] if job.work_address else [socket.gethostname()]), job.work_location)[:8]}"


def _remote_manifest(job: Job, release: str, read: Callable[[bytes, str], Read]) -> Read | None:
    place = f"{job.target_address}/{release}"
    system, root = file_system(str(job.target_address))
    with sanitised_errors(place):
        try:
            content = object_within(system, f"{root}/{release}/{MANIFEST}", MOST_BYTES)
        except FileNotFoundError:
            return None
    return read(content or b"", place)


@contextmanager
def at_hand(release: str) -> Iterator[Path]:
    """Yield the folder of a release; one in an object store is copied to a temporary folder for as long as the block lasts."""
    if not is_address(release):
        yield Path(release)
        return
    if address_faults(release):
        raise StorageError.not_a_release(release.split("://", 1)[0] + "://…", "the address is of an unknown kind or holds a credential")
    system, root = file_system(release.rstrip("/"))
    clear_temporary_folders(Path(gettempdir()), COPIED)
    # A name that nobody can guess, as all of the machine may write there.
    with temporary_folder(Path(gettempdir(), f"skald-release-{secrets.token_hex(8)}")) as temporary:
        name = root.rsplit("/", 1)[-1]
        check_names(release, [name])
        with sanitised_errors(release):
            found = {remote.removeprefix(f"{root}/"): int(about["size"]) for remote, about in system.find(root, detail=True).items()}
            # Whoever can write in a bucket chooses the keys, and all of them are looked at before the first file is written.
            check_names(release, found)
            listed = _listed_sizes(system, root, found)
            for key, size in found.items():
                path = temporary / name / key
                path.parent.mkdir(parents=True, exist_ok=True)
                if _is_worth_copying(size, listed, key):
                    system.get_file(f"{root}/{key}", str(path))
                else:
                    # An empty file is no more what the manifest lists than it was, and is told of.
                    path.touch()
        yield temporary / name


def _listed_sizes(system: Any, root: str, found: Mapping[str, int]) -> dict[str, int | None] | None:
    """Return the bytes of the files that a manifest in a store lists, None of one that does not say; None where there is no manifest."""
    if MANIFEST not in found:
        return None
    try:
        manifest = any_manifest_of(object_within(system, f"{root}/{MANIFEST}", MOST_BYTES) or b"", root)
    except StorageError:
        # It is told of when the copy is looked at, and nothing else is then.
        return {}
    return {one.path: one.bytes for one in manifest.files} | {one.path: one.bytes for one in manifest.documents}


def _is_worth_copying(size: int, listed: Mapping[str, int | None] | None, key: str) -> bool:
    """Return whether an object can be what a manifest lists, or where there is none, that of another tool."""
    if key in (MANIFEST, SIGNATURE):
        return size <= MOST_BYTES
    if listed is None:
        return True
    return key in listed and listed[key] in (None, size)
