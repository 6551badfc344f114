"""Recount of written files with DuckDB, which refuses a release that breaks the job's promise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from core.recount.classes import Recount, manifest_faults, recount_sql, risk_of_files
from core.recount.linked import link_faults
from core.recount.shares import ShareClasses
from schemas.errors.base import VerificationError, counted, verb_of
from schemas.job.job import Job
from schemas.release.evidence import PublishedFile
from schemas.release.manifest import ClaimedLevels, Manifest, claim_of, published_qids
from tasks.engine.progress import release_memory
from tasks.recount.original import Original, source_at_hand, unproved_reason
from tasks.recount.people import PeopleFiles, count_linked, count_people, count_person_combinations, one_values
from tasks.recount.people_of_source import PeopleOfSource, count_in_population, people_of_source
from tasks.recount.published_values import few_people_faults, published_source
from tasks.recount.rows import ReleaseRows, RowsInOneDatabase, column_faults_of, have_wide_records, read_column_faults
from tasks.recount.spreads import count_spreads, source_values_relation
from tasks.recount.verdict import CrossClassCounts, RecountBasis, verdict_of
from tasks.release.files import TEXT, Csv, data_files, file_error, is_listed, layout_of, relation_of
from tasks.release.manifest import read_manifest
from tasks.source.duckdb_objects import register_objects
from tasks.store.database import connect, quote
from tasks.store.work_folder import temporary_folder_of


class ReleaseCounts(ABC):
    """Interface of a release's counts, made in one database or by tasks from shares of classes."""

    rows: ReleaseRows

    @abstractmethod
    def classes(self, original: Original | None) -> ShareClasses:
        """Return the class counts of the release: sizes, persons and sensitive values."""

    @abstractmethod
    def additional(self) -> CrossClassCounts:
        """Return linked persons, population rows and column combinations, counted after ``classes``."""

    def control_faults(self, _found: Recount) -> list[str]:
        """Return faults if the counts do not cover each record once; none by default."""
        return []


class CountsInOneDatabase(ReleaseCounts):
    """Counts of a release made in one database, undivided."""

    def __init__(self, job: Job, rows: RowsInOneDatabase, people: PeopleFiles | None) -> None:
        self.rows, self._job, self._people = rows, job, people

    def classes(self, original: Original | None) -> ShareClasses:
        """Return sizes, persons and sensitive values of all classes; leave their persons in the database."""
        job, rows, by_people = self._job, self.rows, bool(self._people and self._job.columns.person)
        found = count_in_classes(
            job,
            rows.connection,
            rows.release,
            self._people,
            original,
            lambda column: source_values_relation(job, rows, column, original, by_people=by_people),
        )
        # What the classes took is given back before values and labels are held.
        release_memory()
        return found

    def additional(self) -> CrossClassCounts:
        """Return the counts that need all classes at once; call it after ``classes``."""
        return count_additional(self._job, self.rows.connection, self.rows.release, self._people)


def recount(
    job: Job,
    files: Sequence[Path],
    spill: Path,
    release_name: str,
    original: Original | None = None,
    layout: Csv = TEXT,
    people: PeopleFiles | None = None,
    basis: RecountBasis = RecountBasis(),  # noqa: B008 - a tuple
) -> Recount:
    """Recount data files and check them by job and any source; return counts, raise on any fault.

    Args:
        original: The source: of its records those of the files must be, from its distribution t-closeness is measured, and pseudonyms are
            compared with its identifiers. Without it only the files themselves are counted.
        people: Where the persons of the classes are, for jobs that name them; without them k is of records, and that is said.
    """
    with written_rows(job, files, spill, release_name, layout, last=True) as (connection, source, faults):
        if faults:
            raise VerificationError(release_name, faults)
        if original:
            register_objects(connection, original.relation)
        rows = RowsInOneDatabase(connection, source, original.relation if original else "", wide=have_wide_records(job, files))
        return recount_by(job, CountsInOneDatabase(job, rows, people), release_name, original, basis)


def recount_by(job: Job, counts: ReleaseCounts, release_name: str, original: Original | None, basis: RecountBasis) -> Recount:
    """Check given counts of a release by job and source; return the recount, raise on any fault.

    Args:
        original: The source as it is, if it is at hand.
    """
    published = published_source(job, counts.rows, original) if original and not basis.unproved else None
    original = published.original if published else original
    classes, beside = counts.classes(original), counts.additional()
    found, faults = verdict_of(job, counts.rows, classes, beside, original, basis)
    found = replace(found, published=published.figures if published else {})
    if faults := [*faults, *beside.few, *counts.control_faults(found)]:
        raise VerificationError(release_name, faults)
    return found


@contextmanager
def written_rows(
    job: Job, files: Sequence[Path], spill: Path, release_name: str, layout: Csv, *, last: bool = False
) -> Iterator[tuple[duckdb.DuckDBPyConnection, str, list[str]]]:
    """Yield a DuckDB connection, the SQL relation of data files, and their columns' faults as sentences.

    Args:
        last: As for ``connect``.
    """
    faults = column_faults_of(job, files) if files[0].suffix == ".parquet" else []
    with connect(job, spill, last=last) as connection, file_error(release_name):
        source = relation_of(connection, files, layout)
        if files[0].suffix == ".csv":
            # Taken apart once, into a table that is spilled where it is large.
            connection.execute(f"CREATE TEMP TABLE parsed AS SELECT * FROM {source}")
            source = "parsed"
        if not faults and files[0].suffix != ".parquet":
            faults = read_column_faults(job, connection, source)
        yield connection, source, faults


def count_in_classes(
    job: Job,
    connection: duckdb.DuckDBPyConnection,
    source: str,
    people: PeopleFiles | None,
    original: Original | None,
    whole_of: Callable[[str], str],
) -> ShareClasses:
    """Return sizes, persons and sensitive values of the classes of records in one database.

    Args:
        source: What it reads the data files as, or a share of their records.
        whole_of: As for ``count_spreads``.
    """
    qids = [quote(name) for name in published_qids(job)]
    counts = count_classes(connection, source, published_qids(job), job.privacy.k, job.columns.sensitive, by_qid=True)
    if people and job.columns.person:
        counts = counts.in_persons(count_people(connection, job, source, qids, people))
        counts = replace(counts, one_value={**counts.one_value, **one_values(connection, job, people)})
    # Whoever is not counted has values that are not: then only which there are is known.
    spreads, unexpected = count_spreads(job, connection, source, qids, original, whole_of, by_people=bool(counts.persons))
    return ShareClasses(counts, spreads, unexpected)


def count_additional(job: Job, connection: duckdb.DuckDBPyConnection, source: str, people: PeopleFiles | None) -> CrossClassCounts:
    """Return linked persons, population rows, combinations and faults of values of few people.

    Args:
        connection: The database, with the table of combinations where persons are counted.
    """
    together = count_person_combinations(job, connection, people)
    linked = count_linked(job, connection, source, [quote(name) for name in published_qids(job)], people)
    # Where persons are named and not known, their number says nothing: more records than persons would make a population look larger.
    named = bool(job.columns.person)
    population = None if named and not people else count_in_population(job, connection, source, people if named else None)
    return CrossClassCounts(linked, population, together, tuple(few_people_faults(connection, job, source, people)))


def count_classes(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    columns: Sequence[str],
    k: int,
    sensitive: Sequence[str],
    *,
    by_qid: bool = False,
) -> Recount:
    """Return a recount of classes by records: sizes, failing ones, and those of one sensitive value."""
    qids, values = ([*map(quote, names)] for names in (columns, sensitive))
    statement = recount_sql(source, qids, k, by_qid=by_qid, sensitive=values)
    [row] = connection.execute(statement).fetchall()
    *numbers, withheld, alone = row
    one_value = dict(zip(sensitive, zip(alone[::2], alone[1::2], strict=True), strict=True))
    return replace(Recount(*numbers), withheld=dict(zip(columns, withheld, strict=False)), one_value=one_value)


def verify_release(job: Job, release: Path, people: PeopleFiles | None = None) -> tuple[Recount, Manifest | None]:
    """Verify a release by job and any source; return recount and manifest, None without one; or raise."""
    with source_at_hand(job) as original:
        return verify_against(job, release, original, people)


def verify_against(
    job: Job, release: Path, original: Original | None, people: PeopleFiles | None = None
) -> tuple[Recount, Manifest | None]:
    """Verify a release by job and given source; return recount and manifest, None without one; or raise.

    A folder without a manifest, such as another tool's release, is recounted all the same; only then nothing is known of suppression.
    """
    files, manifest = data_files(release), read_manifest(release)
    faults = file_faults(release, files, manifest.files) if manifest else []
    unproved = unproved_reason(job, manifest, original)
    if original and manifest:
        # Another source has other shares, by which an honest release could seem to break its t.
        original = original._replace(is_complete=not unproved)
    layout = layout_of(files, manifest.columns if manifest else {}, job.output.delimiter)
    try:
        with temporary_folder_of(job, "verify") as spill:
            claim, found_out = claim_of(manifest) if manifest else None, PeopleOfSource(people)
            if job.columns.person and not people:
                found_out = _people_found_out(job, f"'{release}'", files, layout, unproved, original, claim, spill)
            if found_out.lacking:
                faults.append(
                    f"{found_out.lacking:,} of the classes {verb_of(found_out.lacking, 'do')} not hold the records that the "
                    "source has for what they publish"
                )
            ranged = manifest.endpoints if manifest else None
            basis = RecountBasis(unproved, claimed_k(manifest), claim, found_out.because, ranged=ranged)
            found = recount(job, files, spill, f"'{release}'", original, layout, found_out.files, basis)
    except VerificationError as error:
        raise VerificationError(f"'{release}'", [*faults, *error.faults]) from None
    if manifest:
        faults += manifest_faults(job, manifest, found)
        faults += risk_faults(manifest, found)
    if faults := [*faults, *link_faults(job, found.linked)]:
        raise VerificationError(f"'{release}'", faults)
    return found, manifest


def _people_found_out(
    job: Job,
    what: str,
    files: Sequence[Path],
    layout: Csv,
    unproved: str,
    original: Original | None,
    claim: ClaimedLevels | None,
    spill: Path,
) -> PeopleOfSource:
    """Find the persons of each class from job and source."""
    if unproved or original is None:
        return PeopleOfSource(because=unproved)
    if faults := column_faults_of(job, files) if files[0].suffix == ".parquet" else []:
        raise VerificationError(what, faults)
    with file_error(what):
        return people_of_source(job, files, layout, original, claim, spill)


def claimed_k(manifest: Manifest | None) -> int:
    """Return the k that a release's manifest states; 0 if none does."""
    said = manifest.privacy.get("k") if manifest else None
    return said if isinstance(said, int) else 0


def risk_faults(manifest: Manifest, recount: Recount) -> list[str]:
    """Return one fault in a list if the manifest's risk is not that of the recounted classes."""
    if "after" not in manifest.risk or (manifest.persons and not recount.persons):
        return []
    starred, masked = recount.fully_suppressed_units(manifest.masked)
    if manifest.risk["after"] == risk_of_files(recount.unit_sizes, starred, manifest.suppressed, masked):
        return []
    return ["the manifest's risk is not that of the classes in the files"]


def file_faults(release: Path, files: Sequence[Path], listed_files: Sequence[PublishedFile]) -> list[str]:
    """Return a fault each if data files are missing, unlisted or altered by the manifest's digests."""
    promised = {release / file.path: file for file in listed_files}
    there = set(files)
    faults = []
    if missing := promised.keys() - there:
        faults.append(f"{counted(len(missing), 'data file')} of the manifest missing")
    if unexpected := there - promised.keys():
        faults.append(f"{counted(len(unexpected), 'data file')} not in the manifest")
    listed = [(path, promised[path]) for path in there & promised.keys()]
    if altered := [path for path, file in listed if not is_listed(path, file.sha256, file.bytes)]:
        faults.append(f"{counted(len(altered), 'data file')} altered since publication")
    return faults
