"""Counts the people of written files, from what the run folder keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from core.recount.people import PersonCount, combinations_sql, people_sql
from tasks.store.database import literal

NOT_COUNTED = "The people in each class were not counted: what the run folder kept of them is not there any more."


PeopleFiles = tuple[Sequence[Path], Sequence[Path]]
"""Where a release's persons are kept: files of ``class``, ``person`` and ``records``, and one with a row for each class, in whose columns
``label_0`` and so on is what it publishes, or several, whose column ``class`` says of which."""


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
    listed = f"[{', '.join(literal(str(path)) for path in labels)}]"
    # Parts of a release number their classes each by itself, and say so; else a class is a row.
    named = all("class" in pq.read_schema(path).names for path in labels)
    numbered = "file_row_number AS class, * EXCLUDE (file_row_number)"
    classes = f"(SELECT {'*' if named else numbered} FROM read_parquet({listed}, file_row_number = {not named}))"
    people = f"read_parquet([{', '.join(literal(str(path)) for path in kept)}])"
    [row] = connection.execute(people_sql("combinations", classes, people, len(qids), k)).fetchall()
    return PersonCount(*row)
