"""Phases 1 and 2, chunk by chunk: domains, which are merged, and histograms coded against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.coding import Coder, PackedWords, Packing, positions_among
from core.columns.column_types import agreed_moments, working_type
from core.columns.domains import value_column
from core.columns.numbers import as_dictionary
from core.histograms.domain_counts import DomainCounter, merge_domain_tables
from core.histograms.histogram import HistogramCounter, count_cells
from core.units.digests import digests_of
from core.units.pairs import Pairs
from schemas.errors.base import SourceError
from schemas.errors.values import ValuesError
from schemas.job.job import Job
from tasks.engine.runs import Run
from tasks.engine.steps import BUNDLES, Merge, run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import (
    TableSchema,
    chunk_domain_types,
    chunk_histogram_types,
    domain_schema,
    load_domains,
    read_table,
    write_domains,
    write_table,
)

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
    code="tasks.counting.chunk_counts",
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


OF_CHUNK = "histograms"
"""The step whose artefacts are coded against the chunk's own domains; histograms of other steps are coded as the whole is."""


def write_chunk_histogram(given: ChunkReading, chunk: Chunk, path: Path, batches: Iterable[pa.RecordBatch] | None = None) -> int:
    """Write a chunk's histogram at the finest node, coded by its own domains; return its cell count.

    So it holds whatever other chunks there are, and whatever the hierarchies: only a new or changed file is counted.

    Args:
        batches: The rows of the axes, where they are at hand.
    """
    packing, records = packed_records(given, chunk, loaded_batches=batches)
    counter = HistogramCounter(packing)
    for words, _ in records:
        counter.add(words)
    return write_cells(path, *counter.result())


HISTOGRAMS = FileStep(OF_CHUNK, make=write_chunk_histogram, reads=DOMAINS.reads, under=DOMAINS)
"""The cells of a chunk."""


def count_histograms(run: Run, source: ChunkedSource) -> list[Artifact]:
    """Return each chunk's finest-node histogram as an artefact in the chunk's coding; count missing ones."""
    return run_for_items(run, HISTOGRAMS, ChunkReading.of(run, source), source.chunks)


def write_cells(path: Path, words: PackedWords, counts: NDArray[np.int64]) -> int:
    """Write packed cells and their counts to a Parquet file; return the number of cells."""
    return write_table(path, cell_table(words, counts), chunk_histogram_types(len(words)), OF_CHUNK, "cell_0")


def packed_records(
    given: ChunkReading,
    chunk: Chunk,
    others: Sequence[str] = (),
    loaded_batches: Iterable[pa.RecordBatch] | None = None,
) -> tuple[Packing, Iterator[tuple[PackedWords, list[pa.Array]]]]:
    """Return a chunk's packing, and a lazy iterator over its batches: packed cells and further columns.

    Cells are in the coding of the chunk.

    Args:
        given: Names the axes, and has the chunk's domains, or gets them.
        loaded_batches: The rows of the axes, where they are at hand and nothing further is asked for.
    """
    names = axis_names(given.job)
    # Phase 1 left them; asked for by the step, they are made again if they are damaged.
    domains = load_domains(given.store, DOMAINS.result(given, chunk), names)
    packing, coders = Packing(tuple(domain.size for domain in domains)), [Coder(domain) for domain in domains]

    def batches() -> Iterator[tuple[PackedWords, list[pa.Array]]]:
        wanted = list(dict.fromkeys([*names, *others]))
        try:
            plain = [name for name in others if name not in names]
            for batch in loaded_batches if loaded_batches is not None else read_chunk(chunk, wanted, plain=plain):
                codes = [coder.code(batch.column(place)) for place, coder in enumerate(coders)]
                yield packing.pack(codes), [batch.column(wanted.index(name)) for name in others]
        except LookupError:
            raise SourceError.changed(chunk.name) from None

    return packing, batches()


def cell_table(words: PackedWords, counts: pa.Array) -> pa.Table:
    """Return packed cells and counts as an Arrow table with columns ``cell_0`` … and ``count``."""
    return pa.table({f"cell_{number}": word for number, word in enumerate(words)} | {"count": counts})


def cell_columns(table: pa.Table) -> tuple[PackedWords, NDArray[np.int64]]:
    """Return packed cells and their counts from an Arrow table: the inverse of ``cell_table``."""
    words = tuple(table[f"cell_{number}"].to_numpy() for number in range(table.num_columns - 1))
    return words, table["count"].to_numpy().astype(np.int64, copy=False)


ROW_GROUP = 1 << 17
"""Pairs of a row group: a share of the persons is read without the others."""


def person_key(job: Job, columns: pa.Schema) -> list[tuple[str, str]]:
    """Return (name, type) of each person column, for the keys of what depends on person digests."""
    return [(name, str(columns.field(name).type)) for name in job.columns.person]


def _count(given: ChunkReading, chunk: Chunk, path: Path) -> int:
    """Count the person–cell pairs of one chunk, and save its histogram from the same read."""
    packing, records = packed_records(given, chunk, given.job.columns.person)
    words, digests = [], []
    for cells, persons in records:
        words.append(cells)
        digests.append(digests_of(persons, len(cells[0])))
    mine: PackedWords = tuple(np.concatenate(parts) for parts in zip(*words, strict=True))
    counted = count_cells(mine, packing.product)
    HISTOGRAMS.save_artifact(given, chunk, lambda path: write_cells(path, *counted))
    return write_pairs(path, Pairs.of(np.concatenate(digests), positions_among(counted[0], mine, packing.product)))


PAIRS = FileStep(
    "pairs",
    make=_count,
    reads=lambda _given, chunk: chunk.key,
    settings=lambda given: [axis_names(given.job), person_key(given.job, given.columns)],
)
"""The person–cell pairs of a chunk with their numbers of records; the chunk's histogram is saved with them."""


def count_pairs(run: Run, source: ChunkedSource) -> list[Artifact]:
    """Return each chunk's artefact of person–cell pairs and save its histogram; empty without persons."""
    return run_for_items(run, PAIRS, ChunkReading.of(run, source), source.chunks) if run.job.columns.person else []


def write_pairs(path: Path, pairs: Pairs) -> int:
    """Write person–cell pairs to a Parquet file; return their number."""
    table = pa.table({"person": pairs.persons, "cell": pairs.cells.astype(np.uint32), "count": pairs.counts.astype(np.uint32)})
    pq.write_table(
        table, path, ROW_GROUP, compression="lz4", write_statistics=["person"],
        use_dictionary=["count"], column_encoding={"person": "DELTA_BINARY_PACKED"},
    )  # fmt: skip
    return len(table)


def read_pairs(artifact: Artifact, store: Store, share: int, share_count: int) -> Pairs:
    """Read an artefact's person–cell pairs for one of ``share_count`` shares of the persons.

    Row groups without any of these persons are skipped.
    """
    with pq.ParquetFile(store.path(artifact)) as file:
        groups = list(range(file.num_row_groups))
        if share_count > 1:
            low, high = share * 2**64 // share_count, (share + 1) * 2**64 // share_count
            spans = [file.metadata.row_group(group).column(0).statistics for group in groups]
            groups = [group for group, span in zip(groups, spans, strict=True) if span.max >= low and span.min < high]
        table = file.read_row_groups(groups, use_threads=False)
    persons, cells, counts = (table[name].to_numpy() for name in ("person", "cell", "count"))
    return Pairs(persons, cells.view(np.int32), counts.astype(np.int64)).share(share, share_count)
