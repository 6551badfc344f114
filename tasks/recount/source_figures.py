"""Figures of a manifest recounted from the source: class sizes, persons and withheld records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from core.recount.groups import withheld_sql
from core.recount.people import has_person_sql
from schemas.job.job import Job
from tasks.recount.original import Original
from tasks.store.database import connect, quote


@dataclass(frozen=True)
class SourceFigures:
    """Counts of the source's classes, persons and withheld records.

    Attributes:
        sizes: Number of classes of the source as it is by records.
        persons: How many persons it has; None where the job names none.
        withheld: Records that ``columns.most_records`` withholds, and of how many persons; None where it does not bound them.
    """

    sizes: Mapping[int, int] = field(default_factory=dict)
    persons: int | None = None
    withheld: tuple[int, int] | None = None


def source_figures(job: Job, original: Original, spill: Path) -> SourceFigures:
    """Count the classes and persons of a release's source, and the records withheld per person.

    Args:
        job: The job that made it.
        original: The source, as it was.
        spill: Folder for DuckDB's spill files.
    """
    with connect(job, spill, last=True) as connection:
        names = ", ".join(quote(qid.name) for qid in job.columns.quasi_identifiers)
        grouped = f"(SELECT count(*) AS records FROM {original.relation} GROUP BY {names})"
        [(sizes,)] = connection.execute(f"SELECT coalesce(histogram(records), MAP {{}}) FROM {grouped}").fetchall()
        withheld = None
        if original.source_relation:
            statement = withheld_sql(original.source_relation, original.relation, list(map(quote, job.columns.person)))
            [withheld] = connection.execute(statement).fetchall()
        return SourceFigures(sizes, _persons(job, connection, original), withheld)


def _persons(job: Job, connection: duckdb.DuckDBPyConnection, original: Original) -> int | None:
    if not job.columns.person:
        return None
    persons = original.persons(job)
    statement = f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(persons)} FROM {original.relation} WHERE {has_person_sql(persons)})"
    [(count,)] = connection.execute(statement).fetchall()
    return int(count)
