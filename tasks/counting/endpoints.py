"""Ends that a job's ranges may have, and the number of persons at each value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.domains import Domain, domain_blocks
from core.columns.numbers import as_numbers, is_numerical, to_numpy
from core.recoding.ends import Ends, shared_ends
from schemas.job.job import Job
from schemas.job.method import METHODS
from tasks.counting.coding import Coding
from tasks.counting.domains import axis_names, axis_types, qid_names, schema_of
from tasks.source.bounds.person_records import has_person_sql
from tasks.source.chunks import ChunkedSource
from tasks.source.duckdb_objects import register_objects
from tasks.store.database import connect, quote
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import load_counted, write_domains


def ends_of(job: Job, coding: Coding) -> tuple[Ends | None, ...]:
    """Return the allowed range ends of each quasi-identifier, None for those not published as ranges.

    The tuple is empty where ranges end at observed values.
    """
    if not job.shared_ends:
        return ()
    return coding.once(("ends", job.privacy.k), lambda: tuple(_ends(job, coding)))


def _ends(job: Job, coding: Coding) -> Iterator[Ends | None]:
    for qid, domain, hierarchy in zip(job.columns.quasi_identifiers, coding.domains, coding.hierarchies, strict=True):
        ranged = is_numerical(domain) and not hierarchy.least
        yield shared_ends(_counted(job, domain), qid.hierarchy, job.privacy.k) if ranged else None


def _counted(job: Job, domain: Domain) -> Domain:
    """Return a domain with 0 persons at each value if persons were not counted, so that all ends are open."""
    uncounted = job.columns.person and domain.persons is None
    return replace(domain, persons=np.zeros(len(domain.values), np.int64)) if uncounted else domain


def needs_persons(job: Job) -> bool:
    """Return whether persons must be counted at values, for range ends of classes with own labels."""
    return bool(job.columns.person) and job.shared_ends and not METHODS[job.method.name].one_level


@dataclass(frozen=True)
class PersonsReading:
    """Settings for counting the persons of values: job, source, store and spill folder."""

    job: Job
    source: ChunkedSource
    store: Store
    spill: Path


def _count(given: PersonsReading, domain: Artifact, path: Path) -> int:
    """Count the persons of each numeric or date QID's values, each person once, at the least value.

    The count is 0 in all other columns.
    """
    job, axes = given.job, load_counted(given.store, domain, len(axis_names(given.job)))
    names = qid_names(job)
    for position, axis in enumerate(axes):
        numbers = position < len(names) and as_numbers(axis.values.drop_null()) is not None
        persons = _persons_at(given, names[position], axis.values) if numbers else np.zeros(len(axis.counts), np.int64)
        axes[position] = axis._replace(persons=persons)
    return write_domains(path, domain_blocks(axes, axis_types(job, given.source.columns)), schema_of(job, persons=True), "domain")


PERSONS = FileStep(
    "domain",
    make=_count,
    reads=lambda given, domain: [domain.sha256, given.source.digest],
    settings=lambda given: given.job.columns.person,
    phase="persons",
)
"""The domain table with a column ``persons``."""


def _persons_at(given: PersonsReading, name: str, values: pa.Array) -> NDArray[np.int64]:
    """Count the persons at each value, each person at the least value, shape (values,)."""
    job, source = given.job, given.source
    columns = [quote(person) for person in job.columns.person]
    somebody = has_person_sql({person: source.columns.field(person).type for person in job.columns.person})
    least = f"SELECT min({quote(name)}) AS value FROM {source.relation} WHERE {somebody} GROUP BY {', '.join(columns)}"
    with connect(job, given.spill) as connection:
        register_objects(connection, source.relation)
        found = connection.sql(f"SELECT value, count(*) AS persons FROM ({least}) WHERE value IS NOT NULL GROUP BY value").to_arrow_table()
    persons = np.zeros(len(values), np.int64)
    # A value that reads otherwise here than there counts nobody, which makes ranges wider and no end less safe.
    places = pc.index_in(found["value"].combine_chunks().cast(values.type, safe=False), values)
    known = to_numpy(places.is_valid())
    persons[to_numpy(places.drop_null())] = found["persons"].to_numpy()[known]
    return persons
