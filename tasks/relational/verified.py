"""Verification of a published release of several tables: manifest, files and recount against the job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from core.recount.histories import TablesRecount
from schemas.errors.base import StorageError, VerificationError, counted
from schemas.errors.folders import ManifestFormatError
from schemas.relational.manifest import FORMAT, TablesManifest, files_by_table
from schemas.relational.table_jobs import table_job
from schemas.relational.tables_job import TablesJob
from schemas.release.evidence import MANIFEST
from tasks.recount.original import Original, sources_at_hand
from tasks.recount.recount import file_faults
from tasks.recount.stated_tables import recount_stated
from tasks.recount.table_values import uncounted_values
from tasks.recount.tables import WrittenTables, count_source_rows, recount_tables
from tasks.relational.stated_figures import count_faults, source_faults, tables_report_faults, tables_stated_faults
from tasks.release.files import DATA, SUFFIXES
from tasks.release.manifest import check_names, check_no_links, content_or_nothing, tables_manifest_of
from tasks.store.keys import fingerprint_of, read_secrets
from tasks.store.work_folder import temporary_folder_of
from tasks.verification.entries import content_faults, entry_faults, folder_faults, other_tables_job_note, signature_file_faults


class VerifiedTables(NamedTuple):
    """Manifest and recount of a verified release of several tables, and what was not verified.

    Attributes:
        manifest: As it is in the folder.
        recount: Of the files; None without a job where the manifest does not state enough for it.
        notes: What was not looked at, in sentences.
        unverified: What of the promise was not counted, in sentences; with any, the release is not verified in full.
        on_trust: Fields of the manifest that nothing at hand can tell; none where a key was given, or the run folder keeps a seal.
        newer: Ids of newer releases of the same job beside it, the newest first.
    """

    manifest: TablesManifest
    recount: TablesRecount | None
    notes: tuple[str, ...]
    unverified: tuple[str, ...] = ()
    on_trust: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()


ON_TRUST = ("attacks", "overlaps", "joined", "policy", "run_by", "created", "search")
"""Fields of a manifest that neither files nor job tell."""
LOOKS = "reasons of passthrough"
"""What untreated columns look like, which is found in samples of the source."""


def figures_of_tables(verified: VerifiedTables) -> dict[str, Any]:
    """Return the recount and notes of a verified release as JSON-compatible values."""
    counted_there = TypeAdapter(TablesRecount).dump_python(verified.recount, mode="json") if verified.recount else {}
    evidence = {name: list(getattr(verified, name)) for name in ("notes", "unverified", "on_trust", "newer")}
    return {"release": verified.manifest.release, "signed_by": verified.manifest.signed_by} | evidence | counted_there


def read_tables_manifest(release: Path) -> TablesManifest:
    """Read the manifest of a release of several tables; raise ``StorageError`` if it is altered."""
    return written_manifest(content_or_nothing(release), str(release))


def written_manifest(content: bytes, place: str) -> TablesManifest:
    """Parse a manifest of several tables; raise if digest, form or a file name is invalid.

    Args:
        place: Folder or address of the release, for messages.
    """
    manifest = tables_manifest_of(content, place)
    if content_faults(content, manifest):
        raise StorageError.altered(manifest.release, 1)
    check_names(place, manifest.listed)
    return manifest


def _manifest_to_verify(release: Path) -> tuple[bytes, TablesManifest]:
    """Read the manifest of a release that is verified: what was altered in it is a fault of the release."""
    content = content_or_nothing(release)
    try:
        manifest = tables_manifest_of(content, str(release))
    except StorageError:
        if not (release / DATA).is_dir():
            raise
        is_there = os.path.lexists(release / MANIFEST)
        raise VerificationError(f"'{release}'", [f"{MANIFEST} {'cannot be read as a manifest' if is_there else 'is missing'}"]) from None
    if faults := content_faults(content, manifest):
        raise VerificationError(f"'{release}'", faults)
    check_names(str(release), manifest.listed)
    return content, manifest


def verify_tables(
    job: TablesJob | None, release: Path, key: bytes | None = None, kept_seal: str = "", *, report: bool = True
) -> VerifiedTables:
    """Verify and recount a release of several tables, by job or its manifest alone; return or raise.

    Args:
        job: The job whose promise is checked; without one histories are counted by what the manifest states.
        key: The public key that must have signed it.
        kept_seal: The seal that the run folder keeps of its manifest; empty where it keeps none.
        report: Whether the files of its report are looked at; not where they are to be made again.
    """
    check_no_links(release)
    content, manifest = _manifest_to_verify(release)
    if manifest.format != FORMAT:
        raise ManifestFormatError.unknown(str(release), manifest.format, FORMAT)
    faults = folder_faults(release, manifest, kept_seal) + entry_faults(release, manifest, report=report)
    faults += _file_faults(release, manifest) + signature_file_faults(release, content, manifest, key)
    wrong, reported = tables_report_faults(release, manifest) if report else ([], [])
    faults += wrong
    if job is None:
        found = _verified_by_manifest(manifest, release, faults)
        return found._replace(notes=(*found.notes, *reported), on_trust=() if kept_seal or key else _on_trust(found))
    note = other_tables_job_note(job, manifest)
    try:
        found = _verified_by_job(job, manifest, release, faults)
    except VerificationError as error:
        raise VerificationError(f"'{release}'", error.faults, note) from None
    notes = (*found.notes, *reported, *([note] if note else []))
    return found._replace(notes=notes, on_trust=() if kept_seal or key else _on_trust(found))


def _on_trust(found: VerifiedTables) -> tuple[str, ...]:
    """Return the fields of a manifest that nothing at hand tells, where neither key nor seal does."""
    manifest = found.manifest
    looks = any(table.passthrough for table in manifest.tables.values())
    # What columns lost by their publication is recounted where the sources are at hand.
    uncounted = bool(manifest.published) and not (found.recount and found.recount.published)
    named = tuple(name for name in ON_TRUST if getattr(manifest, name))
    return (*named, *((LOOKS,) if looks else ()), *(("published",) if uncounted else ()))


def _verified_by_job(job: TablesJob, manifest: TablesManifest, release: Path, faults: Sequence[str]) -> VerifiedTables:
    """Recount a release against its job, and compare the manifest with both."""
    if set(manifest.tables) != set(job.tables) or manifest.unit != job.tree.unit:
        raise VerificationError(f"'{release}'", [*faults, "its tables are not those of the job"])
    with sources_at_hand({table: table_job(job, table) for table in job.tables}) as originals:
        return _held_against_sources(job, manifest, release, faults, originals)


def _held_against_sources(
    job: TablesJob, manifest: TablesManifest, release: Path, faults: Sequence[str], originals: dict[str, Original | None]
) -> VerifiedTables:
    """Recount a release against its job and the sources that are at hand."""
    notes: list[str] = []
    if missing := [name for name, original in originals.items() if original is None]:
        notes.append(f"The sources of {counted(len(missing), 'table')} are not at hand, so that their rows were not held against them.")
    elif not _are_those_of(manifest, originals, job):
        originals = dict.fromkeys(originals)
        notes.append("The sources are not known to be those that the release was made of, so that rows were not held against them.")
    levels = {name: table.levels for name, table in manifest.tables.items()}
    files = files_by_table(manifest.files, release, job.tables)
    try:
        with temporary_folder_of(table_job(job, job.tree.unit), "verify") as spill:
            found = recount_tables(WrittenTables(job, files, originals, levels), spill, f"'{release}'")
            faults = [*faults, *source_faults(manifest, count_source_rows(job, originals, spill), job)]
    except VerificationError as error:
        raise VerificationError(f"'{release}'", [*faults, *error.faults]) from None
    known = all(original is not None for original in originals.values())
    if faults := [*faults, *tables_stated_faults(manifest, found, job, sources_were_read=known)]:
        raise VerificationError(f"'{release}'", faults)
    return VerifiedTables(manifest, found, tuple(notes), () if known else tuple(uncounted_values(job)))


def _verified_by_manifest(manifest: TablesManifest, release: Path, faults: Sequence[str]) -> VerifiedTables:
    """Recount a release by what its manifest states, and compare the manifest's counts with the files."""
    try:
        found, unverified = recount_stated(manifest, release, f"'{release}'")
    except VerificationError as error:
        raise VerificationError(f"'{release}'", [*faults, *error.faults]) from None
    if faults := [*faults, *(count_faults(manifest, found, int(manifest.privacy["k"])) if found else [])]:
        raise VerificationError(f"'{release}'", faults)
    return VerifiedTables(manifest, found, (), unverified)


def _are_those_of(manifest: TablesManifest, originals: Mapping[str, Original | None], job: TablesJob) -> bool:
    """Return whether the available sources are those of the release, by the digests of known secrets."""
    digests = {name: fingerprint_of(sorted(original.digests)) for name, original in originals.items() if original}
    secrets = read_secrets(table_job(job, job.tree.unit))
    return any(secret.keyed("inputs", digests) == manifest.inputs for secret in secrets)


def _file_faults(release: Path, manifest: TablesManifest) -> list[str]:
    there = [path for path in (release / DATA).rglob("*") if path.suffix in SUFFIXES and path.is_file()]
    faults = file_faults(release, there, manifest.files)
    if not faults and any(_rows_of(release / one.path) not in {None, one.rows} for one in manifest.files):
        faults.append("the manifest's rows of files are not those of the files")
    return faults


def _rows_of(path: Path) -> int | None:
    """Return the rows of a data file; None where it cannot be read as Parquet."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return None
