"""Phase 1: the domains of all QIDs, counted per chunk and merged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandera.polars as pandera
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from core.columns.agreed_moments import agreed_moments
from core.columns.column_types import in_utc, working_type
from core.columns.domains import DomainCounter, merge_domains, value_column
from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from schemas.job.job import Job
from schemas.tables import domain_schema, source_schema
from tasks.source.reading import read_chunk
from tasks.source.sources import Chunk, Source
from tasks.store.store import Artifact, Store, key_of
from tasks.store.tables import checked, read_table, write_table

VERSION = 2


def qid_names(job: Job) -> list[str]:
    """Returns the names of the QIDs in job order."""
    return [qid.name for qid in job.columns.quasi_identifiers]


def axis_names(job: Job) -> list[str]:
    """Returns the names of the columns whose domains are counted: the QIDs, then the sensitive columns that a privacy model looks at."""
    return [*qid_names(job), *job.privacy.columns]


def axis_types(job: Job, columns: pa.Schema) -> list[pa.DataType]:
    """Returns the types of the values of these columns."""
    return [working_type(columns.field(name).type) for name in axis_names(job)]


def schema_of(job: Job) -> pandera.DataFrameSchema:
    """Returns the Pandera schema of this job's domain tables."""
    return domain_schema([value_column(position) for position in range(len(axis_names(job)))])


def domains_key(chunk: Chunk, names: Sequence[str]) -> str:
    """Returns the fingerprint of a chunk's domain table."""
    return key_of(VERSION, chunk.key, names)


def count_domains(job: Job, columns: pa.Schema, chunk: Chunk, store: Store) -> Artifact:
    """Counts the distinct values of every QID in one chunk.

    Raises:
        SourceError: the file cannot be read, a numerical QID holds NaN or infinity, or one of dates or times a moment that not every
            program reads alike.
    """
    names, types = axis_names(job), axis_types(job, columns)

    def write(path: Path) -> int:
        counter = DomainCounter(types)
        for number, batch in enumerate(read_chunk(chunk, names)):
            if not number:
                _check_source(batch, names, types)
            counter.add(batch)
        table = counter.table()
        _check_finite(table, names, types)
        _check_moments(table, names, types)
        return write_table(path, table, schema_of(job), "domains")

    return store.make("domains", domains_key(chunk, names), ".parquet", write)


def merge_chunks(job: Job, source: Source, parts: Sequence[Artifact], store: Store) -> Artifact:
    """Sums the domain tables of all chunks into one."""
    types = axis_types(job, source.columns)

    def write(path: Path) -> int:
        merged = merge_domains((read_table(store, part, schema_of(job)) for part in parts), types)
        return write_table(path, merged, schema_of(job), "domain")

    # Sorted: the same chunks in another order have the same domain.
    return store.make("domain", key_of(VERSION, sorted(part.sha256 for part in parts)), ".parquet", write)


def _check_source(batch: pa.RecordBatch, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
    # The first batch of every chunk shows whether the file still has the types of its footer; values are checked as domains.
    plain = pa.table({name: batch.column(name).slice(0, 1000).cast(dtype) for name, dtype in zip(names, types, strict=True)})
    dtypes = pl.DataFrame(pa.schema([(name, in_utc(dtype)) for name, dtype in zip(names, types, strict=True)]).empty_table()).schema
    checked(plain, source_schema(dict(dtypes)), "source")


def _check_moments(table: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
    for position, (name, dtype) in enumerate(zip(names, types, strict=True)):
        if not (pa.types.is_date(dtype) or pa.types.is_timestamp(dtype)):
            continue
        values = table[value_column(position)].combine_chunks()
        numbers = values.cast(pa.int32() if pa.types.is_date32(dtype) else pa.int64())
        first, last = agreed_moments(dtype)
        outside = pc.or_(pc.less(numbers, first.number), pc.greater(numbers, last.number))
        beyond = pc.fill_null(outside, False).to_numpy(zero_copy_only=False)
        if beyond.any():
            raise ValuesError.no_moments(name, int(table["count"].to_numpy()[beyond].sum()), first.words, last.words)


def _check_finite(table: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
    for position, (name, dtype) in enumerate(zip(names, types, strict=True)):
        if pa.types.is_floating(dtype):
            finite = pc.is_finite(table[value_column(position)]).to_numpy()
            bad = np.flatnonzero(np.equal(finite, False))
            if len(bad):
                raise SourceError.not_finite(name, int(table["count"].to_numpy()[bad].sum()))
