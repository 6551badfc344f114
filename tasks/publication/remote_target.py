"""Publication in an object store: data first, then the manifest, then ``CURRENT``; never over an old release.

A release is made, verified and published in the run's folder first, exactly as in a folder, and then copied. Whoever reads the store takes
for a release what has a manifest, and it is put there last, only if there is none, after everything else was read back and its digests were
found right. A run that dies before leaves no manifest, so no release; the next one goes on with the copy, or takes away what it left where
the data changed meanwhile.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from pydantic import ValidationError

from schemas.errors.base import StorageError
from schemas.errors.storage import ObjectStoreError
from schemas.job.connection import address_faults, is_address
from schemas.job.job import Job
from schemas.release.manifest import Manifest
from tasks.publication.staging import published
from tasks.release.names import check_names
from tasks.store.files import file_digest
from tasks.store.keys import fingerprint_of
from tasks.store.object_stores import file_system, told
from tasks.store.passing import clear_passed, passing

MANIFEST, CURRENT = "manifest.json", "CURRENT"
COPIED = re.compile(r"skald-release-[0-9a-f]{16}")
"""A copy of a release that is looked at, in the folder of temporary files."""


def any_release(job: Job) -> bool:
    """Tells whether the target may hold a release of the job already; a cheap look.

    Raises:
        ObjectStoreError: the package of the object store is not installed.
    """
    named = f"{job.name}-{'[0-9a-f]' * 16}"
    # Of work in a bucket nothing is at hand before its lease is held.
    if not (job.target_address and job.work_address) and any(job.target_path.glob(named)):
        return True
    if not job.target_address:
        return False
    system, root = file_system(job.target_address)
    with told(job.target_address):
        return bool(system.glob(f"{root}/{named}/{MANIFEST}"))


def is_published(job: Job, release: str) -> bool:
    """Tells whether a release is in the target.

    Raises:
        ObjectStoreError: the package of the object store is not installed.
        StorageError: a folder, the disk or another run stands in the way.
    """
    return _remote_manifest(job, release) is not None if job.target_address else (job.target_path / release).is_dir()


def recall(job: Job, release: str, check: Callable[[], None] = lambda: None) -> Manifest | None:
    """Returns the manifest of a release if it is published; completes the copy that a killed run had begun.

    Args:
        job: The job.
        release: Its id.
        check: As for `deliver`.

    Raises:
        StorageError: it was published, but files are missing, or the store cannot be read or written.
    """
    if not job.target_address:
        return published(job, release)
    if (manifest := _remote_manifest(job, release)) is None:
        # Verified and whole, but not copied, or not all of it.
        manifest = published(job, release)
        if manifest is not None:
            deliver(job, manifest, check)
        return manifest
    system, root = file_system(job.target_address)
    with told(f"{job.target_address}/{release}"):
        there = set(system.find(f"{root}/{release}"))
        if lost := sum(f"{root}/{release}/{name}" not in there for name in manifest.listed):
            raise StorageError.altered(release, lost)
        _finish(job, system, root, release)
    return manifest


def deliver(job: Job, manifest: Manifest, check: Callable[[], None] = lambda: None) -> None:
    """Copies a release that is published in the run's folder to the store, and removes it there.

    Args:
        job: The job.
        manifest: Of the release.
        check: Raises where another run has taken over; asked before the manifest is put.

    Raises:
        ObjectStoreError: the store cannot be written, reads back otherwise, or has the release by now.
    """
    if not job.target_address:
        return
    release, place = manifest.release, f"{job.target_address}/{manifest.release}"
    system, root = file_system(job.target_address)
    here = job.target_path / release
    files = [path for path in sorted(here.rglob("*")) if path.is_file() and path.name != MANIFEST]
    with told(place):
        if system.exists(f"{root}/{release}/{MANIFEST}"):
            raise ObjectStoreError.exists(place)
        # Before anything else: whatever a kill leaves from here on is known as this job's and can be taken away.
        system.pipe_file(f"{root}/{release}/{_mark(job)}", b"")
        wrong = 0
        for path in files:
            remote = f"{root}/{release}/{path.relative_to(here).as_posix()}"
            _put(system, path, remote)
        for path in files:
            # Read back whole: what a store says it has taken is not yet what it gives.
            wrong += _digest(system, f"{root}/{release}/{path.relative_to(here).as_posix()}") != file_digest(path)
        if wrong:
            raise ObjectStoreError.differs(place, wrong)
        check()
        try:
            _create(system, here / MANIFEST, f"{root}/{release}/{MANIFEST}")
        except FileExistsError:
            raise ObjectStoreError.exists(place) from None
        _finish(job, system, root, release)


def _put(system: Any, path: Path, remote: str) -> None:
    """Writes a file where there is none; what a killed run left there stays if it is the same, and is replaced if not."""
    try:
        _create(system, path, remote)
    except FileExistsError:
        if _digest(system, remote) != file_digest(path):
            system.rm_file(remote)
            _create(system, path, remote)


def _create(system: Any, path: Path, remote: str) -> None:
    """Writes a file only if there is none of its name, in one step where the store knows how.

    Raises:
        FileExistsError: there is one.
    """
    # Stores that pass over the condition are asked first.
    if system.exists(remote):
        raise FileExistsError
    try:
        system.put_file(str(path), remote, mode="create")
    except NotImplementedError:
        system.put_file(str(path), remote)


def _digest(system: Any, remote: str) -> str:
    with system.open(remote, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _finish(job: Job, system: Any, root: str, release: str) -> None:
    """Names the release in ``CURRENT``, and takes away what this job's runs left: marks, releases without manifest, local copies."""
    line = f"{release}\n".encode()
    try:
        named = system.cat_file(f"{root}/{CURRENT}")
    except FileNotFoundError:
        named = b""
    if named != line:
        system.pipe_file(f"{root}/{CURRENT}", line)
    for mark in system.glob(f"{root}/{job.name}-{'[0-9a-f]' * 16}/{_mark(job)}"):
        left = mark.rsplit("/", 1)[0]
        if system.exists(f"{left}/{MANIFEST}"):
            system.rm_file(mark)
        else:
            system.rm(left, recursive=True)
    for folder in job.target_path.glob(f"{job.name}-{'[0-9a-f]' * 16}"):
        shutil.rmtree(folder, ignore_errors=True)


def _mark(job: Job) -> str:
    # Of this machine's run folder, or of work in a bucket, which is locked: what carries it is nobody else's.
    return f".staging-{fingerprint_of(*([] if job.work_address else [socket.gethostname()]), job.work_place)[:8]}"


def _remote_manifest(job: Job, release: str) -> Manifest | None:
    place = f"{job.target_address}/{release}"
    system, root = file_system(str(job.target_address))
    with told(place):
        try:
            return Manifest.model_validate_json(system.cat_file(f"{root}/{release}/{MANIFEST}"))
        except FileNotFoundError:
            return None
        except ValidationError:
            raise StorageError.not_a_release(place, "manifest.json cannot be read as a manifest") from None


@contextmanager
def at_hand(release: str) -> Iterator[Path]:
    """Yields the folder of a release; one in an object store is copied to a temporary folder for as long as the block lasts.

    Raises:
        StorageError: there is no release, or it cannot be read.
        EscapeError: keys of its objects lead out of it.
    """
    if not is_address(release):
        yield Path(release)
        return
    if address_faults(release):
        raise StorageError.not_a_release(release.split("://", 1)[0] + "://…", "the address is of an unknown kind or holds a credential")
    system, root = file_system(release.rstrip("/"))
    clear_passed(Path(gettempdir()), COPIED)
    # A name that nobody can guess, as all of the machine may write there.
    with passing(Path(gettempdir(), f"skald-release-{secrets.token_hex(8)}")) as temporary:
        name = root.rsplit("/", 1)[-1]
        check_names(release, [name])
        with told(release):
            found = {remote.removeprefix(f"{root}/"): remote for remote in system.find(root)}
            # Whoever can write in a bucket chooses the keys, and all of them are looked at before the first file is written.
            check_names(release, found)
            for key, remote in found.items():
                path = temporary / name / key
                path.parent.mkdir(parents=True, exist_ok=True)
                system.get_file(remote, str(path))
        yield temporary / name
