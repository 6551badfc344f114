"""Calls of tasks of a recount in shares of classes: each returns counts of a part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import duckdb
import pyarrow as pa
from pydantic import TypeAdapter

from core.recount.classes import Recount
from core.recount.people import combinations_sql, persons_by_records_sql
from core.recount.shares import share_sql
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from schemas.release.evidence import PublishedFile
from schemas.release.manifest import ClaimedLevels, published_qids
from tasks.publication.outputs import fetched_files, scratch
from tasks.recount.original import Original, normalised_relation
from tasks.recount.people import PeopleFiles, read_people
from tasks.recount.recount import count_additional, count_in_classes, recount, written_rows
from tasks.recount.rows import exceeds_half_memory, have_wide_records, relation_with_values, types_of
from tasks.recount.verdict import RecountBasis
from tasks.release.files import Csv, file_error
from tasks.source.chunks import ChunkedSource
from tasks.source.duckdb_objects import register_objects
from tasks.store.database import connect, parquet_sql, quote, write_parquet
from tasks.store.files import file_digest
from tasks.store.keys import Key, StepCode
from tasks.store.store import Artifact, Store
from tasks.writing.people import WrittenPersons

Counted = TypeVar("Counted")
Keep = Callable[[int, Callable[[Path], int]], Artifact]
"""Keeps a table of a share: its number, and what writes it."""


class DividedRelease(FrozenModel):
    """Artefacts of a part of the data files, one per share of classes, or faults of its columns.

    Attributes:
        shares: By number, the records of each share.
        records: How many the part has.
        digests: SHA-256 of each of its files.
        types: DuckDB's types of its columns.
        faults: What is wrong with its columns; then nothing was set apart.
    """

    shares: tuple[Artifact, ...] = ()
    records: int = 0
    digests: tuple[str, ...] = ()
    types: dict[str, str] = {}
    faults: tuple[str, ...] = ()


def divide_release(connection: duckdb.DuckDBPyConnection, job: Job, view: str, share_count: int, keep: Keep) -> DividedRelease:
    """Write the counted columns of records into ``share_count`` files by class; return their artefacts."""
    types, columns = types_of(connection, view), job.columns
    qids = published_qids(job)
    wanted = dict.fromkeys([*qids, *columns.sensitive, *job.privacy.columns, *columns.linking, *columns.ways])
    share = share_sql({quote(name): types[name] for name in qids}, share_count)
    made = _set_apart(connection, f"SELECT {', '.join(map(quote, wanted))}, {share} FROM {view}", list(wanted), share_count, keep)
    return DividedRelease(shares=made, records=sum(one.rows for one in made), types=types)


class DividedMembers(FrozenModel):
    """Artefacts of the persons of classes, one per share of classes and one per share of persons.

    Attributes:
        people: By number of a share, who is in its classes.
        persons: By number of another share, of persons, how many records each of them has.
        classes: By number of the first kind of share, what its classes publish; nothing where another part's task has them.
    """

    people: tuple[Artifact, ...]
    persons: tuple[Artifact, ...]
    classes: tuple[Artifact, ...] = ()


def divide_members(
    connection: duckdb.DuckDBPyConnection, job: Job, people: PeopleFiles, share_count: int, keep: Callable[[str], Keep], *, first: bool
) -> DividedMembers:
    """Write persons of classes into files by shares of classes and of persons; return their artefacts.

    Persons of unknown classes go to the first share, as unexpected. Persons are divided by themselves too: a person may be in classes of
    several shares.

    Args:
        people: Where they are, or a part of them, with all classes.
        keep: Returns what keeps tables of a kind.
        first: Whether what the classes publish is set apart too; another part's task does it where it is not.
    """
    classes, persons = read_people(people)
    types = types_of(connection, classes)
    labels = [f"label_{number}" for number in range(len(published_qids(job)))]
    columns = list(types_of(connection, persons))
    share = share_sql({name: types[name] for name in labels}, share_count)
    connection.execute(f"CREATE TEMP TABLE kept_classes AS SELECT *, {share} AS share FROM {classes}")
    named = ", ".join(f"p.{quote(name)}" for name in columns)
    statement = f"SELECT {named}, coalesce(k.share, 0) FROM {persons} AS p LEFT JOIN kept_classes AS k ON k.class = p.class"
    made = _set_apart(connection, statement, columns, share_count, keep("people"))
    each = f"SELECT person, sum(records)::BIGINT, (person % {share_count:d})::INTEGER FROM {persons} GROUP BY person"
    of_persons = _set_apart(connection, each, ["person", "records"], share_count, keep("persons"))
    if not first:
        return DividedMembers(people=made, persons=of_persons)
    kept = ["class", *labels]
    classed = _set_apart(connection, f"SELECT {', '.join(map(quote, kept))}, share FROM kept_classes", kept, share_count, keep("classes"))
    return DividedMembers(people=made, persons=of_persons, classes=classed)


def _set_apart(
    connection: duckdb.DuckDBPyConnection, statement: str, columns: Sequence[str], shares: int, keep: Keep
) -> tuple[Artifact, ...]:
    """Write the rows of a query into one file per share, by the share number in its last column."""
    # By place: a column of the job may have any name, ours included.
    names = [f"column_{number}" for number in range(len(columns))]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE apart ({_typed(connection, statement, [*names, 'share'])})")
    connection.execute(f"INSERT INTO apart {statement}")
    given = ", ".join(f"{name} AS {quote(column)}" for name, column in zip(names, columns, strict=True))

    def write(number: int, path: Path) -> int:
        return write_parquet(connection, f"SELECT {given} FROM apart WHERE share = {number:d}", path)

    return tuple(keep(number, partial(write, number)) for number in range(shares))


def _typed(connection: duckdb.DuckDBPyConnection, statement: str, names: Sequence[str]) -> str:
    described = connection.execute(f"DESCRIBE {statement}").fetchall()
    return ", ".join(f"{name} {dtype}" for name, (_, dtype, *_) in zip(names, described, strict=True))


def counts_to_text(counts: Any) -> str:
    """Return the counts of a recount as JSON text, so that another process can read them."""
    return json.dumps(TypeAdapter(type(counts)).dump_python(counts))


def counts_from_text(kind: type[Counted], text: str) -> Counted:
    """Return counts of a given class from the JSON text of ``counts_to_text``.

    Args:
        kind: A class of data without keys other than texts and numbers.
        text: See ``counts_to_text``.
    """
    return TypeAdapter(kind).validate_python(json.loads(text))


RECOUNTED, TALLIES = StepCode("recounted", __name__), StepCode("tallies", __name__)
"""What is set apart is records, which no flow fetches; what is counted of parts is apart from them."""
RELEASE, SOURCE = "published", "given"
"""What statements of tasks read the data files as, and the source."""


class Written(NamedTuple):
    """A release's written data files, where they are, and how they are read.

    Attributes:
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


def recount_in_one(job: Job, written: Written, source: ChunkedSource, class_persons: WrittenPersons, store: Store) -> Recount:
    """Recount a release's files on this worker; return the recount, raise on any fault."""
    with written_at_hand(job, written, store) as (spill, files):
        # Made here: what was converted lies elsewhere on each machine.
        original = Original(normalised_relation(job, source.relation), source.columns)
        basis = RecountBasis(claim=written.claim, untreated=True)
        return recount(job, files, spill, written.what, original, written.layout, class_persons.files(store), basis)


def recount_to_text(job: Job, written: Written, source: ChunkedSource, class_persons: WrittenPersons, store: Store) -> str:
    """Recount a release on this worker, raise if it breaks the promise; return the recount as JSON text."""
    return counts_to_text(recount_in_one(job, written, source, class_persons, store))


def divide_written_records(job: Job, written: Written, share_count: int, key: Key, store: Store) -> DividedRelease:
    """Divide written records by class into stored shares; return these, or faults of columns instead."""
    with (
        written_at_hand(job, written, store) as (spill, files),
        written_rows(job, files, spill, written.what, written.layout) as (connection, source, faults),
    ):
        if faults:
            return DividedRelease(faults=tuple(faults))
        made = divide_release(connection, job, source, share_count, _keep(store, key, "records"))
        return made.model_copy(update={"digests": tuple(map(file_digest, files))})


def divide_written_members(
    job: Job, class_persons: WrittenPersons, share_count: int, first: bool, key: Key, store: Store
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
    class_persons: WrittenPersons,
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


def count_additional_of(job: Job, release_name: str, records: Sequence[Artifact], class_persons: WrittenPersons, store: Store) -> str:
    """Count what needs all classes at once (links, population, combinations); return it as JSON text."""
    with scratch(store) as folder, connect(job, folder / "spill") as connection, file_error(release_name):
        source, people = _read(store, records), class_persons.files(store)
        if people:
            connection.execute(combinations_sql(source, [quote(name) for name in published_qids(job)]))
        return counts_to_text(count_additional(job, connection, source, people))


class ReplacedValues(NamedTuple):
    """Published values that replace those of the source; empty where none are replaced.

    Attributes:
        tables: Tables that are joined, by name.
        columns: As for ``core.recount.groups.with_replaced_values_sql``.
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
    return store.make(TALLIES.name, key, ".parquet", lambda path: write_parquet(connection, asked.statement, path))


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
    return parquet_sql([store.path(one) for one in artifacts])


def _keep(store: Store, key: Key, kind: str) -> Keep:
    return lambda number, write: store.make(RECOUNTED.name, RECOUNTED.key(key, kind, number), ".parquet", write)
