"""Documents of a release in staging (report, manifest, signature), and the release's id."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from core.recount.classes import Recount
from schemas.errors.base import StorageError, VerificationError
from schemas.errors.folders import LargeManifestError, ListedReportError
from schemas.job.job import Job, job_digest
from schemas.relational.manifest import TablesManifest
from schemas.release.evidence import MANIFEST, SIGNATURE, SIGNING_KEY, Document, complete_manifest
from schemas.release.manifest import FORMAT, Manifest
from schemas.release.report import Example, Report
from tasks.release.manifest import MOST_BYTES, is_small_enough_to_parse
from tasks.report.page import render, report_code
from tasks.report.report import make_report
from tasks.source.chunks import ChunkedSource
from tasks.store.files import apply_user_umask, file_digest, flush, write_atomically
from tasks.store.keys import secret_of
from tasks.verification.manifest_claims import stated_faults

if TYPE_CHECKING:
    from tasks.release.signatures import Signer


Published = TypeVar("Published", Manifest, TablesManifest)


def release_id(job: Job, source: ChunkedSource) -> str:
    """Return the id of a job's release of a source: the job's name and 16 keyed hexadecimal digits.

    Where identifiers become pseudonyms, another key makes another release.
    """
    keys = [source.keys] if source.keys else []
    return f"{job.name}-{secret_of(job).keyed('release', job_digest(job), source.digest, *keys)[:16]}"


def complete_staging(
    job: Job, staging: Path, manifest: Manifest, recount: Recount, examples: Callable[[Manifest], tuple[Example, ...]]
) -> Manifest:
    """Check a manifest by the recount, write it, report and signature to staging; return it, or raise.

    The report is made of the manifest, which lists it; the signature is of the manifest, which names its key.

    Args:
        staging: Where they go.
        manifest: Of the release, without them.
        recount: What was counted in its data files.
        examples: Finds records in the data files that the report may show.
    """
    if faults := stated_faults(job, manifest, recount):
        raise VerificationError(f"release '{manifest.release}'", faults)
    origin = {"created": datetime.now(UTC).isoformat(timespec="microseconds"), "source_name": job.source.name, "run_by": job.run_by}
    manifest = manifest.model_copy(update={"format": FORMAT} | origin)
    try:
        texts = documents_of(make_report(manifest, recount, examples(manifest)))
    except OSError as error:
        raise StorageError.not_writable(str(job.target_path), error.strerror or "unknown reason") from None
    return write_signed_documents(job, staging, manifest, texts, report_code())


def write_signed_documents(job: Job, staging: Path, manifest: Published, texts: Mapping[str, str], code: str) -> Published:
    """Write documents, manifest and any signature into staging and flush them; return the manifest.

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
        manifest, text = complete_manifest(manifest, tuple(documents), signer.name if signer else None)
        if not is_small_enough_to_parse(text.encode()):
            raise LargeManifestError.of_release(manifest.release, len(text), MOST_BYTES, of_tables=job.is_of_several)
        last = {MANIFEST: text} | ({SIGNATURE: signer.signature(manifest, text.encode())} if signer else {})
        written += write_texts(staging, last)
        # Files before the folders that name them: after a power cut no name may stand for content that is not on the disk.
        for path in (*written, staging / "data", staging):
            flush(path)
    except OSError as error:
        raise StorageError.not_writable(str(job.target_path), error.strerror or "unknown reason") from None
    return manifest


def signer_of(job: Job) -> Signer | None:
    """Return the signer of releases, None if the environment names no key; raise for an unfit key."""
    # Set and empty is a slip, such as a variable that lacks elsewhere. No release gets a signature later.
    if SIGNING_KEY not in os.environ:
        return None
    from tasks.release.signatures import read_signer  # noqa: PLC0415 - loads what small jobs would wait for

    return read_signer(job)


def restore_documents(release: Path, manifest: Manifest | TablesManifest | None, texts: Mapping[str, str]) -> list[Path]:
    """Write rebuilt documents into a release folder; return the paths; raise if others are listed.

    Raises ``ListedReportError`` if the manifest lists documents of other bytes; one that lists none allows any.
    """
    listed = manifest.listed if manifest and manifest.documents else {}
    made = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    if any(listed.get(name, digest) != digest for name, digest in made.items()):
        raise ListedReportError.differs(str(release))
    return write_texts(release, texts)


def documents_of(report: Report) -> dict[str, str]:
    """Return the texts of ``report.html`` and ``report.json``, by file name."""
    return {"report.html": render(report), "report.json": report.model_dump_json(indent=2) + "\n"}


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write named text files into a release folder, each atomically; return their paths."""
    return [_write(folder / name, text) for name, text in texts.items()]


def _write(path: Path, text: str) -> Path:
    write_atomically(path, lambda part: part.write_text(text, "utf-8"))
    apply_user_umask(path)
    return path
