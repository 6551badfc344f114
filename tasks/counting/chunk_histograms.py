"""Phase 2, chunk by chunk: the cells of each, counted against its own domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.coding import Coder, PackedWords, Packing
from core.histograms.histogram import HistogramCounter
from schemas.errors.base import SourceError
from schemas.tables import chunk_histogram_types
from tasks.counting.domains import DOMAINS, ChunkReading, axis_names
from tasks.engine.runs import Run
from tasks.engine.steps import each
from tasks.source.chunks import Chunk, ChunkedSource
from tasks.source.reading import read_chunk
from tasks.store.step import FileStep
from tasks.store.store import Artifact
from tasks.store.tables import load_domains, write_of_chunk

OF_CHUNK = "histograms"
"""The step whose artefacts are coded against the chunk's own domains; histograms of other steps are coded as the whole is."""


def count_cells_of(given: ChunkReading, chunk: Chunk, path: Path, held: Iterable[pa.RecordBatch] | None = None) -> int:
    """Counts the cells of one chunk at the finest node, coded against the chunk's own domains and kept under their key.

    So it holds whatever other chunks there are, and whatever the hierarchies: only a new or changed file is counted.

    Args:
        given: Names the axes.
        chunk: What is read.
        path: Gets the cells.
        held: The rows of the axes, where they are at hand.
    """
    packing, records = packed_records(given, chunk, held=held)
    counter = HistogramCounter(packing)
    for words, _ in records:
        counter.add(words)
    return write_cells(path, *counter.result())


HISTOGRAMS = FileStep(OF_CHUNK, make=count_cells_of, reads=DOMAINS.reads, under=DOMAINS)
"""The cells of a chunk."""


def count_histograms(run: Run, source: ChunkedSource) -> list[Artifact]:
    """Phase 2: the histograms of all chunks at the finest node, each coded against the chunk's own domains."""
    return each(run, HISTOGRAMS, ChunkReading.of(run, source), source.chunks)


def write_cells(path: Path, words: PackedWords, counts: NDArray[np.int64]) -> int:
    """Writes the histogram of a chunk and returns its number of cells."""
    return write_of_chunk(path, cell_table(words, counts), chunk_histogram_types(len(words)), OF_CHUNK, "cell_0")


def packed_records(
    given: ChunkReading,
    chunk: Chunk,
    others: Sequence[str] = (),
    held: Iterable[pa.RecordBatch] | None = None,
) -> tuple[Packing, Iterator[tuple[PackedWords, list[pa.Array]]]]:
    """Reads a chunk batch by batch, with the cell of each record in the coding of the chunk.

    Args:
        given: Names the axes, and has the chunk's domains, or gets them.
        chunk: What is read.
        others: Further columns.
        held: The rows of the axes, where they are at hand and nothing further is asked for.

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
            for batch in held if held is not None else read_chunk(chunk, wanted, plain=plain):
                codes = [coder.code(batch.column(place)) for place, coder in enumerate(coders)]
                yield packing.pack(codes), [batch.column(wanted.index(name)) for name in others]
        except LookupError:
            raise SourceError.changed(chunk.name) from None

    return packing, batches()


def cell_table(words: PackedWords, counts: pa.Array) -> pa.Table:
    """Returns cells and counts as the table that artefacts hold."""
    return pa.table({f"cell_{number}": word for number, word in enumerate(words)} | {"count": counts})


def cell_columns(table: pa.Table) -> tuple[PackedWords, NDArray[np.int64]]:
    """Inverse of ``cell_table``."""
    words = tuple(table[f"cell_{number}"].to_numpy() for number in range(table.num_columns - 1))
    return words, table["count"].to_numpy().astype(np.int64, copy=False)
