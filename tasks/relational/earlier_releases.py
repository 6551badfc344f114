"""Comparison of a release of several tables with earlier ones.

It covers linkage keys, disclosed values and the registry entry.

The other releases may be of one table or of several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from core.composition.pseudonym_sets import ShownTable, disclosed_persons_sql, row_digests_sql
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job, hierarchy_digests
from schemas.registry.treatment_kinds import treatment_kind
from schemas.relational.manifest import TablesManifest
from schemas.relational.table_jobs import column_of_persons, lasting_key, persons_job
from schemas.relational.tables_job import TablesJob
from schemas.release.figures import may_publish_count
from schemas.release.increments import Overlap, PersonsOverlap
from tasks.attacks.joined_tables import shown_table
from tasks.composition.earlier import Columns, KnownRecords
from tasks.composition.pseudonym_families import Disclosed
from tasks.composition.release_history import STEP, Entry, promises_by_column, save_entry, ways_of_columns
from tasks.counting.chunk_counts import axis_names
from tasks.counting.contents import DigestedColumns, Sketches, sketches_of
from tasks.engine.runs import Run
from tasks.relational.contents import (
    PERSON_CLASSES,
    PERSON_CONTENTS,
    PERSON_SETS,
    ByColumns,
    NumberedHistories,
    PersonDigestTables,
    paired_columns,
    write_digests,
)
from tasks.relational.making.writing import ReleasedTables
from tasks.relational.person_rows import PersonRows
from tasks.release.files import file_error
from tasks.source.chunks import ChunkedSource
from tasks.store.database import connect, literal, write_parquet
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.writing.people import KeptRecords


@dataclass(frozen=True)
class ShownTables:
    """Data files and job of a release's tables, to be joined as a reader of it can.

    Attributes:
        run: The run, with the job of persons.
        files: The data files of each table.
        digests: SHA-256 of each.
        release: The id of the release.
    """

    run: Run
    job: TablesJob
    files: Mapping[str, Sequence[Path]]
    digests: tuple[str, ...]
    release: str

    @property
    def store(self) -> Store:
        """The store of the run, in which digests of the shown tables are cached."""
        return self.run.store

    def table(self, name: str) -> ShownTable:
        """Return a table as SQL names, with all columns that it publishes."""
        spec = self.job.tables[name]
        known = {*spec.linking, *(qid.name for qid in spec.columns.quasi_identifiers)}
        others = [column for column in pq.read_schema(self.files[name][0]).names if column not in known]
        return shown_table(self.job, name, self.files[name], others)


def _disclosed(given: ShownTables, link: str, path: Path) -> int:
    tree, salt = given.job.tree, literal(given.run.secret.keyed("disclosed", given.release))
    job: Job = given.run.job
    with connect(job, given.run.spill, last=True) as connection, file_error(f"release '{given.release}'"):
        tables = {name: given.table(name) for name in tree.tables}
        for name in reversed(tree.tables):
            below = [other for other in tables.values() if name in dict(other.references)]
            connection.execute(row_digests_sql(tables[name], below, salt))
        statement = disclosed_persons_sql(tables[tree.unit], [link])
        return write_parquet(connection, statement, path, "COMPRESSION uncompressed")


DISCLOSED_PERSONS = FileStep(
    "disclosed_persons",
    make=_disclosed,
    reads=lambda given, link: [given.release, given.digests, link],
    settings=lambda given: given.run.secret.keyed("disclosed"),
    phase="overlaps",
)
"""Of each published person, digests of all that a release discloses under the pseudonym."""


def disclosed_by_tables(given: ShownTables) -> list[Disclosed]:
    """Return digests of what is disclosed under the unit's lasting pseudonyms, empty if it has none."""
    lasting = lasting_key(given.job)
    if lasting is None:
        return []
    stable = treatment_kind(lasting.treatment).stable
    link = f"left(k0::VARCHAR, {stable:d})" if stable else "k0"
    return [Disclosed((lasting.name,), DISCLOSED_PERSONS.result(given, link), None)]


NO_KEY = "the unit's rows have no key, so that its persons cannot be found in the files"
FEW_ROWS = "whoever knows few rows of a person knows no history, and choices of rows are not compared between releases"


@dataclass(frozen=True, kw_only=True)
class ComparablePersons(KnownRecords):
    """The persons of several tables, for comparison with other releases.

    Attributes:
        rows: The persons, and what is published of them.
    """

    overlap: ClassVar[type[Overlap]] = PersonsOverlap

    rows: PersonRows
    histories: NumberedHistories

    @classmethod
    def of(cls, given: ReleasedTables, released_persons: int, histories: NumberedHistories) -> ComparablePersons:
        """Return the comparable persons of a release that publishes ``released_persons`` of them."""
        job = persons_job(given.job)
        run, rows = replace(given.run, job=job), PersonRows(given)
        k = given.job.privacy.k
        most = None if may_publish_count(released_persons, k, given.persons) else released_persons + k
        return cls(run=run, source=_source(given, rows), most=most, rows=rows, histories=histories)

    @property
    def unmeasured(self) -> str:
        """The reason why these persons cannot be compared, as the end of a sentence; empty if they can."""
        given = self.rows.given
        if given.job.privacy.known_rows is not None:
            return FEW_ROWS
        return "" if given.job.tables[given.job.tree.unit].key else NO_KEY

    @property
    def tables_below(self) -> tuple[str, ...]:
        """The names of all tables but the unit."""
        job = self.rows.given.job
        return tuple(name for name in job.tables if name != job.tree.unit)

    @property
    def person_names(self) -> tuple[Columns, ...]:
        """Return the unit's key and the references to it, each column with its kind; empty without a key."""
        job, kinds = self.rows.given.job, [kind for _, kind in self.person_columns]
        named = [[name for name, _ in self.person_columns], *(table.referring.get(job.tree.unit, []) for table in job.tables.values())]
        return tuple(dict.fromkeys(tuple(zip(names, kinds, strict=True)) for names in named if names))

    def sketches(self, columns: Columns) -> Sketches:
        """Return the distinct-count sketches of persons in some columns, computed once and cached."""
        if columns not in self._sketches:
            by = self.digested if columns == self.columns else DigestedColumns(tuple(name for name, _ in columns))
            self._sketches[columns] = sketches_of(pq.read_table(self.run.store.path(self.digest_tables(by)[0])))
        return self._sketches[columns]

    @property
    def digested(self) -> DigestedColumns:
        """Return the columns whose digests this release keeps, singly and joined over tables."""
        return super().digested.arranged()

    def paired_columns(self, shown: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        """Return the columns, as numbers, of each digest of one or two columns of rows, by its name."""
        return paired_columns(self.rows, shown)

    def parts(self, columns: DigestedColumns) -> Sequence[KeptRecords]:
        """Return one part of the persons' histories and digests; raise ``UnmeasuredError`` if incomparable."""
        if reason := self.unmeasured:
            raise UnmeasuredError(reason)
        contents, sets = self.digest_tables(columns)
        return [KeptRecords(files=(), members=PERSON_CLASSES.result(self.rows, self.histories), contents=contents, sets=sets)]

    def write_entry(self, manifest: TablesManifest) -> None:
        """Write a release's history entry before publication; it counts only once the release is published."""
        job = self.run.job
        entry = Entry(
            release=manifest.release,
            files=tuple((file.name, file.digest, file.rows) for file in self.source.files),
            chunks=(),
            names=tuple(axis_names(job)),
            hierarchies=hierarchy_digests(job),
            settings="",
            recoded=None,
            code=STEP.key(),
            parts=() if self.unmeasured else tuple(self.parts(self.digested)),
            digested=self.digested_kinds,
            promised=promises_by_column(job),
            means=(),
            by_column=len(self.digested.single_columns),
            ways=ways_of_columns(job),
            untold=self.unmeasured,
            seal=manifest.seal,
        )
        save_entry(entry, self.run.store)

    def digest_tables(self, columns: DigestedColumns) -> tuple[Artifact, Artifact]:
        """Return the artefacts of the persons' digests and of their value sets, stored or made."""
        item = ByColumns(columns, tuple(name for name, _ in self.person_columns))
        made = PersonDigestTables(self.rows, *item)

        def find(step: FileStep[PersonRows, ByColumns], content: str) -> Artifact:
            return step.save_artifact(self.rows, item, lambda path: write_digests(getattr(made, content)(), path))

        return find(PERSON_CONTENTS, "contents"), find(PERSON_SETS, "sets")


def _source(given: ReleasedTables, rows: PersonRows) -> ChunkedSource:
    """Return all tables as one source of persons, a record per person, with the columns of all tables."""
    unit = given.tables[given.job.tree.unit].table.source
    fields = [given.tables[table].table.source.columns.field(column).with_name(name) for name, (table, column) in rows.columns.items()]
    payload = [column_of_persons(given.job, name, column) for name, table in given.tables.items() for column in table.table.source.payload]
    return ChunkedSource(files=unit.files, chunks=(), payload=tuple(payload), columns=pa.schema(fields), published=(), keys=unit.keys)
