"""Counts the people of written files, from what the run folder keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from core.recount.linked import LinkCount, linked_sql, owners_sql, tells_people
from core.recount.people import PersonCount, combinations_sql, people_sql
from schemas.job.job import Job
from tasks.store.database import literal, quote

COMBINATIONS = "combinations"
NOT_COUNTED = "The people in each class were not counted: what the run folder kept of them is not there any more."


PeopleFiles = tuple[Sequence[Path], Path]
"""Where a release's persons are kept: files of ``class``, ``person`` and ``records``, and one with a row for each class, in whose columns
``label_0`` and so on is what it publishes."""


def count_people(connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], k: int, files: PeopleFiles) -> PersonCount:
    """Counts the persons of the classes of data files.

    Args:
        connection: The database.
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published quasi-identifiers.
        k: What a class must reach.
        files: Where the persons are.
    """
    connection.execute(combinations_sql(source, qids, COMBINATIONS))
    [row] = connection.execute(people_sql(COMBINATIONS, *_read(files), len(qids), k)).fetchall()
    return PersonCount(*row)


def count_linked(
    job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], files: PeopleFiles | None
) -> tuple[LinkCount, ...]:
    """Counts who shares the set of classes that all records of a person are in, where pseudonyms show which these are.

    Args:
        job: Names the persons and the pseudonyms.
        connection: The database.
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published quasi-identifiers.
        files: Where the persons are, if they are known.
    """
    columns, known = job.columns, files if job.columns.person else None
    if columns.links:
        connection.execute(combinations_sql(source, qids, COMBINATIONS))
    counted = []
    for one in columns.links:
        owners = owners_sql(COMBINATIONS, *_read(known), len(qids), [columns.linking.index(name) for name in one]) if known else ""
        statement = linked_sql(source, qids, COMBINATIONS, [quote(name) for name in one], job.privacy.k, owners, records=not columns.person)
        [row] = connection.execute(statement).fetchall()
        counted.append(LinkCount(one, known is not None or tells_people(job, one), *row))
    return tuple(counted)


def _read(files: PeopleFiles) -> tuple[str, str]:
    """Returns what DuckDB reads the classes as, and the persons."""
    kept, labels = files
    classes = f"(SELECT file_row_number AS class, * FROM read_parquet({literal(str(labels))}, file_row_number = true))"
    return classes, f"read_parquet([{', '.join(literal(str(path)) for path in kept)}])"
