"""Newer releases beside one that is verified: a signature says that a release is true, and not that it is the last one.

Whoever can write in a target can name an old release in ``CURRENT``. What he has taken away cannot be found; what lies there can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from schemas.errors.base import StorageError
from schemas.job.source import is_address
from schemas.release.evidence import MANIFEST
from schemas.release.manifest import Manifest
from tasks.release.manifest import MOST_BYTES, manifest_of, read_manifest
from tasks.store.bucket import file_system, object_within, sanitised_errors

MOST_REQUESTS = 16
DIGITS = "[0-9a-f]" * 16


def newer_releases(place: str, release: Path, manifest: Manifest) -> tuple[str, ...]:
    """Return the ids of newer releases of the same job that lie beside a release, the newest first.

    Args:
        place: Folder or address of the release, as it was given.
        release: The folder that it is read from.
        manifest: Its manifest, which was held against its seal and the name of its folder. One that does not say when it was made is
            older than any that does.
    """
    made = _moment(manifest)
    others = list(_remote(place, manifest) if is_address(place) else _here(release.resolve().parent, manifest))
    newer = [(moment, one.release) for one in others if (moment := _moment(one)) and (made is None or moment > made)]
    return tuple(name for _, name in sorted(newer, reverse=True))


def newer_releases_sentence(newer: tuple[str, ...]) -> str:
    """Return what is said of newer releases, in a sentence."""
    more = f" and {len(newer) - 1:,} more" if len(newer) > 1 else ""
    return f"This is not the newest release of its job: beside it lies '{newer[0]}'{more}, which was made later."


def _moment(manifest: Manifest) -> datetime | None:
    try:
        moment = datetime.fromisoformat(manifest.created or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _is_other(found: Manifest | None, name: str, manifest: Manifest) -> bool:
    return found is not None and (found.release, found.name) == (name, manifest.name) and name != manifest.release


def _here(folder: Path, manifest: Manifest) -> Iterator[Manifest]:
    for path in folder.glob(f"{manifest.release[:-16]}{DIGITS}"):
        try:
            found = read_manifest(path)
        except (StorageError, OSError):
            # What is no release is no newer one.
            continue
        if found and _is_other(found, path.name, manifest):
            yield found


def _remote(place: str, manifest: Manifest) -> Iterator[Manifest]:
    above = place.rstrip("/").rsplit("/", 1)[0]
    system, root = file_system(above)

    def read(remote: str) -> Manifest | None:
        try:
            return manifest_of(object_within(system, remote, MOST_BYTES) or b"", remote)
        except (StorageError, FileNotFoundError):
            return None

    with sanitised_errors(above):
        remotes = system.glob(f"{root}/{manifest.release[:-16]}{DIGITS}/{MANIFEST}")
        with ThreadPoolExecutor(MOST_REQUESTS) as pool:
            for remote, found in zip(remotes, pool.map(read, remotes), strict=True):
                if found and _is_other(found, remote.rsplit("/", 2)[-2], manifest):
                    yield found
