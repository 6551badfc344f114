"""Counts the classes of written files that break a promise on sensitive values: by records, or by people where a job names them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import duckdb
import pyarrow as pa

from core.recount.spreads import one_value_sql
from schemas.job.job import Job
from tasks.recount.closeness import make_whole
from tasks.recount.original import Original
from tasks.recount.people import strange_values, values_of_people, whole_of_people
from tasks.store.database import quote


def spread_faults(
    job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str], original: Original | None, *, by_people: bool
) -> tuple[list[str], dict[str, dict[str, float]], list[str]]:
    """Counts the classes that break a promise on sensitive values.

    Args:
        job: Says what is promised.
        connection: The database.
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published QID columns.
        original: The source, of which t-closeness is measured.
        by_people: Whether the people of the classes were counted, so that each counts once for each of their values. Where the job names
            persons and they were not, only which values there are can be counted.

    Returns:
        The faults, the worst class by promise and column, and the columns of which nothing was counted.

    Raises:
        HierarchyError: the hierarchy of a distance cannot be read, or lacks values.
    """
    faults: list[str] = []
    measured: dict[str, dict[str, float]] = {}
    unread: list[str] = []
    whole = original if original and original.is_whole else None
    if by_people:
        for column in job.privacy.columns:
            if strange := strange_values(connection, job, source, qids, column):
                faults.append(
                    f"in {strange:,} of the classes the values of '{column}' are not those of the people whom the run folder keeps"
                )
    for kind, column, spec in job.privacy.models:
        if job.columns.person and not by_people and not kind.of_presence:
            unread.append(column)
            continue
        relation, classed, value, among = source, list(qids), quote(column), whole or Original(source, pa.schema([]))
        if by_people:
            relation, classed, value = values_of_people(job, column)
            among = whole_of_people(job, column, whole)
        levels = make_whole(job, connection, column, spec.hierarchy, among) if kind.of_whole else 0
        failing, classes, worst = _counts(connection, kind.statement(relation, classed, value, spec, levels))
        measured.setdefault(kind.section, {})[column] = worst
        if failing:
            faults.append(f"{failing:,} of {classes:,} classes {kind.broken(column, spec)}")
    return faults, measured, list(dict.fromkeys(unread))


def count_one_value(job: Job, connection: duckdb.DuckDBPyConnection, source: str, qids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Counts the classes in which all who have a value have the same, and their records, by sensitive column, whatever was promised.

    Args:
        job: Names the sensitive columns.
        connection: The database.
        source: What DuckDB reads the data files as.
        qids: Quoted names of the published QID columns.
    """
    columns = job.columns.sensitive
    if not columns:
        return {}
    [row] = connection.execute(one_value_sql(source, qids, [quote(column) for column in columns])).fetchall()
    return {column: (int(row[2 * place]), int(row[2 * place + 1])) for place, column in enumerate(columns)}


def _counts(connection: duckdb.DuckDBPyConnection, statement: str) -> tuple[int, int, float]:
    [(failing, classes, worst)] = connection.execute(statement).fetchall()
    return int(failing), int(classes), float(worst) if worst is not None and isfinite(worst) else 0.0
