"""Counts the classes of a share, and reads back what tasks counted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pydantic import TypeAdapter

from core.recount.classes import Recount
from core.recount.linked import LinkCount
from core.recount.people import combinations_sql
from core.recount.shares import ShareClasses
from schemas.job.job import Job
from schemas.release.manifest import published_qids
from tasks.recount.original import Original
from tasks.recount.people import COMBINATIONS, PeopleFiles, count_linked
from tasks.recount.population import count_in_population
from tasks.recount.recount import count_in_classes
from tasks.recount.together import Counts, count_together_of_people
from tasks.recount.verdict import AdditionalCounts
from tasks.store.database import literal, quote

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

    Raises:
        HierarchyError: the hierarchy of a distance cannot be read, or lacks values.
        duckdb.Error: the files cannot be read.
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

    Raises:
        PopulationError: the population is not as the job has it.
        duckdb.Error: the files cannot be read.
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
