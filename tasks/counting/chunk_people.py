"""Phase 2, chunk by chunk, where the job names persons: who has records in which cells, beside the histogram of the chunk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.columns.coding import Words, places_among
from core.histograms.histogram import count_cells
from core.persons.digests import digests_of
from core.persons.pairs import Pairs
from schemas.job.job import Job
from tasks.counting.chunk_histograms import OF_CHUNK, packed_records, write_cells
from tasks.counting.domains import chunk_key
from tasks.source.chunks import Chunk, PieceKey
from tasks.store.keys import Key, Step
from tasks.store.store import Artifact, Store

STEP, OF_PERSONS = Step("pairs", __name__), "pairs"
ROW_GROUP = 1 << 17
"""Pairs of a row group: a share of the persons is read without the others."""


def pairs_key(job: Job, columns: pa.Schema, chunk: Sequence[PieceKey]) -> Key:
    """Returns the key of the pairs of a chunk, given by its own."""
    return STEP.key(chunk_key(job, chunk), person_key(job, columns))


def person_key(job: Job, columns: pa.Schema) -> list[tuple[str, str]]:
    """Returns what the digests of persons depend on besides the records: a person is coded by value and kind of value."""
    return [(name, str(columns.field(name).type)) for name in job.columns.person]


def count_chunk_pairs(job: Job, columns: pa.Schema, chunk: Chunk, store: Store) -> Artifact:
    """Counts the persons of each cell of one chunk, and its cells with them: the chunk is read once for both.

    Raises:
        SourceError: the file changed since phase 1.
        StorageError: it is not what its step promises.
    """

    def write(path: Path) -> int:
        packing, records = packed_records(job, columns, chunk, store, job.columns.person)
        words, digests = [], []
        for cells, persons in records:
            words.append(cells)
            digests.append(digests_of(persons, len(cells[0])))
        mine: Words = tuple(np.concatenate(parts) for parts in zip(*words, strict=True))
        counted = count_cells(mine, packing.product)
        store.make(OF_CHUNK, chunk_key(job, chunk.key), ".parquet", lambda path: write_cells(path, *counted))
        return write_pairs(path, Pairs.of(np.concatenate(digests), places_among(counted[0], mine, packing.product)))

    return store.make(OF_PERSONS, pairs_key(job, columns, chunk.key), ".parquet", write)


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
