"""Publication: everything is complete in staging, then one rename publishes it and makes it seen.

``target/<release-id>/`` exists if and only if the release was verified; ``target/CURRENT`` names the newest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from core.recount.classes import Recount
from schemas.errors.base import StorageError, VerificationError
from schemas.errors.evidence import LargeManifestError, ListedReportError
from schemas.errors.storage import PointerError
from schemas.job.job import Job, job_digest
from schemas.relational.manifest import TablesManifest
from schemas.release.evidence import MANIFEST, SIGNATURE, SIGNING_KEY, Signable, has_valid_digest, listing
from schemas.release.files import Document
from schemas.release.manifest import FORMAT, Manifest
from schemas.release.report import Example, Report
from schemas.release.terms import Terms
from tasks.release.manifest import MOST_BYTES, is_readable, manifest_content, read_manifest
from tasks.report.page import render, report_code
from tasks.report.report import make_report
from tasks.report.terms import terms_of
from tasks.source.chunks import ChunkedSource
from tasks.store.files import (
    CURRENT,
    USER_UMASK,
    clear_staging,
    file_digest,
    flush,
    open_folder,
    open_up,
    private_folder,
    staging_prefix,
    write_atomically,
)
from tasks.store.secret import secret_of
from tasks.verification.job_figures import stated_faults

if TYPE_CHECKING:
    from tasks.release.signatures import Signer


Published = TypeVar("Published", Manifest, TablesManifest)


def release_id(job: Job, source: ChunkedSource) -> str:
    """Return the id of the release that this job makes of this data: the job's name and 16 hexadecimal digits of both digests, keyed.

    Where identifiers become pseudonyms, another key makes another release.
    """
    keys = [source.keys] if source.keys else []
    return f"{job.name}-{secret_of(job).keyed('release', job_digest(job), source.digest, *keys)[:16]}"


def published(job: Job, release: str, read: Callable[[Path], Published]) -> Published | None:
    """Return the manifest of a release if it is published in a folder, and names it in CURRENT.

    Args:
        job: Names the target.
        release: Its id.
        read: Reads the manifest of a folder, if it is as it was written.
    """
    folder = job.target_path / release
    if not folder.is_dir():
        return None
    manifest = read(folder)
    if lost := count_missing_files(folder, manifest):
        raise StorageError.altered(release, lost)
    point_current(job, release)
    return manifest


def unaltered_manifest(folder: Path) -> Manifest:
    """Return the manifest of a release of one table, if it is as it was written."""
    manifest = read_manifest(folder)
    # Manifests of earlier formats had no seal.
    if manifest is None or (manifest.format >= FORMAT and not has_valid_digest(manifest_content(folder))):
        raise StorageError.altered(folder.name, 1)
    return manifest


def count_missing_files(folder: Path, manifest: Signable) -> int:
    """Return how many files are missing from a release that its manifest lists, the signature included."""
    return sum(not (folder / name).is_file() for name in (*manifest.listed, *([SIGNATURE] if manifest.signed_by else [])))


def staging_folder(job: Job, release: str) -> Path:
    """Make an empty staging folder in the target, on the same file system as the release will be."""
    staging = job.target_path / f"{staging_prefix(job)}{release}"
    clear_staging(job)
    # What goes to an object store is made in the run folder, which is for nobody else.
    (private_folder if job.target_address else open_folder)(job.target_path)
    try:
        # Each made by itself, so that a folder or a link that others laid there meanwhile is refused.
        staging.mkdir()
        (staging / "data").mkdir()
        open_up(staging, staging / "data")
    except OSError as error:
        raise StorageError.not_writable(str(job.target_path), error.strerror or "unknown reason") from None
    return staging


def complete(
    job: Job, staging: Path, manifest: Manifest, recount: Recount, examples: Callable[[Manifest, Terms], tuple[Example, ...]]
) -> Manifest:
    """Put report, manifest and, where there is a key, signature beside the staged data; return the manifest as it is published.

    The report is made of the manifest, which lists it; the signature is of the manifest, which names its key.

    Args:
        job: The job.
        staging: Where they go.
        manifest: Of the release, without them.
        recount: What was counted in its data files.
        examples: Finds records in the data files that the report may show.
    """
    if faults := stated_faults(job, manifest, recount):
        raise VerificationError(f"release '{manifest.release}'", faults)
    origin = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "source_name": job.source.name, "run_by": job.run_by}
    manifest = manifest.model_copy(update={"format": FORMAT} | origin)
    try:
        terms = manifest.asked or terms_of(job, manifest.node)
        texts = _texts(make_report(manifest, terms, recount, examples(manifest, terms)))
    except OSError as error:
        raise StorageError.not_writable(str(job.target_path), error.strerror or "unknown reason") from None
    return write_signed_documents(job, staging, manifest, texts, report_code())


def write_signed_documents(job: Job, staging: Path, manifest: Published, texts: Mapping[str, str], code: str) -> Published:
    """Put the documents of a release, its manifest and, where there is a key, its signature beside the staged data, and on the disk.

    Args:
        job: Names the target.
        staging: Where they go.
        manifest: Of the release, without the documents.
        texts: The documents by name.
        code: Fingerprint of the code that made them.

    Returns:
        The manifest as it is published.
    """
    signer = signer_of(job)
    try:
        written: list[Path] = write_texts(staging, texts)
        documents = (Document(path=path.name, sha256=file_digest(path), code=code, bytes=path.stat().st_size) for path in written)
        manifest, text = listing(manifest, tuple(documents), signer.name if signer else None)
        if not is_readable(text.encode()):
            raise LargeManifestError.of_release(manifest.release, len(text), MOST_BYTES)
        last = {MANIFEST: text} | ({SIGNATURE: signer.signature(manifest, text.encode())} if signer else {})
        written += write_texts(staging, last)
        # Files before the folders that name them: after a power cut no name may stand for content that is not on the disk.
        for path in (*written, staging / "data", staging):
            flush(path)
    except OSError as error:
        raise StorageError.not_writable(str(job.target_path), error.strerror or "unknown reason") from None
    return manifest


def signer_of(job: Job) -> Signer | None:
    """Return what signs the release, or None where the environment names no key."""
    if not os.environ.get(SIGNING_KEY):
        return None
    from tasks.release.signatures import read_signer  # noqa: PLC0415 - loads what small jobs would wait for

    return read_signer(job)


def publish(job: Job, staging: Path, release: str) -> None:
    """Rename a complete staging folder to the release, then points CURRENT to it."""
    try:
        # rename() refuses a folder that is there and not empty, so an old release is never written over.
        staging.rename(job.target_path / release)
    except OSError as error:
        raise StorageError.not_writable(str(job.target_path), error.strerror or "unknown reason") from None
    try:
        flush(job.target_path)
        # Killed before this, the release is there and the next run of the job, which finds it, names it.
        point_current(job, release)
    except (OSError, StorageError):
        raise PointerError.not_named(release, str(job.target_path)) from None


def write_report(folder: Path, report: Report) -> list[Path]:
    """Write a report in both forms, each whole or not at all; return the files."""
    return write_texts(folder, _texts(report))


def restore_report(release: Path, report: Report) -> list[Path]:
    """Write the report of a release into its folder, where its manifest lists these very bytes, or none; return the files."""
    manifest = read_manifest(release)
    listed = manifest.listed if manifest and manifest.documents else {}
    made = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in _texts(report).items()}
    if any(listed.get(name, digest) != digest for name, digest in made.items()):
        raise ListedReportError.differs(str(release))
    return write_report(release, report)


def _texts(report: Report) -> dict[str, str]:
    return {"report.html": render(report), "report.json": report.model_dump_json(indent=2) + "\n"}


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files of a release by name, each whole or not at all; return them."""
    return [_write(folder / name, text) for name, text in texts.items()]


def _write(path: Path, text: str) -> Path:
    write_atomically(path, lambda part: part.write_text(text, "utf-8"))
    open_up(path)
    return path


def point_current(job: Job, release: str) -> None:
    """Name a release in ``CURRENT``, by one rename."""

    def write(part: Path) -> int:
        written = part.write_text(f"{release}\n")
        # Unlike an artefact it has no digest by which a power cut that emptied it would be noticed.
        flush(part)
        return written

    write_atomically(job.target_path / CURRENT, write, 0o666 & ~USER_UMASK, staging_prefix(job))
