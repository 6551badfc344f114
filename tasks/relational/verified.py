"""Verification of a published release of several tables: manifest, files and recount against the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from core.recount.histories import TablesRecount
from schemas.errors.base import StorageError, VerificationError, counted
from schemas.reading.regular_files import content_of
from schemas.relational.manifest import ReleasedTable, TablesLoss, TablesManifest, files_by_table
from schemas.relational.table_jobs import table_job, unit_key_words
from schemas.relational.tables_job import TablesJob
from schemas.release.evidence import MANIFEST, SIGNATURE, has_valid_digest, is_as_written
from schemas.release.figures import tellable
from tasks.recount.original import Original
from tasks.recount.stated_tables import recount_stated
from tasks.recount.tables import WrittenTables, count_source_rows, originals_of, recount_tables
from tasks.relational.making.linking import ORPHAN
from tasks.relational.making.writing import ReleasedTables
from tasks.release.files import DATA, SUFFIXES, is_listed
from tasks.release.manifest import check_names, check_no_links, tables_manifest_of
from tasks.store.keys import fingerprint_of
from tasks.store.secret import read_secrets
from tasks.store.work_folder import temporary_folder_of
from tasks.verification.entries import entry_faults
from tasks.verification.other_jobs import other_tables_job_note

BATCH_ROWS = 1 << 17
DIGITS = 12
"""Decimal places of a published loss."""


def rows_of_tables(given: ReleasedTables, counted: TablesRecount) -> dict[str, ReleasedTable]:
    """Count the released, withheld, suppressed and orphan rows of each table.

    Released rows are those of the recounted files. Of persons, what would say that fewer than k are left out is None.
    """
    found, published = {}, np.zeros(given.persons, np.bool_)
    published[given.persons_kept()] = True
    for table in given.job.tables:
        levels = given.published_levels(table)
        rows, released = given.tables[table].rows, counted.records[table]
        orphans, suppressed = 0, rows - released
        if given.chain(table):
            orphans = suppressed = 0
            with pq.ParquetFile(given.store.path(given.linked[table])) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=["a0", "status"]):
                    known = batch.column("status").to_numpy() != ORPHAN
                    orphans += int((~known).sum())
                    suppressed += int((~published[batch.column("a0").fill_null(0).to_numpy()[known]]).sum())
        beyond = rows - released - orphans - suppressed
        stated = table != given.job.tree.unit or tellable(released, given.job.privacy.k, rows)
        found[table] = ReleasedTable(
            records=rows if stated else None,
            released=released,
            withheld=beyond,
            suppressed=suppressed if stated else None,
            orphans=orphans,
            levels=levels,
        )
    return found


def loss_of_tables(tables: Mapping[str, ReleasedTable], penalties: Mapping[str, Mapping[str, float]]) -> TablesLoss:
    """Return the mean certainty penalty per value, of all tables and of each table.

    A value that is not published costs 1. Orphans belong to no person and are no loss, and persons whose number is not stated count
    as none. Penalties are of the published grid (`core.recount.labels.label_losses`), so that two sources whose labels are the same
    have the same losses.
    """
    lost, values = {}, {}
    for name, table in tables.items():
        values[name] = (table.stated_records - table.orphans) * len(table.levels)
        gone = (table.withheld + (table.suppressed or 0)) * len(table.levels)
        lost[name] = sum(penalties.get(name, {}).values()) + gone
    by_table = {name: round(lost[name] / many, DIGITS) for name, many in values.items() if many}
    return TablesLoss(gcp=round(sum(lost.values()) / max(sum(values.values()), 1), DIGITS), by_table=by_table)


MOST_BYTES = 64_000_000
NEVER = 1 << 62


class VerifiedTables(NamedTuple):
    """The result of verifying a release of several tables.

    Attributes:
        manifest: As it is in the folder.
        recount: Of the files; None without a job where the manifest does not state enough for it.
        notes: What was not looked at, in sentences.
        unverified: What of the promise was not counted, in sentences; with any, the release is not verified in full.
    """

    manifest: TablesManifest
    recount: TablesRecount | None
    notes: tuple[str, ...]
    unverified: tuple[str, ...] = ()


def figures_of_tables(verified: VerifiedTables) -> dict[str, Any]:
    """Return the counts of a verified release as JSON content."""
    counted_there = TypeAdapter(TablesRecount).dump_python(verified.recount, mode="json") if verified.recount else {}
    evidence = {"notes": list(verified.notes), "unverified": list(verified.unverified), "signed_by": verified.manifest.signed_by}
    return {"release": verified.manifest.release} | evidence | counted_there


def read_tables_manifest(release: Path) -> TablesManifest:
    """Read and check the manifest of a release of several tables."""
    try:
        content = content_of(release / MANIFEST, MOST_BYTES, links=False)
    except OSError:
        content = b""
    return written_manifest(content, str(release))


def written_manifest(content: bytes, place: str) -> TablesManifest:
    """Parse a manifest of several tables and check its digest, its form and its file names.

    Args:
        content: What the file holds.
        place: Folder or address of the release, for messages.
    """
    manifest = tables_manifest_of(content, place)
    if not (has_valid_digest(content) and is_as_written(content, manifest)):
        raise StorageError.altered(manifest.release, 1)
    check_names(place, manifest.listed)
    return manifest


def verify_tables(job: TablesJob | None, release: Path, key: bytes | None = None) -> VerifiedTables:
    """Verify every file of a release and recount it, or raise; without a job, by its manifest alone.

    Args:
        job: The job whose promise is checked; without one histories are counted by what the manifest states.
        release: The folder.
        key: The public key that must have signed it.
    """
    check_no_links(release)
    manifest = read_tables_manifest(release)
    faults = _file_faults(release, manifest) + _signature_faults(release, manifest, key)
    if job is None:
        return _verified_by_manifest(manifest, release, faults)
    note = other_tables_job_note(job, manifest)
    try:
        found = _verified_by_job(job, manifest, release, faults)
    except VerificationError as error:
        raise VerificationError(f"'{release}'", error.faults, note) from None
    return found._replace(notes=(*found.notes, *([note] if note else [])))


def _verified_by_job(job: TablesJob, manifest: TablesManifest, release: Path, faults: Sequence[str]) -> VerifiedTables:
    """Recount a release against its job, and compare the manifest with both."""
    if set(manifest.tables) != set(job.tables) or manifest.unit != job.tree.unit:
        raise VerificationError(f"'{release}'", [*faults, "its tables are not those of the job"])
    notes: list[str] = []
    originals = originals_of(job)
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
            faults = [*faults, *_source_faults(manifest, count_source_rows(job, originals, spill), job.privacy.k)]
    except VerificationError as error:
        raise VerificationError(f"'{release}'", [*faults, *error.faults]) from None
    if faults := [*faults, *_stated_faults(manifest, found, job)]:
        raise VerificationError(f"'{release}'", faults)
    return VerifiedTables(manifest, found, tuple(notes))


def _verified_by_manifest(manifest: TablesManifest, release: Path, faults: Sequence[str]) -> VerifiedTables:
    """Recount a release by what its manifest states, and compare the manifest's counts with the files."""
    try:
        found, unverified = recount_stated(manifest, release, f"'{release}'")
    except VerificationError as error:
        raise VerificationError(f"'{release}'", [*faults, *error.faults]) from None
    if faults := [*faults, *(_count_faults(manifest, found, int(manifest.privacy["k"])) if found else [])]:
        raise VerificationError(f"'{release}'", faults)
    return VerifiedTables(manifest, found, (), unverified)


def _are_those_of(manifest: TablesManifest, originals: Mapping[str, Original | None], job: TablesJob) -> bool:
    """Return whether the available sources are those of the release, by the digests of known secrets."""
    digests = {name: fingerprint_of(sorted(original.digests)) for name, original in originals.items() if original}
    secrets = read_secrets(table_job(job, job.tree.unit))
    return any(secret.keyed("inputs", digests) == manifest.inputs for secret in secrets)


def _file_faults(release: Path, manifest: TablesManifest) -> list[str]:
    listed = {one.path: one for one in manifest.files}
    there = {str(path.relative_to(release)) for path in (release / DATA).rglob("*") if path.is_file()}
    faults = entry_faults(release, manifest)
    if missing := listed.keys() - there:
        faults.append(f"{counted(len(missing), 'file')} of the manifest missing")
    if unexpected := {path for path in there - listed.keys() if Path(path).suffix in SUFFIXES}:
        faults.append(f"{counted(len(unexpected), 'file')} not in the manifest")
    if altered := [path for path in listed.keys() & there if not is_listed(release / path, listed[path].sha256, listed[path].bytes, NEVER)]:
        faults.append(f"{counted(len(altered), 'file')} altered since publication")
    return faults


def _signature_faults(release: Path, manifest: TablesManifest, key: bytes | None) -> list[str]:
    if not manifest.signed_by:
        return ["it is not signed, and a key was given that must have signed it"] if key else []
    from tasks.release.signatures import signature_faults  # noqa: PLC0415 - loads what unsigned releases do without

    try:
        signature, content = (content_of(release / name, MOST_BYTES, links=False) for name in (SIGNATURE, MANIFEST))
    except OSError:
        return ["the signature cannot be read"]
    return signature_faults(manifest, content, signature, key)


def _count_faults(manifest: TablesManifest, found: TablesRecount, k: int) -> list[str]:
    """Return the counts of a manifest that the files contradict, or that it must not state."""
    faults = []
    if (manifest.histories, manifest.min_class) != (found.histories, found.smallest):
        faults.append("the manifest's histories are not those of the files")
    if (manifest.persons.released, manifest.persons.smallest_class) != (found.persons, found.smallest):
        faults.append("the manifest's persons are not those of the files")
    for name, table in manifest.tables.items():
        if table.released != found.records[name]:
            faults.append(f"the manifest's rows of '{name}' are not those of the files")
        if table.stated_records != table.released + table.withheld + (table.suppressed or 0) + table.orphans:
            faults.append(f"the manifest's counts of '{name}' do not add up")
    return faults + _unstated_faults(manifest, k)


def _unstated_faults(manifest: TablesManifest, k: int) -> list[str]:
    """Return the counts stated or lacking against the manifest's own rule for fewer than k left out."""
    faults, persons, unit = list[str](), manifest.persons, manifest.tables[manifest.unit]
    if persons.source != unit.records or (unit.records is None) != (unit.suppressed is None):
        faults.append("the manifest's persons are not the rows of their table")
    if any(None in (table.records, table.suppressed) for name, table in manifest.tables.items() if name != manifest.unit):
        faults.append("the manifest lacks counts of rows")
    if persons.source is not None and not tellable(persons.released, k, persons.source):
        faults.append("the manifest says how many persons are left out, and these are fewer than k")
    return faults


def _stated_faults(manifest: TablesManifest, found: TablesRecount, job: TablesJob) -> list[str]:
    """Return the statements of a manifest that the recount contradicts."""
    faults, persons = _count_faults(manifest, found, job.privacy.k), manifest.persons
    if persons.source is not None and persons.source - persons.released > job.suppression.limit * persons.source:
        faults.append("more persons are left out than suppression.limit allows")
    for name, table in manifest.tables.items():
        bounded = any(job.tables[one].rows for one in (*job.tree.chains[name], name))
        if name != job.tree.unit and not bounded and table.withheld > job.suppression.rows * table.stated_records:
            faults.append(f"more rows of '{name}' are withheld than suppression.rows allows")
    priced = all(found.penalties.get(name) for name, table in manifest.tables.items() if table.levels)
    if priced and manifest.loss != loss_of_tables(manifest.tables, found.penalties):
        faults.append("the manifest's loss is not that of the labels in the files")
    if found.published and {name: dict(columns) for name, columns in found.published.items()} != manifest.published:
        faults.append("the manifest's figures of published columns are not those of the files")
    if manifest.method != job.method.name:
        faults.append("the manifest's method is not that of the job")
    return faults + _promise_faults(manifest, job)


def _source_faults(manifest: TablesManifest, rows: Mapping[str, int], k: int) -> list[str]:
    """Return the row counts of a manifest that are not those of the sources.

    Args:
        manifest: Of the release.
        rows: Rows of the source of each table; tables whose source is not at hand are not in it.
        k: Of the job.
    """
    faults = []
    for name, many in rows.items():
        table = manifest.tables[name]
        few = name == manifest.unit and not tellable(table.released, k, many)
        if table.records != (None if few else many):
            faults.append(f"the manifest's rows of '{name}' are not those of its source")
    return faults


def _promise_faults(manifest: TablesManifest, job: TablesJob) -> list[str]:
    """Return the manifest's privacy promises that differ from those of the job."""
    faults = []
    if manifest.pseudonyms != unit_key_words(job):
        faults.append("the manifest's pseudonyms are not those of the job")
    if manifest.privacy.get("k") != job.privacy.k:
        faults.append("the manifest's k is not that of the job")
    return faults
