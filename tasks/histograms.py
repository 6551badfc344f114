"""Phase 2: the root histogram, counted per chunk and merged out of core."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from core.coding import Words
from core.histogram import Histogram, HistogramCounter, merge_sql
from core.lattice import Node
from core.search import packing_of
from schemas.errors import SourceError, StorageError
from schemas.job import Job
from schemas.tables import histogram_schema
from tasks.artifacts import Artifact, Store, key_of
from tasks.coding import CellCoder, Coding, load_coding
from tasks.database import connect, literal
from tasks.domains import qid_names
from tasks.reading import read_chunk
from tasks.sources import Chunk
from tasks.tables import read_table, write_table

VERSION = 1


def cell_table(words: Words, counts: pa.Array) -> pa.Table:
    """Returns cells and counts as the table that artefacts hold."""
    return pa.table({f"cell_{number}": word for number, word in enumerate(words)} | {"count": counts})


def histogram_key(coding: Coding, root: Node, chunk: Chunk) -> str:
    """Returns the fingerprint of a chunk's histogram."""
    return key_of(VERSION, chunk.key, coding.key, root)


def count_histogram(job: Job, coding: Coding, root: Node, chunk: Chunk, store: Store) -> Artifact:
    """Counts the cells of the root node in one chunk.

    Raises:
        SourceError: the file changed since phase 1.
    """

    def write(path: Path) -> int:
        coder = CellCoder.at(coding, root)
        counter = HistogramCounter(coder.packing)
        try:
            for batch in read_chunk(chunk, qid_names(job)):
                counter.add(coder.cells(batch.columns))
        except LookupError:
            raise SourceError.changed(chunk.file.name) from None
        words, counts = counter.result()
        return write_table(path, cell_table(words, counts), histogram_schema(len(words)), "histograms")

    return store.make("histograms", histogram_key(coding, root, chunk), ".parquet", write)


def merge_histograms(job: Job, domain: Artifact, root: Node, parts: Sequence[Artifact], store: Store, spill: Path) -> Artifact:
    """Sums the histograms of all chunks into the root histogram, ascending by cell."""
    coding = load_coding(job, domain, store)
    words = len(packing_of(root, coding.hierarchies).words)

    def write(path: Path) -> int:
        statement = merge_sql([literal(str(store.path(part))) for part in parts], words)
        with connect(job, spill) as connection:
            try:
                connection.execute("SET preserve_insertion_order = true")
                connection.execute(f"COPY ({statement}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION lz4_raw)")
                found = connection.execute(f"SELECT count(*) FROM read_parquet({literal(str(path))})").fetchone()
            except duckdb.Error as error:
                raise StorageError.not_writable(str(spill), type(error).__name__) from None
        assert found is not None
        return int(found[0])

    key = key_of(VERSION, coding.key, root, sorted(part.sha256 for part in parts))
    return store.make("histogram", key, ".parquet", write)


def load_histogram(artifact: Artifact, coding: Coding, root: Node, store: Store) -> Histogram:
    """Reads the root histogram into memory."""
    packing = packing_of(root, coding.hierarchies)
    table = read_table(store, artifact, histogram_schema(len(packing.words)))
    words = tuple(table[f"cell_{number}"].to_numpy() for number in range(len(packing.words)))
    return Histogram(root, packing, words, table["count"].to_numpy().astype(np.int64, copy=False))
