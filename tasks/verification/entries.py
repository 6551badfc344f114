"""Checks of a release folder's entries against its manifest, and the note on another job.

Anybody may have chosen the names of unlisted entries, so only their number is reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic_core import to_jsonable_python

from schemas.errors.base import JobError, counted
from schemas.job.job import Job
from schemas.job.method import METHODS
from schemas.reading.regular_files import content_of
from schemas.registry.privacy_kinds import DISTANCES
from schemas.relational.manifest import TablesManifest
from schemas.relational.table_jobs import table_job, tables_digest, tables_promise
from schemas.relational.tables_job import TablesJob
from schemas.release.evidence import ALTERED, DOCUMENTS, MANIFEST, SIGNATURE, has_valid_digest, is_as_written
from schemas.release.manifest import Manifest
from tasks.release.files import DATA, SUFFIXES, is_listed
from tasks.release.manifest import MOST_BYTES as MOST_MANIFEST_BYTES
from tasks.release.manifest import is_of_job
from tasks.store.keys import FolderSecret, read_secrets
from tasks.store.place import Place, place_of, target_of
from tasks.store.work_folder import CURRENT
from tasks.verification.published_releases import place_above

_MOST = 3
_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")
_WORDS = {"all", *METHODS, *DISTANCES}
OTHER = "The job given is not the one that the release was made of"
DIGESTS_DIFFER = "their keyed digests differ, or the secret of the work folder is another than then"
SET = "If the release was made with --set, give the same settings with --set here"


def other_job_note(job: Job, manifest: Manifest) -> str:
    """Return a sentence if a job is not the one of the manifest; empty if it is or may be."""
    known = read_secrets(job)
    return _job_note(job, manifest, job.privacy.summary(), known, lambda: is_of_job(manifest, job, known))


def other_tables_job_note(job: TablesJob, manifest: TablesManifest) -> str:
    """Return a sentence if a job of several tables is not the manifest's; empty if it may be."""
    known = read_secrets(table_job(job, job.tree.unit))

    def is_its_job() -> bool:
        return any(secret.keyed("job", tables_digest(job)) == manifest.job for secret in known)

    return _job_note(job, manifest, tables_promise(job), known, is_its_job)


def _job_note(
    job: Job | TablesJob,
    manifest: Manifest | TablesManifest,
    promise: Mapping[str, Any],
    known: Sequence[FolderSecret],
    is_its_job: Callable[[], bool],
) -> str:
    """Return in a sentence what differs between release and job, a keyed digest too; empty if nothing.

    A manifest that somebody changed looks the same, so that the sentence says so.
    """
    keyed = bool(known)
    try:
        if is_its_job():
            return ""
    except JobError:
        # Its hierarchy files cannot be read, without which it has no digest.
        keyed = False
    theirs = dict(_leaves({"method": {"name": manifest.method}, "privacy": manifest.privacy}))
    mine = dict(_leaves({"method": {"name": job.method.name}, "privacy": to_jsonable_python(promise)}))
    both = {name: f"{_shown(theirs[name])} in the release and {_shown(mine[name])} in the job" for name in mine if name in theirs}
    apart = [f"{name} is {both.get(name, 'in the job alone')}" for name in mine if name not in both or theirs[name] != mine[name]]
    # Their names are not repeated: in a manifest that somebody changed they may be anything.
    if alone := len(theirs.keys() - mine.keys()):
        apart.append(f"{counted(alone, 'setting')} of privacy in the release alone")
    if not (apart or keyed):
        return ""
    return f"{OTHER}, or the manifest was changed: {'; '.join(apart[:_MOST]) or DIGESTS_DIFFER}. {SET}."


def _leaves(said: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield the settings of a promise by dotted name."""
    for key, value in said.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _shown(value: object) -> str:
    """Return a number or known word of a promise, and ``something else`` for any other value.

    A manifest that somebody changed may hold anything.
    """
    return str(value) if _NUMBER.fullmatch(str(value)) or str(value) in _WORDS else "something else"


MOST_BYTES = 1_000
MOST_BYTES_OF_REPORT = 500_000_000
"""Bytes of a file of the report, where the manifest is of a version that did not say how many there are."""
OTHER_CODE = "The report was held against its digest alone: another version of this program made it."
OTHER_FORM = "manifest.json holds more than a manifest, or is written in another form"
RELEASE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}-[0-9a-f]{16}")
"""The id of a release: the name of a job and 16 digits."""


def entry_faults(release: Path, manifest: Manifest | TablesManifest, *, report: bool = True) -> list[str]:
    """Return faults of a release folder: unlisted entries, missing or altered documents, bad lists.

    Data files are held against it by ``file_faults``.

    Args:
        report: Whether the files of the report are looked at; not where they are to be made again.
    """
    files = {*manifest.listed, MANIFEST, *([SIGNATURE] if manifest.signed_by else [])}
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents} - {"."}
    faults, unexpected = [], 0
    for name, kind in _entries(release):
        if kind == "unread":
            faults.append("a folder of the release cannot be read")
        # A data file that is not listed is told of with the data files.
        elif (kind == "file" and name not in files and not _is_data(name)) or (kind == "folder" and name not in folders) or kind == "other":
            unexpected += 1
    if unexpected:
        faults.append(f"{counted(unexpected, 'entry').replace('entrys', 'entries')} not in the manifest")
    return faults + _document_faults(release, manifest, report=report) + _listing_faults(manifest)


def _is_data(name: str) -> bool:
    path = PurePosixPath(name)
    return path.parts[0] == DATA and path.suffix in SUFFIXES


def _entries(folder: Path, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the relative name of each entry of a release, and its kind: file, folder, other or unread."""
    try:
        found = list(os.scandir(folder))
    except OSError:
        yield above, "unread"
        return
    for entry in found:
        name = f"{above}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield name, "folder"
            yield from _entries(Path(entry.path), f"{name}/")
        else:
            yield name, "file" if entry.is_file(follow_symlinks=False) else "other"


def _document_faults(release: Path, manifest: Manifest | TablesManifest, *, report: bool) -> list[str]:
    faults = []
    listed = {one.path: one for one in manifest.documents}
    if tuple(sorted(listed)) != DOCUMENTS or len(listed) < len(manifest.documents):
        faults.append("the manifest does not list the report as it should")
    for name in DOCUMENTS if report else ():
        path = release / name
        if not path.is_file():
            faults.append(f"{name} is missing")
        elif name not in listed or not is_listed(path, listed[name].sha256, listed[name].bytes, MOST_BYTES_OF_REPORT):
            faults.append(f"{name} was altered since publication")
    if manifest.signed_by and not (release / SIGNATURE).is_file():
        faults.append(f"{SIGNATURE} is missing")
    return faults


def _listing_faults(manifest: Manifest | TablesManifest) -> list[str]:
    """Return the fault of a manifest that does not list data files once, in ``data`` and in order."""
    names = [file.path for file in manifest.files]
    ordered = sorted(names) if all(len(PurePosixPath(name).parts) == 2 for name in names) else names
    if names != ordered or len(set(names)) < len(names) or not all(map(_is_data, names)):
        return ["the manifest does not list the data files as it should"]
    return []


def manifest_text_faults(release: Path, content: bytes, manifest: Manifest, kept_seal: str) -> list[str]:
    """Return faults of a manifest's file: its seal, its form and the name of its folder.

    Args:
        release: The folder, which is named as the release.
        kept_seal: The seal that the run folder keeps of it; empty where it keeps none.
    """
    seal = kept_seal if has_valid_digest(content) else ""
    return content_faults(content, manifest) + folder_faults(release, manifest, seal)


def content_faults(content: bytes, manifest: Manifest | TablesManifest) -> list[str]:
    """Return faults of a manifest's bytes: a seal that does not match, or another form."""
    faults = [] if has_valid_digest(content) else [ALTERED]
    return faults + ([] if is_as_written(content, manifest) else [OTHER_FORM])


def signature_file_faults(release: Path, content: bytes, manifest: Manifest | TablesManifest, key: bytes | None) -> list[str]:
    """Return faults of a release's signature file, or that the given key signed none.

    Args:
        key: The public key that must have signed it; None for any.
    """
    if not os.path.lexists(release / SIGNATURE):
        return ["there is no signature of the key"] if key is not None else []
    from tasks.release.signatures import signature_faults  # noqa: PLC0415 - loads what most releases have no use for

    try:
        signed = content_of(release / SIGNATURE, MOST_MANIFEST_BYTES, may_be_link=False)
    except OSError:
        return [f"{SIGNATURE} is no regular file, or too large"]
    return signature_faults(manifest, content, signed, key)


def folder_faults(release: Path, manifest: Manifest | TablesManifest, kept_seal: str) -> list[str]:
    """Return faults of a manifest other than the one last published, or in a folder of another name.

    Args:
        release: The folder, which is named as the release.
        kept_seal: The seal that the run folder keeps of it; empty where it keeps none.
    """
    faults = []
    if kept_seal and manifest.seal != kept_seal:
        faults.append("manifest.json is not the one that the run folder published: it was made anew")
    if release.resolve().name != manifest.release or not RELEASE.fullmatch(manifest.release):
        faults.append(f"the folder does not bear the name of its release, '{manifest.release}'")
    return faults


def pointer_faults(location: str, release: Path, job: Job | None) -> list[str]:
    """Return faults of ``CURRENT`` beside a release: missing in the job's target, or naming no release.

    In the job's target it must be there; elsewhere, where copies are handed on, it may be missing.

    Args:
        location: Folder or address of the release, as it was given.
        release: The folder that it is read from.
    """
    above = place_above(location, release)
    content = above.read(CURRENT, MOST_BYTES)
    if content is None:
        return [f"{CURRENT} is missing from the target"] if job is not None and is_target(job, above) else []
    named = _named(content)
    return [] if named and above.exists(f"{named}/{MANIFEST}") else [f"{CURRENT} does not name a release that is there"]


def is_target(job: Job, place: Place) -> bool:
    """Return whether a place is the target of a job."""
    target = target_of(job)
    return place == (target if target.folder is None else place_of(str(target.folder.resolve())))


def _named(content: bytes) -> str | None:
    try:
        line = content.decode("ascii")
    except UnicodeDecodeError:
        return None
    return line[:-1] if line.endswith("\n") and RELEASE.fullmatch(line[:-1]) else None


def differing_documents(release: Path, texts: Mapping[str, str]) -> list[str]:
    """Return the names of a release's documents, except missing ones, whose text is not the given one."""
    return [name for name, text in texts.items() if not _holds(release / name, text.encode())]


def _holds(path: Path, content: bytes) -> bool:
    """Return whether a file holds some bytes; a missing file counts as equal, as it is reported elsewhere."""
    try:
        return content_of(path, len(content), may_be_link=False) == content
    except FileNotFoundError:
        return True
    except OSError:
        return False
