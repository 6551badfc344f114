"""Counts the people of written files, from what the run folder keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from core.recount.people import PersonCount, combinations_sql, people_sql
from tasks.store.database import literal

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
    kept, labels = files
    connection.execute(combinations_sql(source, qids, "combinations"))
    classes = f"(SELECT file_row_number AS class, * FROM read_parquet({literal(str(labels))}, file_row_number = true))"
    people = f"read_parquet([{', '.join(literal(str(path)) for path in kept)}])"
    [row] = connection.execute(people_sql("combinations", classes, people, len(qids), k)).fetchall()
    return PersonCount(*row)
