"""Recounts written files with DuckDB and refuses what does not keep the job's promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

from core.recount.classes import Recount, manifest_faults, recount_sql
from core.recount.groups import Alike
from core.recount.linked import link_faults
from core.recount.people import PersonCount
from core.recount.risk import risk_of_files
from core.recount.shares import ShareClasses
from schemas.errors.base import VerificationError, counted
from schemas.job.job import Job
from schemas.release.claimed_levels import ClaimedLevels, claim_of
from schemas.release.manifest import Manifest, published_qids
from tasks.engine.peak_memory import give_back
from tasks.recount.original import Original, original_of, unproved_reason
from tasks.recount.people import PeopleFiles, count_linked, count_people, one_values
from tasks.recount.people_of_source import PeopleOfSource, people_of_source
from tasks.recount.population import count_in_population
from tasks.recount.published_values import few_people_faults, published_source
from tasks.recount.rows import RowsHere, are_wide, column_faults_of, read_faults
from tasks.recount.spreads import count_spreads, source_values_relation
from tasks.recount.together import count_together_of_people
from tasks.recount.verdict import AdditionalCounts, verdict_of
from tasks.release.files import TEXT, Csv, data_files, file_error, is_listed, layout_of, relation_of
from tasks.release.manifest import read_manifest
from tasks.source.objects.for_duckdb import let_read
from tasks.store.database import connect, quote
from tasks.store.work_folder import temporary_folder_of


def recount(
    job: Job,
    files: Sequence[Path],
    spill: Path,
    what: str,
    original: Original | None = None,
    layout: Csv = TEXT,
    unproved: str = "",
    people: PeopleFiles | None = None,
    shared_by: int = 0,
    claim: ClaimedLevels | None = None,
    uncounted: str = "",
    *,
    untreated: bool = False,
) -> Recount:
    """Counts the classes of the data files, checks columns, classes and sensitive values against the job, and records against the source.

    Args:
        job: All that is known.
        files: The written files.
        spill: Folder for DuckDB's spill files.
        what: How the release is called in a message.
        original: The source: of its records those of the files must be, from its distribution t-closeness is measured, and pseudonyms are
            compared with its identifiers. Without it only the files themselves are counted.
        layout: How CSV files are read.
        unproved: Why the records are not to be held against the source, if they are not.
        people: Where the persons of the classes are, for jobs that name them; without them k is of records, and that is said.
        shared_by: How many people share the ends of ranges by what the release says, if that is more than k.
        claim: The levels that labels are said to be of, where they are of any.
        uncounted: Why it is not known who is in which class, where it is not.
        untreated: Whether columns that are published untreated are counted too, where records of the source are not published.
    """
    if faults := column_faults_of(job, files) if files[0].suffix == ".parquet" else []:
        raise VerificationError(what, faults)
    with connect(job, spill, last=True) as connection, file_error(what):
        if original:
            let_read(connection, original.relation)
        source = read_once(connection, files, layout)
        if faults := read_faults(job, connection, source) if files[0].suffix != ".parquet" else []:
            raise VerificationError(what, faults)
        published = published_source(connection, job, original, source) if original and not unproved else None
        original = published.original if published else original
        rows = RowsHere(connection, source, original.relation if original else "", wide=are_wide(job, files))
        if files[0].suffix == ".parquet":
            some = dict.fromkeys([files[0], files[len(files) // 2], files[-1]])
            rows.concatenate([relation_of(connection, [file]) for file in some])
        qids, by_people = [quote(name) for name in published_qids(job)], bool(people and job.columns.person)
        classes = count_in_classes(
            job,
            connection,
            source,
            people,
            original,
            lambda column: source_values_relation(job, rows, column, original, by_people=by_people),
            rows.alike(source),
        )
        # What the classes took is given back before values and labels are held.
        give_back()
        of_people = count_together_of_people(job, connection, people)
        beside = AdditionalCounts(
            count_linked(job, connection, source, qids, people), count_in_population(job, connection, source), of_people
        )
        found, faults = verdict_of(job, rows, classes, beside, original, unproved, shared_by, claim, uncounted, untreated=untreated)
        found = replace(found, published=published.figures if published else {})
        faults += few_people_faults(connection, job, source, people)
    if faults:
        raise VerificationError(what, faults)
    return found


def count_in_classes(
    job: Job,
    connection: duckdb.DuckDBPyConnection,
    source: str,
    people: PeopleFiles | None,
    original: Original | None,
    whole_of: Callable[[str], str],
    alike: Alike | None = None,
) -> ShareClasses:
    """Counts whatever is counted in each class by itself.

    Args:
        job: The job.
        connection: The database.
        source: What it reads the data files as, or a share of their records.
        people: Where the persons of the classes are, or of these.
        original: Has the types of the source's columns.
        whole_of: As for ``count_spreads``.
        alike: The same records, equal ones together, where they were put together.
    """
    qids, records = [quote(name) for name in published_qids(job)], alike or Alike(source)
    counts = count_classes(connection, records, published_qids(job), job.privacy.k, job.columns.sensitive, by_qid=True)
    if people and job.columns.person:
        counts = by_person(counts, count_people(connection, job, source, qids, people))
        counts = replace(counts, one_value={**counts.one_value, **one_values(connection, job, people)})
    # Whoever is not counted has values that are not: then only which there are is known.
    spreads, unexpected = count_spreads(job, connection, source, qids, original, whole_of, by_people=bool(counts.persons))
    return ShareClasses(counts, spreads, unexpected)


def by_person(classes: Recount, persons: PersonCount) -> Recount:
    """Returns classes with what k is about counted in persons."""
    return replace(classes, persons=persons, min_class=persons.smallest, failing=persons.failing, exposed=persons.exposed)


def read_once(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], layout: Csv) -> str:
    """Returns what DuckDB reads data files as; text is taken apart once, into a table that is spilled where it is large."""
    relation = relation_of(connection, files, layout)
    if files[0].suffix != ".csv":
        return relation
    connection.execute(f"CREATE TEMP TABLE parsed AS SELECT * FROM {relation}")
    return "parsed"


def count_classes(
    connection: duckdb.DuckDBPyConnection,
    source: Alike,
    columns: Sequence[str],
    k: int,
    sensitive: Sequence[str] = (),
    *,
    by_qid: bool = False,
) -> Recount:
    """Counts the classes of data files.

    Args:
        connection: The database.
        source: What DuckDB reads them as.
        columns: Names of the published QID columns.
        k: What a class must reach.
        sensitive: Names of the columns of which classes with one value are counted too.
        by_qid: Whether the records with ``*`` are counted for each column too.
    """
    qids, values = ([*map(quote, names)] for names in (columns, sensitive))
    statement = recount_sql(source.relation, qids, k, by_qid=by_qid, records=source.counted, sensitive=values)
    [row] = connection.execute(statement).fetchall()
    *numbers, withheld, alone = row
    one_value = dict(zip(sensitive, zip(alone[::2], alone[1::2], strict=True), strict=True))
    return replace(Recount(*numbers), withheld=dict(zip(columns, withheld, strict=False)), one_value=one_value)


def verify_release(job: Job, release: Path, people: PeopleFiles | None = None) -> tuple[Recount, Manifest | None]:
    """Verifies a published release as ``verify_against`` does, with the source as it is at hand."""
    return verify_against(job, release, original_of(job), people)


def verify_against(
    job: Job, release: Path, original: Original | None, people: PeopleFiles | None = None
) -> tuple[Recount, Manifest | None]:
    """Verifies a published release: its files against its manifest, its classes against the job, its records against the source.

    A folder without a manifest, such as another tool's release, is recounted all the same; only then nothing is known of suppression.

    Args:
        job: The job.
        release: The folder.
        original: The source, if it is at hand.
        people: Where the run folder keeps its persons, if it does.
    """
    files, manifest = data_files(release), read_manifest(release)
    faults = file_faults(release, files, manifest) if manifest else []
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
                faults.append(f"{found_out.lacking:,} of the classes do not hold the records that the source has for what they publish")
            known = unproved, found_out.files, k_of(manifest), claim, found_out.because
            found = recount(job, files, spill, f"'{release}'", original, layout, *known)
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
    """Finds out from job and source who is in which class."""
    if unproved or original is None:
        return PeopleOfSource(because=unproved)
    if faults := column_faults_of(job, files) if files[0].suffix == ".parquet" else []:
        raise VerificationError(what, faults)
    with file_error(what):
        return people_of_source(job, files, layout, original, claim, spill)


def k_of(manifest: Manifest | None) -> int:
    """Returns the k that a release was made for; 0 where nobody says so."""
    said = manifest.privacy.get("k") if manifest else None
    return said if isinstance(said, int) else 0


def risk_faults(manifest: Manifest, found: Recount) -> list[str]:
    """Returns whether the risk of a manifest is not that of the recounted classes."""
    if "after" not in manifest.risk or (manifest.persons and not found.persons):
        return []
    starred, masked = found.fully_suppressed_units(manifest.masked)
    if manifest.risk["after"] == risk_of_files(found.unit_sizes, starred, manifest.suppressed, masked):
        return []
    return ["the manifest's risk is not that of the classes in the files"]


def file_faults(release: Path, files: Sequence[Path], manifest: Manifest) -> list[str]:
    """Returns what data files are missing, added or altered since a release was published."""
    promised = {release / file.path: file for file in manifest.files}
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
