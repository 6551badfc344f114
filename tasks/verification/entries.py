"""What lies in a release's folder and beside it, held against the manifest: nothing more, nothing else, and all as it was.

Strangers choose the names of what they lay there, so that of those only the number is told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from schemas.errors.base import counted
from schemas.job.job import Job
from schemas.job.source import is_address
from schemas.reading.regular_files import content_of
from schemas.relational.manifest import TablesManifest
from schemas.release.evidence import DOCUMENTS, MANIFEST, SIGNATURE, has_valid_digest, is_as_written
from schemas.release.manifest import Manifest
from tasks.release.files import DATA, SUFFIXES, is_listed
from tasks.store.bucket import file_system, object_within, sanitised_errors

CURRENT = "CURRENT"
MOST_BYTES = 1_000
MOST_BYTES_OF_REPORT = 500_000_000
"""Bytes of a file of the report, where the manifest is of a version that did not say how many there are."""
RELEASE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}-[0-9a-f]{16}")
"""The id of a release: the name of a job and 16 digits."""


def entry_faults(release: Path, manifest: Manifest | TablesManifest) -> list[str]:
    """Return which entries of a release's folder its manifest does not list, and which of those it lists are missing or altered.

    Data files are held against it by ``file_faults``.
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
    return faults + _document_faults(release, manifest) + _listing_faults(manifest)


def _is_data(name: str) -> bool:
    path = PurePosixPath(name)
    return path.parts[0] == DATA and path.suffix in SUFFIXES


def _entries(folder: Path, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield names relative to the release, and whether each is a file, a folder, something else, or a folder that cannot be read."""
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


def _document_faults(release: Path, manifest: Manifest | TablesManifest) -> list[str]:
    faults = []
    listed = {one.path: one for one in manifest.documents}
    if tuple(sorted(listed)) != DOCUMENTS or len(listed) < len(manifest.documents):
        faults.append("the manifest does not list the report as it should")
    for name in DOCUMENTS:
        path = release / name
        if not path.is_file():
            faults.append(f"{name} is missing")
        elif name not in listed or not is_listed(path, listed[name].sha256, listed[name].bytes, MOST_BYTES_OF_REPORT):
            faults.append(f"{name} was altered since publication")
    if manifest.signed_by and not (release / SIGNATURE).is_file():
        faults.append(f"{SIGNATURE} is missing")
    return faults


def _listing_faults(manifest: Manifest | TablesManifest) -> list[str]:
    """Return whether data files are listed as a run lists them: each once, in ``data``, in order where they lie in it themselves."""
    names = [file.path for file in manifest.files]
    ordered = sorted(names) if all(len(PurePosixPath(name).parts) == 2 for name in names) else names
    if names != ordered or len(set(names)) < len(names) or not all(map(_is_data, names)):
        return ["the manifest does not list the data files as it should"]
    return []


def manifest_text_faults(release: Path, content: bytes, manifest: Manifest, kept_seal: str) -> list[str]:
    """Return whether the manifest's file is what was written, as far as it tells itself.

    Args:
        release: The folder, which is named as the release.
        content: Of the file.
        manifest: What was read.
        kept_seal: The seal that the run folder keeps of it; empty where it keeps none.
    """
    faults = []
    if not has_valid_digest(content):
        faults.append("manifest.json was altered since publication: it is not what its seal is of")
    elif kept_seal and manifest.seal != kept_seal:
        faults.append("manifest.json is not the one that the run folder published: it was made anew")
    if not is_as_written(content, manifest):
        faults.append("manifest.json holds more than a manifest, or is written in another form")
    if release.resolve().name != manifest.release or not RELEASE.fullmatch(manifest.release):
        faults.append(f"the folder does not bear the name of its release, '{manifest.release}'")
    return faults


def pointer_faults(place: str, job: Job | None) -> list[str]:
    """Return what is wrong with ``CURRENT`` beside a release: it is one line with the name of a release that is there.

    In the job's target it must be there; elsewhere, where copies are handed on, it may be missing.

    Args:
        place: Folder or address of the release.
        job: The job, if it is known.
    """
    if is_address(place):
        above = place.rstrip("/").rsplit("/", 1)[0]
        return _remote_pointer_faults(above, needed=job is not None and job.target_address == above)
    folder = Path(place).resolve().parent
    path = folder / CURRENT
    try:
        content = content_of(path, MOST_BYTES, links=False)
    except FileNotFoundError:
        return _gone(needed=job is not None and job.target_address is None and job.target_path.resolve() == folder)
    except OSError:
        content = b""
    named = _named(content)
    return [] if named and (folder / named / MANIFEST).is_file() else [f"{CURRENT} does not name a release that is there"]


def _remote_pointer_faults(above: str, *, needed: bool) -> list[str]:
    system, root = file_system(above)
    with sanitised_errors(above):
        try:
            named = _named(object_within(system, f"{root}/{CURRENT}", MOST_BYTES) or b"")
        except FileNotFoundError:
            return _gone(needed=needed)
        there = named is not None and system.exists(f"{root}/{named}/{MANIFEST}")
    return [] if there else [f"{CURRENT} does not name a release that is there"]


def _gone(*, needed: bool) -> list[str]:
    return [f"{CURRENT} is missing from the target"] if needed else []


def _named(content: bytes) -> str | None:
    try:
        line = content.decode("ascii")
    except UnicodeDecodeError:
        return None
    return line[:-1] if line.endswith("\n") and RELEASE.fullmatch(line[:-1]) else None
