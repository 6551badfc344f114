"""Phase 2: the root histogram, counted per chunk and merged out of core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.coding import Words
from core.histogram import Histogram, HistogramCounter, add_parts, merge_parts, merge_sql, merge_way
from core.lattice import Node
from core.projections import Bundles, Crowd, Projection, SparseProjection
from core.rollups import packing_of
from schemas.errors import SourceError
from schemas.job import Job
from schemas.method import full_domain
from schemas.tables import histogram_schema
from tasks.artifacts import Artifact, Store, key_of
from tasks.coding import CellCoder, Coding, load_coding
from tasks.database import connect, literal
from tasks.domains import axis_names
from tasks.reading import read_chunk
from tasks.sources import Chunk
from tasks.tables import read_table, write_table

VERSION = 1


def cell_table(words: Words, counts: pa.Array) -> pa.Table:
    """Returns cells and counts as the table that artefacts hold."""
    return pa.table({f"cell_{number}": word for number, word in enumerate(words)} | {"count": counts})


def counted_at(job: Job, coding: Coding, root: Node) -> Node:
    """Returns the node at which chunks are counted: the finest, from which any root can be added up, or the paper's dense root itself."""
    return root if full_domain(job.method).root == "dense" else coding.finest


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
            for batch in read_chunk(chunk, axis_names(job)):
                counter.add(coder.cells(batch.columns[: len(root)]))
        except LookupError:
            raise SourceError.changed(chunk.file.name) from None
        words, counts = counter.result()
        return write_table(path, cell_table(words, counts), histogram_schema(len(words)), "histograms", "cell_0")

    return store.make("histograms", histogram_key(coding, root, chunk), ".parquet", write)


def merge_histograms(job: Job, domain: Artifact, root: Node, parts: Sequence[Artifact], store: Store, spill: Path) -> Artifact:
    """Sums the histograms of all chunks into the root histogram, ascending by cell.

    Args:
        job: Gives the memory.
        domain: The domain table.
        root: The root.
        parts: Histograms at the node that ``counted_at`` gives.
        store: Gets the sum.
        spill: Folder for what does not fit into memory.
    """
    coding = load_coding(job, domain, store)
    if root != counted_at(job, coding, root):
        return count_roots(coding, [root], parts, store, packing_of(root, coding.axes).product)[0]
    packing = packing_of(root, coding.axes)
    schema = histogram_schema(len(packing.words))
    way = merge_way(packing.product, sum(part.rows for part in parts), job.memory)

    def write(path: Path) -> int:
        if way == "spill":
            return _spill(job, [store.path(part) for part in parts], len(packing.words), path, spill)
        pieces = (_columns(read_table(store, part, schema)) for part in parts)
        words, counts = (add_parts if way == "dense" else merge_parts)(pieces, packing.product)
        return write_table(path, cell_table(words, counts), schema, "histogram", "cell_0")

    key = key_of(VERSION, coding.key, root, sorted(part.sha256 for part in parts))
    return store.make("histogram", key, ".parquet", write)


def roots_key(coding: Coding, root: Node, parts: Sequence[Artifact]) -> str:
    """Returns the fingerprint of a root histogram that is added up from histograms at the finest node."""
    return key_of(VERSION, coding.key, root, "rolled up", sorted(part.sha256 for part in parts))


def count_roots(coding: Coding, roots: Sequence[Node], parts: Sequence[Artifact], store: Store, most_cells: int) -> list[Artifact]:
    """Adds the chunks' histograms at the finest node up to those of coarser roots, all in one pass.

    Args:
        coding: Of the run.
        roots: Nodes whose occupied cells fit the memory.
        parts: Histograms at the finest node.
        store: Gets one histogram per root.
        most_cells: Most cells of an array with an entry per possible cell.
    """
    found = {root: store.find("histogram", roots_key(coding, root, parts)) for root in roots}
    sums = {root: _projection(coding, root, most_cells) for root, kept in found.items() if kept is None}
    if sums:
        for codes, counts in _cells(coding, parts, store):
            for projection in sums.values():
                projection.add(codes, counts)
    for root, projection in sums.items():
        summed = projection.result()
        table = cell_table(summed.words, summed.counts)
        found[root] = store.make("histogram", roots_key(coding, root, parts), ".parquet", _writer(table))
    return [kept for root in roots if (kept := found[root])]


def _projection(coding: Coding, root: Node, most_cells: int) -> Projection | SparseProjection:
    if packing_of(root, coding.axes).product <= most_cells:
        return Projection(coding.finest, root, coding.axes, coding.records)
    return SparseProjection(coding.finest, root, coding.axes)


def _writer(table: pa.Table) -> Callable[[Path], int]:
    return lambda path: write_table(path, table, histogram_schema(table.num_columns - 1), "histogram", "cell_0")


def surely_crowded(coding: Coding, nodes: Sequence[Node], parts: Sequence[Artifact], most: int, store: Store) -> list[bool]:
    """Tells of each node whether its records fall into more than so many cells; reads no more of them than it takes to be sure."""
    crowds = [Crowd(coding.finest, node[: len(coding.domains)], coding.axes, most) for node in nodes]
    for codes, _ in _cells(coding, parts, store):
        waiting = [crowd for crowd in crowds if crowd.at_least <= most]
        if not waiting:
            break
        for crowd in waiting:
            crowd.add(codes)
    return [crowd.at_least > most for crowd in crowds]


def _cells(coding: Coding, parts: Sequence[Artifact], store: Store) -> Iterator[tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.int64]]]:
    bundles = Bundles(packing_of(coding.finest, coding.axes))
    for part in parts:
        # Checked when it was written, and its digest since.
        words, counts = _columns(read_table(store, part))
        yield bundles.codes(words), counts


def _spill(job: Job, parts: Sequence[Path], words: int, path: Path, spill: Path) -> int:
    statement = merge_sql([literal(str(part)) for part in parts], words)
    with connect(job, spill) as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.execute(f"COPY ({statement}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION lz4_raw)")
        found = connection.execute(f"SELECT count(*) FROM read_parquet({literal(str(path))})").fetchone()
    assert found is not None
    return int(found[0])


def _columns(table: pa.Table) -> tuple[Words, NDArray[np.int64]]:
    words = tuple(table[f"cell_{number}"].to_numpy() for number in range(table.num_columns - 1))
    return words, table["count"].to_numpy().astype(np.int64, copy=False)


def load_histogram(artifact: Artifact, coding: Coding, root: Node, store: Store) -> Histogram:
    """Reads the root histogram into memory."""
    packing = packing_of(root, coding.axes)
    return Histogram(root, packing, *_columns(read_table(store, artifact, histogram_schema(len(packing.words)))))
