"""Comparison of two releases record by record, by digests of the records and by their classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.composition.joint_classes import (
    ARRANGED,
    ARRANGED_VALUES,
    ARRANGEMENTS,
    LABELLED,
    MINE,
    SOURCED,
    THEIRS,
    WITHOUT,
    RecordMatching,
    common_persons_sql,
    equal_record_count_sql,
    equal_records_sql,
    joined_records_sql,
)
from core.composition.joint_figures import SETS, few_persons_sql, joint_classes_sql, means_sql, sets_table_sql
from core.units.source_digests import Likeness
from schemas.errors.base import listed
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job
from tasks.composition.by_files import Figures, returning_reason, run_comparison
from tasks.composition.earlier import Earlier, KnownRecords, columns_of_rows
from tasks.composition.joint_values import Promises, units_at_risk_by_values
from tasks.composition.release_history import Entry, promises_by_column, read_entry, ways_of_columns
from tasks.counting.contents import DigestedColumns
from tasks.engine.runs import Run
from tasks.store.database import connect
from tasks.store.store import Store
from tasks.writing.people import KeptRecords

_PERSONS = np.uint64(1) << np.uint64(63)
OTHERWISE_READ = (
    "both are made of one file, but read it in two ways or link its records by other columns, so that these are not known again"
)
OLDER = "another version of this program made it, which kept less of its records"


class Side(NamedTuple):
    """Class and digest artefacts of the records of one of two compared releases, and what they cover.

    Attributes:
        parts: Their classes and digests, in parts.
        untreated: Whether the digest of untreated columns covers the same columns in both releases.
        values: For each compared sensitive column, the number of its kept digest column; None without one.
        arranged: The digests of how a person's values stand together over tables that both releases have, as in ``RecordMatching``.
        by_column: The digests of single untreated columns that both releases have.
        apart: The digests of how single columns stand, as in ``RecordMatching``.
    """

    parts: tuple[KeptRecords, ...]
    untreated: bool
    values: tuple[int | None, ...]
    arranged: tuple[str, ...] = ()
    by_column: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


class ComparedContents(NamedTuple):
    """Two releases to compare by the kept digests and classes of their records.

    Attributes:
        mine: This release.
        theirs: The other one.
        by_contents: Whether records are linked by the digests of their values.
        by_persons: Whether both name persons by the same columns.
        k: Least records, or persons where the job names them, of a safe joint class.
        promises: The l and t requirements of both.
        in_files: How many records the files hold that both are made of. So many must be found in both.
        means: Numbers of the columns of which both publish means of groups.
        ways: As in ``RecordMatching``, and ``remade``.
        remade: See ``ways``.
    """

    mine: Side
    theirs: Side
    by_contents: bool
    by_persons: bool
    k: int
    promises: Promises
    in_files: int = 0
    means: tuple[int, ...] = ()
    ways: bool | None = None
    remade: bool = False


def figures_by_contents(records: KnownRecords, earlier: Earlier, k: int) -> Figures | None:
    """Return ``Overlap`` figures of two releases' records, None if disjoint; raise ``UnmeasuredError``.

    The figures count the records that both have and that only one has, and how many of each are at risk.

    Args:
        k: Least records, or persons where the job names them, of a safe joint class.
    """
    run = records.run
    store = store_of_earlier(run, earlier)
    compared = _compared(records, earlier, _kept(run.job, earlier, store), k)
    return run_comparison(run, compare_by_contents, run.job, compared, run.store, store, run.spill, here=store is not run.store)


def store_of_earlier(run: Run, earlier: Earlier) -> Store:
    """Return the store with what the job of an earlier release keeps of it."""
    apart = earlier.work and earlier.work != Path(run.job.work_location)
    return Store(Path(earlier.work or "", "artifacts")) if apart else run.store


def _compared(known: KnownRecords, earlier: Earlier, entry: Entry, k: int) -> ComparedContents:
    """Build the comparison of two releases, with digests of the same columns on both sides."""
    assert entry.digested is not None
    _, untreated, kept = entry.digested
    own, other, job = known.digested, DigestedColumns(*(tuple(name for name, _ in columns) for columns in entry.digested)), known.run.job
    here = {(name, kind) for name, kind in known.kinds.items()}
    if unlike := columns_of_rows(known, earlier, {*other.untreated, *other.values}):
        raise UnmeasuredError(f"both publish {listed(unlike)}, one of them in rows of several tables, so that changes would be overlooked")
    # What only one of both publishes shows no change; and where this source lacks some, the digest of the others is not known.
    common = {*other.untreated} & {*own.untreated, *own.values}
    if common and not here.issuperset(untreated):
        raise UnmeasuredError(
            "both publish columns as they are, and its others are not in this source, so that changes would be overlooked"
        )
    # Of what is published in two ways no value of one release is looked for in the other, whatever their types.
    apart, published = own.republished | other.republished, known.published_kinds
    alike = {name: number for number, (name, kind) in enumerate(kept) if name in published and (name in apart or published[name] == kind)}
    mine = sorted({*alike, *job.privacy.columns})
    by = DigestedColumns(other.names if earlier.linkage_key else own.names, other.untreated if common else (), tuple(mine))
    arranged = _arranged(known, entry, own, other)
    ways = _ways_alike(job, entry, {*by.untreated, *(other.arranged().shown if arranged else ())})
    if arranged:
        if ways is False:
            raise UnmeasuredError(OTHER_WAYS)
        rows = other.arranged()
        by = by._replace(shown=rows.shown, labels=rows.labels if ARRANGED in arranged else ())
    parts = known.parts(by)
    if not parts:
        raise UnmeasuredError("the classes here were made fragment by fragment, and its records are linked by other columns")
    others = [name for name, _ in kept if name not in mine]
    columns = (*mine, *others)
    places = alike | {name: number for number, (name, _) in enumerate(kept) if name in others}
    republished = tuple(sorted(map(columns.index, apart.intersection(columns))))
    kinds = ("untreated", *["published"] * (ways is not None))
    by_column = tuple(f"{kind}_{number}" for number in range(entry.by_column if common else 0) for kind in kinds)
    digests = arranged, by_column, _apart(known, by, arranged)
    ours = Side(tuple(parts), bool(common), (*range(len(mine)), *(None for _ in others)), *digests)
    theirs = Side(tuple(entry.parts), bool(common), tuple(map(places.get, columns)), *digests)
    promises = Promises(promises_by_column(job), entry.promised or {}, columns, known.run.domain, republished)
    of_means, sides = {*job.columns.means} & {*(entry.means or ())}, zip(ours.values, theirs.values, strict=True)
    means = tuple(number for number, places in enumerate(sides) if None not in places and columns[number] in of_means)
    in_files, remade = known.count_in_files(earlier.files), not own.republished.isdisjoint(alike.keys() - other.untreated)
    return ComparedContents(ours, theirs, bool(earlier.linkage_key), earlier.persons, k, promises, in_files, means, ways, remade)


OTHER_WAYS = "both publish a column in two ways ('publish', 'normalise'), so that changes would be overlooked"


def _ways_alike(job: Job, entry: Entry, columns: Set[str]) -> bool | None:
    """Return whether two releases publish columns in the same ways; None if both publish them as they are."""
    here, there = ({name: ways[name] for name in columns & ways.keys()} for ways in (ways_of_columns(job), entry.ways or {}))
    return here == there if here or there else None


OTHER_TABLES = "it publishes columns of several tables that are not in these, so that changes would be overlooked"


def _arranged(known: KnownRecords, entry: Entry, own: DigestedColumns, other: DigestedColumns) -> tuple[str, ...]:
    """Return the digests by which it is compared how a person's values stand together.

    None if either release is of one table. What both publish is compared with all that the other one publishes. Where this source lacks
    some of that, labels are left out if both have none in common.
    """
    if not known.run.job.is_of_several or not any(part.sets for part in entry.parts):
        return ()
    assert entry.digested is not None
    lacks = {name for kind in entry.digested for name, of_kind in kind if known.kinds.get(name) != of_kind}
    mine, theirs = own.arranged(), other.arranged()
    if not {*mine.shown} & {*theirs.shown}:
        return ()
    if not lacks:
        return ARRANGEMENTS
    if lacks & {*theirs.shown} or {*mine.labels} & {*theirs.labels}:
        raise UnmeasuredError(OTHER_TABLES)
    return (ARRANGED_VALUES,)


def _apart(known: KnownRecords, by: DigestedColumns, arranged: Sequence[str]) -> tuple[str, ...]:
    """Return the digests of how columns stand, published by both, that tell kinds of changes apart."""
    own, kinds = known.digested, (WITHOUT, *(LABELLED, SOURCED) * (ARRANGED in arranged))
    here = {number for number, name in enumerate(by.shown) if name in {*own.untreated, *own.values}}
    paired = known.paired_columns(by.shown) if arranged else {}
    single = (f"{kind}_{number}" for kind in kinds for number in sorted(here))
    # The last ones are those that count as one where there are too many kinds.
    return (*single, *(name for name, numbers in paired.items() if here.issuperset(numbers)))


@returning_reason
def compare_by_contents(job: Job, compared: ComparedContents, mine: Store, theirs: Store, spill: Path) -> Figures | None:
    """Return ``[figures, reason]``: records shared, added, removed and at risk; figures None if disjoint."""
    sides = compared.mine.parts, compared.theirs.parts
    by_file = compared.by_contents and not any(part.in_fragment for side in sides for part in side)
    files = _digests(sides[0]) & _digests(sides[1]) if by_file else set()
    persons = bool(job.columns.person)
    with connect(job, spill, last=True) as database:
        try:
            _load(database, MINE, compared.mine, files, mine, persons=persons)
            _load_theirs(database, compared.theirs, files, theirs, persons=persons)
            _load_sets(database, compared, mine, theirs)
            identity = _identity(database, compared)
            _check_files(database, job, compared, identity, of_files=bool(files))
            if not files and not any(identity[:2]):
                if compared.in_files:
                    raise UnmeasuredError(OTHERWISE_READ)
                return None
            database.execute(joined_records_sql(identity))
            found = database.execute(joint_classes_sql(compared.k, count_persons=persons)).fetchall()
            few = persons and database.execute(few_persons_sql(compared.k)).fetchall() == [(True,)]
            broken = units_at_risk_by_values(database, job, compared.promises, mine, count_persons=persons)
            apart = [database.execute(means_sql(number, compared.k, count_persons=persons)).fetchall() for number in compared.means]
        except duckdb.OutOfMemoryException:
            # The release itself is sound; only what it tells together with another one is not known then.
            raise UnmeasuredError("both side by side take more than the job's memory") from None
    by_part, nothing = {part: counts for part, *counts in found}, (0, 0, 0)
    by = "persons" if identity.persons else "contents" if identity.contents else "files"
    figures: dict[str, int | str] = {"by": by, "unit": "person" if persons else "record", "few_persons": few}
    for part in ("shared", "added", "removed"):
        figures[part], figures[f"{part}_at_risk"], _ = by_part.get(part, nothing)
    figures["changed"] = by_part.get("removed", nothing)[2]
    figures |= {} if broken is None else {"values_at_risk": broken}
    return figures | ({"means_at_risk": max(count for [(count,)] in apart)} if apart else {})


def _digests(parts: Sequence[KeptRecords]) -> set[str]:
    """Return the digests of the source files that the parts were read from."""
    return {digest for part in parts for digest, _ in part.files}


def _shared(part: KeptRecords, files: set[str]) -> NDArray[np.bool_]:
    """Return for each record whether its source file is among some files, boolean, shape (records,)."""
    return np.repeat([digest in files for digest, _ in part.files], [rows for _, rows in part.files])


ARTEFACTS_GONE = "its artefacts are gone"


def _kept(job: Job, earlier: Earlier, store: Store) -> Entry:
    """Return the history entry of an earlier release; raise ``UnmeasuredError`` if a job cannot use it."""
    entry = read_entry(earlier.release, store)
    if entry is None:
        raise UnmeasuredError("nothing is kept of it here, because its artefacts were removed")
    if entry.untold:
        raise UnmeasuredError(entry.untold)
    if not entry.parts:
        raise UnmeasuredError("another version of this program made it, which kept nothing of its classes")
    if entry.digested is None or entry.promised is None:
        raise UnmeasuredError(OLDER)
    if entry.means is None and not job.is_of_several and not dict(entry.digested[1]).keys().isdisjoint(job.columns.means):
        raise UnmeasuredError(OLDER)
    if not all(store.is_complete(artifact) for part in entry.parts for artifact in (part.members, part.contents, part.sets) if artifact):
        raise UnmeasuredError(ARTEFACTS_GONE)
    return entry


def _load(database: duckdb.DuckDBPyConnection, name: str, side: Side, files: set[str], store: Store, *, persons: bool) -> None:
    """Fill a table with the records of a release, part after part."""
    values = [f"value_{number}" for number in range(len(side.values))]
    columns = ", ".join(f"{value} UBIGINT" for value in values)
    fixed = "content UBIGINT, class BIGINT, shared BOOLEAN, person UBIGINT, untreated UBIGINT, published UBIGINT"
    single = (*side.by_column, *side.arranged, *side.apart)
    fixed += "".join(f", {one} UBIGINT" for one in single)
    database.execute(f"CREATE TABLE {name} ({fixed}{columns and ', ' + columns})")
    names, records = (
        ["content", "class", "shared", "person", "untreated", "published", *side.by_column, *side.arranged, *side.apart, *values],
        0,
    )
    for part in side.parts:
        for table in _tables(part, store):
            # Of a fragment, which may come in several tables, no record is known by its file.
            shared = _shared(part, files) if part.files else np.zeros(len(table), np.bool_)
            loaded = [table["content"], table["class"].cast(pa.int64()), pa.array(shared), _persons(table, records, named=persons)]
            untreated = table["untreated"] if side.untreated else pa.array(np.zeros(len(table), np.uint64))
            loaded += [untreated, table["published"] if side.untreated and "published" in table.column_names else untreated]
            loaded += [table[one if one in table.column_names else one.replace("published", "untreated")] for one in side.by_column]
            loaded += [table[one] for one in (*side.arranged, *side.apart)]
            loaded += [pa.nulls(len(table), pa.uint64()) if place is None else table[f"value_{place}"] for place in side.values]
            database.register("part", pa.table(loaded, names=names))
            database.execute(f"INSERT INTO {name} SELECT * FROM part")
            database.unregister("part")
            records += len(table)


def _load_theirs(database: duckdb.DuckDBPyConnection, side: Side, files: set[str], store: Store, *, persons: bool) -> None:
    """Load the other release's records; raise ``UnmeasuredError`` if its artefacts are gone."""
    try:
        _load(database, THEIRS, side, files, store, persons=persons)
    except (OSError, pa.ArrowException):
        # Another job keeps it, and may forget it at any time.
        raise UnmeasuredError(ARTEFACTS_GONE) from None
    except KeyError:
        raise UnmeasuredError(OLDER) from None


def _load_sets(database: duckdb.DuckDBPyConnection, compared: ComparedContents, mine: Store, theirs: Store) -> None:
    """Fill the table that maps digests of value sets to values, for persons with several values."""
    database.execute(sets_table_sql())
    for side, store in ((compared.mine, mine), (compared.theirs, theirs)):
        numbers = {place: number for number, place in enumerate(side.values) if place is not None}
        for artifact in {part.sets.file: part.sets for part in side.parts if part.sets}.values():
            try:
                table = pq.read_table(store.path(artifact))
            except (OSError, pa.ArrowException):
                raise UnmeasuredError(ARTEFACTS_GONE) from None
            for place, number in numbers.items():
                database.register("part", table.filter(pc.equal(table["column"], place)))
                new = f"SELECT {number}, digest, value FROM part EXCEPT SELECT * FROM {SETS}"
                database.execute(f"INSERT INTO {SETS} {new}")
                database.unregister("part")


def _persons(table: pa.Table, first: int, *, named: bool) -> pa.Array:
    """Return the person digest of each record; a record without a named person gets one of its own."""
    if named and "person" in table.column_names:
        return table["person"]
    return pa.array(_PERSONS + np.arange(first, first + len(table), dtype=np.uint64) if named else np.zeros(len(table), np.uint64))


def _tables(part: KeptRecords, store: Store) -> Iterator[pa.Table]:
    """Yield tables of digests and classes of a part's records."""
    if part.contents is None:
        with pq.ParquetFile(store.path(part.members)) as file:
            for batch in file.iter_batches():
                yield pa.Table.from_batches([batch])
        return
    known, classes = pq.read_table(store.path(part.contents)), pq.read_table(store.path(part.members))
    yield known.append_column("class", classes["class"])


def _check_files(
    database: duckdb.DuckDBPyConnection, job: Job, compared: ComparedContents, identity: RecordMatching, *, of_files: bool
) -> None:
    """Raise ``UnmeasuredError`` unless all records of the files that both are made of are found in both.

    A job that reads a file in another way, with other separators say, makes other records of it. Compared with the records of another job
    they look as if all of these had left and all of its own had come, which puts nobody at risk. Of several tables the files are those of
    the unit, and its persons must be found: what other tables hold of these may have changed.
    """
    if not compared.in_files or (job.is_of_several and not compared.by_persons):
        return
    if job.is_of_several:
        columns = ["person"]
    else:
        linking = ["content"] * (compared.by_contents or not compared.by_persons) + ["person"] * compared.by_persons
        columns = [*linking, *(f"value_{number}" for number in identity.same)]
    [[alike]] = database.execute(equal_record_count_sql(columns, of_files=of_files)).fetchall()
    if alike < compared.in_files:
        raise UnmeasuredError(OTHERWISE_READ)


def _identity(database: duckdb.DuckDBPyConnection, compared: ComparedContents) -> RecordMatching:
    """Decide by which digests the records of both releases are matched, and which columns are compared.

    Records of files that both releases have are matched already.
    """
    [alike] = database.execute(equal_records_sql()).fetchall()
    [[common]] = database.execute(common_persons_sql()).fetchall()
    both = zip(compared.mine.values, compared.theirs.values, strict=True)
    # What each release makes of a value differs though the value is the same; whether that is, the untreated columns show.
    held = [number for number, places in enumerate(both) if None not in places]
    same = tuple(number for number in held if number not in compared.promises.republished)
    contents, persons = compared.by_contents and Likeness(*alike).is_shared, compared.by_persons and common > 0
    return RecordMatching(
        contents=contents,
        persons=persons,
        untreated=compared.mine.untreated,
        by_column=sum(one.startswith("untreated") for one in compared.mine.by_column),
        ways=compared.ways,
        remade=compared.remade,
        values=len(compared.theirs.values),
        same=same,
        arranged=compared.mine.arranged,
        apart=compared.mine.apart,
        lines=tuple(held) if contents and not persons else None,
    )
