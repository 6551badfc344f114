"""Phase 2, chunk by chunk: the histogram of each chunk, coded against its own domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.columns.coding import Coder, PackedWords, Packing, positions_among
from core.histograms.histogram import HistogramCounter, count_cells
from core.units.digests import digests_of
from core.units.pairs import Pairs
from schemas.errors.base import SourceError
from schemas.job.job import Job
from tasks.counting.domains import DOMAINS, ChunkReading, axis_names
from tasks.engine.runs import Run
from tasks.engine.steps import run_for_items
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import chunk_histogram_types, load_domains, write_table

OF_CHUNK = "histograms"
"""The step whose artefacts are coded against the chunk's own domains; histograms of other steps are coded as the whole is."""


def write_chunk_histogram(given: ChunkReading, chunk: Chunk, path: Path, batches: Iterable[pa.RecordBatch] | None = None) -> int:
    """Write a chunk's histogram at the finest node, coded by its own domains; return its cell count.

    So it holds whatever other chunks there are, and whatever the hierarchies: only a new or changed file is counted.

    Args:
        given: Names the axes.
        path: Gets the cells.
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
        others: Further columns.
        loaded_batches: The rows of the axes, where they are at hand and nothing further is asked for.

    Returns:
        How cells are packed; the words of each batch, and its further columns.
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
