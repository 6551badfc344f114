"""What a search asks of the histograms of chunks: further roots, and which nodes have too many cells; here, or of tasks of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.columns.node import Node
from tasks.counting.bundles import Merge
from tasks.counting.coding import DomainTable
from tasks.counting.histograms import HISTOGRAM, RootTable, bundled_histograms, count_roots, surely_too_many_cells
from tasks.engine.calls import Call, groups
from tasks.engine.runs import Run
from tasks.engine.steps import count_remote_workers, map_step
from tasks.store.keys import StepCode
from tasks.store.store import Artifact

CROWDED = StepCode("crowded", __name__)


@dataclass(frozen=True)
class ChunkSums:
    """The histograms of chunks at the finest node, as a search asks for them; this process reads them.

    Attributes:
        table: The domain table of the run.
        parts: The histograms.
    """

    table: DomainTable
    parts: Sequence[Artifact]

    def roots(self, roots: Sequence[Node], most_cells: int) -> list[Artifact]:
        """Returns the histograms of coarser roots; arguments as of ``count_roots``.

        Raises:
            SkaldError: artefacts are gone, or whatever a task raises.
        """
        return count_roots(self.table, roots, self.parts, most_cells)

    def has_too_many_cells(self, nodes: Sequence[Node], most: int, memory: int) -> list[bool]:
        """Tells of each node whether its records fall into more than so many cells; arguments as of ``surely_too_many_cells``.

        Raises:
            SkaldError: artefacts are gone, or whatever a task raises.
        """
        return surely_too_many_cells(self.table.coding, nodes, self.parts, most, self.table.store, memory)


@dataclass(frozen=True)
class ChunkSumsInTasks(ChunkSums):
    """The same, read by tasks on the workers of a cluster: this process gets sums of few, and answers."""

    run: Run

    def roots(self, roots: Sequence[Node], most_cells: int) -> list[Artifact]:
        """Has the histograms added up as a tree, root by root; what is there already is not made again.

        Raises:
            SkaldError: artefacts are gone, or whatever a task raises.
        """
        given, merge = (RootTable.at(self.table, root) for root in roots), Merge(self.parts)
        return [HISTOGRAM.find(of, merge) or self._root(of) for of in given]

    def _root(self, given: RootTable) -> Artifact:
        return HISTOGRAM.result(given, Merge(self.parts, bundled_histograms(self.run, given, self.parts)))

    def has_too_many_cells(self, nodes: Sequence[Node], most: int, memory: int) -> list[bool]:
        """Has some of the nodes looked at by each worker, in a quarter of what a task may take.

        Raises:
            SkaldError: artefacts are gone, or whatever a task raises.
        """
        cuts = groups(nodes, max(count_remote_workers(), 1))
        most_memory = min(memory, self.run.job.task_memory // 4)
        # Marks are worth nothing to another run: each task tells yes or no.
        calls = [
            Call.once(CROWDED, f"marks {number} of {len(cuts)}", (self.table, nodes, self.parts, most, most_memory))
            for number, nodes in enumerate(cuts, start=1)
        ]
        return [full for found in map_step(self.run, "marks", count_linearly, calls) for full in found]


def count_linearly(table: DomainTable, nodes: Sequence[Node], parts: Sequence[Artifact], most: int, memory: int) -> list[bool]:
    """Tells of each node whether its records fall into more than so many cells, for the task of a worker.

    Args:
        table: Of the run.
        nodes: Which are asked about.
        parts: Histograms at the finest node.
        most: How many cells are not too many.
        memory: Bytes of marks that are held at a time.

    Raises:
        HierarchyError: a hierarchy does not fit its column.
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: artefacts are gone.
    """
    return surely_too_many_cells(table.coding, nodes, parts, most, table.store, memory)


def sums_of_chunks(run: Run, domain: Artifact, parts: Sequence[Artifact]) -> ChunkSums:
    """Returns what a search asks the histograms of chunks by: tasks where a cluster has workers."""
    table = DomainTable.of(run, domain)
    return ChunkSumsInTasks(table, parts, run) if count_remote_workers() else ChunkSums(table, parts)
