"""What a search asks of the histograms of chunks: further roots, and which nodes have too many cells; here, or of tasks of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.columns.node import Node
from schemas.job.job import Job
from tasks.counting.bundles import bundled_histograms
from tasks.counting.coding import Coding, load_coding
from tasks.counting.histograms import add_histograms, count_roots, histogram_key, surely_crowded
from tasks.engine.calls import Call, groups
from tasks.engine.runs import Run
from tasks.engine.steps import map_step, workers_elsewhere
from tasks.store.keys import Step
from tasks.store.store import Artifact, Store

STEP = Step("crowded", __name__)


@dataclass(frozen=True)
class ChunkSums:
    """The histograms of chunks at the finest node, as a search asks for them; this process reads them.

    Attributes:
        parts: The histograms.
        store: Has them, and gets what is added up.
    """

    parts: Sequence[Artifact]
    store: Store

    def roots(self, coding: Coding, roots: Sequence[Node], most_cells: int) -> list[Artifact]:
        """Returns the histograms of coarser roots; arguments as of ``count_roots``.

        Raises:
            StorageError: artefacts are gone.
            SkaldError: whatever a task raises.
        """
        return count_roots(coding, roots, self.parts, self.store, most_cells)

    def crowded(self, coding: Coding, nodes: Sequence[Node], most: int, memory: int) -> list[bool]:
        """Tells of each node whether its records fall into more than so many cells; arguments as of ``surely_crowded``.

        Raises:
            StorageError: artefacts are gone.
            SkaldError: whatever a task raises.
        """
        return surely_crowded(coding, nodes, self.parts, most, self.store, memory)


@dataclass(frozen=True)
class ChunkSumsInTasks(ChunkSums):
    """The same, read by tasks on the workers of a cluster: this process gets sums of few, and answers.

    Attributes:
        run: The run.
        domain: The domain table.
    """

    run: Run
    domain: Artifact

    def roots(self, coding: Coding, roots: Sequence[Node], most_cells: int) -> list[Artifact]:
        """Has the histograms added up as a tree, root by root; what is there already is not made again.

        Raises:
            StorageError: artefacts are gone.
            WithdrawnError: the run ended meanwhile.
            SkaldError: whatever a task raises.
        """
        return [self.store.find("histogram", histogram_key(coding, root, self.parts)) or self._root(coding, root) for root in roots]

    def _root(self, coding: Coding, root: Node) -> Artifact:
        run, bundles = self.run, bundled_histograms(self.run, self.domain, coding, root, self.parts)
        return add_histograms(run.job, self.domain, root, self.parts, run.store, run.spill, bundles)

    def crowded(self, coding: Coding, nodes: Sequence[Node], most: int, memory: int) -> list[bool]:
        """Has some of the nodes looked at by each worker, in a quarter of what a task may take.

        Raises:
            StorageError: artefacts are gone.
            WithdrawnError: the run ended meanwhile.
            SkaldError: whatever a task raises.
        """
        job, cuts = self.run.job, groups(nodes, max(workers_elsewhere(), 1))
        most_memory = min(memory, job.task_memory // 4)
        # Marks are worth nothing to another run: each task tells yes or no.
        calls = [
            Call.once(STEP, f"marks {number} of {len(cuts)}", (job, self.domain, nodes, self.parts, most, most_memory, self.store))
            for number, nodes in enumerate(cuts, start=1)
        ]
        return [full for found in map_step(self.run, "marks", tell_crowded, calls) for full in found]


def tell_crowded(
    job: Job, domain: Artifact, nodes: Sequence[Node], parts: Sequence[Artifact], most: int, memory: int, store: Store
) -> list[bool]:
    """Tells of each node whether its records fall into more than so many cells, for the task of a worker.

    Args:
        job: The job.
        domain: The domain table.
        nodes: Which are asked about.
        parts: Histograms at the finest node.
        most: How many cells are not too many.
        memory: Bytes of marks that are held at a time.
        store: Where the parts are.

    Raises:
        HierarchyError: a hierarchy does not fit its column.
        JobError: hierarchy files that cannot be read, all at once.
        StorageError: artefacts are gone.
    """
    return surely_crowded(load_coding(job, domain, store), nodes, parts, most, store, memory)


def sums_of_chunks(run: Run, domain: Artifact, parts: Sequence[Artifact]) -> ChunkSums:
    """Returns what a search asks the histograms of chunks by: tasks where a cluster has workers."""
    return ChunkSumsInTasks(parts, run.store, run, domain) if workers_elsewhere() else ChunkSums(parts, run.store)
