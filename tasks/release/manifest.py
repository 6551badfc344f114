"""Reading of a release's manifest, with limits on its size and paths.

Any person who can write in a target may have put a file of that name there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from schemas.errors.base import StorageError
from schemas.errors.folders import EscapeError
from schemas.job.job import Job, hierarchy_digests, job_digest
from schemas.reading.job_files import is_of_one_table, is_of_tables
from schemas.reading.regular_files import GivenJob, content_of
from schemas.relational.manifest import TablesManifest
from schemas.release.evidence import MANIFEST
from schemas.release.manifest import Manifest
from tasks.store.keys import FolderSecret
from tasks.store.place import Place


def check_names(release: str, names: Iterable[str]) -> None:
    """Raise ``EscapeError`` if a file name leads out of a release or is also another file's folder.

    Args:
        names: With ``/`` between folders.
    """
    listed = list(names)
    folders = {str(parent) for name in listed for parent in PurePosixPath(name).parents}
    if wrong := sum(_leads_out(name) or name in folders for name in listed):
        raise EscapeError.leads_out(release, wrong)


def _leads_out(name: str) -> bool:
    # An absolute name begins with an empty part.
    return "\0" in name or any(part in ("", ".", "..") for part in name.split("/"))


def check_no_links(release: Path) -> None:
    """Raise ``EscapeError`` if a release folder holds symbolic links."""
    if links := sum(path.is_symlink() for path in release.rglob("*")):
        raise EscapeError.has_links(str(release), links)


MOST_REQUESTS = 16
"""Manifests that are read from a store at a time."""
MOST_BYTES, MOST_PARTS = 64_000_000, 2_000_000
"""Bytes of a manifest, and entries of its lists and mappings: half a million source files. An empty list takes 30 times its text."""


def is_small_enough_to_parse(content: bytes) -> bool:
    """Return whether a manifest's bytes and numbers of entries are below the limits for parsing."""
    return len(content) <= MOST_BYTES and sum(map(content.count, (b",", b"[", b"{"))) <= MOST_PARTS


def content_or_nothing(release: Path) -> bytes:
    """Return the bytes of a release's manifest file; none if it cannot be read."""
    try:
        return content_of(release / MANIFEST, MOST_BYTES, may_be_link=False)
    except OSError:
        return b""


_OF_TABLES = {"unit", "tables", "histories"}


def is_manifest_of_tables(content: bytes) -> bool:
    """Return whether the bytes look like a manifest of several tables; False if invalid."""
    # Only an escape could spell the key in another way. So a manifest of one table is not read a second time.
    return (b"histories" in content or b"\\" in content) and _keys_of(content) >= _OF_TABLES


def _keys_of(content: bytes) -> set[str]:
    """Return the keys of a manifest; none if it is no manifest."""
    try:
        read = json.loads(content) if is_small_enough_to_parse(content) else None
    except (ValueError, RecursionError):
        return set()
    return set(read) if isinstance(read, dict) else set()


def is_of_tables_as_its_job(release: Path, job: Path | GivenJob | None, overrides: Sequence[str]) -> bool:
    """Return whether a release is of several tables; raise if its job is of the other kind.

    Of a release whose manifest does not show it, the job decides, and whoever reads the release reports the damage.
    """
    content = content_or_nothing(release)
    of_tables = is_manifest_of_tables(content)
    if job is None or not release.is_dir():
        return of_tables
    if of_tables and is_of_one_table(job, overrides):
        raise StorageError.other_kind(str(release), of_tables=True)
    if of_tables or not is_of_tables(job, overrides):
        return of_tables
    if (keys := _keys_of(content)) and not keys & _OF_TABLES:
        raise StorageError.other_kind(str(release), of_tables=False)
    return True


def manifest_content(release: Path) -> bytes:
    """Return the bytes of a release's manifest file; raise ``StorageError`` if it is missing or too large."""
    try:
        content = content_of(release / MANIFEST, MOST_BYTES, may_be_link=False)
    except OSError as error:
        reason = f"{MANIFEST} cannot be read: {error.strerror or 'unknown reason'}"
        raise StorageError.not_a_release(str(release), reason) from None
    if not is_small_enough_to_parse(content):
        raise StorageError.not_a_release(str(release), f"{MANIFEST} has more entries than any manifest")
    return content


def manifest_of(content: bytes, place: str) -> Manifest:
    """Parse the manifest of a release of one table; raise ``StorageError`` if it is invalid.

    Args:
        content: The bytes of the file.
        place: Folder or address of the release, for messages.
    """
    try:
        if is_small_enough_to_parse(content):
            return Manifest.model_validate_json(content)
    except ValidationError:
        # Pydantic's message quotes what it read.
        pass
    raise StorageError.not_a_release(place, f"{MANIFEST} cannot be read as a manifest")


def tables_manifest_of(content: bytes, place: str) -> TablesManifest:
    """Parse the manifest of a release of several tables; raise ``StorageError`` if it is invalid."""
    try:
        if is_small_enough_to_parse(content):
            return TablesManifest.model_validate_json(content)
    except ValidationError:
        pass
    raise StorageError.not_a_release(place, f"{MANIFEST} cannot be read as a manifest of several tables")


def any_manifest_of(content: bytes, place: str) -> Manifest | TablesManifest:
    """Parse a manifest of one table or of several; raise ``StorageError`` if it is invalid."""
    return tables_manifest_of(content, place) if is_manifest_of_tables(content) else manifest_of(content, place)


def target_manifests(target: Place, known: Collection[str]) -> list[tuple[str, Manifest | TablesManifest | None]]:
    """Return name and manifest of each release in a target, newest first.

    Those whose manifest cannot be read come first, with None. A bucket that cannot be reached raises ``StorageError``, as what nobody
    looked at may be of any records.

    Args:
        target: A folder or a prefix of a bucket.
        known: Names of releases that are left out and not read.
    """

    def read(name: str) -> tuple[str, Manifest | TablesManifest | None]:
        content = target.read(f"{name}/{MANIFEST}", MOST_BYTES) or b""
        try:
            manifest = any_manifest_of(content, name)
            check_names(name, (file.path for file in manifest.files))
        except StorageError:
            return name, None
        return name, manifest

    # What begins with a dot is staging, and no release.
    names = sorted({path.split("/")[0] for path in target.matching(f"*/{MANIFEST}")} - {*known})
    with ThreadPoolExecutor(MOST_REQUESTS) as pool:
        found = list(pool.map(read, [name for name in names if not name.startswith(".")]))
    return sorted(found, key=lambda one: (one[1] is None, (one[1] and one[1].created) or ""), reverse=True)


def read_manifest(release: Path) -> Manifest | None:
    """Return the checked manifest of a release folder of one table; None if missing, raise if invalid."""
    # Of a link that leads nowhere, too, it is said that it is one.
    if not (release / MANIFEST).exists() and not (release / MANIFEST).is_symlink():
        return None
    manifest = manifest_of(manifest_content(release), str(release))
    check_names(str(release), (file.path for file in manifest.files))
    return manifest


OF_HIERARCHY = 32
"""Digits of a hierarchy's digest."""


def keyed_job(job: Job, secret: FolderSecret) -> str:
    """Return a job's digest keyed with a folder's secret, as a manifest states it."""
    return secret.keyed("job", job_digest(job))


def keyed_file(digest: str, secret: FolderSecret) -> str:
    """Return a source file's digest keyed with a folder's secret, as a manifest states it."""
    return secret.keyed("file", digest)


def keyed_hierarchies(job: Job, secret: FolderSecret) -> dict[str, str]:
    """Return by QID, in job order, the keyed digest of its hierarchy, as a manifest states it."""
    return {name: secret.keyed("hierarchy", name, digest)[:OF_HIERARCHY] for name, digest in hierarchy_digests(job).items()}


def is_of_job(manifest: Manifest, job: Job, secrets: Iterable[FolderSecret]) -> bool:
    """Return whether a manifest has the digest of a job, plain or keyed with any of the secrets."""
    return manifest.job in {job_digest(job), *(keyed_job(job, secret) for secret in secrets)}


def hierarchies_as_in(manifest: Manifest, job: Job, secrets: Iterable[FolderSecret]) -> Mapping[str, str]:
    """Return the job's hierarchy digests, plain or keyed, whichever agree most with a manifest."""
    mine = [hierarchy_digests(job), *(keyed_hierarchies(job, secret) for secret in secrets)]
    return max(mine, key=lambda one: len(one.items() & manifest.hierarchies.items()))


def files_in(manifest: Manifest, digests: Iterable[str], known: Iterable[FolderSecret]) -> set[str]:
    """Return those of the plain digests whose files a release was made of, tried with all secrets."""
    theirs, secrets = {file.digest for file in manifest.sources}, list(known)
    return {one for one in digests if not theirs.isdisjoint({one, *(keyed_file(one, secret) for secret in secrets)})}


def is_of_files(manifest: Manifest, digests: Iterable[str], secrets: Iterable[FolderSecret]) -> bool:
    """Return whether a release was made of exactly the files of some plain digests, by known secrets."""
    plain, theirs = list(digests), sorted(file.digest for file in manifest.sources)
    return any(sorted(mine) == theirs for mine in (plain, *([keyed_file(one, secret) for one in plain] for secret in secrets)))
