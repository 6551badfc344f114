"""Phase 2, chunk by chunk, where the job names persons: who has records in which cells, beside the histogram of the chunk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.coding import PackedWords, positions_among
from core.histograms.histogram import count_cells
from core.persons.digests import digests_of
from core.persons.pairs import Pairs
from schemas.job.job import Job
from tasks.counting.chunk_histograms import HISTOGRAMS, packed_records, write_cells
from tasks.counting.domains import ChunkReading, axis_names
from tasks.engine.runs import Run
from tasks.engine.steps import each
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store

ROW_GROUP = 1 << 17
"""Pairs of a row group: a share of the persons is read without the others."""


def person_key(job: Job, columns: pa.Schema) -> list[tuple[str, str]]:
    """Returns what the digests of persons depend on besides the records: a person is coded by value and kind of value."""
    return [(name, str(columns.field(name).type)) for name in job.columns.person]


def _count(given: ChunkReading, chunk: Chunk, path: Path) -> int:
    """Counts the persons of each cell of one chunk, and its cells with them: the chunk is read once for both."""
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
"""Who has records in which cells of a chunk, and how many; beside it the chunk's histogram."""


def count_pairs(run: Run, source: ChunkedSource) -> list[Artifact]:
    """Phase 2: the pairs of person and cell of all chunks, and their histograms with them; none where the job names no person."""
    return each(run, PAIRS, ChunkReading.of(run, source), source.chunks) if run.job.columns.person else []


def write_pairs(path: Path, pairs: Pairs) -> int:
    """Writes pairs and returns how many there are."""
    table = pa.table({"person": pairs.persons, "cell": pairs.cells.astype(np.uint32), "count": pairs.counts.astype(np.uint32)})
    pq.write_table(
        table, path, ROW_GROUP, compression="lz4", write_statistics=["person"],
        use_dictionary=["count"], column_encoding={"person": "DELTA_BINARY_PACKED"},
    )  # fmt: skip
    return len(table)


def read_pairs(artifact: Artifact, store: Store, share: int, shares: int) -> Pairs:
    """Reads the pairs of one share of the persons; of the file only what may hold any of these."""
    with pq.ParquetFile(store.path(artifact)) as file:
        groups = list(range(file.num_row_groups))
        if shares > 1:
            low, high = share * 2**64 // shares, (share + 1) * 2**64 // shares
            spans = [file.metadata.row_group(group).column(0).statistics for group in groups]
            groups = [group for group, span in zip(groups, spans, strict=True) if span.max >= low and span.min < high]
        table = file.read_row_groups(groups, use_threads=False)
    persons, cells, counts = (table[name].to_numpy() for name in ("person", "cell", "count"))
    return Pairs(persons, cells.view(np.int32), counts.astype(np.int64)).share(share, shares)
