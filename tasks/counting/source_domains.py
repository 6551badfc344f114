"""Phase 1 for the source: first read of all chunks, merge of their domains, ends of ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.columns.column_types import working_type
from core.columns.domains import Domain, domain_blocks
from core.columns.numbers import as_numbers, is_numerical, to_numpy
from core.recoding.ends import Ends, shared_ends
from schemas.job.job import Job
from schemas.job.method import METHODS
from tasks.counting.chunk_counts import (
    BUNDLED,
    DOMAINS,
    HISTOGRAMS,
    MERGED,
    ChunkReading,
    RowCache,
    axis_names,
    axis_types,
    domain_table_schema,
    qid_names,
    write_chunk_domains,
    write_chunk_histogram,
)
from tasks.counting.coding import Coding
from tasks.counting.contents import CONTENTS, ContentReading, DigestedColumns, digest_contents, digested_by
from tasks.engine.runs import Run
from tasks.engine.steps import Merge, merge_on_cluster, run_for_item, run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.duckdb_objects import register_objects
from tasks.source.person_records import drawn_values_sql, person_condition_sql, person_number_sql
from tasks.store.database import connect, quote
from tasks.store.step import FilesStep, FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import load_value_counts, write_domains

SHARE_IN_MEMORY = 8
"""Which part of the memory the rows of chunks may take between two looks at them, all that are worked on at a time together."""


@dataclass(frozen=True)
class FirstReading(ChunkReading):
    """Settings of the first read of a chunk: domains, and whether cells and digests are made too.

    Further counts are made of chunks that are small enough to be held.

    Attributes:
        most: Bytes that are small enough.
        cells: Whether their cells are counted.
        digested: By what their records are digested; None where they are not.
    """

    most: int
    cells: bool
    digested: DigestedColumns | None


def _read(given: FirstReading, chunk: Chunk) -> Artifact:
    others = [name for name in (given.digested.read if given.digested else ()) if name not in axis_names(given.job)]
    held = RowCache(given.most, others if given.most else ())
    made = DOMAINS.save_artifact(given, chunk, lambda path: write_chunk_domains(given, chunk, path, held))
    if held.batches is not None and given.cells:
        HISTOGRAMS.save_artifact(given, chunk, partial(write_chunk_histogram, given, chunk, batches=held.batches))
    if held.batches is not None and given.digested:
        contents = ContentReading(given.job, given.columns, given.store, given.digested)
        CONTENTS.save_artifact(contents, chunk, partial(digest_contents, contents, chunk, batches=held.batches))
    return made


READ: FilesStep[FirstReading, Chunk, Artifact] = FilesStep("domains", make=_read, reads=DOMAINS.reads, under=DOMAINS)
"""The domains of a chunk, and what the next steps would read it for once more."""


def count_domains(run: Run, source: ChunkedSource, *, count_cells: bool = False, digest_records: bool = False) -> Artifact:
    """Return the artefact of the source's domain table (phase 1), counted in chunks; set ``run.domain``.

    It has the persons of values where ranges may end only at values that k persons share.

    Args:
        count_cells: Whether their histograms are wanted next: those of chunks that are small enough
            to be held are counted without another look.
        digest_records: The same for the digests by which their records are re-linked.
    """
    by = digested_by(run.job, source.payload) if digest_records and not run.job.is_scratch else None
    # With persons, cells are counted together with their pairs.
    most = run.job.task_memory // (SHARE_IN_MEMORY * run.workers) if (count_cells or by) and not run.job.columns.person else 0
    parts = run_for_items(run, READ, FirstReading(run.job, source.columns, run.store, most, count_cells, by), source.chunks)
    given = ChunkReading.of(run, source)
    merged = run.domain = run_for_item(run, MERGED, given, Merge(parts, merge_on_cluster(run, BUNDLED, given, parts)), "merge domains")
    if not needs_persons(run.job):
        return merged
    return run_for_item(run, PERSONS, PersonsReading(run.job, source, run.store, run.spill), merged, "persons of values", elsewhere=True)


def ends_of(job: Job, coding: Coding) -> tuple[Ends | None, ...]:
    """Return each QID's allowed range ends, None for unranged ones; empty where ends are observed values."""
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
    """Return whether persons must be counted at each value, so that k persons share range ends."""
    return bool(job.columns.person) and job.shared_ends and not METHODS[job.method.name].one_level


@dataclass(frozen=True)
class PersonsReading:
    """Settings for counting the persons of values: job, source, store and spill folder."""

    job: Job
    source: ChunkedSource
    store: Store
    spill: Path


def _count(given: PersonsReading, domain: Artifact, path: Path) -> int:
    """Count the persons of each numeric or date QID's values, each once, at a drawn record's value.

    The count is 0 in all other columns.
    """
    job, axes = given.job, load_value_counts(given.store, domain, len(axis_names(given.job)))
    names = qid_names(job)
    for position, axis in enumerate(axes):
        numbers = position < len(names) and as_numbers(axis.values.drop_null()) is not None
        persons = _persons_at(given, names[position], axis.values) if numbers else np.zeros(len(axis.counts), np.int64)
        axes[position] = axis._replace(persons=persons)
    return write_domains(
        path, domain_blocks(axes, axis_types(job, given.source.columns)), domain_table_schema(job, with_persons=True), "domain"
    )


PERSONS = FileStep(
    "domain",
    make=_count,
    reads=lambda given, domain: [domain.sha256, given.source.digest],
    settings=lambda given: given.job.columns.person,
    phase="persons",
)
"""The domain table with a column ``persons``."""


def _persons_at(given: PersonsReading, name: str, values: pa.Array) -> NDArray[np.int64]:
    """Count the persons at each value, each person at that of a drawn record, shape (values,)."""
    job, source = given.job, given.source
    types = {person: working_type(source.columns.field(person).type) for person in job.columns.person}
    # Under names of ours: what the user calls a column could be one of them.
    whose = {f"person_{place}": dtype for place, dtype in enumerate(types.values())}
    named = ", ".join(f"{quote(person)} AS {own}" for person, own in zip(types, whose, strict=True))
    there = f"{person_condition_sql(types)} AND {quote(name)} IS NOT NULL"
    # Zero has two signs and is one value, which the domain writes without any.
    value = f"{quote(name)} + 0" if pa.types.is_floating(values.type) else quote(name)
    rows = f"SELECT {value} AS value, {named} FROM {source.relation} WHERE {there}"
    drawn = drawn_values_sql(rows, whose, person_number_sql(whose))
    with connect(job, given.spill) as connection:
        register_objects(connection, source.relation)
        found = connection.sql(f"SELECT value, count(*) AS persons FROM ({drawn}) GROUP BY value").to_arrow_table()
    persons = np.zeros(len(values), np.int64)
    # A value that reads otherwise here than there counts nobody, which makes ranges wider and no end less safe.
    places = pc.index_in(found["value"].combine_chunks().cast(values.type, safe=False), values)
    known = to_numpy(places.is_valid())
    persons[to_numpy(places.drop_null())] = found["persons"].to_numpy()[known]
    return persons
