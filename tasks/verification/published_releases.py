"""Published releases: copied to this machine for verification, and newer ones beside a release.

A signature says that a release is true, and not that it is the last one. Whoever can write in a target can name an old release in
``CURRENT``. Releases that were removed cannot be found; those that are there can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from schemas.errors.base import StorageError
from schemas.job.source import address_faults, is_address
from schemas.relational.manifest import TablesManifest
from schemas.release.evidence import MANIFEST, SIGNATURE
from schemas.release.manifest import Manifest
from tasks.release.manifest import MOST_BYTES, MOST_REQUESTS, any_manifest_of, check_names, is_manifest_of_tables
from tasks.store.files import random_temporary_folder
from tasks.store.place import Bucket, Place, place_of

DIGITS = "[0-9a-f]" * 16


@contextmanager
def release_folder(release: str) -> Iterator[Path]:
    """Yield a release's folder; one in a bucket is copied to a temporary folder, removed after."""
    if not is_address(release):
        yield Path(release)
        return
    if address_faults(release):
        raise StorageError.not_a_release(release.split("://", 1)[0] + "://…", "the address is of an unknown kind or holds a credential")
    bucket = Bucket(release.rstrip("/"))
    with random_temporary_folder("release") as temporary:
        name = bucket.location.rsplit("/", 1)[-1]
        check_names(release, [name])
        found = bucket.sizes()
        if not found:
            # By its address, which whoever asked knows: the folder of this machine is gone in a moment.
            raise StorageError.not_a_release(release, "no object lies below this address")
        # Whoever can write in a bucket chooses the keys, and all of them are looked at before the first file is written.
        check_names(release, found)
        listed = _listed_sizes(bucket, found)
        for key, size in found.items():
            path = temporary / name / key
            path.parent.mkdir(parents=True, exist_ok=True)
            if _is_worth_copying(size, listed, key):
                bucket.download(key, path)
            else:
                # An empty file is no more what the manifest lists than it was, and is told of.
                path.touch()
        yield temporary / name


def is_address_of_tables(release: str) -> bool:
    """Return whether a bucket address holds a release of several tables; only its manifest is read."""
    return not address_faults(release) and is_manifest_of_tables(Bucket(release.rstrip("/")).read(MANIFEST, MOST_BYTES) or b"")


def _listed_sizes(bucket: Bucket, found: Mapping[str, int]) -> dict[str, int | None] | None:
    """Return the bytes of each file that a bucket's manifest lists, None if unsaid; None without one."""
    if MANIFEST not in found:
        return None
    try:
        manifest = any_manifest_of(bucket.read(MANIFEST, MOST_BYTES) or b"", bucket.location)
    except StorageError:
        # It is told of when the copy is looked at, and nothing else is then.
        return {}
    return {one.path: one.bytes for one in manifest.files} | {one.path: one.bytes for one in manifest.documents}


def _is_worth_copying(size: int, listed: Mapping[str, int | None] | None, key: str) -> bool:
    """Return whether an object can be a listed file of a release, by its name and size."""
    if key in (MANIFEST, SIGNATURE):
        return size <= MOST_BYTES
    if listed is None:
        return True
    return key in listed and listed[key] in (None, size)


def place_above(location: str, release: Path) -> Place:
    """Return the place (folder or bucket prefix) that contains a release.

    Args:
        location: Its folder or address, as it was given.
        release: The folder that it is read from.
    """
    return place_of(location.rstrip("/").rsplit("/", 1)[0] if is_address(location) else str(release.resolve().parent))


def newer_releases(location: str, release: Path, manifest: Manifest | TablesManifest) -> tuple[str, ...]:
    """Return the ids of newer releases of the same job in the same place, the newest first.

    Args:
        location: Folder or address of the release, as it was given.
        release: The folder that it is read from.
        manifest: Its manifest, which was compared with its seal and the name of its folder. One that does not say when it was made is
            older than any that does.
    """
    made, above = _moment(manifest), place_above(location, release)

    def read(name: str) -> Manifest | TablesManifest | None:
        try:
            return any_manifest_of(above.read(name, MOST_BYTES) or b"", name)
        except StorageError:
            # What is no release is no newer one.
            return None

    names = above.matching(f"{manifest.release[:-16]}{DIGITS}/{MANIFEST}")
    with ThreadPoolExecutor(MOST_REQUESTS) as pool:
        found = [(name.split("/")[0], other) for name, other in zip(names, pool.map(read, names), strict=True) if other]
    others = [other for name, other in found if (other.release, other.name) == (name, manifest.name) and name != manifest.release]
    newer = [(moment, one.release) for one in others if (moment := _moment(one)) and (made is None or moment > made)]
    return tuple(name for _, name in sorted(newer, reverse=True))


def newer_releases_sentence(newer: tuple[str, ...]) -> str:
    """Return a sentence that names the newest of newer releases, given newest first; none is an error."""
    more = f" and {len(newer) - 1:,} more" if len(newer) > 1 else ""
    return f"This is not the newest release of its job: beside it lies '{newer[0]}'{more}, made later."


def _moment(manifest: Manifest | TablesManifest) -> datetime | None:
    try:
        moment = datetime.fromisoformat(manifest.created or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None
