"""What two releases tell together, counted record by record: both are known by what their records hold and by the class of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.composition.contents import Likeness
from core.composition.joint_classes import MINE, THEIRS, Identity, common_persons_sql, joint_classes_sql, likeness_sql
from schemas.errors.signals import UnmeasuredError
from schemas.job.job import Job
from tasks.composition.answers import Figures, answered, as_answer
from tasks.composition.earlier import Earlier
from tasks.composition.known import KnownRecords
from tasks.composition.ledger import read_entry
from tasks.store.database import connect
from tasks.store.store import Store
from tasks.writing.members import Part

_PERSONS = np.uint64(1) << np.uint64(63)


class Compared(NamedTuple):
    """Two releases by what is kept of their records.

    Attributes:
        mine: The records of this release with their classes, in parts.
        theirs: Those of the other.
        by_contents: Whether records are known by what they hold.
        by_persons: Whether both name persons by the same columns.
        k: Fewest records, or persons where the job names them, that are safe.
    """

    mine: tuple[Part, ...]
    theirs: tuple[Part, ...]
    by_contents: bool
    by_persons: bool
    k: int


def figures_by_contents(known: KnownRecords, earlier: Earlier, k: int) -> Figures | None:
    """Returns how many records both have, either has alone, and how many of each are at risk, by field of the overlap.

    Args:
        known: The records of this release.
        earlier: The other release.
        k: Fewest records, or persons where the job names them, that are safe.

    Returns:
        None where the two turn out to have no records in common.

    Raises:
        UnmeasuredError: what was kept of either is gone or not enough.
        SkaldError: whatever a step raises.
    """
    run = known.run
    apart = bool(earlier.work) and earlier.work != Path(run.job.work_place)
    store = Store(Path(earlier.work or "", "artifacts")) if apart else run.store
    theirs = _kept(earlier, store)
    mine = known.parts(earlier.known_by or known.columns)
    if not mine:
        raise UnmeasuredError("the classes here were made fragment by fragment, and its records are known by other columns")
    compared = Compared(tuple(mine), tuple(theirs), bool(earlier.known_by), earlier.persons, k)
    return answered(run, compare_by_contents, run.job, compared, run.store, store, run.spill, here=apart)


@as_answer
def compare_by_contents(job: Job, compared: Compared, mine: Store, theirs: Store, spill: Path) -> Figures | None:
    """Counts the records of two releases by their classes in both.

    Args:
        job: Names persons, and gives memory and threads.
        compared: The releases.
        mine: Has what is kept of this one.
        theirs: Has what is kept of the other.
        spill: Folder for what does not fit into memory.

    Returns:
        As ``figures_by_contents``.

    Raises:
        UnmeasuredError: as there.
        StorageError: what is kept of this release is gone, or the disk is full.
    """
    by_file = compared.by_contents and not any(part.in_fragment for part in (*compared.mine, *compared.theirs))
    files = _digests(compared.mine) & _digests(compared.theirs) if by_file else set()
    persons = bool(job.columns.person)
    with connect(job, spill, last=True) as database:
        try:
            _load(database, MINE, compared.mine, files, mine, persons=persons)
            _load_theirs(database, compared.theirs, files, theirs, persons=persons)
            identity = _identity(database, compared)
            if not files and not any(identity):
                return None
            found = database.execute(joint_classes_sql(compared.k, identity, persons=persons)).fetchall()
        except duckdb.OutOfMemoryException:
            # The release itself is sound; only what it tells together with another one is not known then.
            raise UnmeasuredError("both side by side take more than the job's memory") from None
    by_part = {part: (records, at_risk) for part, records, at_risk in found}
    by = "persons" if identity.persons else "contents" if identity.contents else "files"
    figures: dict[str, int | str] = {"by": by, "unit": "person" if persons else "record"}
    for part in ("shared", "added", "removed"):
        figures[part], figures[f"{part}_at_risk"] = by_part.get(part, (0, 0))
    return figures


def _digests(parts: Sequence[Part]) -> set[str]:
    return {digest for part in parts for digest, _ in part.files}


def _shared(part: Part, files: set[str]) -> NDArray[np.bool_]:
    """Tells of each record whether it stands in one of some files, shape (records,)."""
    return np.repeat([digest in files for digest, _ in part.files], [rows for _, rows in part.files])


GONE = "its artefacts are gone"


def _kept(earlier: Earlier, store: Store) -> Sequence[Part]:
    entry = read_entry(earlier.release, store)
    if entry is None:
        raise UnmeasuredError("nothing is kept of it here, because its artefacts were removed")
    if not entry.parts:
        raise UnmeasuredError("another version of this program made it, which kept nothing of its classes")
    if not all(store.whole(artifact) for part in entry.parts for artifact in (part.members, part.contents) if artifact):
        raise UnmeasuredError(GONE)
    return entry.parts


def _load(database: duckdb.DuckDBPyConnection, name: str, parts: Sequence[Part], files: set[str], store: Store, *, persons: bool) -> None:
    """Fills a table with the records of a release, part after part."""
    database.execute(f"CREATE TABLE {name} (content UBIGINT, class BIGINT, shared BOOLEAN, person UBIGINT)")
    records = 0
    for part in parts:
        for table in _tables(part, store):
            # Of a fragment, which may come in several tables, no record is known by its file.
            shared = _shared(part, files) if part.files else np.zeros(len(table), np.bool_)
            columns = [table["content"], table["class"].cast(pa.int64()), pa.array(shared)]
            columns.append(_persons(table, records, named=persons))
            database.register("part", pa.table(columns, names=["content", "class", "shared", "person"]))
            database.execute(f"INSERT INTO {name} SELECT * FROM part")
            database.unregister("part")
            records += len(table)


def _load_theirs(database: duckdb.DuckDBPyConnection, parts: Sequence[Part], files: set[str], store: Store, *, persons: bool) -> None:
    try:
        _load(database, THEIRS, parts, files, store, persons=persons)
    except (OSError, pa.ArrowException):
        # Another job keeps it, and may forget it at any time.
        raise UnmeasuredError(GONE) from None


def _persons(table: pa.Table, first: int, *, named: bool) -> pa.Array:
    """Returns whose the records are; each is a person of its own where the release names none."""
    if named and "person" in table.column_names:
        return table["person"]
    return pa.array(_PERSONS + np.arange(first, first + len(table), dtype=np.uint64) if named else np.zeros(len(table), np.uint64))


def _tables(part: Part, store: Store) -> Iterator[pa.Table]:
    if part.contents is None:
        with pq.ParquetFile(store.path(part.members)) as file:
            for batch in file.iter_batches():
                yield pa.Table.from_batches([batch])
        return
    known, classes = pq.read_table(store.path(part.contents)), pq.read_table(store.path(part.members))
    yield known.append_column("class", classes["class"])


def _identity(database: duckdb.DuckDBPyConnection, compared: Compared) -> Identity:
    """Tells by what records of the two are the same ones, beyond those of files that both have."""
    [alike] = database.execute(likeness_sql()).fetchall()
    [[common]] = database.execute(common_persons_sql()).fetchall()
    return Identity(contents=compared.by_contents and Likeness(*alike).is_shared, persons=compared.by_persons and common > 0)
