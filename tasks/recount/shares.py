"""Division of a release's records and persons into shares of classes, for a recount by tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb
from pydantic import TypeAdapter

from core.recount.shares import share_sql
from schemas.job.job import Job
from schemas.reading.model import FrozenModel
from schemas.release.manifest import published_qids
from tasks.recount.people import PeopleFiles, read_people
from tasks.recount.rows import types_of
from tasks.store.database import literal, quote
from tasks.store.store import Artifact

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
        connection: The database.
        job: The job.
        people: Where they are, or a part of them, with all classes.
        share_count: How many there are.
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
        selected = f"SELECT {given} FROM apart WHERE share = {number:d}"
        [(rows,)] = connection.execute(f"COPY ({selected}) TO {literal(str(path))} (FORMAT parquet)").fetchall()
        return int(rows)

    return tuple(keep(number, partial(write, number)) for number in range(shares))


def _typed(connection: duckdb.DuckDBPyConnection, statement: str, names: Sequence[str]) -> str:
    described = connection.execute(f"DESCRIBE {statement}").fetchall()
    return ", ".join(f"{name} {dtype}" for name, (_, dtype, *_) in zip(names, described, strict=True))


def files_sql(paths: Sequence[Path]) -> str:
    """Return the SQL relation of the Parquet files that tasks wrote."""
    return f"read_parquet([{', '.join(literal(str(path)) for path in paths)}], hive_partitioning = false)"


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
