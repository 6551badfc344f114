"""Recount of a release in shares: tasks count parts of release and source, and counts are added.

Records are set apart by what they publish, so that every class is in one share, and whole; the labels of columns and the digests of records
are counted file by file. Whatever the number of shares, the figures are the same. A share that is missing, that comes twice, or that has
other records than were set apart for it ends the run, and so does a file that was not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from core.recount.classes import Recount
from core.recount.groups import Groups
from core.recount.people import records_of_k
from core.recount.shares import ShareClasses, control_faults, merge_share_counts
from schemas.errors.base import StorageError, VerificationError
from schemas.job.job import Job
from tasks.engine.calls import Call, groups, tasks_for
from tasks.engine.guard import Result
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, map_step, run_step, step_here
from tasks.publication.recount_calls import (
    RECOUNTED,
    RELEASE,
    SOURCE,
    TALLIES,
    DividedMembers,
    DividedRelease,
    RecountRequest,
    ReplacedValues,
    Written,
    count_additional_of,
    count_classes_of,
    count_persons_of,
    counts_from_text,
    divide_written_members,
    divide_written_records,
    recount_in_one,
    recount_to_text,
    run_requests,
)
from tasks.recount.original import Original
from tasks.recount.recount import ReleaseCounts, recount_by
from tasks.recount.rows import WRONG_COLUMNS, ReleaseRows, Side
from tasks.recount.spreads import models_counted, needs_source_values, source_values_relation
from tasks.recount.verdict import CrossClassCounts, RecountBasis
from tasks.release.files import file_error
from tasks.source.chunks import ChunkedSource
from tasks.store.database import connect, parquet_sql, write_parquet
from tasks.store.keys import StepCode
from tasks.store.store import Artifact
from tasks.writing.people import NO_PERSONS, WrittenPersons

PHASE = "verify"


@dataclass
class RecountTasks:
    """Maker of a recount's calls to tasks of the run, with the memory of a task."""

    run: Run
    job: Job
    _made: int = 0

    def map_calls(
        self, function: Callable[..., Result], label: str, arguments: Sequence[tuple[Any, ...]], *, pass_key: bool = True
    ) -> list[Result]:
        """Call ``function(job, *arguments, key, store)`` in a task for each tuple; return results in order.

        Args:
            function: A function of a module.
            label: Names the calls.
            arguments: Of each call.
            pass_key: Whether it leaves artefacts, under the key or others that are made of it.
        """
        self._made += 1
        calls = []
        for number, those in enumerate(arguments, start=1):
            # What is in a bucket may be gone or replaced tomorrow: no later run finds these calls made.
            key = RECOUNTED.once()
            ending = (key, self.run.store) if pass_key else (self.run.store,)
            name = f"recount {self._made}, {label}: {number} of {len(arguments)}"
            calls.append(Call(key, name, (self.job, *those, *ending), may_leave_process=True))
        return map_step(self.run, PHASE, function, calls)


class DistributedRows(ReleaseRows):
    """Rows of release and source that tasks read in parts; results are relations of a database here."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tasks: RecountTasks,
        parts: Sequence[Written],
        sources: Sequence[ChunkedSource],
        published: Mapping[str, str],
    ) -> None:
        self.connection, self.release, self.source = connection, RELEASE, SOURCE
        self._tasks, self._parts, self._sources, self._published = tasks, parts, sources, published
        self._values = ReplacedValues()
        self._known: dict[tuple[Side, Groups], str] = {}

    def expect(self, side: Side, groups: Sequence[Groups]) -> None:
        """Count groups that are needed later in tasks, with one read of each part, and keep the sums."""
        if new := [one for one in dict.fromkeys(groups) if (side, one) not in self._known]:
            self._known |= {(side, one): sums for one, sums in zip(new, self._sums(side, new), strict=True)}

    def grouped(self, side: Side, groups: Groups) -> str:
        """Return the SQL of group sums over all parts, counted by tasks unless ``expect`` did."""
        if groups.tables:
            # What a name stands for may change; what is in the files does not.
            return self._sums(side, [groups])[0]
        self.expect(side, [groups])
        return self._known[side, groups]

    def _sums(self, side: Side, groups: Sequence[Groups]) -> list[str]:
        asked = [
            RecountRequest(one.sql, one.before, {name: self.exported(name) for name in one.tables}, one.alone, one.wide) for one in groups
        ]
        parts = [(part, None) for part in self._parts] if side == "release" else [(None, part) for part in self._sources]
        made = self._answers(f"count {side}", parts, asked)
        return [f"({one.added_sql(self._read([part[place] for part in made]))})" for place, one in enumerate(groups)]

    def relation_of_query(self, statement: str, *sides: Side) -> str:
        """Run an SQL query on all rows of release, source or both in one task; return its result's relation."""
        files = tuple(file for part in self._parts for file in part.files)
        written = self._parts[0]._replace(files=files) if "release" in sides else None
        sources = tuple(file for part in self._sources for file in part.files)
        source = self._sources[0].model_copy(update={"files": sources}) if "source" in sides else None
        return self._read(self._answers("count all", [(written, source)], [RecountRequest(statement)])[0])

    def replace_source_values(self, tables: Mapping[str, pa.Table], expressions: Sequence[str], join_clauses: Sequence[str]) -> None:
        """Make all later counts read published values, by SQL expressions and joins with these tables."""
        exported = dict[str, Artifact]()
        for name, table in tables.items():
            self.connection.register(name, table)
            exported[name] = self.exported(name)
            self.connection.unregister(name)
        self._values = ReplacedValues(exported, tuple(expressions), tuple(join_clauses))
        self._known = {asked: sums for asked, sums in self._known.items() if asked[0] == "release"}

    def types(self, side: Side) -> dict[str, str]:
        """Return DuckDB's types of the columns of release or source."""
        if side == "release":
            return dict(self._published)
        described = f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {SOURCE})"
        found = self._read(self._answers("columns", [(None, self._sources[0])], [RecountRequest(described)])[0])
        return {
            str(name): str(dtype) for name, dtype in self.connection.execute(f"SELECT column_name, column_type FROM {found}").fetchall()
        }

    def exported(self, relation: str) -> Artifact:
        """Write a table of the database into the store for tasks to read; return its artefact."""
        store, key = self._tasks.run.store, RECOUNTED.once()
        return store.make(TALLIES.name, key, ".parquet", lambda path: write_parquet(self.connection, f"FROM {relation}", path))

    def _answers(self, label: str, parts: Sequence[tuple[Any, Any]], asked: Sequence[RecountRequest]) -> list[list[Artifact]]:
        return self._tasks.map_calls(run_requests, label, [(*part, asked, self._values) for part in parts])

    def _read(self, made: Sequence[Artifact]) -> str:
        return parquet_sql([self._tasks.run.store.path(one) for one in made])


MOST_SHARES = 64
"""Each part of the files is written in as many pieces; more would be many small ones."""


def recount_written(run: Run, written: Written, source: ChunkedSource, class_persons: WrittenPersons) -> Recount:
    """Recount written files, by shares of classes on a cluster; return counts, raise on a broken promise.

    Args:
        written: The files.
        source: What they were made of.
        class_persons: Who is in which class, for jobs that name persons.
    """
    most = _most(written)
    if most > 1 and max(len(written.files), len(source.files)) > 1:
        return recount_in_shares(run, written, source, class_persons, most)
    arguments = (run.job.with_task_memory() if written.staging is None else run.job, written, source, class_persons, run.store)
    if written.staging is None:
        return counts_from_text(Recount, run_step(run, PHASE, recount_to_text, Call.once(RECOUNTED, "recount", arguments)))
    return step_here(PHASE, "recount", lambda: recount_in_one(*arguments))


def _most(written: Written) -> int:
    """Return the largest useful number of parts of a recount, by the workers of a cluster.

    On one machine DuckDB takes all cores for one recount, and to set records apart for them would be work for nothing.
    """
    workers = count_remote_workers()
    return tasks_for(workers) if workers and written.staging is None else 1


def recount_in_shares(run: Run, written: Written, source: ChunkedSource, class_persons: WrittenPersons, most_parts: int) -> Recount:
    """Recount written files in tasks of a share of classes each; return counts, raise on a broken promise.

    Args:
        written: The files.
        source: What they were made of.
        class_persons: Who is in which class, for jobs that name persons.
        most_parts: Into how many parts and shares they may be cut.
    """
    tasks = RecountTasks(run, run.job.with_task_memory())
    parts = [written._replace(files=tuple(part)) for part in groups(written.files, most_parts)]
    # Files that differ are put together by their names, which parts of them would not know.
    cuts = [source.files] if source.evolved else groups(source.files, most_parts)
    sources = [source.model_copy(update={"files": tuple(part), "chunks": ()}) for part in cuts]
    try:
        with connect(run.job, run.spill, last=True) as connection, file_error(written.what):
            apart = tasks.map_calls(divide_written_records, "set apart", [(part, min(len(parts), MOST_SHARES)) for part in parts])
            _check_parts(written, apart)
            rows = DistributedRows(connection, tasks, parts, sources, apart[0].types)
            counts = DistributedCounts(tasks, rows, written, source, apart, class_persons)
            basis = RecountBasis(claim=written.claim, untreated=True)
            return recount_by(tasks.job, counts, written.what, Original(SOURCE, source.columns), basis)
    finally:
        _forget(run, RECOUNTED, TALLIES)


def _forget(run: Run, *steps: StepCode) -> None:
    """Remove artefacts that only this recount needed; failures to remove them are ignored."""
    with suppress(StorageError):
        # Another run that has taken over may be in the midst of its own.
        run.work.check()
        run.store.remove(*(step.name for step in steps))


def _check_parts(written: Written, apart: Sequence[DividedRelease]) -> None:
    """Refuse parts with other columns than the job's, or that do not cover each file once."""
    faults = list(dict.fromkeys(fault for one in apart for fault in one.faults))
    if not faults and any(one.types != apart[0].types for one in apart):
        faults = [WRONG_COLUMNS]
    if not faults and sorted(digest for one in apart for digest in one.digests) != sorted(file.sha256 for file in written.files):
        faults = ["the data files that were read are not those that were written, each once"]
    records, said = sum(one.records for one in apart), sum(file.rows for file in written.files)
    if not faults and records != said:
        faults = [f"the data files hold {records:,} records, and {said:,} were written"]
    if faults:
        raise VerificationError(written.what, faults)


def _members_of(apart: Sequence[DividedMembers], number: int) -> WrittenPersons:
    """Return the members of the classes of a share."""
    return WrittenPersons(tuple(one.people[number] for one in apart), tuple(one.classes[number] for one in apart[:1]))


class DistributedCounts(ReleaseCounts):
    """Counts of a release made by tasks, each on a share of the classes, and added up."""

    rows: DistributedRows

    def __init__(
        self,
        tasks: RecountTasks,
        rows: DistributedRows,
        written: Written,
        source: ChunkedSource,
        apart: Sequence[DividedRelease],
        kept: WrittenPersons,
    ) -> None:
        self.rows, self._tasks, self._written, self._source = rows, tasks, written, source
        self._kept = kept if tasks.job.columns.person else NO_PERSONS
        self._pieces = [tuple(part.shares[number] for part in apart) for number in range(len(apart[0].shares))]
        self._counted: list[tuple[int, int]] = []

    def classes(self, original: Original | None) -> ShareClasses:
        """Return the counts of all shares of the classes, each counted in a task, added up."""
        job, rows, by_people = self._tasks.job, self.rows, bool(self._kept.people)
        models = models_counted(job, by_people=by_people)
        wholes = {
            column: rows.exported(source_values_relation(job, rows, column, original, by_people=by_people))
            for kind, column, _ in models
            if needs_source_values(kind, by_people=by_people)
        }
        apart = self._people_apart() if by_people else []
        calls = [
            (self._written.what, number, piece, _members_of(apart, number), self._source.columns, wholes)
            for number, piece in enumerate(self._pieces)
        ]
        shares = [
            counts_from_text(ShareClasses, text) for text in self._tasks.map_calls(count_classes_of, "classes", calls, pass_key=False)
        ]
        self._counted = [(one.share, one.counts.records) for one in shares]
        return self._with_everybody(apart, merge_share_counts(shares, [kind.least for kind, *_ in models]))

    def additional(self) -> CrossClassCounts:
        """Return counts that need all classes at once, made in a task; empty if the job needs none."""
        job = self._tasks.job
        if not (job.columns.links or job.population or job.columns.ways or self._kept.people):
            return CrossClassCounts()
        records = tuple(one for piece in self._pieces for one in piece)
        [text] = self._tasks.map_calls(count_additional_of, "beside classes", [(self._written.what, records, self._kept)], pass_key=False)
        return counts_from_text(CrossClassCounts, text)

    def control_faults(self, recount: Recount) -> list[str]:
        """Return faults if shares or source have other numbers of records than expected."""
        faults = control_faults(self._counted, {number: sum(one.rows for one in piece) for number, piece in enumerate(self._pieces)})
        if recount.source != self._source.records:
            faults.append(f"of the source {recount.source or 0:,} records were counted, and it has {self._source.records:,}")
        return faults

    def _people_apart(self) -> list[DividedMembers]:
        """Divide the members of classes into shares, in parts."""
        shares = len(self._pieces)
        cuts = groups(self._kept.people, len(self._pieces[0]))
        calls = [(self._kept._replace(people=tuple(part)), shares, number == 0) for number, part in enumerate(cuts)]
        return self._tasks.map_calls(divide_written_members, "people", calls)

    def _with_everybody(self, apart: Sequence[DividedMembers], whole: ShareClasses) -> ShareClasses:
        """Count the persons of all classes in shares of their own; return the counts with that number."""
        persons, what, k = whole.counts.persons, self._written.what, self._tasks.job.privacy.k
        if not apart or not persons:
            return whole
        shares = [(what, tuple(one.persons[number] for one in apart)) for number in range(len(apart[0].persons))]
        many: Counter[int] = Counter()
        for pairs in self._tasks.map_calls(count_persons_of, "persons", shares, pass_key=False):
            many.update({records: number for records, number in pairs})
        found = replace(persons, released=many.total(), most_records=records_of_k(many, k), records_of_one=max(many, default=0))
        return replace(whole, counts=whole.counts.in_persons(found))
