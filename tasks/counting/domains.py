"""Phase 1: the domains of all quasi-identifiers, counted per chunk and merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.columns.column_types import agreed_moments, working_type
from core.columns.domains import value_column
from core.columns.numbers import as_dictionary
from core.histograms.domain_counts import DomainCounter, merge_domain_tables
from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from schemas.job.job import Job
from tasks.engine.runs import Run
from tasks.engine.steps import BUNDLES, Merge
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import TableSchema, chunk_domain_types, domain_schema, read_table, write_domains, write_table

LARGEST = 1e100
"""What a number may be: of larger ones neither a range nor a square need be a number."""


@dataclass(frozen=True)
class ChunkReading:
    """Settings for counting chunks: job, source columns and store."""

    job: Job
    columns: pa.Schema
    store: Store

    @classmethod
    def of(cls, run: Run, source: ChunkedSource) -> Self:
        """Return the settings for a run over a source."""
        return cls(run.job, source.columns, run.store)


def qid_names(job: Job) -> list[str]:
    """Return the names of the quasi-identifiers, in job order."""
    return [qid.name for qid in job.columns.quasi_identifiers]


def axis_names(job: Job) -> list[str]:
    """Return names of columns whose domains are counted: QIDs, then sensitive ones under a model."""
    return [*qid_names(job), *job.privacy.columns]


def axis_types(job: Job, columns: pa.Schema) -> list[pa.DataType]:
    """Return the Arrow types of the columns of ``axis_names``."""
    return [working_type(columns.field(name).type) for name in axis_names(job)]


def domain_table_schema(job: Job, *, with_persons: bool = False) -> TableSchema:
    """Return the schema of the job's domain table, with or without a column of persons."""
    return domain_schema(value_columns(job), with_persons=with_persons)


def value_columns(job: Job) -> list[str]:
    """Return the names of the value columns of the job's domain table, one per counted column."""
    return [value_column(position) for position in range(len(axis_names(job)))]


class RowCache:
    """Cache of a chunk's rows for the next steps, dropped if they exceed a number of bytes.

    Args:
        most: How many bytes are few enough.
        others: Columns that are read with those of ``axis_names``.

    Attributes:
        batches: Of the columns of ``axis_names``, then the others; None where the chunk was not read, or was too large.
    """

    def __init__(self, most: int, others: Sequence[str] = ()) -> None:
        self.batches: list[pa.RecordBatch] | None = None
        self.others = others
        self._left = most

    def keep(self, batch: pa.RecordBatch) -> None:
        """Add a batch to the cache; drop all batches once they exceed its bytes."""
        first = self.batches is None and self._left > 0
        self._left -= batch.nbytes
        if self._left <= 0:
            self.batches = None
        elif first:
            self.batches = [batch]
        elif self.batches is not None:
            self.batches.append(batch)


def write_chunk_domains(given: ChunkReading, chunk: Chunk, path: Path, row_cache: RowCache | None = None) -> int:
    """Write a chunk's distinct values of QIDs and modelled columns, with counts; return how many.

    Sensitive columns are guarded if a privacy model looks at them.

    Args:
        given: Names the columns.
        path: Gets the counts.
        row_cache: Keeps what was read, if anything is.
    """
    names, types = axis_names(given.job), axis_types(given.job, given.columns)
    counter = DomainCounter(types)
    for number, read in enumerate(read_chunk(chunk, [*names, *(row_cache.others if row_cache else ())])):
        if not number and not _as_promised(read, types):
            raise SourceError.changed(chunk.name)
        batch = pa.RecordBatch.from_arrays(list(map(as_dictionary, read.columns)), names=read.schema.names)
        counter.add(batch)
        if row_cache:
            row_cache.keep(batch)
    table = counter.table()
    # Of distinct values and not of records, with the counts at hand that a message needs.
    _check_finite(table, names, types)
    _check_moments(table, names, types)
    return write_table(path, table, chunk_domain_types(value_columns(given.job), types), "domains")


DOMAINS = FileStep(
    "domains",
    make=write_chunk_domains,
    reads=lambda _given, chunk: chunk.key,
    settings=lambda given: axis_names(given.job),
    # The cells of a chunk are coded against its own domains and have the same key: so both are of one code.
    code="tasks.counting.chunk_histograms",
)
"""The domains of a chunk."""


def _bundle(given: ChunkReading, parts: Sequence[Artifact], path: Path) -> int:
    return _add(given, parts, path, chunk_domain_types(value_columns(given.job), axis_types(given.job, given.columns)), BUNDLES)


def _merge(given: ChunkReading, merge: Merge, path: Path) -> int:
    return _add(given, merge.read, path, domain_table_schema(given.job), "domain")


def _add(given: ChunkReading, parts: Sequence[Artifact], path: Path, promised: TableSchema, name: str) -> int:
    counter = merge_domain_tables((read_table(given.store, part) for part in parts), axis_types(given.job, given.columns))
    return write_domains(path, counter.blocks(), promised, name)


BUNDLED = FileStep(BUNDLES, make=_bundle, reads=lambda _given, parts: [part.sha256 for part in parts], phase="bundle domains")
"""Domains of several chunks."""
# By content, in whatever order: a chunk that was counted anew to the same end changes nothing that follows.
MERGED = FileStep("domain", make=_merge, reads=lambda _given, merge: sorted(part.sha256 for part in merge.parts))
"""The domain table of the source."""


def _as_promised(batch: pa.RecordBatch, types: Sequence[pa.DataType]) -> bool:
    """Return whether the first batch of a chunk has the types of the file's footer.

    Values are checked as domains.
    """
    kinds = (dtype.value_type if pa.types.is_dictionary(dtype) else dtype for dtype in batch.schema.types)
    return [working_type(kind) for kind in kinds][: len(types)] == list(types)


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
            raise ValuesError.moments_out_of_range(name, int(table["count"].to_numpy()[beyond].sum()), first.text, last.text)


def _check_finite(table: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
    for position, (name, dtype) in enumerate(zip(names, types, strict=True)):
        if pa.types.is_floating(dtype):
            finite = pc.is_finite(table[value_column(position)]).to_numpy()
            bad = np.flatnonzero(np.equal(finite, False))
            if len(bad):
                raise SourceError.not_finite(name, int(table["count"].to_numpy()[bad].sum()))
            # Of half floats the bound is beyond all.
            numbers = table[value_column(position)].to_numpy().astype(np.float64)
            if len(bad := np.flatnonzero(np.abs(numbers) > LARGEST)):
                raise ValuesError.too_large(name, int(table["count"].to_numpy()[bad].sum()), LARGEST)
