"""Verification of a published release: its bytes, manifest, signature, and the promise of its job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from core.recount.classes import Recount, risk_of_files
from core.recount.figures import figure_faults
from schemas.errors.base import StorageError, VerificationError
from schemas.errors.folders import EscapeError, ManifestFormatError
from schemas.job.job import Job
from schemas.reading.regular_files import content_of
from schemas.release.evidence import DOCUMENTS, MANIFEST, SIGNATURE
from schemas.release.figures import may_publish_count
from schemas.release.manifest import FORMAT, Manifest, Persons
from tasks.engine.runs import versions
from tasks.recount.original import Original, source_at_hand, source_figures
from tasks.recount.people import PeopleFiles
from tasks.recount.recount import file_faults, verify_against
from tasks.release.examples import examples_of
from tasks.release.files import Csv, data_files, layout_of, relation_of
from tasks.release.manifest import MOST_BYTES, check_names, manifest_of
from tasks.report.page import render, report_code
from tasks.report.report import bands, make_report, rebuilt_report_faults, recount_release_files
from tasks.store.database import database
from tasks.store.place import place_of
from tasks.store.work_folder import temporary_folder_of
from tasks.verification.entries import (
    DIGESTS_DIFFER,
    OTHER_CODE,
    RELEASE,
    differing_documents,
    entry_faults,
    is_target,
    manifest_text_faults,
    other_job_note,
    pointer_faults,
    signature_file_faults,
)
from tasks.verification.file_forms import csv_faults, faults_outside_table, parquet_faults
from tasks.verification.manifest_claims import (
    OTHER_LIBRARY,
    count_promises,
    exchanged_unseen,
    job_faults,
    uncounted_promises,
    unverified_claims,
    unverified_without_job,
)
from tasks.verification.published_releases import newer_releases


def report_faults(release: Path, manifest: Manifest, recount: Recount) -> tuple[list[str], list[str]]:
    """Return faults of report files that differ from one rebuilt, and a note if it cannot be rebuilt."""
    if {one.code for one in manifest.documents} != {report_code()}:
        return [], [OTHER_CODE]
    examples = examples_of(f"'{release}'", data_files(release), manifest)
    report = make_report(manifest, recount, examples)
    texts = dict(zip(DOCUMENTS, (render(report), report.model_dump_json(indent=2) + "\n"), strict=True))
    return [f"{name} does not say what manifest and files do" for name in differing_documents(release, texts)], []


@dataclass(frozen=True)
class VerificationContext:
    """Evidence on a release from outside its folder: location, persons, seal, key and source.

    Attributes:
        people: Where the run folder keeps its persons, if it does.
        seal: The seal of its manifest that the run folder keeps; empty where it keeps none.
        key: The public key that must have signed it, 32 bytes; None where any may, or none.
        original: The source, where the caller has opened it already.
    """

    location: str
    people: PeopleFiles | None = None
    seal: str = ""
    key: bytes | None = None
    original: Original | None = None

    def source(self, job: Job | None) -> AbstractContextManager[Original | None]:
        """Return a context manager with the job's source, or None if it is not at hand."""
        return nullcontext(self.original) if job is None or self.original is not None else source_at_hand(job)


@dataclass(frozen=True)
class Verified:
    """Recount and manifest of a verified release, with sentences on what could not be verified.

    Attributes:
        recount: What was counted in its files.
        manifest: Its manifest; None for the release of another tool.
        notes: What could not be checked, in sentences, beside what the recount says of itself.
        newer: Releases of the same job that lie beside it and were made later, the newest first.
        unverified: What was promised of k, l and t and not counted, in sentences; with any, the release is not verified in full.
        on_trust: Fields of the manifest that nothing at hand can tell; none where a key that was given, or the seal that the run folder
            keeps, says that they are as they were published.
    """

    recount: Recount
    manifest: Manifest | None
    notes: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    on_trust: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()


def verify_published(job: Job | None, release: Path, context: VerificationContext) -> Verified:
    """Verify a release by job, source, run folder and key at hand; return the result, or raise.

    Args:
        job: The job whose promise the files must keep; without one they must keep what their manifest says.
    """
    what = f"'{context.location}'"
    if not os.path.lexists(release / MANIFEST):
        return _without_manifest(job, release, context, what)
    content, manifest = _read(release, what)
    if manifest.format != FORMAT:
        raise ManifestFormatError.unknown(context.location, manifest.format, FORMAT)
    try:
        return _verified_with_manifest(job, release, content, manifest, context)
    except VerificationError as error:
        if job is None:
            raise
        raise VerificationError(what, error.faults, other_job_note(job, manifest)) from None


def _verified_with_manifest(job: Job | None, release: Path, content: bytes, manifest: Manifest, context: VerificationContext) -> Verified:
    """Verify a release by a manifest of a known format."""
    what = f"'{context.location}'"
    faults = _evidence_faults(job, release, content, manifest, context)
    try:
        files = data_files(release)
    except EscapeError:
        raise
    except StorageError:
        # Files that are gone or too many are no other kind of folder: the manifest says which belong here.
        raise VerificationError(what, [*faults, "data files are missing, or of several formats"]) from None
    # Read once: its digest is that of every byte of the source.
    with context.source(job) as original:
        try:
            recount = _counted(job, release, manifest, files, original, context, what)
        except VerificationError as error:
            raise VerificationError(what, list(dict.fromkeys([*faults, *error.faults]))) from None
        if faults:
            raise VerificationError(what, faults)
        held = _held(job, release, manifest, files, original, recount, what)
    # Faults of seal or signature would have ended this.
    on_trust = () if context.seal or context.key is not None else held.on_trust
    return replace(held, on_trust=on_trust, newer=newer_releases(context.location, release, manifest))


def _read(release: Path, what: str) -> tuple[bytes, Manifest]:
    """Read the bytes of a manifest once, and the manifest in them.

    So the manifest that is used is the one that was compared with seal and signature.
    """
    try:
        content = content_of(release / MANIFEST, MOST_BYTES, may_be_link=False)
        manifest = manifest_of(content, what)
    except OSError as error:
        raise VerificationError(what, [f"{MANIFEST} cannot be read: {error.strerror or 'unknown reason'}"]) from None
    except StorageError:
        raise VerificationError(what, [f"{MANIFEST} cannot be read as a manifest"]) from None
    check_names(str(release), (file.path for file in manifest.files))
    return content, manifest


def _without_manifest(job: Job | None, release: Path, context: VerificationContext, what: str) -> Verified:
    """Recount the release of another tool; refuse one of ours without its manifest."""
    beside = [name for name in (*DOCUMENTS, SIGNATURE) if (release / name).exists()]
    in_target = job is not None and is_target(job, place_of(str(release.resolve().parent)))
    ours = bool(beside) or in_target or RELEASE.fullmatch(release.resolve().name) is not None
    if release.is_dir() and (context.key is not None or ours):
        faults = ["manifest.json is missing"] + (["there is no signature of the key"] if context.key is not None else [])
        raise VerificationError(what, faults)
    if job is None:
        raise StorageError.not_a_release(str(release), "it has no manifest.json; without one, a job is needed")
    with context.source(job) as original:
        found = verify_against(job, release, original, context.people)[0]
    if faults := _foreign_faults(job, data_files(release)[0]):
        raise VerificationError(what, faults)
    return Verified(found, None, unverified=found.unverified)


def _foreign_faults(job: Job, path: Path) -> list[str]:
    """Return the faults of another tool's DuckDB file beside its table; none for other formats."""
    if path.suffix != ".duckdb":
        return []
    with temporary_folder_of(job, "verify") as spill, database(job.memory, spill) as connection:
        relation_of(connection, [path])
        return faults_outside_table(connection, path)


def _evidence_faults(job: Job | None, release: Path, content: bytes, manifest: Manifest, context: VerificationContext) -> list[str]:
    faults = manifest_text_faults(release, content, manifest, context.seal)
    faults += entry_faults(release, manifest) + pointer_faults(context.location, release, job)
    return faults + signature_file_faults(release, content, manifest, context.key)


def _counted(
    job: Job | None,
    release: Path,
    manifest: Manifest,
    files: Sequence[Path],
    original: Original | None,
    context: VerificationContext,
    what: str,
) -> Recount:
    """Recount the data files, against the job where there is one."""
    if job is not None:
        return verify_against(job, release, original, context.people)[0]
    if faults := file_faults(release, files, manifest.files):
        raise VerificationError(what, faults)
    recount = recount_release_files(what, files, manifest)
    faults = rebuilt_report_faults(manifest, recount)
    recount, more = count_promises(what, files, manifest, recount)
    if faults := faults + more:
        raise VerificationError(what, faults)
    return recount


def _held(
    job: Job | None, release: Path, manifest: Manifest, files: Sequence[Path], original: Original | None, recount: Recount, what: str
) -> Verified:
    """Compare manifest figures, report and form of files with the recount; return the verified release."""
    faults, notes = job_faults(job, manifest) if job is not None else ([], unverified_without_job(manifest))
    is_its_job = job is not None and not notes
    if job is not None and original is not None and is_its_job and not recount.unproved:
        faults += _source_faults(job, manifest, original)
    faults += figure_faults(manifest, recount, proved=job is not None and not recount.unproved)
    if not faults:
        delimiter = job.output.delimiter if job is not None else ","
        formed, unformed = _form_faults(files, manifest, layout_of(files, manifest.columns, delimiter), job if is_its_job else None)
        faults += formed
        notes += unformed
    if not faults:
        reported, unreported = report_faults(release, manifest, recount)
        faults += reported
        notes += unreported
    if faults:
        raise VerificationError(what, faults)
    # That the digests differ is said by a note of the job's own.
    notes += [said] if job is not None and (said := other_job_note(job, manifest)) and DIGESTS_DIFFER not in said else []
    notes += [said] if (said := exchanged_unseen(recount)) else []
    unverified = recount.unverified if job is not None else tuple(uncounted_promises(manifest))
    return Verified(recount, manifest, tuple(notes), unverified, unverified_claims(job, manifest, recount, is_its_job=is_its_job))


def _source_faults(job: Job, manifest: Manifest, original: Original) -> list[str]:
    # What is spilled here is of the source: it stays in the work folder, where what a killed command leaves is removed by the next.
    with temporary_folder_of(job, "verify") as spill:
        found = source_figures(job, original, spill)
    faults, before = list[str](), manifest.risk.get("before")
    if manifest.persons is None and before is not None and before != risk_of_files(found.sizes, 0, 0, 0):
        faults.append("the manifest's risk.before is not that of the source")
    if manifest.persons is None and before is not None and manifest.source_sizes != bands(found.sizes, job.privacy.k):
        faults.append("the manifest's source_sizes are not those of the source")
    if manifest.persons is not None and not _is_told(manifest.persons, found.persons, job.privacy.k):
        faults.append("the manifest's persons.source is not what the source holds")
    if manifest.persons is not None and not _is_withheld(manifest.persons, found.withheld, job.privacy.k):
        faults.append("the manifest's persons.withheld is not what the job withholds of the source")
    return faults


def _is_told(said: Persons, found: int | None, k: int) -> bool:
    """Return whether a manifest reports the source's persons rightly, or withholds them rightly."""
    withheld = found is not None and not may_publish_count(said.released, k, found)
    # Releases of earlier versions tell all numbers.
    return said.source == found or (withheld and said.source is None)


def _is_withheld(said: Persons, found: tuple[int, int] | None, k: int) -> bool:
    """Return whether a manifest reports rightly how many records of persons with too many were withheld."""
    return said.withheld == (found[0] if found and may_publish_count(found[1], k) else None)


def _form_faults(files: Sequence[Path], manifest: Manifest, layout: Csv, job: Job | None) -> tuple[list[str], list[str]]:
    """Return the faults of data files that hold more than their records, and notes on unchecked ones."""
    mine, suffix = versions(), files[0].suffix
    library = "pyarrow" if suffix == ".parquet" else "duckdb"
    same = manifest.versions.get(library) == mine[library]
    # A DuckDB file is looked at as a whole, whoever wrote it.
    notes = [] if same or suffix not in OTHER_LIBRARY else [OTHER_LIBRARY[suffix]]
    rows = {file.path: file.rows for file in manifest.files}
    with TemporaryDirectory(prefix="skald-verify-") as folder, database(manifest.asked.memory, Path(folder, "spill")) as connection:
        spill = Path(folder)
        try:
            wrong = sum(_rows(connection, path, layout) != rows.get(_listed_as(path)) for path in files)
            faults = ["the manifest's rows of files are not those of the files"] if wrong else []
            match suffix:
                case ".parquet":
                    faults += parquet_faults(files, spill, same_library=same)
                case ".csv":
                    faults += csv_faults(connection, files, layout, spill, job.output.bom if job else None) if same else []
                case _:
                    faults += faults_outside_table(connection, files[0])
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            # The kind alone, because DuckDB's words hold values.
            return [f"the files cannot be read ({type(error).__name__})"], notes
    return faults, notes


def _listed_as(path: Path) -> str:
    parts = path.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("data") :])


def _rows(connection: duckdb.DuckDBPyConnection, path: Path, layout: Csv) -> int:
    [(rows,)] = connection.execute(f"SELECT count(*) FROM {relation_of(connection, [path], layout)}").fetchall()
    return int(rows)
