"""Sets records apart by share, as a recount of classes wants them: of a release, and of who is in its classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, TypeAdapter

from core.recount.classes import Recount
from core.recount.linked import LinkCount
from core.recount.people import combinations_sql
from core.recount.shares import ShareClasses, share_sql
from schemas.job.job import Job
from schemas.release.manifest import published_qids
from tasks.recount.original import Original
from tasks.recount.people import COMBINATIONS, PeopleFiles, count_linked, read_people
from tasks.recount.population import count_in_population
from tasks.recount.recount import count_in_classes, read_once
from tasks.recount.rows import column_faults_of, read_faults, types_of
from tasks.recount.together import Counts, count_together_of_people
from tasks.recount.verdict import AdditionalCounts
from tasks.release.files import Csv, file_error
from tasks.store.database import connect, literal, quote
from tasks.store.store import Artifact

Keep = Callable[[int, Callable[[Path], int]], Artifact]
"""Keeps a table of a share: its number, and what writes it."""


class DividedRelease(BaseModel):
    """A part of the data files, set apart.

    Attributes:
        shares: By number, the records of each share.
        records: How many the part has.
        digests: SHA-256 of each of its files.
        types: DuckDB's types of its columns.
        faults: What is wrong with its columns; then nothing was set apart.
    """

    model_config = ConfigDict(frozen=True)

    shares: tuple[Artifact, ...] = ()
    records: int = 0
    digests: tuple[str, ...] = ()
    types: dict[str, str] = {}
    faults: tuple[str, ...] = ()


@contextmanager
def written_rows(
    job: Job, files: Sequence[Path], spill: Path, what: str, layout: Csv, view: str
) -> Iterator[tuple[duckdb.DuckDBPyConnection, list[str]]]:
    """Yields a database with a view of data files, and what is wrong with their columns.

    Args:
        job: The job.
        files: The data files.
        spill: Folder for DuckDB's spill files.
        what: How the release is called in a message.
        layout: How CSV files are read.
        view: Its name.
    """
    faults = column_faults_of(job, files) if files[0].suffix == ".parquet" else []
    with connect(job, spill) as connection, file_error(what):
        source = read_once(connection, files, layout)
        if not faults and files[0].suffix != ".parquet":
            faults = read_faults(job, connection, source)
        connection.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {source}")
        yield connection, faults


def divide_release(connection: duckdb.DuckDBPyConnection, job: Job, view: str, shares: int, keep: Keep) -> DividedRelease:
    """Sets the records of data files apart by the classes that they are in, with what is counted in classes."""
    types, columns = types_of(connection, view), job.columns
    qids = published_qids(job)
    wanted = dict.fromkeys([*qids, *columns.sensitive, *job.privacy.columns, *columns.linking])
    share = share_sql({quote(name): types[name] for name in qids}, shares)
    made = _set_apart(connection, f"SELECT {', '.join(map(quote, wanted))}, {share} FROM {view}", list(wanted), shares, keep)
    return DividedRelease(shares=made, records=sum(one.rows for one in made), types=types)


class DividedMembers(BaseModel):
    """Who is in which class, set apart.

    Attributes:
        people: By number of a share, who is in its classes.
        persons: By number of another share, of persons, how many records each of them has.
        classes: By number of the first kind of share, what its classes publish; nothing where another part's task tells that.
    """

    model_config = ConfigDict(frozen=True)

    people: tuple[Artifact, ...]
    persons: tuple[Artifact, ...]
    classes: tuple[Artifact, ...] = ()


def divide_members(
    connection: duckdb.DuckDBPyConnection, job: Job, people: PeopleFiles, shares: int, keep: Callable[[str], Keep], *, first: bool
) -> DividedMembers:
    """Sets who is in which class apart as the classes are; those of no class that is known go to the first share, as unexpected.

    Persons are set apart by themselves too: somebody may be in classes of several shares.

    Args:
        connection: The database.
        job: The job.
        people: Where they are, or a part of them, with all classes.
        shares: How many there are.
        keep: Returns what keeps tables of a kind.
        first: Whether what the classes publish is set apart too; another part's task does it where it is not.
    """
    classes, persons = read_people(people)
    types = types_of(connection, classes)
    labels = [f"label_{number}" for number in range(len(published_qids(job)))]
    columns = list(types_of(connection, persons))
    share = share_sql({name: types[name] for name in labels}, shares)
    connection.execute(f"CREATE TEMP TABLE kept_classes AS SELECT *, {share} AS share FROM {classes}")
    named = ", ".join(f"p.{quote(name)}" for name in columns)
    statement = f"SELECT {named}, coalesce(k.share, 0) FROM {persons} AS p LEFT JOIN kept_classes AS k ON k.class = p.class"
    made = _set_apart(connection, statement, columns, shares, keep("people"))
    each = f"SELECT person, sum(records)::BIGINT, (person % {shares:d})::INTEGER FROM {persons} GROUP BY person"
    of_persons = _set_apart(connection, each, ["person", "records"], shares, keep("persons"))
    if not first:
        return DividedMembers(people=made, persons=of_persons)
    kept = ["class", *labels]
    classed = _set_apart(connection, f"SELECT {', '.join(map(quote, kept))}, share FROM kept_classes", kept, shares, keep("classes"))
    return DividedMembers(people=made, persons=of_persons, classes=classed)


def _set_apart(
    connection: duckdb.DuckDBPyConnection, statement: str, columns: Sequence[str], shares: int, keep: Keep
) -> tuple[Artifact, ...]:
    """Writes the rows of a statement into a file for each share, by the number that its last column holds."""
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


_CLASSES: TypeAdapter[ShareClasses] = TypeAdapter(ShareClasses)
_RECOUNT = TypeAdapter(Recount)
_TOGETHER: TypeAdapter[Counts] = TypeAdapter(Counts)
_LINKED: TypeAdapter[tuple[LinkCount, ...]] = TypeAdapter(tuple[LinkCount, ...])

Population = tuple[int, Mapping[tuple[int, int], int]] | None
"""As a recount has it."""


def files_sql(paths: Sequence[Path]) -> str:
    """Returns what DuckDB reads tables of tasks as."""
    return f"read_parquet([{', '.join(literal(str(path)) for path in paths)}], hive_partitioning = false)"


def count_share(
    connection: duckdb.DuckDBPyConnection,
    job: Job,
    number: int,
    share: Sequence[Path],
    people: PeopleFiles | None,
    columns: pa.Schema,
    wholes: Mapping[str, Path],
) -> str:
    """Counts the classes of a share; returns it as text.

    Args:
        connection: A database.
        job: The job.
        number: Which share it is.
        share: The share's records, in parts.
        people: Who is in its classes, for jobs that name persons.
        columns: Types of the source's columns.
        wholes: By sensitive column, the values that classes are compared with and their records.
    """
    found = count_in_classes(job, connection, files_sql(share), people, Original("", columns), lambda column: files_sql([wholes[column]]))
    return json.dumps([number, _CLASSES.dump_python(found)])


def read_classes(text: str) -> tuple[int, ShareClasses]:
    """Returns which share it is, and what was counted in it."""
    number, found = json.loads(text)
    return int(number), _CLASSES.validate_python(found)


def additional_counts(connection: duckdb.DuckDBPyConnection, job: Job, records: Sequence[Path], people: PeopleFiles | None) -> str:
    """Counts what needs all classes at once; returns it as text.

    Args:
        connection: A database.
        job: The job.
        records: All records, set apart or not.
        people: Who is in the classes, for jobs that name persons.
    """
    source, qids = files_sql(records), [quote(name) for name in published_qids(job)]
    if people:
        connection.execute(combinations_sql(source, qids, COMBINATIONS))
    linked = count_linked(job, connection, source, qids, people)
    together = _TOGETHER.dump_python(count_together_of_people(job, connection, people))
    return json.dumps([_LINKED.dump_python(linked), _pairs(count_in_population(job, connection, source)), together])


def read_additional_counts(text: str) -> AdditionalCounts:
    """Returns what was counted beside the classes."""
    linked, population, together = json.loads(text)
    return AdditionalCounts(_LINKED.validate_python(linked), _population(population), _TOGETHER.validate_python(together))


def recount_text(found: Recount) -> str:
    """Returns a recount as text."""
    return json.dumps([_RECOUNT.dump_python(replace(found, population=None)), _pairs(found.population)])


def recount_of(text: str) -> Recount:
    """Returns the recount of a text."""
    found, population = json.loads(text)
    return replace(_RECOUNT.validate_python(found), population=_population(population))


def _pairs(population: Population) -> list[Any] | None:
    """Returns pairs as JSON has them, in which they can be no keys."""
    return [population[0], [[*pair, classes] for pair, classes in population[1].items()]] if population else None


def _population(pairs: list[Any] | None) -> Population:
    return (pairs[0], {(one, other): classes for one, other, classes in pairs[1]}) if pairs else None
