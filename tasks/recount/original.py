"""The source of a release for the recount, if it is available and unchanged, and its own figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from core.recount.groups import RECORDS, Groups, bounded_sql, normalised_source_sql, withheld_sql
from core.recount.people import person_condition_sql
from core.recount.truth import DigestPart
from schemas.errors.base import JobError, SourceError, listed
from schemas.job.formats import FORMATS
from schemas.job.job import Job
from schemas.job.source import is_address
from schemas.release.manifest import MASK, Manifest, published_qids
from tasks.recount.rows import ReleaseRows
from tasks.release.manifest import hierarchies_as_in, is_of_files
from tasks.source.listing import file_stat, source_digest, while_stable
from tasks.source.locations import Located, columns_of_folders, find_files, relation_of_files, with_partition
from tasks.source.unpacked import UNIT
from tasks.store.database import connect, database_kept_open, quote
from tasks.store.keys import FolderSecret, fingerprint_of, read_secrets
from tasks.store.store import Store
from tasks.store.work_folder import temporary_folder_of


class Original(NamedTuple):
    """The source of a release, as SQL relation, column types and file digests.

    Attributes:
        relation: What DuckDB reads it as.
        columns: Types of its columns, which DuckDB does not keep wholly: it forgets time zones.
        digests: Plain digest of the content of each file.
        is_complete: Whether it is what the release was made of, so that shares of its records are those that the run saw.
        source_relation: What DuckDB reads it as with the records that ``columns.most_records`` withholds; empty where none are.
    """

    relation: str
    columns: pa.Schema
    digests: tuple[str, ...] = ()
    is_complete: bool = True
    source_relation: str = ""

    def persons(self, job: Job) -> dict[str, bool]:
        """Return the quoted person columns as keys, with True for floating-point ones.

        A floating-point column may hold NaN, which names no person.
        """
        return {name: pt.is_floating(kind) for name, kind in self.person_types(job).items()}

    def person_types(self, job: Job) -> dict[str, pa.DataType]:
        """Return the type of each quoted person column."""
        return {quote(name): self.type_of(name) for name in job.columns.person}

    def type_of(self, column: str) -> pa.DataType:
        """Return the type of a column's values, whether or not they are encoded by a dictionary."""
        kind = self.columns.field(column).type
        return kind.value_type if pt.is_dictionary(kind) else kind


@contextmanager
def source_at_hand(job: Job) -> Iterator[Original | None]:
    """Yield a job's source as local files; None if missing, remote, a database, or not as the job says.

    CSV and Arrow files are converted to Parquet anew, in a temporary folder in the job's work.
    """
    with sources_at_hand({"": job}) as found:
        yield found[""]


@contextmanager
def sources_at_hand(jobs: Mapping[str, Job]) -> Iterator[dict[str, Original | None]]:
    """Yield by name the sources of jobs that share a work folder, None where ``source_at_hand`` has none."""
    with ExitStack() as stack:
        store: Store | None = None
        if converted := [job for job in jobs.values() if FORMATS[job.source.format].convert is not None]:
            store = Store(stack.enter_context(temporary_folder_of(converted[0], "source")) / "artifacts")
        with database_kept_open():
            found = {name: original_of(job, store) for name, job in jobs.items()}
        yield found


def original_of(job: Job, store: Store | None = None) -> Original | None:
    """Return what ``source_at_hand`` yields.

    Args:
        store: Gets the Parquet files that CSV and Arrow files are converted to. Without it there is no such source.
    """
    entry = FORMATS[job.source.format]
    if entry.asks or (entry.convert is not None and store is None) or any(map(is_address, job.source.path)):
        return None
    try:
        files = find_files(job)
        named = columns_of_folders(job, list(map(str, files)))
        # The stat first: a file that is another by the time it is converted is refused.
        listed_files = [Located(str(file), file, stat=file_stat(file), digest=source_digest(file)) for file in files]
        plain = [file.digest for file in listed_files]
        digests = [fingerprint_of(digest, one) if one else digest for digest, one in zip(plain, named, strict=True)]
        paths = [_parquet(job, file, store) for file in listed_files]
        columns = [with_partition(_columns(path), one) for path, one in zip(paths, named, strict=True)]
    except (SourceError, OSError, pa.ArrowException):
        return None
    parts, alike = [(str(path), one) for path, one in zip(paths, named, strict=True)], all(one.equals(columns[0]) for one in columns)
    fields = [field for one in columns for field in one]
    # Files that differ write a column in types of one kind, and the kind is all that is asked of them.
    whole = pa.schema(list({field.name: field for field in fields}.values()))
    found = Original(normalised_relation(job, relation_of_files(parts, same_columns=alike)), whole, tuple(digests))
    if job.columns.most_records is None or not {*job.columns.person} <= {*whole.names}:
        return found
    numbered = [
        (normalised_relation(job, relation_of_files([part], with_row_numbers=True)), digest)
        for part, digest in zip(parts, digests, strict=True)
    ]
    bounded = bounded_sql(numbered, found.persons(job), fingerprint_of(sorted(digests)), job.columns.most_records)
    return found._replace(relation=bounded, source_relation=found.relation)


def _parquet(job: Job, file: Located, store: Store | None) -> Path:
    """Return a source file as Parquet; raise ``SourceError`` if rows do not fit or it changes."""
    convert = FORMATS[job.source.format].convert
    assert file.path is not None
    assert file.stat is not None
    if convert is None or store is None:
        return file.path
    with while_stable(file.path, file.name, file.stat):
        path: Path = convert(job, file, store).path
    return path


def normalised_relation(job: Job, read: str) -> str:
    """Return the SQL relation of a source with the job's normalisation applied to its columns."""
    return normalised_source_sql(read, {quote(name): steps for name, steps in job.columns.normalised.items()})


def _columns(file: Path) -> pa.Schema:
    with pq.ParquetFile(file, coerce_int96_timestamp_unit=UNIT) as read:
        return read.schema_arrow


NOT_AT_HAND = "the source is not at hand as files of this machine that can be read as the job says"


def unproved_reason(job: Job, manifest: Manifest | None, original: Original | None) -> str:
    """Return why a release cannot be compared with the source, as a clause; empty if it can."""
    if manifest is None:
        return "it has no manifest, which would say what it was made of"
    if original is None:
        return NOT_AT_HAND
    known = read_secrets(job)
    if not is_of_files(manifest, original.digests, known):
        least = "" if known and _share_hierarchies(job, manifest, known) else ", or the secret of its digests is not at hand"
        return f"the source is not what it was when the release was made{least}"
    return "" if _same_hierarchies(job, manifest, known) else "the job's hierarchies are not those of the release"


def _share_hierarchies(job: Job, manifest: Manifest, known: Iterable[FolderSecret]) -> bool:
    """Return whether a known secret gives some hierarchy the digest that a release notes, if any."""
    try:
        return not manifest.hierarchies or bool(manifest.hierarchies.items() & hierarchies_as_in(manifest, job, known).items())
    except JobError:
        return True


def _same_hierarchies(job: Job, manifest: Manifest, known: Iterable[FolderSecret]) -> bool:
    try:
        return manifest.hierarchies == hierarchies_as_in(manifest, job, known)
    except JobError:
        return False


def fetch_columns(connection: duckdb.DuckDBPyConnection, statement: str) -> dict[str, pa.Array]:
    """Run an SQL query and return its columns as Arrow arrays, by name."""
    rows = connection.sql(statement)
    table = rows.to_arrow_table()
    rows.close()
    return {name: table[name].combine_chunks() for name in table.column_names}


def with_source_types(values: pa.Array, original: Original, column: str) -> pa.Array:
    """Return timestamps with the source's unit and time zone, which DuckDB drops; else the given values."""
    if column not in original.columns.names or not pt.is_timestamp(values.type):
        return values
    given = original.type_of(column)
    if not pt.is_timestamp(given):
        return values
    try:
        return values.cast(given)
    except pa.ArrowInvalid:
        # Files that differ are read in the finer unit.
        return values.cast(pa.timestamp(values.type.unit, given.tz))


@dataclass(frozen=True)
class ReleaseAndSource:
    """SQL relations and column types of a release and its source, and the columns to compare.

    Attributes:
        unmasked: What the release is read as without the records that publish ``*`` in every quasi-identifier; ``release`` where none is so
            or all are.
        types: DuckDB's types of the source's columns.
        published: Those of the release's columns.
        names: The columns that are published as they are.
    """

    rows: ReleaseRows
    unmasked: str
    original: Original
    types: dict[str, str]
    published: dict[str, str]
    names: Sequence[str]

    @property
    def untreated_parts(self) -> list[DigestPart]:
        """The parts of a record's digest for columns that are published unchanged, in both relations."""
        return [self._column(name) for name in self.names]

    def _column(self, name: str) -> DigestPart:
        column = quote(name)
        # A value that does not fit becomes null and is missed in the counts; CAST would end the recount, with the value in its message.
        source = f"s.{column}" if self.types[name] == self.published[name] else f"TRY_CAST(s.{column} AS {self.published[name]})"
        return DigestPart(f"r.{column}", source)

    def missing_column_faults(self, job: Job) -> list[str]:
        """Return a one-element list naming columns that the source lacks, empty if it lacks none."""
        wanted = [*(qid.name for qid in job.columns.quasi_identifiers), *self.names]
        absent = [name for name in wanted if name not in self.types]
        return [f"the source has no {listed(absent)}"] if absent else []


def release_and_source(job: Job, rows: ReleaseRows, original: Original) -> ReleaseAndSource:
    """Pair a release with its source: read both column types, find masked records and shared columns."""
    types, published = rows.types("source"), rows.types("release")
    others = {*published_qids(job), *(one.name for one in job.columns.pseudonyms)}
    names = [name for name in published if name not in others]
    return ReleaseAndSource(rows, _unmasked(job, rows), original, types, published, names)


def _unmasked(job: Job, rows: ReleaseRows) -> str:
    """Return the SQL relation of the unmasked records, or of all records if all look masked.

    Then their levels publish the same labels as masks do.
    """
    release = rows.release
    if not job.suppression.masks:
        return release
    starred = " AND ".join(f"r.{quote(name)}::VARCHAR IS NOT DISTINCT FROM '{MASK}'" for name in published_qids(job))
    counts = Groups(f"{release} AS r", counts=((f"count(*) FILTER ({starred})", "masked"), *RECORDS))
    [(masked, records)] = rows.connection.execute(f"FROM {rows.grouped('release', counts)}").fetchall()
    return f"(SELECT * FROM {release} AS r WHERE NOT ({starred}))" if 0 < masked < records else release


@dataclass(frozen=True)
class SourceFigures:
    """A source's class sizes by records, number of persons, and withheld records and persons.

    Attributes:
        sizes: Number of classes of the source as it is by records.
        persons: How many persons it has; None where the job names none.
        withheld: Records that ``columns.most_records`` withholds, and of how many persons; None where it does not bound them.
    """

    sizes: Mapping[int, int] = field(default_factory=dict)
    persons: int | None = None
    withheld: tuple[int, int] | None = None


def source_figures(job: Job, original: Original, spill: Path) -> SourceFigures:
    """Return a source's class sizes, number of persons, and records that ``most_records`` withholds."""
    with connect(job, spill, last=True) as connection:
        names = ", ".join(quote(qid.name) for qid in job.columns.quasi_identifiers)
        grouped = f"(SELECT count(*) AS records FROM {original.relation} GROUP BY {names})"
        [(sizes,)] = connection.execute(f"SELECT coalesce(histogram(records), MAP {{}}) FROM {grouped}").fetchall()
        withheld = None
        if original.source_relation:
            statement = withheld_sql(original.source_relation, original.relation, list(map(quote, job.columns.person)))
            [withheld] = connection.execute(statement).fetchall()
        return SourceFigures(sizes, _persons(job, connection, original), withheld)


def _persons(job: Job, connection: duckdb.DuckDBPyConnection, original: Original) -> int | None:
    if not job.columns.person:
        return None
    persons = original.persons(job)
    statement = (
        f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(persons)} FROM {original.relation} WHERE {person_condition_sql(persons)})"
    )
    [(count,)] = connection.execute(statement).fetchall()
    return int(count)
