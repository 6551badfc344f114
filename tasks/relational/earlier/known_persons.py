"""Linkage keys by which persons of several tables are matched with those of other releases.

The other releases may be of one table or of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors.signals import UnmeasuredError
from schemas.relational.table_jobs import column_of_persons, persons_job
from schemas.release.increments import Overlap, PersonsOverlap
from tasks.composition.earlier import Columns, KnownRecords
from tasks.counting.contents import Digested, Sketches, sketches_of
from tasks.relational.earlier.contents import (
    PERSON_CLASSES,
    PERSON_CONTENTS,
    PERSON_SETS,
    ByColumns,
    KeptPersons,
    NumberedHistories,
    PersonRows,
    write_digests,
)
from tasks.relational.making.writing import ReleasedTables
from tasks.source.chunks import ChunkedSource
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.writing.people import Part

NO_KEY = "the unit's rows have no key, so that its persons cannot be found in the files"
FEW_ROWS = "whoever knows few rows of a person knows no history, and choices of rows are not compared between releases"


@dataclass(frozen=True, kw_only=True)
class ComparablePersons(KnownRecords):
    """The persons of several tables, for comparison with other releases.

    Attributes:
        rows: The persons, and what is published of them.
        histories: Their histories as the recount numbered them.
    """

    overlap: ClassVar[type[Overlap]] = PersonsOverlap

    rows: PersonRows
    histories: NumberedHistories

    @classmethod
    def of(cls, given: ReleasedTables, histories: NumberedHistories) -> ComparablePersons:
        """Return the comparable persons of a release of several tables."""
        job = persons_job(given.job)
        run, rows = replace(given.run, job=job), PersonRows(given)
        return cls(run=run, source=_source(given, rows), rows=rows, histories=histories)

    @property
    def unmeasured(self) -> str:
        """The reason why these persons cannot be compared, as the end of a sentence; empty if they can."""
        given = self.rows.given
        if given.job.privacy.known_rows is not None:
            return FEW_ROWS
        return "" if given.job.tables[given.job.tree.unit].key else NO_KEY

    def sketches(self, columns: Columns) -> Sketches:
        """Return the distinct-count sketches of some columns of the persons' rows, and of the persons."""
        if columns not in self._sketches:
            by = self.digested if columns == self.columns else Digested(tuple(name for name, _ in columns))
            self._sketches[columns] = sketches_of(pq.read_table(self.run.store.path(self.digest_tables(by)[0])))
        return self._sketches[columns]

    def parts(self, by: Digested) -> Sequence[Part]:
        """Return the persons' histories and digests as one part."""
        if reason := self.unmeasured:
            raise UnmeasuredError(reason)
        contents, sets = self.digest_tables(by)
        return [Part(files=(), members=PERSON_CLASSES.result(self.rows, self.histories), contents=contents, sets=sets)]

    def digest_tables(self, by: Digested) -> tuple[Artifact, Artifact]:
        """Return the artefacts of the persons' digests in some columns, and of their value sets."""
        item = ByColumns(by, tuple(name for name, _ in self.person))
        made = KeptPersons(self.rows, *item)

        def find(step: FileStep[PersonRows, ByColumns], content: str) -> Artifact:
            return step.save_artifact(self.rows, item, lambda path: write_digests(getattr(made, content)(), path))

        return find(PERSON_CONTENTS, "contents"), find(PERSON_SETS, "sets")


def _source(given: ReleasedTables, rows: PersonRows) -> ChunkedSource:
    """Return all tables as one source of persons, a record per person, with the columns of all tables."""
    unit = given.tables[given.job.tree.unit].table.source
    fields = [given.tables[table].table.source.columns.field(column).with_name(name) for name, (table, column) in rows.columns.items()]
    payload = [column_of_persons(given.job, name, column) for name, table in given.tables.items() for column in table.table.source.payload]
    return ChunkedSource(files=unit.files, chunks=(), payload=tuple(payload), columns=pa.schema(fields), published=(), keys=unit.keys)
