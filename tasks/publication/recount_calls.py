"""Calls of tasks of a recount: each reads a part of the release or its source, and returns counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from core.recount.classes import Recount
from core.recount.people import combinations_sql, persons_by_records_sql
from schemas.job.job import Job
from schemas.release.claimed_levels import ClaimedLevels
from schemas.release.evidence import PublishedFile
from schemas.release.manifest import published_qids
from tasks.publication.outputs import fetched_files, scratch
from tasks.recount.original import Original, normalised_relation
from tasks.recount.people import COMBINATIONS, PeopleFiles
from tasks.recount.recount import count_additional, count_in_classes, recount, written_rows
from tasks.recount.rows import exceeds_half_memory, have_wide_records, relation_with_values
from tasks.recount.shares import (
    DividedMembers,
    DividedRelease,
    Keep,
    counts_to_text,
    divide_members,
    divide_release,
    files_sql,
)
from tasks.recount.verdict import RecountBasis
from tasks.release.files import Csv, file_error
from tasks.source.chunks import ChunkedSource
from tasks.source.duckdb_objects import register_objects
from tasks.store.database import connect, literal, quote
from tasks.store.files import file_digest
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store

RECOUNTED, TALLIES = StepCode("recounted", __name__), StepCode("tallies", __name__)
"""What is set apart is records, which no flow fetches; what is counted of parts is apart from them."""
RELEASE, SOURCE = "published", "given"
"""What statements of tasks read the data files as, and the source."""


class Written(NamedTuple):
    """A release's written data files, where they are, and how they are read.

    Attributes:
        release: Whose files they are.
        files: The files.
        layout: How CSV files are read.
        staging: Where they are; None for those that are in the target by now, which is in a store.
        claim: The levels that their labels are said to be of; None where classes have labels of their own.
    """

    release: str
    files: tuple[PublishedFile, ...]
    layout: Csv
    staging: Path | None = None
    claim: ClaimedLevels | None = None

    @property
    def what(self) -> str:
        """The release's name in messages."""
        return f"release '{self.release}'"


class ClassPersonArtifacts(NamedTuple):
    """Artefacts of the persons of each class and of the classes' labels; empty without a person column."""

    people: tuple[Artifact, ...] = ()
    classes: tuple[Artifact, ...] = ()

    def files(self, store: Store) -> PeopleFiles | None:
        """Return the files of persons and classes, fetched where needed; None without a person column."""
        return ([store.path(one) for one in self.people], [store.path(one) for one in self.classes]) if self.people else None


def recount_in_one(job: Job, written: Written, source: ChunkedSource, class_persons: ClassPersonArtifacts, store: Store) -> Recount:
    """Recount a release's files on this worker; return the recount, raise on any fault."""
    with written_at_hand(job, written, store) as (spill, files):
        # Made here: what was converted lies elsewhere on each machine.
        original = Original(normalised_relation(job, source.relation), source.columns)
        basis = RecountBasis(claim=written.claim, untreated=True)
        return recount(job, files, spill, written.what, original, written.layout, class_persons.files(store), basis)


def recount_to_text(job: Job, written: Written, source: ChunkedSource, class_persons: ClassPersonArtifacts, store: Store) -> str:
    """Recount a release on this worker, raise if it breaks the promise; return the recount as JSON text."""
    return counts_to_text(recount_in_one(job, written, source, class_persons, store))


def divide_written_records(job: Job, written: Written, share_count: int, key: Key, store: Store) -> DividedRelease:
    """Divide the records of data files by class into stored shares; return faults of columns instead."""
    with (
        written_at_hand(job, written, store) as (spill, files),
        written_rows(job, files, spill, written.what, written.layout) as (connection, source, faults),
    ):
        if faults:
            return DividedRelease(faults=tuple(faults))
        made = divide_release(connection, job, source, share_count, _keep(store, key, "records"))
        return made.model_copy(update={"digests": tuple(map(file_digest, files))})


def divide_written_members(
    job: Job, class_persons: ClassPersonArtifacts, share_count: int, first: bool, key: Key, store: Store
) -> DividedMembers:
    """Divide the persons of classes into stored shares of classes; the first part has class labels too."""
    files = class_persons.files(store)
    assert files is not None
    with scratch(store) as folder, connect(job, folder / "spill") as connection:
        return divide_members(connection, job, files, share_count, lambda kind: _keep(store, key, kind), first=first)


def count_classes_of(
    job: Job,
    release_name: str,
    number: int,
    share: Sequence[Artifact],
    class_persons: ClassPersonArtifacts,
    columns: pa.Schema,
    source_values: Mapping[str, Artifact],
    store: Store,
) -> str:
    """Count the classes of one share of the records on this worker; return the recount as JSON text."""
    with scratch(store) as folder, connect(job, folder / "spill") as connection, file_error(release_name):
        source, original = _read(store, share), Original("", columns)
        found = count_in_classes(
            job, connection, source, class_persons.files(store), original, lambda column: _read(store, [source_values[column]])
        )
        return counts_to_text(replace(found, share=number))


def count_persons_of(job: Job, release_name: str, persons: Sequence[Artifact], store: Store) -> list[list[int]]:
    """Return pairs of records per person and number of such persons, in one share of persons."""
    with scratch(store) as folder, connect(job, folder / "spill") as connection, file_error(release_name):
        found = connection.execute(persons_by_records_sql(_read(store, persons))).fetchall()
        return [list(map(int, pair)) for pair in found]


def count_additional_of(job: Job, release_name: str, records: Sequence[Artifact], class_persons: ClassPersonArtifacts, store: Store) -> str:
    """Count what needs all classes at once (links, population, combinations); return it as JSON text."""
    with scratch(store) as folder, connect(job, folder / "spill") as connection, file_error(release_name):
        source, people = _read(store, records), class_persons.files(store)
        if people:
            connection.execute(combinations_sql(source, [quote(name) for name in published_qids(job)], COMBINATIONS))
        return counts_to_text(count_additional(job, connection, source, people))


class ReplacedValues(NamedTuple):
    """Published values that replace those of the source; empty where none are replaced.

    Attributes:
        tables: Tables that are joined, by name.
        columns: As for ``core.recount.groups.with_replaced_values_sql``.
        joins: As there.
    """

    tables: Mapping[str, Artifact] = {}
    columns: Sequence[str] = ()
    joins: Sequence[str] = ()


class RecountRequest(NamedTuple):
    """An SQL statement of the recount, with the statements and tables that it needs first.

    Attributes:
        statement: What is asked.
        before: Statements that make what it reads.
        tables: Tables that it joins, by name.
        alone: Whether one thread is to answer it.
        wide: Whether it reads whole records, so that one thread is to answer it where row groups are large.
    """

    statement: str
    before: tuple[str, ...] = ()
    tables: Mapping[str, Artifact] = {}
    alone: bool = False
    wide: bool = False


def run_requests(
    job: Job,
    written: Written | None,
    source: ChunkedSource | None,
    requests: Sequence[RecountRequest],
    values: ReplacedValues,
    key: Key,
    store: Store,
) -> list[Artifact]:
    """Run SQL requests on data files, source or both, read once; return an artefact of rows for each."""
    with _rows(job, written, source, values, store) as (connection, large):
        [(threads,)] = connection.execute("SELECT current_setting('threads')").fetchall()
        made = []
        for number, one in enumerate(requests):
            connection.execute(f"SET threads = {1 if one.alone or (one.wide and large) else threads:d}")
            made.append(_answered(connection, one, RECOUNTED.key(key, number), store))
        return made


def _answered(connection: duckdb.DuckDBPyConnection, asked: RecountRequest, key: Key, store: Store) -> Artifact:
    _make_tables(connection, asked.tables, store)
    for statement in asked.before:
        connection.execute(statement)

    def write(path: Path) -> int:
        [(rows,)] = connection.execute(f"COPY ({asked.statement}) TO {literal(str(path))} (FORMAT parquet)").fetchall()
        return int(rows)

    return store.make(TALLIES.name, key, ".parquet", write)


@contextmanager
def _rows(
    job: Job, written: Written | None, source: ChunkedSource | None, values: ReplacedValues, store: Store
) -> Iterator[tuple[duckdb.DuckDBPyConnection, bool]]:
    """Yield a database with the rows, and whether threads with whole records take too much memory."""
    with ExitStack() as stack:
        # Of the source the footers are not at hand, but what a record takes is.
        largest = max((max(file.groups, default=0) * file.width for file in source.files), default=0) if source else 0
        large = bool(source and exceeds_half_memory(job, largest, len(source.columns)))
        if written:
            spill, files = stack.enter_context(written_at_hand(job, written, store))
            large = large or have_wide_records(job, files)
            connection, read, _ = stack.enter_context(written_rows(job, files, spill, written.what, written.layout))
            connection.execute(f"CREATE TEMP VIEW {RELEASE} AS SELECT * FROM {read}")
        else:
            folder = stack.enter_context(scratch(store))
            connection = stack.enter_context(connect(job, folder / "spill"))
            stack.enter_context(file_error("the source"))
        if source:
            register_objects(connection, source.relation)
            read = normalised_relation(job, source.relation)
            _make_tables(connection, values.tables, store)
            read = relation_with_values(connection, read, values.columns, values.joins) if values.columns else read
            connection.execute(f"CREATE TEMP VIEW {SOURCE} AS SELECT * FROM {read}")
        yield connection, large


@contextmanager
def written_at_hand(job: Job, written: Written, store: Store) -> Iterator[tuple[Path, list[Path]]]:
    """Yield a spill folder and local paths of written data files, downloaded if in a bucket."""
    if written.staging is None:
        with fetched_files(job, written.release, written.files, store) as found:
            yield found
        return
    with scratch(store) as folder:
        yield folder / "spill", [written.staging / file.path for file in written.files]


def _make_tables(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Artifact], store: Store) -> None:
    for name, artifact in tables.items():
        connection.execute(f"CREATE TEMP TABLE {name} AS FROM {_read(store, [artifact])}")


def _read(store: Store, artifacts: Sequence[Artifact]) -> str:
    return files_sql([store.path(one) for one in artifacts])


def _keep(store: Store, key: Key, kind: str) -> Keep:
    return lambda number, write: store.make(RECOUNTED.name, RECOUNTED.key(key, kind, number), ".parquet", write)
