"""Phase 2: the root histogram, merged out of core from the chunks' histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from core.columns.data_parallel import each_in_parallel, feed_in_parallel
from core.columns.domains import Node
from core.histograms.cells import packing_of
from core.histograms.histogram import Histogram, add_parts, merge_parts, merge_sql, merge_way
from core.histograms.projections import Bundles, LinearCounting, Projection, SparseProjection
from core.lattice.lattice import BYTES_PER_BIN, BYTES_PER_CELL
from schemas.job.job import Job
from tasks.counting.chunk_counts import OF_CHUNK, cell_columns, cell_table
from tasks.counting.coding import Coding, DomainTable, bundled_cells, cell_files_in_source_coding, cells_in_source_coding
from tasks.engine.calls import Call, groups
from tasks.engine.runs import Run
from tasks.engine.steps import BUNDLES, Merge, count_remote_workers, map_step, merge_on_cluster
from tasks.store.database import connect, parquet_sql, write_parquet
from tasks.store.files import private_folder
from tasks.store.keys import StepCode
from tasks.store.step import FileStep
from tasks.store.store import Artifact, Store
from tasks.store.tables import histogram_schema, read_table, write_table

ROOM = 2
"""Sums are taken out and written at a time as far as their cells are so many times fewer than those that fit the memory."""


class CellAccumulator(Protocol):
    """Interface of accumulators that sum the counts of cells over chunks."""

    def add(self, bundles: Bundles, codes: NDArray[np.unsignedinteger[Any]], counts: NDArray[np.int64]) -> None:
        """Add the counts of finer cells: codes, shape (cells, bundles), and counts, shape (cells,)."""


@dataclass(frozen=True)
class RootTable(DomainTable):
    """The domain table of a run, and a root node of the lattice."""

    root: Node

    @classmethod
    def at(cls, table: DomainTable, root: Node) -> RootTable:
        """Return a domain table extended by a root node of the lattice."""
        return cls(table.job, table.domain, table.store, table.spill, root)


def write_root_histogram(given: RootTable, merge: Merge, path: Path, beside: Sequence[CellAccumulator] = ()) -> int:
    """Sum chunk histograms at the root and write them to ``path``, sorted by cell; return the cell count.

    Args:
        merge: Histograms of chunks at the finest node; bundles are of the root.
        beside: Further accumulators of the chunks' cells, used where these are read one by one for a coarser root.
    """
    if given.root == given.coding.finest or merge.read[0].step != OF_CHUNK:
        return _write_sum(given, merge.read, path, given.spill)
    # A root was chosen because what can be occupied fits, which is no more than there are records. A node that is taken need not fit.
    most = given.job.memory // (BYTES_PER_CELL if has_given_node(given.job) else BYTES_PER_BIN)
    return _write_projection(given, merge.parts, path, most, beside)


HISTOGRAM = FileStep(
    "histogram",
    make=write_root_histogram,
    reads=lambda given, merge: [given.coding.key, given.root, fingerprints(merge.parts)],
)
"""The root histogram of the source."""


def _write_projection(given: RootTable, parts: Sequence[Artifact], path: Path, most: int, beside: Sequence[CellAccumulator] = ()) -> int:
    coding, projection = given.coding, _projection(given.coding, given.root, most)
    feed_in_parallel(lambda to, cells: to.add(*cells), bundled_cells(coding, parts, given.store), [projection, *beside])
    summed = projection.result()
    return _write(cell_table(summed.words, summed.counts), path)


def _write_sum(given: RootTable, parts: Sequence[Artifact], path: Path, spill: Path) -> int:
    job, coding, root, store = given.job, given.coding, given.root, given.store
    packing = packing_of(root, coding.axes)
    way = merge_way(packing.product, sum(part.rows for part in parts), job.memory)
    if way == "spill":
        return _spill(job, cell_files_in_source_coding(coding, parts, store, spill / "cells"), len(packing.words), path, spill)
    if way == "dense":
        words, counts = add_parts((cells_in_source_coding(coding, part, store) for part in parts), packing.product)
    else:
        # All of them are held at a time, and so they are read at a time.
        words, counts = merge_parts(each_in_parallel(lambda part: cells_in_source_coding(coding, part, store), parts), packing.product)
    return _write(cell_table(words, counts), path)


def _bundle(given: RootTable, parts: Sequence[Artifact], path: Path) -> int:
    """Sum some histograms into one of the root node, from finest-node or root histograms."""
    if parts[0].step == OF_CHUNK and given.root != given.coding.finest:
        return _write_projection(given, parts, path, given.job.memory // BYTES_PER_CELL)
    # Several are made at a time on a machine, and each needs a folder of its own.
    return _write_sum(given, parts, path, private_folder(given.store.folder.parent / "spill" / f"bundle-{BUNDLED.key(given, parts)}"))


BUNDLED = FileStep(
    BUNDLES,
    make=_bundle,
    reads=lambda given, parts: [given.coding.key, given.root, fingerprints(parts)],
    phase="bundle histograms",
)
"""A histogram of several chunks at a root, which merges with others of its kind into that of all."""


def bundled_histograms(run: Run, given: RootTable, chunk_histograms: Sequence[Artifact]) -> Sequence[Artifact]:
    """Merge chunk histograms at a root on cluster workers until few are left; unchanged without a cluster."""
    return merge_on_cluster(run, BUNDLED, replace(given, job=given.job.with_task_memory()), chunk_histograms, always_merged=OF_CHUNK)


def has_given_node(job: Job) -> bool:
    """Return whether a job fixes its node: one that it names, or an earlier release's."""
    return job.replay is not None or job.full_domain.node is not None


def fingerprints(artifacts: Sequence[Artifact]) -> list[tuple[str, str]]:
    """Return the sorted (key, SHA-256) pairs of histograms, which identify their sum in any order."""
    return sorted((part.key, part.sha256) for part in artifacts)


def root_histograms(table: DomainTable, roots: Sequence[Node], chunk_histograms: Sequence[Artifact], most_cells: int) -> list[Artifact]:
    """Return the artefact of each root's histogram; sum missing ones over the chunks in one pass.

    Args:
        table: Of the run; its store gets one histogram per root.
        roots: Nodes whose occupied cells fit the memory.
        chunk_histograms: Histograms at the finest node.
        most_cells: Most cells of an array with an entry per possible cell.
    """
    # Looked up before anything is read: one pass serves all that are missing, and none is made where nothing is.
    merge, given = Merge(chunk_histograms), {root: RootTable.at(table, root) for root in roots}
    found = {root: HISTOGRAM.find(of, merge) for root, of in given.items()}
    sums = {root: _projection(table.coding, root, most_cells) for root, kept in found.items() if kept is None}
    if sums:
        feed_in_parallel(lambda to, cells: to.add(*cells), bundled_cells(table.coding, chunk_histograms, table.store), list(sums.values()))

    def kept(root: Node) -> Artifact:
        summed = sums[root].result()
        return HISTOGRAM.save_artifact(given[root], merge, partial(_write, cell_table(summed.words, summed.counts)))

    largest = max((summed.cells for summed in sums.values()), default=0)
    made = dict(zip(sums, each_in_parallel(kept, list(sums), max(most_cells // (ROOM * largest + 1), 1)), strict=True))
    return [there for root in roots if (there := found[root] or made[root])]


def _projection(coding: Coding, root: Node, most_cells: int) -> Projection | SparseProjection:
    if packing_of(root, coding.axes).product <= most_cells:
        return Projection(coding.finest, root, coding.axes, coding.records)
    return SparseProjection(coding.finest, root, coding.axes)


def _write(table: pa.Table, path: Path) -> int:
    return write_table(path, table, histogram_schema(table.num_columns - 1), "histogram", "cell_0")


def surely_too_many_cells(
    table: DomainTable, nodes: Sequence[Node], chunk_histograms: Sequence[Artifact], most_cells: int, memory: int
) -> list[bool]:
    """Return for each node whether its records certainly occupy more than ``most_cells`` cells.

    Reading stops as soon as the answer is sure.

    Args:
        chunk_histograms: Histograms at the finest node.
        most_cells: How many cells are not too many.
        memory: Bytes of marks that are held at a time. What does not fit takes further readings; the answers are the same.
    """
    size = LinearCounting.bytes_for(most_cells)
    shares = 1 << max(-(-size // memory) - 1, 0).bit_length()
    together = max(memory // max(size // shares, 1), 1)
    some = (nodes[first : first + together] for first in range(0, len(nodes), together))
    return [full for each in some for full in _too_many_cells(table.coding, each, chunk_histograms, most_cells, table.store, shares)]


def _too_many_cells(coding: Coding, nodes: Sequence[Node], parts: Sequence[Artifact], most: int, store: Store, shares: int) -> list[bool]:
    """Answer ``surely_too_many_cells`` for nodes whose counting bitmaps fit the memory together."""
    counting_bitmaps = [LinearCounting(coding.finest, node[: len(coding.domains)], coding.axes, most, shares) for node in nodes]
    for share in range(shares):
        # Once a node has too many cells, it has too many whatever else is read.
        waiting = [counting_bitmap for counting_bitmap in counting_bitmaps if counting_bitmap.at_least <= most]
        if share:
            for counting_bitmap in waiting:
                counting_bitmap.start_next_share()
        _mark(coding, parts, waiting, most, store)
    return [counting_bitmap.at_least > most for counting_bitmap in counting_bitmaps]


def _mark(coding: Coding, parts: Sequence[Artifact], counting_bitmaps: list[LinearCounting], most: int, store: Store) -> None:
    """Add cells to counting bitmaps until each shows too many cells, or all are read."""
    if not counting_bitmaps:
        return
    for bundles, codes, _ in bundled_cells(coding, parts, store):
        counting_bitmaps = [counting_bitmap for counting_bitmap in counting_bitmaps if counting_bitmap.at_least <= most]
        if not counting_bitmaps:
            return
        for counting_bitmap in counting_bitmaps:
            counting_bitmap.add(bundles, codes)


def _spill(job: Job, parts: Sequence[Path], words: int, path: Path, spill: Path) -> int:
    statement = merge_sql(parquet_sql(parts), words)
    with connect(job, spill) as connection:
        connection.execute("SET preserve_insertion_order = true")
        return write_parquet(connection, statement, path, "COMPRESSION lz4_raw")


def load_histogram(artifact: Artifact, coding: Coding, root: Node, store: Store) -> Histogram:
    """Return a stored histogram, of a root or of a chunk at the finest node, in the source's coding."""
    packing = packing_of(root, coding.axes)
    if artifact.step == OF_CHUNK:
        return Histogram(root, packing, *cells_in_source_coding(coding, artifact, store))
    return Histogram(root, packing, *cell_columns(read_table(store, artifact)))


CROWDED = StepCode("crowded", __name__)


@dataclass(frozen=True)
class ChunkSums:
    """Summing of chunks' finest-node histograms to coarser roots, for a search, in this process."""

    table: DomainTable
    parts: Sequence[Artifact]

    def roots(self, roots: Sequence[Node], most_cells: int) -> list[Artifact]:
        """Return the artefact of each root's histogram; sum missing ones over the chunks in one pass."""
        return root_histograms(self.table, roots, self.parts, most_cells)

    def nodes_with_too_many_cells(self, nodes: Sequence[Node], most_cells: int, memory: int) -> list[bool]:
        """Return, for each node, whether its records certainly occupy more than ``most_cells`` cells.

        Arguments are as of ``surely_too_many_cells``.
        """
        return surely_too_many_cells(self.table, nodes, self.parts, most_cells, memory)


@dataclass(frozen=True)
class DistributedChunkSums(ChunkSums):
    """Summing of chunks' finest-node histograms to coarser roots, for a search, in cluster tasks."""

    run: Run

    def roots(self, roots: Sequence[Node], most_cells: int) -> list[Artifact]:
        """Return the artefact of each root's histogram; cluster workers sum the missing ones."""
        given, merge = (RootTable.at(self.table, root) for root in roots), Merge(self.parts)
        return [HISTOGRAM.find(of, merge) or self._root(of) for of in given]

    def _root(self, given: RootTable) -> Artifact:
        return HISTOGRAM.result(given, Merge(self.parts, bundled_histograms(self.run, given, self.parts)))

    def nodes_with_too_many_cells(self, nodes: Sequence[Node], most_cells: int, memory: int) -> list[bool]:
        """Return for each node whether it certainly has more than ``most_cells`` cells, counted by workers.

        Each worker takes a quarter of a task's memory.
        """
        cuts = groups(nodes, max(count_remote_workers(), 1))
        most_memory = min(memory, self.run.job.task_memory // 4)
        # Marks are worth nothing to another run: each task tells yes or no.
        calls = [
            Call.once(CROWDED, f"marks {number} of {len(cuts)}", (self.table, nodes, self.parts, most_cells, most_memory))
            for number, nodes in enumerate(cuts, start=1)
        ]
        return [full for found in map_step(self.run, "marks", surely_too_many_cells, calls) for full in found]


def sums_of_chunks(run: Run, domain: Artifact, chunk_histograms: Sequence[Artifact]) -> ChunkSums:
    """Return the object that sums chunk histograms for a search, on cluster workers if there are any."""
    table = DomainTable.of(run, domain)
    return DistributedChunkSums(table, chunk_histograms, run) if count_remote_workers() else ChunkSums(table, chunk_histograms)
